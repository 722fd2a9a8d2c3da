/// Tensor memory: UTCHMMA, UTCQMMA, UTCIMMA, UTCOMMA, UTCCP, UTCSHIFT, UTCBAR, LDTM, STTM, and UTCATOMSWS and
/// UVIRTCOUNT, which allocate. What PTX's instructions become was found by compiling each form with
/// ptxas 12.9, 13.0 and 13.5.
#include <bit>
#include <string>

#include "operations/tensor_load_reduction.hpp"
#include "operations/tensor_memory_product.hpp"
#include "sass/instructions.hpp"
#include "sass/pairs.hpp"
#include "sass/rows.hpp"

namespace simt::sass {

using functional::TensorAddress;
using functional::TensorCommitDetail;
using functional::TensorCopyDetail;
using functional::TensorMemory;
using functional::TensorMemoryProductDetail;
using functional::TensorMoveDetail;

namespace {

/// tmem[UR] or tmem[UR + columns].
TensorAddress tensor_memory(Translation& t, uint32_t index) {
  const Operand& o = t.operand(index);
  if (o.text != "tmem") t.unsupported("an operand that is no address in tensor memory");
  return {t.uniform(o.descriptor, 1), o.value};
}

/// gdesc[UR]: a descriptor of a matrix in shared memory.
Place matrix_descriptor(Translation& t, uint32_t index) {
  const Operand& o = t.operand(index);
  if (o.text != "gdesc" || o.value != 0) t.unsupported("an operand that is no descriptor of a matrix");
  return joined(t, t.uniform(o.descriptor, 2));
}

constexpr uint32_t rows_of_unit = TensorMemory::least_columns;  ///< UTCATOMSWS counts columns in these

struct AllocationDetail : Detail {
  uint32_t ctas = 1;
  Place found = place::none;  ///< a predicate
};

/// With two CTAs, that of the even rank allocates for both, and sends the other the place.
void run_allocate(Context& c, const Op& op) {
  const auto& d = op.details<AllocationDetail>();
  TensorMemory& memory = functional::memory_to_allocate(c, d.ctas);
  TensorMemory& other = d.ctas == 2 ? functional::peer_of(c).tensor_memory() : memory;
  other.use_group(d.ctas);
  const uint32_t units = row(c, op.a)[c.first_lane()];
  const auto address = memory.allocate_in_both(other, units * rows_of_unit);
  map_words(c, op.destination, [&](uint32_t) { return address.value_or(0) / rows_of_unit; });
  write_predicate(c, d.found, address ? ~0u : 0);
}

/// The mask in a has no bit for each unit that is freed. Bits from 16 on tell where allocations begin.
void run_free(Context& c, const Op& op) {
  const uint32_t units = ~row(c, op.a)[c.first_lane()] & 0xffff;
  if (units == 0) return;
  c.cta->tensor_memory().free(static_cast<uint32_t>(std::countr_zero(units)) * rows_of_unit,
                              static_cast<uint32_t>(std::popcount(units)) * rows_of_unit);
}

void run_product(Context& c, const Op& op) {
  run_once(c, op, functional::run_tensor_memory_product);
}
void run_copy(Context& c, const Op& op) {
  run_once(c, op, functional::run_tensor_copy);
}
void run_shift(Context& c, const Op& op) {
  run_once(c, op, functional::run_tensor_shift);
}
void run_commit(Context& c, const Op& op) {
  run_once(c, op, functional::run_tensor_commit);
}

/// The shape in the opcode, for energies, where the code has the instruction descriptor as a number.
void time_with_shape(Translation& t, const TensorMemoryProductDetail& d, uint32_t descriptor) {
  using Kind = TensorMemoryProductDetail::Kind;
  const std::optional<uint32_t> word = t.number_in_uniform(descriptor);
  if (!word) return;
  const bool scaled = d.scales > 0, tf32 = d.of_types && (*word >> 7 & 7) == 2;
  const uint32_t m = scaled ? (*word >> 27 & 3) * 128 : (*word >> 24 & 31) * 16, n = (*word >> 17 & 63) * 8;
  const uint32_t k = tf32                       ? 8
                     : d.kind == Kind::F16      ? 16
                     : d.kind != Kind::Mxf4nvf4 ? 32
                     : *word >> 31              ? 96
                                                : 64;
  t.time_as(std::string(t.row().name.value) + (d.scales == 4 ? ".4X" : "") + (d.ctas == 2 ? ".2CTA" : "") +
            "." + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k) +
            (tf32 ? ".TF32" : ""));
}

}  // namespace

