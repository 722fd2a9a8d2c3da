/// Asynchronous copies without tensor maps: cp.async, cp.async.bulk, cp.reduce.async.bulk, st.async,
/// red.async.
#include "functional/bulk.hpp"
#include "functional/copies.hpp"
#include "functional/instructions.hpp"

namespace simt::functional {

using ptx::OperandKind;
using ptx::Type;

Direction take_direction(Translation& t) {
  std::vector<AccessSpace> found;
  for (const std::string_view m : t.mnemonic().modifiers) {
    const bool shared = m == "shared" || m == "shared::cta" || m == "shared::cluster";
    if (!shared && m != "global") continue;
    t.take(m);
    found.push_back(shared ? AccessSpace::Shared : AccessSpace::Global);
  }
  if (found.size() != 2 || (found[0] == AccessSpace::Global && found[1] == AccessSpace::Global))
    t.unsupported("a copy needs two state spaces, one of them shared memory");
  return {found[0], found[1]};
}

Completion take_completion(Translation& t) {
  if (t.take("bulk_group")) return Completion::Group;
  if (!t.take("mbarrier::complete_tx::bytes")) t.unsupported("the completion mechanism is missing");
  return Completion::Mbarrier;
}

namespace {

void run_nothing(Context&, const Op&) {}

template <uint32_t bytes>
void run_copy(Context& c, const Op& op) {
  const auto& d = op.details<CopyDetail>();
  alignas(64) uint64_t to[warp_lanes], from[warp_lanes];
  lane_addresses(c, d.to, to);
  lane_addresses(c, d.from, from);
  const uint32_t all = c.mask;
  uint32_t reads = all;
  uint32_t rest[warp_lanes];
  if (d.skips_bytes)
    for (uint32_t i = 0; i < warp_lanes; ++i) {
      const auto skipped = static_cast<uint32_t>(from[i] % bytes);
      from[i] -= skipped;
      rest[i] = bytes - skipped;
    }
  if (d.ignore.place != place::none) {
    const uint32_t p = c.predicate(d.ignore.place);
    reads &= d.ignore.negated ? p : ~p;
  }
  const uint32_t* sizes = d.skips_bytes                   ? rest
                          : d.source_bytes == place::none ? nullptr
                                                          : c.lanes<const uint32_t>(d.source_bytes);
  bool whole = true;
  if (sizes)
    each_lane(c, [&](int i) {
      if (sizes[i] > bytes) throw Fault("illegal instruction", "cp.async reads more bytes than it writes", i);
      whole &= sizes[i] == bytes;
      if (sizes[i] == 0) reads &= ~(1u << i);
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
    if (reads >> i & 1) std::memcpy(value, host_from[i], sizes ? std::min(sizes[i], bytes) : bytes);
    std::memcpy(host_to[i], value, bytes);
  });
}

/// All earlier copies of the lanes are complete; without .noinc, the arrival was first added to the pending
/// ones.
void run_copy_arrive(Context& c, const Op& op) {
  const auto& d = op.details<CopyDetail>();
  uint64_t address[warp_lanes];
  lane_addresses(c, d.to, address);
  record_access(c, AccessSpace::Shared, address);
  each_lane(c, [&](int i) { Mbarrier(c, AccessSpace::Shared, address[i], i).arrive(1); });
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
    const std::byte* source = host_address(c, d.direction.from, from[i], bytes, i);
    if (d.prefetches) return;
    if (to[i] % 16) misaligned(to[i], 16, i);
    const auto copy_to = [&](uint64_t address, uint64_t signal) {
      std::byte* destination = host_address(c, d.direction.to, address, bytes, i);
      if (d.reduction.combine)
        d.reduction.combine(destination, source, bytes / d.reduction.bytes);
      else
        std::memmove(destination, source, bytes);
      if (d.signals) Mbarrier(c, AccessSpace::Shared, signal, i).expect(-int64_t{bytes});
    };
    if (!d.multicast) {
      copy_to(to[i], mbarrier[i]);
      return;
    }
    const uint32_t ctas = d.packed ? words[i] >> 16 : c.lanes<const uint32_t>(d.cta_mask)[i] & 0xffff;
    for (uint32_t rest = ctas; rest; rest &= rest - 1) {
      const auto rank = static_cast<uint32_t>(std::countr_zero(rest));
      copy_to(c.in_cta(to[i], rank), c.in_cta(mbarrier[i], rank));
    }
  });
}

