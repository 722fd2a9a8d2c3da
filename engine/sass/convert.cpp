/// Conversions between numbers: F2I, I2F, F2F, FRND and their packed forms.
#include "operations/conversion.hpp"
#include "operations/packing.hpp"
#include "operations/small_conversions.hpp"
#include "operations/stochastic_conversions.hpp"
#include "sass/instructions.hpp"
#include "sass/pairs.hpp"
#include "sass/rows.hpp"

namespace simt::sass {

using functional::Conversion;
using functional::Rounding;
using ptx::Type;

namespace {

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

}  // namespace

Place number_source(Translation& t, uint32_t index, Type type) {
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
  if (bytes == 8 && !is_double) return joined(t, from);
  if (is_double) {
    const Place number = t.scratch(2);
    Op& op = t.emit(run_double_sign);
    op.destination = number;
    op.a = from;
    t.detail<PartDetail>() = part;
    return number;
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

namespace {

void convert(Translation& t, const Conversion& conversion, uint32_t source) {
  const bool wide = ptx::bytes(conversion.to) == 8;
  const Place from = number_source(t, source, conversion.from), to = t.destination(0, wide ? 2 : 1);
  const Place result = wide ? t.scratch(2) : to;
  emit_conversion(t, conversion, result, from);
  if (wide) split(t, to, result);
}

Rounding take_rounding(Translation& t, std::initializer_list<std::string_view> names) {
  return static_cast<Rounding>(t.take_one_of(names, 0));
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
  conversion.modes.rounding = take_rounding(t, {"RN", "RZ", "RM", "RP"});
  convert(t, conversion, 1);
}

/// F2I[.FTZ][.to][.from][.rounding][.NTZ] d, a. A NaN becomes 0 with .NTZ.
void translate_f2i(Translation& t) {
  Conversion conversion;
  conversion.modes.ftz = t.take("FTZ");
  conversion.to = take_integer(t, Type::S32);
  conversion.from = take_float(t, Type::F32);
  conversion.modes.rounding = take_rounding(t, {"ROUND", "TRUNC", "FLOOR", "CEIL"});
  t.take("NTZ");
  convert(t, conversion, 1);
}

namespace {

/// d = {lower half of c, a, b}: bytes.
void run_pack_bytes(Context& c, const Op& op) {
  const uint32_t *a = row(c, op.a), *b = row(c, op.b), *e = row(c, op.c);
  map_words(c, op.destination, [=](uint32_t i) { return e[i] << 16 | (a[i] & 0xff) << 8 | (b[i] & 0xff); });
}

}  // namespace

/// F2IP.U8|S8.F32[.rounding].NTZ d, a, b, c: two bytes, and the lower half of c above them.
void translate_f2ip(Translation& t) {
  Conversion conversion;
  conversion.modes.ftz = t.take("FTZ");
  const Type to_type = take_integer(t, Type::None);
  if ((to_type != Type::U8 && to_type != Type::S8) || !t.take("F32")) t.unsupported("this form");
  conversion.to = to_type;
  conversion.modes.rounding = take_rounding(t, {"ROUND", "TRUNC", "FLOOR", "CEIL"});
  t.take("NTZ");
  Place bytes[2];
  for (uint32_t k = 0; k < 2; ++k) {
    const Place from = number_source(t, 1 + k, Type::F32);
    bytes[k] = t.scratch(1);
    emit_conversion(t, conversion, bytes[k], from);
  }
  const Place rest = t.source(3), to = t.destination(0);
  Op& op = t.emit(run_pack_bytes);
  op.destination = to;
  op.a = bytes[0];
  op.b = bytes[1];
  op.c = rest;
}

/// I2IP.{U16,S16,U8,S8,U4,S4,U2,S2}.S32.SAT d, a, b, c: two integers, and the lower bits of c above them. The
/// suffix of c says how many those are.
void translate_i2ip(Translation& t) {
  const int which = t.take_one_of({"U16", "S16", "U8", "S8", "U4", "S4", "U2", "S2"});
  if (which < 0 || !t.take("S32") || !t.take("SAT")) t.unsupported("this form");
  const uint32_t bits = 16u >> (which / 2);
  const Operand& above = t.operand(3);
  const std::string kept = std::to_string(32 - 2 * bits);
  if (above.negated || above.inverted || (!above.suffixes.empty() && !above.has(kept)))
    t.unsupported("this form of what is above the integers");
  const Place a = t.source(1), b = t.source(2), rest = t.source(3);
  const Place to = t.destination(0);
  Op& op = t.emit(functional::run_packing);
  op.destination = to;
  op.a = a;
  op.b = b;
  op.c = bits == 16 ? place::none : rest;
  t.detail<functional::Packing>() = functional::Packing(bits, which % 2);
}

/// FRND[.FTZ][.type][.rounding] d, a: to an integral number.
void translate_frnd(Translation& t) {
  Conversion conversion;
  conversion.modes.ftz = t.take("FTZ");
  conversion.to = conversion.from = take_float(t, Type::F32);
  conversion.modes.rounding = take_rounding(t, {"ROUND", "TRUNC", "FLOOR", "CEIL"});
  conversion.modes.to_integral = true;
  convert(t, conversion, 1);
}

/// F2F[.FTZ].to.from[.rounding][.SAT] d, a.
void translate_f2f(Translation& t) {
  Conversion conversion;
  conversion.modes.ftz = t.take("FTZ");
  conversion.to = take_float(t, Type::F32);
  conversion.from = take_float(t, Type::F32);
  conversion.modes.rounding = take_rounding(t, {"RN", "RZ", "RM", "RP"});
  conversion.modes.saturates = t.take("SAT");
  convert(t, conversion, 1);
}

/// I2I.to.from[.SAT] d, a.
void translate_i2i(Translation& t) {
  Conversion conversion;
  conversion.to = take_integer(t, Type::S32);
  conversion.from = take_integer(t, Type::S32);
  conversion.modes.saturates = t.take("SAT");
  convert(t, conversion, 1);
}

namespace {

/// d = {a, the low bits of b}; Op::immediate says how many.
void run_pack(Context& c, const Op& op) {
  const uint32_t *a = row(c, op.a), *b = row(c, op.b);
  const auto bits = static_cast<uint32_t>(op.immediate);
  map_words(c, op.destination, [=](uint32_t i) { return a[i] << bits | (b[i] & ((1u << bits) - 1)); });
}

enum class Packing : uint8_t { Both, BothMerged, Lower, LowerMerged, OneMerged };

/// d = {a, the low bits of b}.
void pack(Translation& t, Place to, Place a, Place b, uint32_t bits = 16) {
  Op& op = t.emit(run_pack);
  op.destination = to;
  op.a = a;
  op.b = b;
  op.immediate = bits;
}

/// Two numbers, rounded to a pair of a half-precision type.
void convert_pair(Translation& t, const Conversion& conversion) {
  const Place to = t.destination(0);
  const Place upper = number_source(t, 1, Type::F32), lower = number_source(t, 2, Type::F32);
  emit_conversion(t, conversion, to, upper).b = lower;
}

/// One number, rounded to a half-precision type: the lower half of the result; the last operand becomes the
/// upper one.
void merge_half(Translation& t, const Conversion& conversion) {
  const Place to = t.destination(0), from = number_source(t, 1, Type::F32), upper = t.source(2);
  const Place half = t.scratch(1);
  emit_conversion(t, conversion, half, from);
  pack(t, to, upper, half);
}

/// To or from f8. The pair of f8 numbers is the lower half of the result; the last operand becomes the upper
/// one.
void convert_f8(Translation& t, const Conversion& conversion, Packing packing) {
  const bool to_f8 = conversion.to != Type::F16x2, two = packing == Packing::BothMerged;
  if (to_f8 != (two || packing == Packing::LowerMerged) || two != (conversion.from == Type::F32))
    t.unsupported("this form");
  const Place to = t.destination(0);
  const Place a = number_source(t, 1, conversion.from);
  const Place b = two ? number_source(t, 2, conversion.from) : place::none;
  const Place upper = to_f8 ? t.source(two ? 3 : 2) : place::none;
  const Place pair = to_f8 ? t.scratch(1) : to;
  emit_conversion(t, conversion, pair, a).b = b;
  if (to_f8) pack(t, to, upper, pair);
}

/// The names of formats of pairs in machine code, and in PTX.
struct PairFormat {
  std::string_view code, name;
};
constexpr PairFormat pair_formats[] = {
    {"E2M1", "e2m1x2"}, {"E2M3", "e2m3x2"}, {"E3M2", "e3m2x2"}, {"E8", "ue8m0x2"}, {"E4M3", "e4m3x2"},
    {"E5M2", "e5m2x2"}, {"BF16", "bf16x2"}, {"F16", "f16x2"},   {"F32", "f32"},    {"S2_6", "s2f6x2"}};

/// Whether a conversion is of 4 or 6 bits, of fixed-point numbers, of scale factors, or between f8 and bf16.
bool is_small(const Translation& t) {
  const auto has = [&](std::string_view name) { return t.has(name); };
  return has("E2M1") || has("E2M3") || has("E3M2") || has("E8") || has("S2_6") ||
         (has("BF16") && (has("E4M3") || has("E5M2")));
}

/// F2FP[.SATFINITE][.RELU].small.F32.PACK_AB_MERGE_C[.rounding] d, a, b, c; .small.F16.UNPACK_B_MERGE_C d, a,
/// c; .half.small.UNPACK_B d, a [, s]: s is the pair of scale factors. To fixed-point numbers (S2_6), the
/// upper half of c holds these.
void convert_small(Translation& t, bool relu) {
  const bool finite = t.take("SATFINITE");
  std::string_view names[2];
  for (std::string_view& name : names) {
    const int index =
        t.take_next_of({"E2M1", "E2M3", "E3M2", "E8", "E4M3", "E5M2", "BF16", "F16", "F32", "S2_6"});
    if (index < 0) t.unsupported("its types");
    name = pair_formats[index].name;
  }
  const int form = t.take_one_of({"PACK_AB_MERGE_C", "UNPACK_B_MERGE_C", "UNPACK_B"});
  const int rounding = t.take_one_of({"RN", "RZ", "RP"}, 0);
  functional::SmallConversion conversion{names[0], names[1]};
  const bool scales = conversion.to == "ue8m0x2", to_bf16 = form == 2 && conversion.to == "bf16x2";
  const bool to_fixed = conversion.to == "s2f6x2";
  if (form < 0 || (rounding != 0) != scales) t.unsupported("this form");
  conversion.up = rounding == 2;
  const Place to = t.destination(0);
  Place a = number_source(t, 1, form == 0 ? Type::F32 : form == 1 ? Type::F16x2 : Type::E4M3x2);
  Place b = form == 0 ? number_source(t, 2, Type::F32) : place::none;
  if (to_bf16 && t.operand_count() > 2) b = number_source(t, 2, Type::E4M3x2);
  // The half of a number is an operand of its own.
  if (to_bf16 && t.operand_count() > 3 && t.operand(3).text != "H0") t.unsupported("its last operand");
  if (form == 1 && !scales) {
    Place halves[2];
    for (uint32_t k = 0; k < 2; ++k) {
      halves[k] = t.scratch(1);
      Op& op = t.emit(functional::half_of_pair(conversion.from == "bf16x2"));
      op.destination = halves[k];
      op.a = a;
      op.immediate = 1 - k;
    }
    a = halves[0];
    b = halves[1];
    conversion.from = "f32";
  }
  const bool merges = form != 2;
  const Place upper = merges ? t.source(form == 0 ? 3 : 2) : place::none;
  // ptxas merges bytes of two f32 numbers; with halves it leaves the operand out, so its meaning is not
  // known.
  const bool byte = conversion.to == "e2m1x2";
  if (byte && form == 1 && !t.operand(2).is_zero()) t.unsupported("an operand to merge");
  Place factors = place::none;
  if (to_fixed) {
    factors = t.scratch(1);
    Op& op = t.emit(run_part);
    op.destination = factors;
    op.a = upper;
    t.detail<PartDetail>().shift = 16;
  }
  const Place pair = merges ? t.scratch(1) : to;
  if (conversion.to == "e4m3x2" || conversion.to == "e5m2x2") {
    Conversion f8{conversion.to == "e4m3x2" ? Type::E4M3x2 : Type::E5M2x2, Type::F32, {}};
    f8.modes.finite = finite;
    f8.modes.relu = relu;
    emit_conversion(t, f8, pair, a).b = b;
  } else {
    const Handler run = functional::small_conversion(conversion);
    if (!run) t.unsupported("its types");
    Op& op = t.emit(run);
    op.destination = pair;
    op.a = a;
    op.b = b;
    op.c = factors;
    op.immediate = scales ? finite : relu + (to_bf16 && finite ? 2 : 0);
  }
  if (merges) pack(t, to, upper, pair, byte ? 8 : 16);
}

/// F2FP[.SATFINITE][.RELU].half.F32.PACK_AB.RS d, a, b, c; .small.F32.PACK_AB_MERGE_C.RS d, a, b, c: c holds
/// the random bits.
void convert_stochastic(Translation& t, bool relu) {
  t.take("RS");
  const bool finite = t.take("SATFINITE");
  const int to_index = t.take_next_of({"E2M1", "E2M3", "E3M2", "E8", "E4M3", "E5M2", "BF16", "F16"});
  const Handler run = to_index < 0 ? nullptr : functional::stochastic_conversion(pair_formats[to_index].name);
  if (!run || !t.take("F32")) t.unsupported("its types");
  const bool halves = to_index > 5;
  if (!t.take(halves ? "PACK_AB" : "PACK_AB_MERGE_C") || (!halves && !finite)) t.unsupported("this form");
  const Place to = t.destination(0);
  const Place a = number_source(t, 1, Type::F32), b = number_source(t, 2, Type::F32), word = t.source(3);
  Op& op = t.emit(run);
  op.destination = to;
  op.a = a;
  op.b = b;
  op.c = word;
  op.immediate = relu + (finite ? 2 : 0);
}

}  // namespace

/// F2FP[.SATFINITE][.RELU].type[.F32].PACK_AB[.rounding] d, a, b: two numbers rounded to a half-precision
/// type. F2FP[.SATFINITE][.RELU].TF32.F32.PACK_B[.rounding] d, a: one number rounded to tf32.
/// F2FP.type.F32.PACK_AB_MERGE_C d, a, b, c and F2FP.type.F16.UNPACK_B_MERGE_C d, a, c: rounded to f8.
/// F2FP.F16.type.UNPACK_B d, a: a pair of f8 numbers. F2FP.type.F32.MERGE_C d, a, c: one number.
void translate_f2fp(Translation& t) {
  Conversion conversion;
  conversion.modes.relu = t.take("RELU");
  if (t.has("RS")) return convert_stochastic(t, conversion.modes.relu);
  if (is_small(t)) return convert_small(t, conversion.modes.relu);
  if (t.take("TF32")) {
    if (!t.take("F32") || !t.take("PACK_B")) t.unsupported("this form");
    conversion.to = Type::TF32;
    conversion.modes.finite = t.take("SATFINITE");
    conversion.modes.rounding = take_rounding(t, {"RN", "RZ"});
    return convert(t, conversion, 1);
  }
  const int packing =
      t.take_one_of({"PACK_AB", "PACK_AB_MERGE_C", "UNPACK_B", "UNPACK_B_MERGE_C", "MERGE_C"});
  if (packing < 0) t.unsupported("this form");
  static constexpr Type types[] = {Type::E4M3x2, Type::E5M2x2, Type::F16x2, Type::BF16x2, Type::F32};
  const auto take_type = [&](Type otherwise) {
    const int index = t.take_next_of({"E4M3", "E5M2", "F16", "BF16", "F32"});
    return index < 0 ? otherwise : types[index];
  };
  conversion.to = take_type(Type::F16x2);
  conversion.from = take_type(Type::F32);
  const auto form = static_cast<Packing>(packing);
  if (form != Packing::Both && form != Packing::OneMerged) {
    if (conversion.to != Type::F16x2 && !t.take("SATFINITE")) t.unsupported("f8 that does not saturate");
    return convert_f8(t, conversion, form);
  }
  if (conversion.from != Type::F32 || (conversion.to != Type::F16x2 && conversion.to != Type::BF16x2))
    t.unsupported("this form");
  conversion.modes.finite = t.take("SATFINITE");
  conversion.modes.rounding = take_rounding(t, {"RN", "RZ", "RM", "RP"});
  if (form == Packing::Both) return convert_pair(t, conversion);
  conversion.to = conversion.to == Type::F16x2 ? Type::F16 : Type::BF16;
  merge_half(t, conversion);
}

}  // namespace simt::sass