/// UTCxMMA[.2CTA][.WS][.4X][.ASHIFT] a, gdesc[b], tmem[d], tmem[e], idesc[i] [, s], up [, n]: a is gdesc[] or
/// tmem[]; e, which precedes i, is of a sparse A's metadata. s: tmem[] of the scale factors' two addresses,
/// or the first register of the mask of lanes or, with .WS, of the zero-column mask. n: D is multiplied by 2
/// to the power of -n.
void translate_tensor_memory_product(Translation& t) {
  using Kind = TensorMemoryProductDetail::Kind;
  TensorMemoryProductDetail d;
  const std::string_view name = t.row().name;
  d.ctas = t.take("2CTA") ? 2 : 1;
  d.weights = t.take("WS");
  d.shifts_a = t.take("ASHIFT");
  const bool four = t.take_one_of({"4X", "BLOCK16"}) >= 0;  // the latter for sm_103
  if (t.operand(0).text == "tmem")
    d.a = tensor_memory(t, 0);
  else
    d.a_descriptor = matrix_descriptor(t, 0);
  d.b_descriptor = matrix_descriptor(t, 1);
  // Suffixes keep operands in the collector buffer, which affects only time.
  d.d = tensor_memory(t, 2);
  d.metadata = tensor_memory(t, 3);
  const Operand& instruction = t.operand(4);
  if (instruction.text != "idesc" || instruction.value != 0) t.unsupported("its instruction descriptor");
  d.instruction = t.uniform(instruction.descriptor, 1);
  uint32_t next = 5;
  const bool scaled = t.operand(next).text == "tmem";
  if (scaled) {
    const uint32_t first = t.operand(next).descriptor;
    const int64_t offset = t.operand(next++).value;
    d.scale_a = {t.uniform(first, 1), offset};
    d.scale_b = {t.uniform(first + 1, 1), 0};
  } else if (t.is(next, OperandKind::Uniform)) {
    const uint32_t first = t.operand(next++).index;
    if (d.weights) {
      d.zero_columns = joined(t, t.uniform(first, 2));
    } else {
      d.disabled_count = 4 * d.ctas;
      for (uint32_t k = 0; k < d.disabled_count; ++k) d.disabled[k] = t.uniform(first + k, 1);
    }
  }
  if (name == "UTCHMMA")
    d.of_types = true;
  else if (name == "UTCIMMA")
    d.kind = Kind::I8;
  else if (name == "UTCOMMA")
    d.kind = Kind::Mxf4nvf4;
  else
    d.kind = scaled ? Kind::Mxf8f6f4 : Kind::F8f6f4;
  if (scaled != (d.kind == Kind::Mxf8f6f4 || d.kind == Kind::Mxf4nvf4) || (four && d.kind != Kind::Mxf4nvf4))
    t.unsupported("its scale factors");
  if (scaled) d.scales = d.kind == Kind::Mxf8f6f4 ? 1 : four ? 4 : 2;
  d.keep = t.predicate(next++);
  if (next < t.operand_count()) d.shift_down = static_cast<uint32_t>(t.integer(next++));
  t.emit(run_product);
  t.detail<TensorMemoryProductDetail>() = d;
  t.accesses(16, AddressKind::Bulk);
  time_with_shape(t, d, instruction.descriptor);
}

/// UTCCP.T.S[.2CTA][.shape][.U6x16P32|.U4x16P64] tmem[to], gdesc[from].
void translate_tensor_memory_copy(Translation& t) {
  using Spread = TensorCopyDetail::Spread;
  using Unpack = TensorCopyDetail::Unpack;
  struct Shape {
    Spread spread;
    uint32_t rows, bytes;
  };
  static constexpr Shape shapes[] = {{Spread::Corners, 4, 32},
                                     {Spread::All, 128, 16},
                                     {Spread::Pairs02_13, 64, 16},
                                     {Spread::Pairs01_23, 64, 16},
                                     {Spread::Four, 32, 16}};
  if (!t.take("T") || !t.take("S")) t.unsupported("its direction");
  TensorCopyDetail d;
  d.ctas = t.take("2CTA") ? 2 : 1;
  const int shape = t.take_one_of(
      {"4dp256bit", "128dp128bit", "2x64dp128bit_lw02_lw13", "2x64dp128bit_lw01_lw23", "4x32dp128bit"});
  if (shape >= 0) {
    d.spread = shapes[shape].spread;
    d.rows = shapes[shape].rows;
    d.bytes = shapes[shape].bytes;
  }
  if (t.take("U6x16P32")) d.unpack = Unpack::Six;
  if (t.take("U4x16P64")) d.unpack = Unpack::Four;
  d.to = tensor_memory(t, 0);
  d.descriptor = matrix_descriptor(t, 1);
  t.emit(run_copy);
  t.detail<TensorCopyDetail>() = d;
  t.accesses(16, AddressKind::Bulk);
}

/// UTCSHIFT[.2CTA].DOWN tmem[at].
void translate_tensor_memory_shift(Translation& t) {
  functional::TensorShiftDetail d;
  d.ctas = t.take("2CTA") ? 2 : 1;
  if (!t.take("DOWN")) t.unsupported("its direction");
  d.at = tensor_memory(t, 0);
  t.emit(run_shift);
  t.detail<functional::TensorShiftDetail>() = d;
  t.accesses(16, AddressKind::Bulk);
}

