#pragma once
#include <algorithm>
#include <cstring>

#include "functional/cta.hpp"
#include "functional/grid.hpp"
#include "functional/lanes.hpp"
#include "functional/translator.hpp"

/// What instructions that access memory have in common.
namespace simt::functional {

/// The state space that an instruction names.
enum class AccessSpace : uint8_t { Generic, Global, Shared, Local };

/// Takes the space modifier. Constant and parameter memory are in global memory here.
AccessSpace take_space(Translation& t);

/// Byte addresses of the lanes in their space, from Op::a and Op::immediate.
inline void lane_addresses(const Context& c, const Op& op, Address::Base base, uint64_t* out) {
  const auto add = static_cast<uint64_t>(op.immediate);
  switch (base) {
    case Address::Base::Wide: {
      const uint64_t* a = c.lanes<const uint64_t>(op.a);
      for (uint32_t i = 0; i < warp_lanes; ++i) out[i] = a[i] + add;
      break;
    }
    case Address::Base::Narrow: {
      const uint32_t* a = c.lanes<const uint32_t>(op.a);
      for (uint32_t i = 0; i < warp_lanes; ++i) out[i] = uint64_t{a[i]} + add;
      break;
    }
    case Address::Base::Stack:
      for (uint32_t i = 0; i < warp_lanes; ++i) out[i] = c.stack + add;
      break;
  }
}

/// Sets base, place and offset of an Op from an address operand.
inline void set_address(Op& op, const Address& address) {
  op.a = address.place;
  op.immediate = address.offset;
}

/// Writes down generic addresses where somebody asks.
inline void record_access(const Context& c, AccessSpace space, const uint64_t* addresses) {
  if (!c.record) return;
  const uint64_t add = space == AccessSpace::Shared  ? window::shared
                       : space == AccessSpace::Local ? window::local
                                                     : 0;
  c.record->mask = c.mask;
  for (uint32_t i = 0; i < warp_lanes; ++i) c.record->address[i] = addresses[i] + add;
  if (add == 0 && c.record->weak && c.record->gate) c.record->gate->check(*c.record);
}

/// Host address of one lane's access.
template <AccessSpace space>
inline std::byte* host_address(Context& c, uint64_t address, uint64_t bytes, int lane) {
  if constexpr (space == AccessSpace::Global) return c.global(address, bytes, lane);
  if constexpr (space == AccessSpace::Shared) return c.shared(address, bytes, lane);
  if constexpr (space == AccessSpace::Local) return c.local(address, bytes, lane);
  return c.generic(address, bytes, lane);
}
std::byte* host_address(Context& c, AccessSpace space, uint64_t address, uint64_t bytes, int lane);

/// Throws Fault for the first lane whose address is no multiple of `bytes` (a power of two).
inline void check_alignment(const Context& c, const uint64_t* addresses, uint64_t bytes) {
  uint64_t low = 0;
  for (uint32_t i = 0; i < warp_lanes; ++i) low |= (c.mask >> i) & 1 ? addresses[i] : 0;
  if ((low & (bytes - 1)) == 0) [[likely]]
    return;
  each_lane(c, [&](int i) {
    if (addresses[i] & (bytes - 1)) misaligned(addresses[i], bytes, i);
  });
}

}  // namespace simt::functional
