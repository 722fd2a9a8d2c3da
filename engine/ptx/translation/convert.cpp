/// cvt: between all types.
#include <algorithm>
#include <array>

#include "machine/lanes.hpp"
#include "operations/conversion.hpp"
#include "operations/packing.hpp"
#include "operations/small_conversions.hpp"
#include "operations/stochastic_conversions.hpp"
#include "ptx/translation/instructions.hpp"

namespace simt::functional {
namespace {

using ptx::Type;

bool is_integer(Type type) {
  return type >= Type::U8 && type <= Type::S64;
}
bool is_half(Type type) {
  return type == Type::F16 || type == Type::BF16;
}
bool is_plain_float(Type type) {
  return is_half(type) || type == Type::F32 || type == Type::F64;
}
bool is_f8_pair(Type type) {
  return type == Type::E4M3x2 || type == Type::E5M2x2;
}

/// Marks the conversion of a word, or of one to or from 32 bits.
void mark_for_clocks(Op& op, const Conversion& conversion) {
  const auto& [to, from, modes] = conversion;
  if (!is_integer(to) || !is_integer(from) || modes.saturates) return;
  const uint32_t to_bytes = ptx::bytes(to), from_bytes = ptx::bytes(from);
  if (to_bytes < 4 || from_bytes < 4) return;
  op.clock_use = {.kind = ClockUse::Sum,
                  .wide_operands = from_bytes == 8,
                  .wide_result = to_bytes == 8,
                  .is_signed = ptx::is_signed(from)};
}

/// Emits a conversion of one source. Integer registers may be wider than the type.
void emit_single(Translation& t, Conversion conversion) {
  const auto [d, s, modes] = conversion;
  Place a;
  uint32_t bytes = 0;
  if (is_integer(s)) {
    a = t.source_of_any_size(t.operand(1), s, bytes);
    if (bytes < ptx::bytes(s)) t.unsupported("a register narrower than its type");
    if (bytes == 8 && ptx::bytes(s) < 8) {
      const Place narrow = t.scratch(4);
      emit_conversion(t, {Type::U32, Type::U64, {}}, narrow, a);
      a = narrow;
    }
  } else {
    a = t.source(1, s);
  }
  if (!is_integer(d)) {
    emit_conversion(t, conversion, t.destination(0, d), a);
    return;
  }
  const Place to = t.destination_of_any_size(t.operand(0), d, bytes);
  if (bytes < ptx::bytes(d)) t.unsupported("a destination narrower than its type");
  const bool extends = bytes == 8 && ptx::bytes(d) < 8;
  conversion.modes.register_bytes = static_cast<uint8_t>(extends ? 4 : bytes);
  const Place result = extends ? t.scratch(4) : to;
  mark_for_clocks(emit_conversion(t, conversion, result, a), conversion);
  if (!extends) return;
  const bool is_signed = ptx::is_signed(d);
  emit_conversion(t, {is_signed ? Type::S64 : Type::U64, is_signed ? Type::S32 : Type::U32, {}}, to, result);
}

void emit_pair(Translation& t, const Conversion& conversion) {
  const Place to = t.destination(0, conversion.to), a = t.source(1, Type::F32), b = t.source(2, Type::F32);
  emit_conversion(t, conversion, to, a).b = b;
}

/// cvt.pack.sat.s16.s32 d, a, b; cvt.pack.sat.u8.s32.b32 d, a, b, c
void translate_pack(Translation& t) {
  if (!t.take("sat")) t.unsupported(".sat is missing");
  const int which = t.take_one_of({"u16", "s16", "u8", "s8", "u4", "s4", "u2", "s2"});
  if (which < 0 || !t.take("s32")) t.unsupported("these types");
  const bool two = which < 2;
  if (!two && !t.take("b32")) t.unsupported(".b32 is missing");
  const Place d = t.destination(0, Type::B32), a = t.source(1, Type::S32), b = t.source(2, Type::S32);
  const Place rest = two ? place::none : t.source(3, Type::B32);
  Op& op = t.emit(run_packing);
  op.destination = d;
  op.a = a;
  op.b = b;
  op.c = rest;
  t.detail<Packing>() = Packing(16u >> (which / 2), which % 2);
}

/// Refuses modifiers of rounding that the types do not have, and types that need one without it.
void check_rounding(Translation& t, const Conversion& conversion, bool integral, bool direction) {
  const Type d = conversion.to, s = conversion.from;
  if (is_integer(d) && is_integer(s)) {
    if (integral || direction) t.unsupported("integers are not rounded");
  } else if (is_integer(d) && is_plain_float(s)) {
    if (!integral) t.unsupported("a modifier for rounding to integers is missing");
  } else if (is_integer(s) && is_plain_float(d)) {
    if (!direction) t.unsupported("a rounding is missing");
  } else if (is_plain_float(d) && d == s) {
    if (direction) t.unsupported("this rounding, between the same types");
  } else if (is_plain_float(d) && is_plain_float(s)) {
    if (integral) t.unsupported("a rounding to integers, between different types");
    // ptxas also accepts conversions between f16 and bf16 without a rounding modifier.
    const bool widens = d == Type::F64 || (d == Type::F32 && s != Type::F64) || is_half(s);
    if (!direction && !widens) t.unsupported("a rounding is missing");
  }
}

constexpr std::string_view small_formats[] = {"e2m1x2", "e2m3x2", "e3m2x2", "ue8m0x2", "s2f6x2"};

/// Whether a modifier is a pair of numbers of less than 8 bits, of fixed-point numbers, or of scale factors;
/// or f8 becomes bf16, or bf16 f8.
bool is_small(const Translation& t) {
  const auto has = [&](std::string_view format) { return t.mnemonic().has(format); };
  return std::ranges::any_of(small_formats, has) || (has("bf16x2") && (has("e4m3x2") || has("e5m2x2")));
}

/// The halves of operand 1 as f32: upper, lower.
std::array<Place, 2> take_halves(Translation& t, bool bfloat) {
  const Place pair = t.source(1, Type::B32);
  std::array<Place, 2> halves;
  for (uint32_t k = 0; k < 2; ++k) {
    halves[k] = t.scratch(4);
    Op& op = t.emit(half_of_pair(bfloat));
    op.destination = halves[k];
    op.a = pair;
    op.immediate = 1 - k;
  }
  return halves;
}

void translate_small(Translation& t) {
  SmallConversion conversion;
  for (const std::string_view m : t.mnemonic().modifiers) {
    const bool type = std::ranges::count(small_formats, m) > 0 || ptx::type_named(m) != Type::None;
    if (!type || !t.take(m)) continue;
    (conversion.to.empty() ? conversion.to : conversion.from) = m;
  }
  const int rounding = t.take_one_of({"rn", "rz", "rp"});
  const bool finite = t.take("satfinite"), relu = t.take("relu"), scales = conversion.to == "ue8m0x2";
  const bool scaled = t.take("scaled::n2::ue8m0"), to_bf16 = conversion.to == "bf16x2";
  const bool to_fixed = conversion.to == "s2f6x2";
  if (scales ? rounding < 1 : rounding != 0) t.unsupported("this rounding");
  const bool to_f8 = conversion.to == "e4m3x2" || conversion.to == "e5m2x2";
  const bool halves = !scales && (conversion.from == "bf16x2" || (conversion.from == "f16x2" && !to_fixed));
  const bool narrows = scales || halves || conversion.from == "f32";
  if (narrows && !scales && !finite) t.unsupported("conversions to 4, 6 and 8 bits need .satfinite");
  if (scaled && ((!to_bf16 && !to_fixed) || conversion.from == "ue8m0x2"))
    t.unsupported("scale factors are for .bf16x2 and .s2f6x2");
  conversion.up = rounding == 2;
  std::array<Place, 2> numbers{place::none, place::none};
  if (halves) {
    numbers = take_halves(t, conversion.from == "bf16x2");
    conversion.from = "f32";
  }
  if (to_f8) {
    Conversion f8{conversion.to == "e4m3x2" ? Type::E4M3x2 : Type::E5M2x2, Type::F32, {}};
    f8.modes.finite = finite;
    f8.modes.relu = relu;
    emit_conversion(t, f8, t.destination(0, f8.to), numbers[0]).b = numbers[1];
    return;
  }
  const Handler run = small_conversion(conversion);
  if (!run || (!narrows && !to_bf16 && finite) || (scales && relu)) t.unsupported("these types");
  uint32_t bytes = 0;
  const Place to = t.destination_of_any_size(t.operand(0), Type::B32, bytes);
  if (!halves && conversion.from == "f32") {
    numbers = {t.source(1, Type::F32), t.source(2, Type::F32)};
  } else if (!halves) {
    numbers[0] = t.source_of_any_size(t.operand(1), Type::B32, bytes);
    if (scaled) numbers[1] = t.source(2, Type::B16);
  }
  const Place factors = to_fixed && scaled ? t.source(halves ? 2 : 3, Type::B16) : place::none;
  Op& op = t.emit(run);
  op.destination = to;
  op.a = numbers[0];
  op.b = numbers[1];
  op.c = factors;
  op.immediate = scales ? finite : relu + (to_bf16 && finite ? 2 : 0);
}

/// cvt.rs of two numbers to halves, or of four, {a, b, e, f}, to smaller formats: first a and b, then e and
/// f.
void translate_stochastic(Translation& t) {
  t.take("rs");
  const int which = t.take_one_of({"f16x2", "bf16x2", "e4m3x4", "e5m2x4", "e2m3x4", "e3m2x4", "e2m1x4"});
  static constexpr std::string_view pairs[] = {"f16x2",  "bf16x2", "e4m3x2", "e5m2x2",
                                               "e2m3x2", "e3m2x2", "e2m1x2"};
  if (which < 0 || !t.take("f32")) t.unsupported("these types with stochastic rounding");
  const bool halves = which < 2, four_bits = pairs[which] == "e2m1x2";
  const bool relu = t.take("relu"), finite = t.take("satfinite");
  if (!halves && !finite) t.unsupported("conversions to 4, 6 and 8 bits need .satfinite");
  const Handler run = stochastic_conversion(pairs[which]);
  const auto convert = [&](Place to, Place upper, Place lower, Place word) {
    Op& op = t.emit(run);
    op.destination = to;
    op.a = upper;
    op.b = lower;
    op.c = word;
    op.immediate = relu + (finite ? 2 : 0);
  };
  const Place to = t.destination(0, four_bits ? Type::B16 : Type::B32);
  const Place word = t.source(halves ? 3 : 2, Type::B32);
  if (halves) return convert(to, t.source(1, Type::F32), t.source(2, Type::F32), word);
  const ptx::Operand& numbers = t.operand(1);
  Place number[4];
  for (uint32_t k = 0; k < 4; ++k) number[k] = t.source(t.part(numbers, k), Type::F32);
  const Place first = t.scratch(4), all = four_bits ? t.scratch(4) : to;
  convert(first, number[0], number[1], word);
  convert(all, number[2], number[3], first);
  if (four_bits) emit_conversion(t, {Type::U16, Type::U32, {}}, to, all);
}

}  // namespace

void translate_cvt(Translation& t) {
  if (t.take("pack")) return translate_pack(t);
  if (t.mnemonic().has("rs")) return translate_stochastic(t);
  if (is_small(t)) return translate_small(t);
  Conversion conversion;
  ConversionModes& modes = conversion.modes;
  const int integral = t.take_one_of({"rni", "rzi", "rmi", "rpi"});
  const int direction = t.take_one_of({"rn", "rz", "rm", "rp", "rna"});
  if (integral >= 0) modes.rounding = static_cast<Rounding>(integral);
  if (direction >= 0) modes.rounding = static_cast<Rounding>(direction);
  modes.to_integral = integral >= 0;
  modes.ftz = t.take("ftz");
  modes.saturates = t.take("sat");
  modes.finite = t.take("satfinite");
  modes.relu = t.take("relu");
  const Type d = conversion.to = t.take_type(), s = conversion.from = t.take_type();

  if (s == Type::F32 && (d == Type::F16x2 || d == Type::BF16x2)) {
    if (direction < 0) t.unsupported("a rounding is missing");
    return emit_pair(t, conversion);
  }
  if (is_f8_pair(d)) {
    if (!modes.finite || direction != 0) t.unsupported("conversions to f8 need .rn.satfinite");
    if (!conversion_handler(conversion)) t.unsupported("this type");
    return s == Type::F32 ? emit_pair(t, conversion) : emit_single(t, conversion);
  }
  if (is_f8_pair(s)) {
    if (d != Type::F16x2 || direction != 0) t.unsupported("f8 becomes f16x2, with .rn");
    return emit_single(t, conversion);
  }
  if (d == Type::TF32) {
    if (s != Type::F32 || direction < 0)
      t.unsupported("conversions to tf32 need a source of f32 and a rounding modifier");
    if (modes.rounding == Rounding::Away && modes.relu) t.unsupported(".relu with .rna");
    return emit_single(t, conversion);
  }
  if (modes.rounding == Rounding::Away) t.unsupported(".rna is for tf32");
  if ((modes.relu || modes.finite) && !(is_half(d) && s == Type::F32))
    t.unsupported(".relu or .satfinite of these types");
  check_rounding(t, conversion, integral >= 0, direction >= 0);
  if (!conversion_handler(conversion)) t.unsupported("these types");
  emit_single(t, conversion);
}

}  // namespace simt::functional