/// UTCBAR[.2CTA][.MULTICAST] [mbarrier], URZ [, mask of CTAs].
void translate_tensor_memory_commit(Translation& t) {
  TensorCommitDetail d;
  d.ctas = t.take("2CTA") ? 2 : 1;
  d.space = AccessSpace::Shared;
  const bool multicast = t.take("MULTICAST");
  d.mbarrier = t.address(0, true);
  if (!t.operand(1).is_zero()) t.unsupported("its second operand");
  if (multicast) d.cta_mask = t.source(2);
  t.emit(run_commit);
  t.detail<TensorCommitDetail>() = d;
  t.accesses(8, AddressKind::Bulk);
}

namespace {

using functional::Reduced;
using Shape = TensorMoveDetail::Shape;

/// LDTM[.shape][.xN][.PACK16BIT] d, tmem[from]; STTM[.shape][.xN][.EXPAND16BIT] tmem[to], a. Of 16x32bx2 each
/// half of the warp has an instruction of its own. LDTM.STAT[.shape].xN.operation r, d, tmem[from]: r is the
/// least or greatest of d.
void move(Translation& t, bool loads) {
  struct Known {
    Shape shape;
    uint32_t registers;  ///< with x1
    uint32_t first_thread, threads;
  };
  static constexpr Known shapes[] = {{Shape::Lanes16x64b, 1, 0, 32},
                                     {Shape::Lanes16x128b, 2, 0, 32},
                                     {Shape::Lanes16x256b, 4, 0, 32},
                                     {Shape::Lanes16x32bx2, 1, 0, 16},
                                     {Shape::Lanes16x32bx2, 1, 16, 16}};
  TensorMoveDetail d;
  uint32_t count = 1;
  const bool reduces = loads && t.take("STAT");
  const int shape =
      t.take_one_of({"16dp64bit", "16dp128bit", "16dp256bit", "16dp32bit_t0_t15", "16dp32bit_t16_t31"});
  if (shape >= 0) {
    const Known& known = shapes[shape];
    d.shape = known.shape;
    d.first_thread = known.first_thread;
    d.threads = known.threads;
    count = known.registers;
  }
  count <<= t.take_one_of({"x1", "x2", "x4", "x8", "x16", "x32", "x64", "x128"}, 0);
  d.halves = t.take(loads ? "PACK16BIT" : "EXPAND16BIT");
  Handler reduction = nullptr;
  if (reduces) {
    const int operation = t.take_one_of({"MIN", "MAX", "MINABS", "MAXABS"}, 0);
    const int type = t.take_one_of({"U32", "S32", "F32"}, 0);
    reduction = functional::load_reduction(operation % 2 == 1, static_cast<Reduced>(type), operation >= 2,
                                           t.take("NAN"));
  }
  const uint32_t result = reduces ? 1 : 0;
  d.at = tensor_memory(t, loads ? result + 1 : 0);
  const Place first = loads ? t.destination(result, count) : t.source(1, count);
  const uint32_t step = t.operand(loads ? result : 1).is_zero() ? 0 : place::register_bytes;
  for (uint32_t k = 0; k < count; ++k) d.registers.push_back(first + k * step);
  Op& op = t.emit(loads ? functional::run_tensor_load : functional::run_tensor_store, Control::Collective);
  if (loads) op.destination = first;
  functional::LoadReduction all;
  all.registers = d.registers;
  all.first_thread = d.first_thread;
  all.threads = d.threads;
  t.detail<TensorMoveDetail>() = std::move(d);
  if (!reduces) return;
  const Place least = t.destination(0);
  t.emit(reduction).destination = least;
  t.detail<functional::LoadReduction>() = std::move(all);
}

}  // namespace

void translate_tensor_memory_load(Translation& t) {
  move(t, true);
}
void translate_tensor_memory_store(Translation& t) {
  move(t, false);
}

/// UTCATOMSWS[.2CTA].FIND_AND_SET.ALIGN up, d, a: d is the first of a units of 32 columns, if there is room.
/// .AND URZ, a: frees those whose bit in a is 0.
void translate_tensor_memory_columns(Translation& t) {
  const bool pair = t.take("2CTA");
  if (t.take("FIND_AND_SET")) {
    t.take("ALIGN");
    const Place found = t.predicate_destination(0), units = t.source(2), first = t.destination(1);
    Op& op = t.emit(run_allocate);
    op.destination = first;
    op.a = units;
    auto& d = t.detail<AllocationDetail>();
    d.ctas = pair ? 2 : 1;
    d.found = found;
    return;
  }
  if (!t.take("AND") || !t.operand(0).is_zero()) t.unsupported("its form");
  const Place mask = t.source(1);
  t.emit(run_free).a = mask;
}

/// UVIRTCOUNT.DEALLOC.SMPOOL n: the CTA allocates no more.
void translate_tensor_memory_permit(Translation& t) {
  if (!t.take("DEALLOC") || !t.take("SMPOOL")) t.unsupported("its form");
  t.integer(0);
  t.emit([](Context& c, const Op&) { c.cta->tensor_memory().relinquish(); });
}

}  // namespace simt::sass