std::string_view take_reduction(Translation& t) {
  for (const std::string_view operation : {"add", "min", "max", "inc", "dec", "and", "or", "xor"})
    if (t.take(operation)) return operation;
  t.unsupported("an operation is missing");
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

void translate_remote(Translation& t, bool reduces) {
  t.take_one_of({"weak", "relaxed"});
  t.take("cluster");
  if (!t.take("shared::cluster")) t.unsupported("only the form with .shared::cluster is supported");
  if (!t.take("mbarrier::complete_tx::bytes")) t.unsupported("the completion mechanism is missing");
  RemoteDetail d;
  std::string_view operation;
  if (reduces) operation = take_reduction(t);
  const int vector = t.take_one_of({"v2", "v4"});
  const Type type = t.take_type();
  d.element_bytes = ptx::bytes(type);
  if (d.element_bytes != 4 && d.element_bytes != 8) t.unsupported("elements of 32 or 64 bits are expected");
  if (reduces) {
    d.reduction = element_reduction(operation, type);
    if (!d.reduction.combine || ptx::is_float(type) || vector >= 0)
      t.unsupported("this operation on this type");
  }
  d.elements = vector < 0 ? 1 : 2u << vector;
  d.to = memory_address(t, 0);
  for (uint32_t e = 0; e < d.elements; ++e)
    d.values[e] = t.source(vector < 0 ? t.operand(1) : t.part(t.operand(1), e), type);
  d.mbarrier = memory_address(t, 2);
  t.emit(run_remote);
  t.detail<RemoteDetail>() = d;
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

void translate_st_async(Translation& t) {
  t.take("async");
  translate_remote(t, false);
}
void translate_red_async(Translation& t) {
  t.take("async");
  translate_remote(t, true);
}

void translate_cp_async(Translation& t) {
  t.take("async");
  if (t.take_one_of({"ca", "cg"}) < 0) t.unsupported("cp.async needs .ca or .cg");
  const Direction direction = take_direction(t);
  if (direction.to != AccessSpace::Shared || direction.from != AccessSpace::Global)
    t.unsupported("cp.async copies from global to shared memory");
  const bool has_policy = take_cache_hint(t);
  t.take_one_of({"L2::64B", "L2::128B", "L2::256B"});
  CopyDetail d;
  d.to = memory_address(t, 0);
  d.from = memory_address(t, 1);
  d.bytes = static_cast<uint32_t>(t.immediate(t.operand(2)));
  if (t.operand_count() > (has_policy ? 4u : 3u)) {
    if (t.is_predicate(t.operand(3)))
      d.ignore = t.predicate_source(t.operand(3));
    else
      d.source_bytes = t.source(3, Type::U32);
  }
  const Handler run = copy_handler(d.bytes);
  if (!run) t.unsupported("cp.async copies 4, 8 or 16 bytes");
  t.emit(run);
  t.detail<CopyDetail>() = d;
  if (has_policy) set_cache_policy(t);
}

/// Copies take effect immediately here; groups only affect timing.
void translate_cp_async_group(Translation& t) {
  t.take("async");
  t.take("bulk");
  if (t.take_one_of({"commit_group", "wait_group", "wait_all"}) == 1) t.take("read");
  t.emit(run_nothing);
}

void translate_cp_async_mbarrier(Translation& t) {
  t.take("async");
  t.take("mbarrier");
  if (!t.take("arrive") || !t.take("b64")) t.unsupported("only cp.async.mbarrier.arrive.b64 is supported");
  const bool counts = t.take("noinc");
  t.take_one_of({"shared", "shared::cta"});
  CopyDetail d;
  d.to = memory_address(t, 0);
  t.emit(counts ? run_copy_arrive : run_nothing);
  t.detail<CopyDetail>() = d;
}

void translate_cp_async_bulk(Translation& t) {
  const bool reduces = t.take("reduce");
  t.take("async");
  t.take("bulk");
  const bool prefetches = t.take("prefetch");
  if (t.take("tensor")) {
    translate_bulk_tensor(t, reduces, prefetches);
    return;
  }
  BulkDetail d;
  d.prefetches = prefetches;
  const bool has_policy = take_cache_hint(t);
  uint32_t next = 0;
  if (prefetches) {
    if (!t.take("L2") || !t.take("global")) t.unsupported("a bulk prefetch needs .L2.global");
    d.from = memory_address(t, next++);
    d.direction = {AccessSpace::Shared, AccessSpace::Global};
    d.bytes = t.source(next++, Type::U32);
  } else {
    d.direction = take_direction(t);
    d.signals = take_completion(t) == Completion::Mbarrier;
    if (d.signals != (d.direction.to == AccessSpace::Shared))
      t.unsupported("copies into shared memory complete on an mbarrier, others in a bulk group");
    if (reduces) {
      const std::string_view operation = take_reduction(t);
      t.take("noftz");
      d.reduction = element_reduction(operation, t.take_type());
      if (!d.reduction.combine) t.unsupported("this operation on this type");
      if (d.direction.from != AccessSpace::Shared) t.unsupported("reductions read shared memory");
      if (d.direction.to == AccessSpace::Global) t.order_matters();
    }
    d.multicast = t.take("multicast::cluster");
    d.to = memory_address(t, next++);
    d.from = memory_address(t, next++);
    d.bytes = t.source(next++, Type::U32);
    if (d.signals) d.mbarrier = memory_address(t, next++);
    if (d.multicast) d.cta_mask = t.source(next++, Type::B16);
  }
  t.emit(run_bulk);
  t.detail<BulkDetail>() = d;
  if (has_policy) set_cache_policy(t);
}

}  // namespace simt::functional
