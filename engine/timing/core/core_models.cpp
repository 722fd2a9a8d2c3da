#include <stdexcept>

#include "timing/core/operand_collector_core.hpp"
#include "timing/core/read_ports_core.hpp"
#include "timing/core/sm_with.hpp"

// The only place that knows all core models.

namespace simt {

extern template class SmWith<OperandCollectorCore>;
extern template class SmWith<ReadPortsCore>;

namespace {

struct CoreFactory {
  const CoreTraits& traits;
  std::unique_ptr<Sm> (*make)(const Spec&, uint16_t, uint32_t, Cycle, MemoryPort&);
};

template <CoreModel Core>
constexpr CoreFactory factory{
    Core::traits, [](const Spec& spec, uint16_t id, uint32_t launch_slots, Cycle deferral, MemoryPort& port) {
      return std::unique_ptr<Sm>(std::make_unique<SmWith<Core>>(spec, id, launch_slots, deferral, port));
    }};

const CoreFactory& factory_of(const Spec& spec) {
  switch (spec.sm.register_file.model) {
    case OperandModel::OperandCollector:
      return factory<OperandCollectorCore>;
    case OperandModel::ReadPorts:
      return factory<ReadPortsCore>;
  }
  throw std::invalid_argument("unknown core model");
}

}  // namespace

const CoreTraits& core_traits(const Spec& spec) {
  return factory_of(spec).traits;
}

std::unique_ptr<Sm> Sm::make(const Spec& spec, uint16_t id, uint32_t launch_slots, Cycle deferral,
                             MemoryPort& port) {
  return factory_of(spec).make(spec, id, launch_slots, deferral, port);
}

}  // namespace simt
