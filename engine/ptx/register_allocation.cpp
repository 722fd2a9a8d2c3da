#include "ptx/register_allocation.hpp"
namespace simt::ptx {
Access access(const Function&, const Module&, uint32_t) {
  return {};
}
RegisterAllocation allocate_registers(const Function& f, const Module&, const ControlFlow&) {
  RegisterAllocation a;
  for (auto& r : f.registers) {
    if (r.type == Type::Pred) {
      a.place.push_back(a.predicates++);
      continue;
    }
    uint32_t w = bytes(r.type) > 8 ? 4 : bytes(r.type) > 4 ? 2 : 1;
    a.registers = (a.registers + w - 1) / w * w;
    a.place.push_back(a.registers);
    a.registers += w;
  }
  a.max_live = a.registers;
  return a;
}
}  // namespace simt::ptx
