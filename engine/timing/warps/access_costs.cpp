#include "timing/warps/access_costs.hpp"

#include <algorithm>

#include "timing/warps/read_ports.hpp"

namespace simt {
namespace {

/// Cycles from issue until the operands have been read, for 32, 64 and 128 bits.
struct ReadTimes {
  std::array<uint8_t, 3> cycles;
};

constexpr ReadTimes load_global = {{11, 11, 11}}, load_global_uniform = {{9, 9, 9}},
                    store_global = {{14, 16, 20}}, store_global_uniform = {{10, 12, 16}},
                    load_shared = {{9, 9, 9}}, store_shared = {{12, 14, 18}},
                    store_shared_uniform = {{10, 12, 16}}, copy_to_shared = {{13, 13, 13}};
// By how much later a wide result is written than a narrow one. Shared loads also take passes: those of one
// address, as in the paper, 1, 1 and 2.
constexpr std::array<uint8_t, 3> global_result = {0, 2, 6}, shared_result = {0, 0, 1};
constexpr uint8_t load_constant = 10, load_constant_indexed = 29, constant_result_indexed = 3;
constexpr uint8_t uniform_global_saves = 3, uniform_shared_saves = 1;  // of a load's latency

bool address_is_uniform(const StaticInstruction& s) {
  for (uint32_t i = 0; i < s.source_count; ++i)
    if (s.source_slots[i] == 0 && s.sources[i].file == RegisterFile::General && s.sources[i].index != 255)
      return false;
  return true;
}

/// Index into the tables: of the widest register that holds data.
size_t width_index(const StaticInstruction& s, bool reads_data) {
  uint32_t width = 1;
  if (!reads_data)
    for (uint32_t i = 0; i < s.destination_count; ++i)
      width = std::max<uint32_t>(width, s.destinations[i].width);
  else
    for (uint32_t i = 0; i < s.source_count; ++i)
      if (s.source_slots[i] != 0) width = std::max<uint32_t>(width, s.sources[i].width);
  return width <= 1 ? 0 : width == 2 ? 1 : 2;
}

void set_memory_costs(DecodedInstruction& d) {
  const StaticInstruction& s = d.fixed;
  const bool shared = s.space == MemorySpace::Shared, uniform = address_is_uniform(s);
  const bool reads_data = s.operation == Operation::Store || s.operation == Operation::Atomic ||
                          s.operation == Operation::Reduction;
  const size_t width = width_index(s, reads_data);
  ReadTimes times = uniform ? load_global_uniform : load_global;
  if (s.operation == Operation::AsyncCopy)
    times = copy_to_shared;
  else if (reads_data)
    times = shared ? (uniform ? store_shared_uniform : store_shared)
                   : (uniform ? store_global_uniform : store_global);
  else if (shared)
    times = load_shared;
  if (s.operation == Operation::Load) {
    if (uniform) d.issue.departs_early = shared ? uniform_shared_saves : uniform_global_saves;
    d.issue.result_delay = (shared ? shared_result : global_result)[width];
  }
  d.issue.operands_read = static_cast<uint8_t>(times.cycles[width] - (access_first - d.issue.departs_early));
}

}  // namespace

void set_access_costs(DecodedInstruction& d) {
  if (d.memory_pipeline) {
    set_memory_costs(d);
  } else if (d.fixed.operation == Operation::Load && d.fixed.space == MemorySpace::Constant) {
    const bool indexed = !address_is_uniform(d.fixed);
    d.issue.operands_read = indexed ? load_constant_indexed : load_constant;
    d.issue.result_delay = indexed ? constant_result_indexed : 0;
  } else {
    d.issue.operands_read = ReadPorts::first_read + ReadPorts::window;
  }
}

}  // namespace simt
