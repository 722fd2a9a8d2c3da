/// tcgen05: tensor memory, and products into it. What is asynchronous on hardware takes effect at once; .wait
/// and .fence only affect timing.
#include <algorithm>
#include <bit>
#include <string>

#include "operations/tensor_load_reduction.hpp"
#include "operations/tensor_memory_product.hpp"
#include "ptx/translation/instructions.hpp"
#include "ptx/translation/matrix_operands.hpp"
#include "ptx/translation/operands.hpp"

namespace simt::functional {
namespace {

using ptx::OperandKind;
using ptx::Type;

uint32_t take_group(Translation& t) {
  if (t.take("cta_group::1")) return 1;
  if (!t.take("cta_group::2")) t.unsupported("`.cta_group::1` or `.cta_group::2` is missing");
  return 2;
}

TensorAddress take_tensor_address(Translation& t, uint32_t operand) {
  const Address address = t.address(t.operand(operand));
  if (address.base != Address::Base::Narrow) t.unsupported("an address in tensor memory has 32 bits");
  return {address.place, address.offset};
}

void take_aligned(Translation& t) {
  if (!t.take("sync") || !t.take("aligned")) t.unsupported("`.sync.aligned` is missing");
}

using Shape = TensorMoveDetail::Shape;

struct MoveShape {
  std::string_view name;
  Shape shape;
  uint32_t registers;  ///< with .x1
};
constexpr MoveShape move_shapes[] = {{"32x32b", Shape::Lanes32x32b, 1},
                                     {"16x64b", Shape::Lanes16x64b, 1},
                                     {"16x128b", Shape::Lanes16x128b, 2},
                                     {"16x256b", Shape::Lanes16x256b, 4},
                                     {"16x32bx2", Shape::Lanes16x32bx2, 1}};

/// The shape, and the number of registers.
uint32_t take_move_shape(Translation& t, TensorMoveDetail& d) {
  for (const MoveShape& known : move_shapes) {
    if (!t.take(known.name)) continue;
    d.shape = known.shape;
    const int times = t.take_one_of({"x1", "x2", "x4", "x8", "x16", "x32", "x64", "x128"});
    const uint32_t count = times < 0 ? 0 : known.registers << times;
    if (count == 0 || count > 128) t.unsupported("no such repetition of this shape");
    return count;
  }
  t.unsupported("a shape such as .32x32b is missing");
}

void translate_move(Translation& t, bool loads) {
  t.take(loads ? "ld" : "st");
  const bool reduces = loads && t.take("red");
  if (reduces && t.module().target == 100)
    t.unsupported("sm_100 has no tcgen05.ld.red; sm_103 and sm_110 have");
  take_aligned(t);
  TensorMoveDetail d;
  const uint32_t count = take_move_shape(t, d);
  d.halves = t.take(loads ? "pack::16b" : "unpack::16b");
  Handler reduction = nullptr;
  if (reduces) {
    const int operation = t.take_one_of({"min", "max"});
    const bool magnitudes = t.take("abs"), nan = t.take("NaN");
    const Type type = t.take_type();
    const bool is_float = type == Type::F32;
    if (operation < 0 || !(is_float || type == Type::U32 || type == Type::S32) ||
        ((magnitudes || nan) && !is_float))
      t.unsupported("no such reduction");
    if (d.halves || (d.shape != Shape::Lanes32x32b && d.shape != Shape::Lanes16x32bx2) || count < 2)
      t.unsupported("a reduction is one of .32x32b or .16x32bx2, from .x2 on");
    const Reduced as = is_float ? Reduced::Float : type == Type::S32 ? Reduced::Signed : Reduced::Unsigned;
    reduction = load_reduction(operation == 1, as, magnitudes, nan);
  } else if (!t.take("b32")) {
    t.unsupported("the type .b32 is expected");
  }
  const uint32_t address = reduces ? 2 : loads ? 1 : 0;
  uint32_t next = address + 1;
  d.at = take_tensor_address(t, address);
  if (d.shape == Shape::Lanes16x32bx2) d.second_half = t.immediate(t.operand(next++));
  d.registers = loads ? take_destinations(t, 0, Type::B32, count) : take_registers(t, next, Type::B32, count);
  const Place first = d.registers[0];
  Op& op = t.emit(loads ? run_tensor_load : run_tensor_store, Control::Collective);
  if (loads) op.destination = first;
  LoadReduction all;
  all.registers = d.registers;
  t.detail<TensorMoveDetail>() = std::move(d);
  if (!reduces) return;
  const Place least = take_destinations(t, 1, Type::B32, 1)[0];
  t.emit(reduction).destination = least;
  t.detail<LoadReduction>() = std::move(all);
}

void run_no_effect(Context&, const Op&) {}

using Kind = TensorMemoryProductDetail::Kind;

void take_scales(Translation& t, TensorMemoryProductDetail& d) {
  if (!t.take("block_scale")) t.unsupported("`.block_scale` is missing");
  const int form = t.take_one_of({"scale_vec::1X", "scale_vec::2X", "scale_vec::4X", "block16", "block32"});
  const uint32_t of_block32 = d.kind == Kind::Mxf8f6f4 ? 1 : 2;
  if (form < 0 && d.kind == Kind::Mxf4nvf4) t.unsupported("`.scale_vec` is missing");
  d.scales = form < 0 || form == 4 ? of_block32 : form == 3 ? 4 : 1u << form;
  const bool fits = d.kind == Kind::Mxf8f6f4 ? d.scales == 1
                    : d.kind == Kind::Mxf4   ? d.scales == 2
                                             : d.scales >= 2;
  if (!fits) t.unsupported("this kind has no such `.scale_vec`");
}

void take_collector(Translation& t) {
  // The collector buffer affects only time.
  for (const std::string_view m : t.mnemonic().modifiers)
    if (m.starts_with("collector::")) t.take(m);
}

}  // namespace

void translate_tcgen05_alloc(Translation& t) {
  t.take("alloc");
  TensorAllocationDetail d;
  d.ctas = take_group(t);
  take_aligned(t);
  d.space = take_space(t);
  if (!t.take("b32")) t.unsupported("the type .b32 is expected");
  d.to = memory_address(t, 0);
  d.columns = t.source(1, Type::B32);
  t.emit(run_tensor_allocate, Control::Collective);
  t.detail<TensorAllocationDetail>() = d;
}

void translate_tcgen05_dealloc(Translation& t) {
  t.take("dealloc");
  const uint32_t ctas = take_group(t);
  take_aligned(t);
  if (!t.take("b32")) t.unsupported("the type .b32 is expected");
  const Place address = t.source(0, Type::B32), columns = t.source(1, Type::B32);
  Op& op = t.emit(run_tensor_free, Control::Collective);
  op.a = address;
  op.b = columns;
  op.immediate = ctas;
}

void translate_tcgen05_relinquish(Translation& t) {
  t.take("relinquish_alloc_permit");
  const uint32_t ctas = take_group(t);
  take_aligned(t);
  t.emit(run_tensor_relinquish, Control::Collective).immediate = ctas;
}

void translate_tcgen05_ld(Translation& t) {
  translate_move(t, true);
}
void translate_tcgen05_st(Translation& t) {
  translate_move(t, false);
}

void translate_tcgen05_order(Translation& t) {
  t.take_one_of({"wait::ld", "wait::st", "fence::before_thread_sync", "fence::after_thread_sync"});
  t.take("sync");
  t.take("aligned");
  t.emit(run_no_effect);
}

void translate_tcgen05_cp(Translation& t) {
  using Spread = TensorCopyDetail::Spread;
  using Unpack = TensorCopyDetail::Unpack;
  t.take("cp");
  TensorCopyDetail d;
  d.ctas = take_group(t);
  const int shape = t.take_one_of({"128x256b", "4x256b", "128x128b", "64x128b", "32x128b"});
  if (shape < 0) t.unsupported("a shape such as .128x256b is missing");
  d.bytes = shape < 2 ? 32 : 16;
  d.rows = shape == 1 ? 4 : shape == 3 ? 64 : shape == 4 ? 32 : 128;
  const int multicast = t.take_one_of({"warpx2::02_13", "warpx2::01_23", "warpx4"});
  const bool fits = shape == 3 ? multicast == 0 || multicast == 1 : (multicast == 2) == (shape == 4);
  if (!fits || (shape != 3 && shape != 4 && multicast >= 0))
    t.unsupported(".64x128b needs .warpx2, .32x128b needs .warpx4, other shapes have neither");
  d.spread = shape == 1       ? Spread::Corners
             : multicast == 0 ? Spread::Pairs02_13
             : multicast == 1 ? Spread::Pairs01_23
             : multicast == 2 ? Spread::Four
                              : Spread::All;
  if (t.take("b8x16")) {
    const int from = t.take_one_of({"b6x16_p32", "b4x16_p64"});
    if (from < 0) t.unsupported("`.b6x16_p32` or `.b4x16_p64` is missing");
    d.unpack = from == 0 ? Unpack::Six : Unpack::Four;
  }
  d.to = take_tensor_address(t, 0);
  d.descriptor = t.source(1, Type::B64);
  t.emit(run_tensor_copy);
  t.detail<TensorCopyDetail>() = d;
}

void translate_tcgen05_shift(Translation& t) {
  t.take("shift");
  TensorShiftDetail d;
  d.ctas = take_group(t);
  if (!t.take("down")) t.unsupported("`.down` is missing");
  d.at = take_tensor_address(t, 0);
  t.emit(run_tensor_shift);
  t.detail<TensorShiftDetail>() = d;
}

void translate_tcgen05_commit(Translation& t) {
  t.take("commit");
  TensorCommitDetail d;
  d.ctas = take_group(t);
  if (!t.take("mbarrier::arrive::one")) t.unsupported("`.mbarrier::arrive::one` is missing");
  d.space = take_space(t);
  const bool multicast = t.take("multicast::cluster");
  if (!t.take("b64")) t.unsupported("mbarriers have the type .b64");
  d.mbarrier = memory_address(t, 0);
  if (multicast) d.cta_mask = t.source(1, Type::B16);
  t.emit(run_tensor_commit);
  t.detail<TensorCommitDetail>() = d;
}

void translate_tcgen05_mma(Translation& t) {
  t.take("mma");
  TensorMemoryProductDetail d;
  d.weights = t.take("ws");
  d.sparse = t.take("sp");
  d.ctas = take_group(t);
  d.shifts_a = t.take("ashift");
  const int kind = t.take_one_of({"kind::f16", "kind::tf32", "kind::f8f6f4", "kind::i8", "kind::mxf8f6f4",
                                  "kind::mxf4", "kind::mxf4nvf4"});
  if (kind < 0) t.unsupported("a kind such as .kind::f16 is missing");
  d.kind = static_cast<Kind>(kind);
  const bool scaled = d.kind >= Kind::Mxf8f6f4;
  if (scaled) take_scales(t, d);
  if (d.weights && (scaled || d.ctas == 2)) t.unsupported("`.ws` with this kind or group of CTAs");
  take_collector(t);
  d.d = take_tensor_address(t, 0);
  if (t.operand(1).kind == OperandKind::Address)
    d.a = take_tensor_address(t, 1);
  else
    d.a_descriptor = t.source(1, Type::B64);
  if (d.shifts_a && (d.weights || scaled || d.a_descriptor != place::none))
    t.unsupported("`.ashift` with `.ws`, with scale factors, or with A in shared memory");
  d.b_descriptor = t.source(2, Type::B64);
  uint32_t next = 3;
  if (*d.sparse) d.metadata = take_tensor_address(t, next++);
  d.instruction = t.source(next++, Type::B32);
  if (scaled) {
    d.scale_a = take_tensor_address(t, next++);
    d.scale_b = take_tensor_address(t, next++);
  } else if (next < t.operand_count() && t.operand(next).kind == OperandKind::Vector) {
    d.disabled_count = 4 * d.ctas;
    const std::vector<Place> words = take_registers(t, next++, Type::B32, d.disabled_count);
    std::copy(words.begin(), words.end(), d.disabled.begin());
  }
  d.keep = t.predicate_source(t.operand(next++));
  if (d.weights && next < t.operand_count()) {
    d.zero_columns = t.source(next++, Type::B64);
  } else if (next < t.operand_count()) {
    const int64_t shift = t.immediate(t.operand(next++));
    if (shift < 0 || shift > 15 || d.kind > Kind::Tf32)
      t.unsupported("scale-input-d is from 0 to 15, for .kind::f16 and .kind::tf32");
    d.shift_down = static_cast<uint32_t>(shift);
  }
  if (next != t.operand_count())
    t.unsupported("it has " + std::to_string(t.operand_count()) + " operands, expected " +
                  std::to_string(next));
  t.emit(run_tensor_memory_product);
  t.detail<TensorMemoryProductDetail>() = d;
}

}  // namespace simt::functional
