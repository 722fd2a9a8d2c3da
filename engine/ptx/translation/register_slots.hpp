#pragma once
#include <algorithm>

#include "machine/calls.hpp"
#include "ptx/interface_registers.hpp"

/// Parameters and results in registers, which pass through the stack.
namespace simt::functional {

/// Size of a register in the stack.
inline uint32_t slot_bytes(ptx::Type type) {
  return type == ptx::Type::Pred ? predicate_bytes : std::max(4u, ptx::bytes(type));
}
/// Size of a parameter or result that is a register, or a vector of them.
inline uint32_t slot_bytes(const ptx::Variable& variable) {
  return slot_bytes(variable.type) * ptx::register_count(variable);
}

/// f(place, slot) for each part of a register that is copied at once: 128 bits are two rows of 64.
template <class F>
void each_slot(ptx::Type type, Place place, uint32_t offset, F f) {
  constexpr uint32_t most = 8;
  const uint32_t bytes = slot_bytes(type);
  for (uint32_t at = 0; at < bytes; at += most)
    f(place + at / 4 * place::register_bytes, StackSlot{offset + at, std::min(bytes, most)});
}

}  // namespace simt::functional
