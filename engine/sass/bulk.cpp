/// Bulk copies: UBLKCP, UBLKRED, UBLKPF, and through tensor maps UTMALDG, UTMASTG, UTMAREDG, UTMAPF; and
/// what else works so: UGETNEXTWORKID, UMEMSETS. A warp executes them once, whatever its lanes: operands are
/// uniform registers.
#include "operations/copies.hpp"
#include "operations/launch_control.hpp"
#include "operations/tensor_copies.hpp"
#include "sass/instructions.hpp"
#include "sass/rows.hpp"

namespace simt::sass {

using functional::AccessSpace;
using functional::BulkDetail;
using functional::TensorCopy;
using ptx::Type;

namespace {

void run_bulk(Context& c, const Op& op) {
  run_once(c, op, functional::bulk_handler());
}
void run_tensor(Context& c, const Op& op) {
  run_once(c, op, functional::tensor_copy_handler());
}

/// The first of the uniform registers that an operand such as [UR4] names.
uint32_t registers(Translation& t, uint32_t index) {
  const Operand& o = t.operand(index);
  if (o.kind != OperandKind::Memory || o.uniform == Operand::none || o.base != Operand::none || o.value != 0)
    t.unsupported("an operand that is no list of uniform registers");
  return o.uniform;
}
Address narrow(Translation& t, uint32_t index) {
  Address a;
  a.base = Address::Base::Narrow;
  a.place = t.uniform(index, 1);
  return a;
}
Address wide(Translation& t, uint32_t index) {
  Address a;
  a.base = Address::Base::Pair;
  a.place = t.uniform(index, 2);
  return a;
}

/// A last operand desc[UR] is a cache policy.
uint32_t without_policy(Translation& t) {
  const uint32_t count = t.operand_count();
  return count && t.operand(count - 1).descriptor != Operand::none ? count - 1 : count;
}

struct NamedOperation {
  std::string_view name, ptx;
};
constexpr NamedOperation operations[] = {{"ADD", "add"}, {"MIN", "min"}, {"MAX", "max"}, {"INC", "inc"},
                                         {"DEC", "dec"}, {"AND", "and"}, {"OR", "or"},   {"XOR", "xor"}};
std::string_view take_operation(Translation& t) {
  for (const NamedOperation& known : operations)
    if (t.take(known.name)) return known.ptx;
  t.unsupported("its operation is missing");
}

AccessSpace take_space(Translation& t) {
  const int space = t.take_next_of({"S", "G"});
  if (space < 0) t.unsupported("its direction is missing");
  return space == 0 ? AccessSpace::Shared : AccessSpace::Global;
}

/// to, from, size; in shared memory, the register after that of `to` holds the address of the mbarrier.
void emit_bulk(Translation& t, BulkDetail d) {
  const uint32_t to = registers(t, 0), from = registers(t, 1);
  d.signals = d.direction.to == AccessSpace::Shared;
  d.to = d.signals ? narrow(t, to) : wide(t, to);
  if (d.signals) d.mbarrier = narrow(t, to + 1);
  d.from = d.direction.from == AccessSpace::Shared ? narrow(t, from) : wide(t, from);
  d.packed = true;
  d.bytes = t.source(2);
  if (without_policy(t) != 3) t.unsupported("a further operand");
  t.emit(run_bulk);
  t.detail<BulkDetail>() = d;
  t.accesses(16, AddressKind::Bulk);
}

}  // namespace

/// UBLKCP.to.from[.MULTICAST|.DST_G_BYTE_MASK] [to], [from], size.
void translate_bulk_copy(Translation& t) {
  BulkDetail d;
  d.direction.to = take_space(t);
  d.direction.from = take_space(t);
  d.multicast = t.take("MULTICAST");
  d.masked = d.direction.to == AccessSpace::Global && t.take("DST_G_BYTE_MASK");
  emit_bulk(t, d);
}

/// UBLKRED.to.S.operation[.type] [to], [from], size.
void translate_bulk_reduction(Translation& t) {
  BulkDetail d;
  d.direction.to = take_space(t);
  d.direction.from = take_space(t);
  const std::string_view operation = take_operation(t);
  static constexpr Type types[] = {Type::S32,  Type::U64, Type::S64, Type::F16,
                                   Type::BF16, Type::F32, Type::F64};
  const int named = t.take_one_of({"S32", "U64", "S64", "F16", "BF16", "F32", "F64"});
  if (named >= 3) t.take("RN");
  const bool bitwise = operation == "and" || operation == "or" || operation == "xor";
  Type type = named < 0 ? Type::U32 : types[named];
  if (bitwise) type = type == Type::U64 ? Type::B64 : Type::B32;
  d.reduction = functional::element_reduction(operation, type);
  if (!d.reduction.combine) t.unsupported("this operation on this type");
  if (d.direction.to == AccessSpace::Global) t.order_matters();
  emit_bulk(t, d);
}

/// UBLKPF.L2 [from], size.
void translate_bulk_prefetch(Translation& t) {
  t.take("L2");
  BulkDetail d;
  d.prefetches = d.packed = true;
  d.direction = {AccessSpace::Shared, AccessSpace::Global};
  d.from = wide(t, registers(t, 0));
  d.bytes = t.source(1);
  if (without_policy(t) != 2) t.unsupported("a further operand");
  t.emit(run_bulk);
  t.detail<BulkDetail>() = d;
  t.accesses(16, AddressKind::Bulk);
}

namespace {

/// UTMALDG.rank[.IM2COL|.W|.W128|.GATHER4][.MULTICAST][.2CTA] [to], [map] [, a]; UTMASTG, UTMAREDG
/// .rank[.IM2COL|.SCATTER4][.operation] [from], [map]; UTMAPF.L2.rank[.IM2COL] [coordinates], [map] [, a].
/// The registers from that of the first operand on hold the address in shared memory, for loads that of the
/// mbarrier, and the coordinates.
void tensor_copy(Translation& t, TensorCopy::Move move) {
  using Move = TensorCopy::Move;
  TensorCopy d;
  d.move = move;
  if (d.move == Move::Prefetch) t.take("L2");
  d.rank = static_cast<uint32_t>(t.take_one_of({"1D", "2D", "3D", "4D", "5D"}) + 1);
  if (d.rank == 0) t.unsupported("its rank is missing");
  using Pixels = functional::TensorMap::Pixels;
  static constexpr Pixels modes[] = {Pixels::All, Pixels::Row, Pixels::Row128};
  const int mode = t.take_one_of({"IM2COL", "W", "W128"});
  if (mode >= 0) d.pixels = modes[mode];
  if (mode >= 0 && d.rank < 3) t.unsupported("im2col mode needs at least 3 dimensions");
  d.four_rows = mode < 0 && d.rank == 2 && t.take(d.move == Move::Store ? "SCATTER4" : "GATHER4");
  d.multicast = d.move == Move::Load && t.take("MULTICAST");
  d.pair = d.move == Move::Load && t.take("2CTA");
  if (d.move == Move::Reduce) {
    d.operation = take_operation(t);
    t.order_matters();
  }
  uint32_t next = registers(t, 0);
  if (d.move != Move::Prefetch) d.shared = narrow(t, next++);
  if (d.move == Move::Load) d.mbarrier = narrow(t, next++);
  const uint32_t coordinates = d.four_rows ? 5 : d.rank;
  for (uint32_t k = 0; k < coordinates; ++k) d.coordinates[k] = t.uniform(next++, 1);
  d.map = wide(t, registers(t, 1));
  const uint32_t operands = without_policy(t);
  const bool reads = d.move == Move::Load || d.move == Move::Prefetch;
  if (operands > (reads ? 3 : 2)) t.unsupported("a further operand");
  if (operands == 3) d.packed = t.source(2);
  if (d.multicast && d.packed == place::none) t.unsupported("its CTA mask is missing");
  t.emit(run_tensor);
  t.detail<TensorCopy>() = d;
  t.accesses(16, AddressKind::Bulk);
}

}  // namespace

void translate_tensor_load(Translation& t) {
  tensor_copy(t, TensorCopy::Move::Load);
}
void translate_tensor_store(Translation& t) {
  tensor_copy(t, TensorCopy::Move::Store);
}
void translate_tensor_prefetch(Translation& t) {
  tensor_copy(t, TensorCopy::Move::Prefetch);
}
void translate_tensor_reduction(Translation& t) {
  tensor_copy(t, TensorCopy::Move::Reduce);
}

namespace {

void run_next_work(Context& c, const Op& op) {
  run_once(c, op, functional::try_cancel_handler());
}

struct FillDetail : Detail {
  Address to;
  Place count = place::none;  ///< of 8 bytes
};
void run_fill(Context& c, const Op& op) {
  constexpr uint64_t word_bytes = 8;
  const auto& d = op.details<FillDetail>();
  uint64_t to[warp_lanes];
  functional::lane_addresses(c, d.to, to);
  functional::record_access(c, AccessSpace::Shared, to);
  functional::check_alignment(c, to, word_bytes);
  const int lane = c.first_lane();
  const uint64_t bytes = c.lanes<const uint32_t>(d.count)[lane] * word_bytes;
  std::memset(functional::host_address(c, AccessSpace::Shared, to[lane], bytes, lane), 0, bytes);
}

}  // namespace

/// UGETNEXTWORKID.{SELFCAST,BROADCAST} [to], [mbarrier]: clusterlaunchcontrol.try_cancel.
void translate_next_work(Translation& t) {
  functional::CancelDetail d;
  const int cast = t.take_one_of({"SELFCAST", "BROADCAST"});
  if (cast < 0) t.unsupported("whom it answers is missing");
  d.everywhere = cast == 1;
  d.answer = narrow(t, registers(t, 0));
  d.mbarrier = narrow(t, registers(t, 1));
  t.emit(run_next_work);
  t.detail<functional::CancelDetail>() = d;
}

/// UMEMSETS.64 URZ, [to], count: zeros.
void translate_fill_shared(Translation& t) {
  if (!t.take("64")) t.unsupported("words of other sizes");
  if (!t.operand(0).is_zero()) t.unsupported("a value other than zero");
  const Operand& to = t.operand(1);
  if (to.kind != OperandKind::Memory || to.uniform == Operand::none || to.base != Operand::none)
    t.unsupported("an address that is in no uniform register");
  FillDetail d;
  d.to = narrow(t, to.uniform);
  d.to.offset = to.value;
  d.count = t.source(2);
  t.emit(run_fill);
  t.detail<FillDetail>() = d;
}

}  // namespace simt::sass
