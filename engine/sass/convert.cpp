/// Conversions between numbers: F2I, I2F, F2F, FRND and their packed forms.
#include "functional/handlers.hpp"
#include "sass/instructions.hpp"
#include "sass/rows.hpp"

namespace simt::sass {

using functional::Conversion;
using ptx::Type;

namespace {

/// PTX's handlers keep 64-bit values in one array; registers keep them in two rows.
void run_join(Context& c, const Op& op) {
  const uint32_t* a = row(c, op.a);
  auto* to = c.lanes<uint64_t>(op.destination);
  for (uint32_t i = 0; i < warp_lanes; ++i) to[i] = pair_at(a, i);
}
void run_split(Context& c, const Op& op) {
  const auto* a = c.lanes<const uint64_t>(op.a);
  map_pairs(c, op.destination, [=](uint32_t i) { return a[i]; });
}

/// A part of a register, and its sign: (x >> shift), flipped and kept as for floating-point numbers.
struct PartDetail : Detail {
  uint32_t shift = 0, mask = ~0u, keep = ~0u, flip = 0;
};
void run_part(Context& c, const Op& op) {
  const auto& d = op.details<PartDetail>();
  const uint32_t* a = row(c, op.a);
  map_words(c, op.destination, [=](uint32_t i) { return (((a[i] >> d.shift) & d.mask) & d.keep) ^ d.flip; });
}
void run_double_sign(Context& c, const Op& op) {
  const auto& d = op.details<PartDetail>();
  const uint32_t* a = row(c, op.a);
  auto* to = c.lanes<uint64_t>(op.destination);
  for (uint32_t i = 0; i < warp_lanes; ++i)
    to[i] = (a[i] | uint64_t{(a[i + warp_lanes] & d.keep) ^ d.flip} << 32);
}

/// The place of a conversion's source, as its handler wants it.
Place source_for(Translation& t, uint32_t index, Type type) {
  const Operand& o = t.operand(index);
  const uint32_t bytes = ptx::bytes(type);
  const bool is_double = type == Type::F64;
  const Place from = is_double ? t.source_double(index) : t.source(index, bytes == 8 ? 2 : 1);
  PartDetail part;
  if (o.inverted) t.unsupported("an inverted operand");
  if ((o.negated || o.absolute) && !ptx::is_float(type)) t.unsupported("the sign of an integer");
  const uint32_t sign = bytes == 2 ? 0x8000u : 0x80000000u;
  if (o.absolute) part.keep = ~sign;
  if (o.negated) part.flip = sign;
  if (bytes == 8) {
    const Place joined = t.scratch(2);
    Op& op = t.emit(is_double ? run_double_sign : run_join);
    op.destination = joined;
    op.a = from;
    t.detail<PartDetail>() = part;
    return joined;
  }
  for (const std::string_view s : o.suffixes) {
    if (s == "H1" || s == "H1_H1")
      part.shift = 16;
    else if (s.size() == 2 && s[0] == 'B')
      part.shift = 8 * static_cast<uint32_t>(s[1] - '0');
    else if (s != "H0" && s != "H0_H0")
      t.unsupported("the suffix ." + std::string(s));
  }
  if (bytes < 4) part.mask = (1u << (8 * bytes)) - 1;
  if (part.shift == 0 && part.keep == ~0u && part.flip == 0) return from;
  const Place copy = t.scratch(1);
  Op& op = t.emit(run_part);
  op.destination = copy;
  op.a = from;
  t.detail<PartDetail>() = part;
  return copy;
}

void convert(Translation& t, const Conversion& conversion, uint32_t source) {
  const auto handler = functional::conversion_handler(conversion);
  if (!handler) t.unsupported("this conversion");
  const bool wide = ptx::bytes(conversion.to) == 8;
  const Place from = source_for(t, source, conversion.from), to = t.destination(0, wide ? 2 : 1);
  const Place result = wide ? t.scratch(2) : to;
  Op& op = t.emit(handler->run);
  op.destination = result;
  op.a = from;
  op.immediate = handler->immediate;
  if (!wide) return;
  Op& last = t.emit(run_split);
  last.destination = to;
  last.a = result;
}

uint8_t take_direction(Translation& t, std::initializer_list<std::string_view> names) {
  return static_cast<uint8_t>(t.take_one_of(names, 0));
}

Type take_integer(Translation& t, Type otherwise) {
  static constexpr Type types[] = {Type::U8,  Type::S8,  Type::U16, Type::S16,
                                   Type::U32, Type::S32, Type::U64, Type::S64};
  const int index = t.take_next_of({"U8", "S8", "U16", "S16", "U32", "S32", "U64", "S64"});
  return index < 0 ? otherwise : types[index];
}
Type take_float(Translation& t, Type otherwise) {
  static constexpr Type types[] = {Type::F16, Type::BF16, Type::F32, Type::F64};
  const int index = t.take_next_of({"F16", "BF16", "F32", "F64"});
  return index < 0 ? otherwise : types[index];
}

}  // namespace

/// I2F[.to][.from][.rounding] d, a; I2FP.
void translate_i2f(Translation& t) {
  Conversion conversion;
  conversion.to = take_float(t, Type::F32);
  conversion.from = take_integer(t, Type::S32);
  conversion.rounding = take_direction(t, {"RN", "RZ", "RM", "RP"});
  convert(t, conversion, 1);
}

/// F2I[.FTZ][.to][.from][.rounding][.NTZ] d, a. A NaN becomes 0 with .NTZ.
void translate_f2i(Translation& t) {
  Conversion conversion;
  conversion.ftz = t.take("FTZ");
  conversion.to = take_integer(t, Type::S32);
  conversion.from = take_float(t, Type::F32);
  conversion.rounding = take_direction(t, {"ROUND", "TRUNC", "FLOOR", "CEIL"});
  t.take("NTZ");
  convert(t, conversion, 1);
}

/// FRND[.FTZ][.type][.rounding] d, a: to an integral number.
void translate_frnd(Translation& t) {
  Conversion conversion;
  conversion.ftz = t.take("FTZ");
  conversion.to = conversion.from = take_float(t, Type::F32);
  conversion.rounding = take_direction(t, {"ROUND", "TRUNC", "FLOOR", "CEIL"});
  conversion.to_integral = true;
  convert(t, conversion, 1);
}

/// F2F[.FTZ].to.from[.rounding][.SAT] d, a.
void translate_f2f(Translation& t) {
  Conversion conversion;
  conversion.ftz = t.take("FTZ");
  conversion.to = take_float(t, Type::F32);
  conversion.from = take_float(t, Type::F32);
  conversion.rounding = take_direction(t, {"RN", "RZ", "RM", "RP"});
  conversion.saturates = t.take("SAT");
  convert(t, conversion, 1);
}

/// I2I.to.from[.SAT] d, a.
void translate_i2i(Translation& t) {
  Conversion conversion;
  conversion.to = take_integer(t, Type::S32);
  conversion.from = take_integer(t, Type::S32);
  conversion.saturates = t.take("SAT");
  convert(t, conversion, 1);
}

namespace {

/// d = {a, b} as halves: Op::a and Op::b hold one number each.
void run_pack(Context& c, const Op& op) {
  const uint32_t *a = row(c, op.a), *b = row(c, op.b);
  map_words(c, op.destination, [=](uint32_t i) { return a[i] << 16 | (b[i] & 0xffffu); });
}

}  // namespace

/// F2FP.type[.F32].PACK_AB[.RELU][.rounding] d, a, b: two numbers rounded to a half-precision type.
void translate_f2fp(Translation& t) {
  Conversion conversion;
  conversion.relu = t.take("RELU");
  conversion.to = take_float(t, Type::F16);
  t.take("F32");
  conversion.rounding = take_direction(t, {"RN", "RZ", "RM", "RP"});
  const int form = t.take_one_of({"PACK_AB", "PACK_B"});
  if (form < 0 || (conversion.to != Type::F16 && conversion.to != Type::BF16)) t.unsupported("this form");
  const auto handler = functional::conversion_handler(conversion);
  if (!handler) t.unsupported("this conversion");
  const Place to = t.destination(0);
  Place halves[2];
  for (uint32_t k = 0; k < 2; ++k) {
    const Place from = source_for(t, 1 + k, Type::F32);
    halves[k] = t.scratch(1);
    Op& op = t.emit(handler->run);
    op.destination = halves[k];
    op.a = from;
    op.immediate = handler->immediate;
  }
  Op& op = t.emit(run_pack);
  op.destination = to;
  op.a = halves[0];
  op.b = halves[1];
}

}  // namespace simt::sass
