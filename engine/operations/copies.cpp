#include "operations/copies.hpp"

#include "machine/fault.hpp"
#include "operations/mbarrier.hpp"

namespace simt::functional {

void find_bytes_read(Context& c, const CopyDetail& d, uint32_t bytes, uint64_t* from, uint32_t* sizes) {
  const uint32_t* given = d.source_bytes == place::none ? nullptr : c.lanes<const uint32_t>(d.source_bytes);
  uint32_t ignored = 0;
  if (d.ignore.place != place::none) {
    ignored = c.predicate(d.ignore.place);
    if (d.ignore.negated) ignored = ~ignored;
  }
  for (uint32_t i = 0; i < warp_lanes; ++i) {
    const uint32_t skipped = d.skips_bytes ? static_cast<uint32_t>(from[i] % bytes) : 0;
    from[i] -= skipped;
    sizes[i] = ignored >> i & 1 ? 0 : given && !d.skips_bytes ? given[i] : bytes - skipped;
  }
}

namespace {

template <uint32_t bytes>
void run_copy(Context& c, const Op& op) {
  const auto& d = op.details<CopyDetail>();
  alignas(64) uint64_t to[warp_lanes], from[warp_lanes];
  lane_addresses(c, d.to, to);
  lane_addresses(c, d.from, from);
  const uint32_t all = c.mask;
  uint32_t reads = 0, sizes[warp_lanes];
  find_bytes_read(c, d, bytes, from, sizes);
  bool whole = true;
  each_lane(c, [&](int i) {
    if (sizes[i] > bytes) throw Fault("illegal instruction", "cp.async reads more bytes than it writes", i);
    if (sizes[i] == 0) return;
    reads |= 1u << i;
    whole &= sizes[i] == bytes;
  });
  std::byte *host_from[warp_lanes] = {}, *host_to[warp_lanes];
  if (reads) {
    c.mask = reads;
    record_access(c, AccessSpace::Global, from);
    check_alignment(c, from, bytes);
    if (whole)
      host_addresses<AccessSpace::Global>(c, from, bytes, host_from);
    else
      each_lane(c, [&](int i) { host_from[i] = c.global(from[i], sizes[i], i); });
    c.mask = all;
  } else if (c.record) {
    c.record->nothing = true;
  }
  check_alignment(c, to, bytes);
  host_addresses<AccessSpace::Shared>(c, to, bytes, host_to);
  if (whole && reads == all) {
    each_lane(c, [&](int i) { std::memcpy(host_to[i], host_from[i], bytes); });
    return;
  }
  each_lane(c, [&](int i) {
    std::byte value[bytes] = {};
    if (reads >> i & 1) std::memcpy(value, host_from[i], sizes[i]);
    std::memcpy(host_to[i], value, bytes);
  });
}

void run_bulk(Context& c, const Op& op) {
  const auto& d = op.details<BulkDetail>();
  uint64_t to[warp_lanes], from[warp_lanes], mbarrier[warp_lanes] = {};
  lane_addresses(c, d.from, from);
  if (!d.prefetches) lane_addresses(c, d.to, to);
  if (d.signals) lane_addresses(c, d.mbarrier, mbarrier);
  const uint32_t* words = c.lanes<const uint32_t>(d.bytes);
  uint32_t sizes[warp_lanes];
  for (uint32_t i = 0; i < warp_lanes; ++i) sizes[i] = d.packed ? (words[i] & 0xffff) * 16 : words[i];
  const int first = c.first_lane();
  if (d.direction.to == AccessSpace::Global)
    record_access(c, AccessSpace::Global, to);
  else
    record_access(c, d.direction.from, from);
  if (c.record) {
    c.record->bulk = true;
    c.record->bulk_bytes = sizes[first];
    c.record->bulk_parts.assign(1, c.record->address[static_cast<size_t>(first)]);
    c.record->mbarrier = d.signals ? mbarrier[first] + window::shared : 0;
  }
  each_lane(c, [&](int i) {
    const uint32_t bytes = sizes[i];
    if (bytes % 16)
      throw Fault("illegal instruction", "a bulk copy whose size is not a multiple of 16 bytes", i);
    if (from[i] % 16) misaligned(from[i], 16, i);
    const bool shortened = d.left != place::none;
    const uint32_t left = shortened ? c.lanes<const uint32_t>(d.left)[i] : 0,
                   right = shortened ? c.lanes<const uint32_t>(d.right)[i] : 0;
    if (left > 15 || right > 15 || left + right > bytes)
      throw Fault("illegal instruction", "a bulk copy that ignores more bytes than 15, or than it has", i);
    const uint32_t copied = bytes - left - right;
    const std::byte* source = host_address(c, d.direction.from, from[i] + left, copied, i);
    if (d.prefetches) return;
    if (to[i] % 16) misaligned(to[i], 16, i);
    const uint32_t mask = d.packed                ? words[i] >> 16
                          : d.mask == place::none ? 0
                                                  : c.lanes<const uint32_t>(d.mask)[i] & 0xffff;
    const auto copy_to = [&](uint64_t address, uint64_t signal) {
      std::byte* destination = host_address(c, d.direction.to, address, bytes, i);
      if (d.reduction.combine)
        d.reduction.combine(destination, source, bytes / d.reduction.bytes);
      else if (d.masked)
        for (uint32_t k = 0; k < bytes; ++k) destination[k] = mask >> k % 16 & 1 ? source[k] : destination[k];
      else
        std::memmove(destination + left, source, copied);
      if (d.signals) Mbarrier(c, AccessSpace::Shared, signal, i).expect(-int64_t{bytes});
    };
    if (!d.multicast) {
      copy_to(to[i], mbarrier[i]);
      return;
    }
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
      const auto rank = static_cast<uint32_t>(std::countr_zero(rest));
      copy_to(c.in_cta(to[i], rank), c.in_cta(mbarrier[i], rank));
    }
  });
}

/// Stores into the shared memory of a CTA of the cluster, counted by an mbarrier there.
void run_remote(Context& c, const Op& op) {
  const auto& d = op.details<RemoteDetail>();
  uint64_t to[warp_lanes], mbarrier[warp_lanes];
  lane_addresses(c, d.to, to);
  lane_addresses(c, d.mbarrier, mbarrier);
  record_access(c, AccessSpace::Shared, to);
  const uint32_t bytes = d.elements * d.element_bytes;
  check_alignment(c, to, bytes);
  each_lane(c, [&](int i) {
    std::byte* at = c.shared(to[i], bytes, i);
    for (uint32_t e = 0; e < d.elements; ++e) {
      std::byte value[8];
      if (d.element_bytes == 8 && !d.in_pairs)
        std::memcpy(value, c.lanes<const uint64_t>(d.values[e]) + i, 8);
      else
        std::memcpy(value, c.lanes<const uint32_t>(d.values[e]) + i, 4);
      if (d.in_pairs) std::memcpy(value + 4, c.lanes<const uint32_t>(d.values[e]) + warp_lanes + i, 4);
      if (d.reduction.combine)
        d.reduction.combine(at, value, 1);
      else
        std::memcpy(at + e * d.element_bytes, value, d.element_bytes);
    }
    Mbarrier(c, AccessSpace::Shared, mbarrier[i], i).expect(-int64_t{bytes});
  });
}

}  // namespace

Handler copy_handler(uint32_t bytes) {
  return bytes == 4 ? run_copy<4> : bytes == 8 ? run_copy<8> : bytes == 16 ? run_copy<16> : nullptr;
}

Handler bulk_handler() {
  return run_bulk;
}
Handler remote_handler() {
  return run_remote;
}

}  // namespace simt::functional
