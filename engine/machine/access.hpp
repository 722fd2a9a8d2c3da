#pragma once
#include <algorithm>
#include <cstring>

#include "machine/address.hpp"
#include "machine/cta.hpp"
#include "machine/grid.hpp"
#include "machine/lanes.hpp"
#include "machine/observer.hpp"

/// Shared by all instructions that access memory.
namespace simt::functional {

/// The state space an instruction names.
enum class AccessSpace : uint8_t { Generic, Global, Shared, Local };

/// The generic address of one in a state space.
inline uint64_t generic_address(AccessSpace space, uint64_t address) {
  return space == AccessSpace::Shared  ? address + window::shared
         : space == AccessSpace::Local ? address + window::local
                                       : address;
}

/// Byte addresses of all lanes, within the instruction's state space.
inline void lane_addresses(const Context& c, Address::Base base, Place place, int64_t offset, uint64_t* out) {
  const auto add = static_cast<uint64_t>(offset);
  switch (base) {
    case Address::Base::Wide: {
      const uint64_t* a = c.lanes<const uint64_t>(place);
      for (uint32_t i = 0; i < warp_lanes; ++i) out[i] = a[i] + add;
      break;
    }
    case Address::Base::Narrow: {
      const uint32_t* a = c.lanes<const uint32_t>(place);
      for (uint32_t i = 0; i < warp_lanes; ++i) out[i] = a[i] + static_cast<uint32_t>(add);
      break;
    }
    case Address::Base::Own: {
      const uint32_t* a = c.lanes<const uint32_t>(place);
      for (uint32_t i = 0; i < warp_lanes; ++i)
        out[i] = ((a[i] + static_cast<uint32_t>(add)) & window::own_shared) + c.own_shared;
      break;
    }
    case Address::Base::Pair: {
      const uint32_t* a = c.lanes<const uint32_t>(place);
      for (uint32_t i = 0; i < warp_lanes; ++i) out[i] = (a[i] | uint64_t{a[i + warp_lanes]} << 32) + add;
      break;
    }
    case Address::Base::Stack:
      for (uint32_t i = 0; i < warp_lanes; ++i) out[i] = c.stack + add;
      break;
  }
}
inline void lane_addresses(const Context& c, const Address& address, uint64_t* out) {
  lane_addresses(c, address.base, address.place, address.offset, out);
}
/// From Op::a and Op::immediate.
inline void lane_addresses(const Context& c, const Op& op, Address::Base base, uint64_t* out) {
  lane_addresses(c, base, op.a, op.immediate, out);
}

/// Sets an Op's base, place and offset from an address operand.
inline void set_address(Op& op, const Address& address) {
  op.a = address.place;
  op.immediate = address.offset;
}

/// Records generic addresses if Context::record is set.
inline void record_access(const Context& c, AccessSpace space, const uint64_t* addresses) {
  if (!c.record) return;
  const uint64_t add = generic_address(space, 0);
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

/// Whether lane i accesses first + i * stride, for all 32 lanes.
inline bool consecutive(const uint64_t* a, uint64_t stride) {
  if (a[1] - a[0] != stride) return false;
  uint64_t differs = 0;
  for (uint32_t i = 0; i < warp_lanes; ++i) differs |= a[i] ^ (a[0] + i * stride);
  return differs == 0;
}

/// Host address of an access in which the 32 lanes touch consecutive elements, or nullptr if it is not
/// contiguous in host memory.
template <AccessSpace space>
inline std::byte* block_address(Context& c, const uint64_t* a, uint64_t bytes) {
  if (!c.full() || !consecutive(a, bytes)) return nullptr;
  const uint64_t all = bytes * warp_lanes;
  // A generic address inside an allocation is a global address.
  if constexpr (space == AccessSpace::Global || space == AccessSpace::Generic) return c.one_piece(a[0], all);
  if constexpr (space == AccessSpace::Shared) {
    const uint64_t size = c.cta->shared_bytes(), offset = a[0] - c.own_shared;
    if (offset <= size && all <= size - offset) return c.cta->shared() + offset;
  }
  return nullptr;
}

/// OR of all lanes' addresses, active or not: an upper bound on the largest address.
inline uint64_t address_bits(const uint64_t* a) {
  uint64_t bits = 0;
  for (uint32_t i = 0; i < warp_lanes; ++i) bits |= a[i];
  return bits;
}

/// Whether every active lane's address, minus `begin`, lies within `size` bytes.
inline bool all_within(const Context& c, const uint64_t* a, uint64_t begin, uint64_t size, uint64_t bytes) {
  const auto fits = [&](uint64_t most) { return most < size && bytes <= size - most; };
  uint64_t bits = 0;
  for (uint32_t i = 0; i < warp_lanes; ++i) bits |= a[i] - begin;
  if (fits(bits)) return true;
  uint64_t most = 0;
  for (uint32_t i = 0; i < warp_lanes; ++i) most = std::max(most, (c.mask >> i) & 1 ? a[i] - begin : 0);
  return fits(most);
}

/// If all lanes' accesses lie in one contiguous piece of host memory: its base, and each active lane's offset
/// from it (0 for inactive lanes). Otherwise nullptr.
template <AccessSpace space>
inline std::byte* base_address(Context& c, const uint64_t* a, uint64_t bytes, uint64_t* distance) {
  const auto keep = [&](uint64_t begin, uint64_t stride) {
    for (uint32_t i = 0; i < warp_lanes; ++i) distance[i] = a[i] - begin + i * stride;
    if (!c.full())
      for (uint32_t i = 0; i < warp_lanes; ++i) distance[i] = (c.mask >> i) & 1 ? distance[i] : 0;
  };
  const uint64_t first = a[c.first_lane()];
  if (space == AccessSpace::Shared || (space == AccessSpace::Generic && window::is_shared(first))) {
    const uint64_t begin = (space == AccessSpace::Shared ? 0 : window::shared) + c.own_shared;
    if (!all_within(c, a, begin, c.cta->shared_bytes(), bytes)) return nullptr;
    keep(begin, 0);
    return c.cta->shared();
  }
  if (space == AccessSpace::Local || (space == AccessSpace::Generic && window::is_local(first))) {
    const uint64_t begin = space == AccessSpace::Local ? 0 : window::local;
    const uint64_t each = c.grid->local_bytes();
    if (!all_within(c, a, begin, each, bytes)) return nullptr;
    keep(begin, each);
    return c.cta->local(c.warp->number(), 0);
  }
  uint64_t least = first, most = first;
  for (uint32_t i = 0; i < warp_lanes; ++i) {
    const uint64_t v = (c.mask >> i) & 1 ? a[i] : first;
    least = std::min(least, v);
    most = std::max(most, v);
  }
  std::byte* base = c.one_piece(least, most - least + bytes);
  if (base) keep(least, 0);
  return base;
}

/// Each lane's host address.
template <AccessSpace space>
inline void host_addresses(Context& c, const uint64_t* a, uint64_t bytes, std::byte** out) {
  uint64_t distance[warp_lanes];
  if (std::byte* base = base_address<space>(c, a, bytes, distance)) {
    for (uint32_t i = 0; i < warp_lanes; ++i) out[i] = base + distance[i];
    return;
  }
  each_lane(c, [&](int i) { out[i] = host_address<space>(c, a[i], bytes, i); });
}

/// Active lanes whose address is in global memory.
inline uint32_t global_lanes(const Context& c, AccessSpace space, const uint64_t* address) {
  if (space == AccessSpace::Global) return c.mask;
  if (space != AccessSpace::Generic) return 0;
  uint32_t lanes = 0;
  for (uint32_t i = 0; i < warp_lanes; ++i)
    lanes |= uint32_t{!window::is_shared(address[i]) && !window::is_local(address[i])} << i;
  return lanes & c.mask;
}

/// Records the access of `lanes` in Context::deferred, which must be set. The caller fills in the values: per
/// lane, as they lie in memory, in 8-byte words.
inline DeferredAccess& defer(Context& c, const Op& op, uint32_t lanes, const uint64_t* address,
                             void (*perform)(Context&, DeferredAccess&)) {
  DeferredAccess& access = *c.deferred;
  access.op = &op;
  access.mask = lanes;
  std::copy(address, address + warp_lanes, access.address.begin());
  access.perform = perform;
  return access;
}

/// Throws Fault for the first lane whose address is not a multiple of `bytes` (a power of two).
inline void check_alignment(const Context& c, const uint64_t* addresses, uint64_t bytes) {
  if ((address_bits(addresses) & (bytes - 1)) == 0) [[likely]]
    return;
  each_lane(c, [&](int i) {
    if (addresses[i] & (bytes - 1)) misaligned(addresses[i], bytes, i);
  });
}

}  // namespace simt::functional
