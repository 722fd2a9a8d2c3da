/// Asynchronous copies without tensor maps: cp.async, cp.async.bulk, cp.reduce.async.bulk, st.async,
/// red.async.
#include "operations/copies.hpp"
#include "ptx/translation/bulk.hpp"
#include "ptx/translation/instructions.hpp"
#include "ptx/translation/operands.hpp"

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

/// All earlier copies of the lanes are complete; without .noinc, the arrival was first added to the pending
/// ones.
void run_copy_arrive(Context& c, const Op& op) {
  const auto& d = op.details<CopyDetail>();
  uint64_t address[warp_lanes];
  lane_addresses(c, d.to, address);
  record_access(c, AccessSpace::Shared, address);
  each_lane(c, [&](int i) { Mbarrier(c, AccessSpace::Shared, address[i], i).arrive(1); });
}

std::string_view take_reduction(Translation& t) {
  for (const std::string_view operation : {"add", "min", "max", "inc", "dec", "and", "or", "xor"})
    if (t.take(operation)) return operation;
  t.unsupported("an operation is missing");
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
  t.emit(remote_handler());
  t.detail<RemoteDetail>() = d;
}

}  // namespace

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
    d.masked = t.take("cp_mask");
    if (d.masked && (d.signals || reduces)) t.unsupported("byte masks are for copies to global memory");
    d.to = memory_address(t, next++);
    d.from = memory_address(t, next++);
    d.bytes = t.source(next++, Type::U32);
    if (t.take("ignore_oob")) {
      if (!d.signals || d.direction.from != AccessSpace::Global || d.multicast)
        t.unsupported("bytes are ignored by copies from global memory to one CTA");
      d.left = t.source(next++, Type::U32);
      d.right = t.source(next++, Type::U32);
    }
    if (d.signals) d.mbarrier = memory_address(t, next++);
    if (d.multicast) d.mask = t.source(next++, Type::B16);
    if (d.masked) d.mask = t.source(t.operand_count() - 1, Type::B16);
  }
  const bool masked = d.masked;
  t.emit(bulk_handler());
  t.detail<BulkDetail>() = d;
  if (has_policy) set_cache_policy(t, masked ? 2 : 1);
}

}  // namespace simt::functional
