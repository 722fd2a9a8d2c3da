/// ldmatrix, stmatrix, movmatrix: move tiles between shared memory and registers, and transpose them.
#include "operations/tiles.hpp"
#include "ptx/translation/instructions.hpp"
#include "ptx/translation/matrix_operands.hpp"
#include "ptx/translation/operands.hpp"

namespace simt::functional {
namespace {

using ptx::Type;

void take_aligned(Translation& t) {
  t.take("sync");
  t.take("aligned");
}

/// Loads of 8-bit elements, or of 6 or 4 bits that become bytes: rows of .m8n16 are loaded as they are, and
/// .m16n16 is transposed.
void take_bytes(Translation& t, TilesDetail& d) {
  const bool widens = t.take("b8x16");
  const int packed = widens ? t.take_one_of({"b6x16_p32", "b4x16_p64"}) : -1;
  if (widens && packed < 0) t.unsupported("`.b6x16_p32` or `.b4x16_p64` is missing");
  if (widens) d.unpack = packed == 0 ? TilesDetail::Unpack::Six : TilesDetail::Unpack::Four;
  if (!widens && !t.take("b8")) t.unsupported("`.b8` is expected");
}

template <bool load>
void translate_tiles(Translation& t) {
  take_aligned(t);
  TilesDetail d;
  const int shape = t.take_one_of({"m8n8", "m8n16", "m16n16", "m16n8"});
  const int count = t.take_one_of({"x1", "x2", "x4"});
  if (count < 0) t.unsupported("the number of matrices is missing");
  d.count = 1u << count;
  d.transposed = t.take("trans");
  switch (shape) {
    case 0:
      if (!t.take("b16")) t.unsupported("`.b16` is the only type of this shape");
      break;
    case 1:
      take_bytes(t, d);
      if (!load || d.transposed || d.unpack == TilesDetail::Unpack::None)
        t.unsupported("`.m8n16` loads 4 or 6 bits, and does not transpose");
      break;
    case 2:
      take_bytes(t, d);
      d.of_bytes = d.paired = true;
      d.count *= 2;
      if (!load || !d.transposed || d.count > TilesDetail::max_tiles)
        t.unsupported("`.m16n16` loads one or two tiles, and transposes them");
      break;
    case 3:
      take_bytes(t, d);
      d.of_bytes = true;
      if (load || !d.transposed || d.unpack != TilesDetail::Unpack::None)
        t.unsupported("`.m16n8` stores 8 bits, and transposes them");
      break;
    default:
      t.unsupported("a shape such as `.m8n8` is missing");
  }
  d.space = take_space(t);
  if (d.space != AccessSpace::Shared && d.space != AccessSpace::Generic)
    t.unsupported("shared memory is expected");
  const Address address = t.address(t.operand(load ? 1 : 0));
  d.base = address.base;
  const auto places =
      load ? take_destinations(t, 0, Type::B32, d.count) : take_registers(t, 1, Type::B32, d.count);
  std::copy(places.begin(), places.end(), d.places.begin());
  Op& op = t.emit(load ? run_load_tiles : run_store_tiles, Control::Collective);
  set_address(op, address);
  if (load) op.destination = d.places[0];
  t.detail<TilesDetail>() = d;
}

}  // namespace

void translate_movmatrix(Translation& t) {
  take_aligned(t);
  if (!t.take("m8n8") || !t.take("trans") || t.take_type() != Type::B16)
    t.unsupported("`.m8n8.trans.b16` is expected");
  const Place d = t.destination(0, Type::B32), a = t.source(1, Type::B32);
  Op& op = t.emit(run_transpose_tile, Control::Collective);
  op.destination = d;
  op.a = a;
}

void translate_ldmatrix(Translation& t) {
  translate_tiles<true>(t);
}
void translate_stmatrix(Translation& t) {
  translate_tiles<false>(t);
}

}  // namespace simt::functional
