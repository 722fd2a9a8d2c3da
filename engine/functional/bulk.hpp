#pragma once
#include "functional/access.hpp"
#include "functional/copies.hpp"
#include "functional/element_reduction.hpp"
#include "functional/mbarrier.hpp"

/// Shared by asynchronous copies. All take effect immediately; groups and mbarriers only report completion.
namespace simt::functional {

inline void lane_addresses(const Context& c, const Address& address, uint64_t* out) {
  lane_addresses(c, address.base, address.place, address.offset, out);
}

/// An address operand that must be in global or shared memory.
inline Address memory_address(Translation& t, uint32_t operand) {
  const Address address = t.address(t.operand(operand));
  if (address.base == Address::Base::Stack) t.unsupported("an address in local memory or parameters");
  return address;
}

Direction take_direction(Translation& t);

/// How a bulk copy signals its completion.
enum class Completion : uint8_t { Group, Mbarrier };
Completion take_completion(Translation& t);

/// cp.async.bulk.tensor and its variants. `reduces`, `prefetches`: given by the modifiers before .tensor.
void translate_bulk_tensor(Translation& t, bool reduces, bool prefetches);  // ops_tensor.cpp

}  // namespace simt::functional
