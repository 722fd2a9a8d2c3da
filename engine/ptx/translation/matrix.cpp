/// ldmatrix, stmatrix, movmatrix: move tiles of 8 x 8 16-bit elements between shared memory and registers,
/// and transpose them.
#include "operations/tiles.hpp"
#include "ptx/translation/instructions.hpp"
#include "ptx/translation/matrix_operands.hpp"
#include "ptx/translation/operands.hpp"

namespace simt::functional {
namespace {

using ptx::Type;

/// The only shape and type of sm_75 to sm_90.
void take_tile(Translation& t) {
  t.take("sync");
  t.take("aligned");
  if (!t.take("m8n8")) t.unsupported("`.m8n8` is the only shape that is supported");
}

template <bool load>
void translate_tiles(Translation& t) {
  take_tile(t);
  if (t.take_type() != Type::B16) t.unsupported("`.b16` is the only type that is supported");
  TilesDetail d;
  const int count = t.take_one_of({"x1", "x2", "x4"});
  if (count < 0) t.unsupported("the number of matrices is missing");
  d.count = 1u << count;
  d.transposed = t.take("trans");
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
  take_tile(t);
  if (!t.take("trans") || t.take_type() != Type::B16) t.unsupported("`.trans.b16` is expected");
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
