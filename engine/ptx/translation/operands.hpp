#pragma once
#include "machine/access.hpp"
#include "ptx/translation/translator.hpp"

/// Operands and modifiers that instructions which access memory share.
namespace simt::functional {

/// Takes the space modifier. Constant and parameter memory are in global memory here.
AccessSpace take_space(Translation& t);

/// Takes .L2::cache_hint. If the instruction has it, its last operand is a cache policy.
inline bool take_cache_hint(Translation& t) {
  return t.take("L2::cache_hint");
}
/// Gives the access that was emitted last the cache policy in the last operand.
void set_cache_policy(Translation& t, uint32_t from_end = 1);

/// An address operand that must be in global or shared memory.
inline Address memory_address(Translation& t, uint32_t operand) {
  const Address address = t.address(t.operand(operand));
  if (address.base == Address::Base::Stack) t.unsupported("an address in local memory or parameters");
  return address;
}

}  // namespace simt::functional
