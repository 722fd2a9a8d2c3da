/// f32 arithmetic, comparison and the special functions.
#include "operations/conversion.hpp"
#include "operations/float_operations.hpp"
#include "operations/special_functions.hpp"
#include "sass/comparisons.hpp"
#include "sass/instructions.hpp"
#include "sass/pairs.hpp"
#include "sass/rows.hpp"

namespace simt::sass {

using functional::Clamp;
using ptx::Type;
namespace operations = functional::float_operations;

namespace {

/// A source, with its magnitude and sign: (x & keep) ^ flip.
struct FloatSource {
  Place place = place::none;
  uint32_t keep = ~0u, flip = 0;

  FloatSource() = default;
  FloatSource(Translation& t, uint32_t index) : FloatSource(t, t.source(index), t.operand(index)) {
    if (!t.operand(index).suffixes.empty()) t.unsupported("this form of a source");
  }
  FloatSource(const Translation& t, Place at, const Operand& o) : place(at) {
    constexpr uint32_t sign = 0x80000000u;
    if (o.inverted) t.unsupported("this form of a source");
    if (o.absolute) keep = ~sign;
    if (o.negated) flip = sign;
  }
  bool plain() const { return keep == ~0u && flip == 0; }
};

struct FloatDetail : Detail {
  FloatSource sources[3];
};

template <class F, uint32_t sources, bool ftz, Clamp clamp, bool plain>
void run_float(Context& c, const Op& op) {
  const uint32_t *a = row(c, op.a), *b = row(c, op.b);
  const uint32_t* e = sources == 3 ? row(c, op.c) : nullptr;
  const auto number = [](uint32_t bits) { return functional::operand<ftz>(std::bit_cast<float>(bits)); };
  const auto compute = [=](uint32_t x, uint32_t y, uint32_t z) {
    if constexpr (sources == 3)
      return std::bit_cast<uint32_t>(operations::rounded<F, ftz, clamp>(number(x), number(y), number(z)));
    else
      return std::bit_cast<uint32_t>(operations::rounded<F, ftz, clamp>(number(x), number(y)));
  };
  if constexpr (plain) {
    map_words(c, op.destination, [=](uint32_t i) { return compute(a[i], b[i], sources == 3 ? e[i] : 0); });
  } else {
    const FloatSource* s = op.details<FloatDetail>().sources;
    const uint32_t ka = s[0].keep, fa = s[0].flip, kb = s[1].keep, fb = s[1].flip, kc = s[2].keep,
                   fc = s[2].flip;
    map_words(c, op.destination, [=](uint32_t i) {
      return compute((a[i] & ka) ^ fa, (b[i] & kb) ^ fb, sources == 3 ? (e[i] & kc) ^ fc : 0);
    });
  }
}

template <class F, uint32_t sources, bool ftz, Clamp clamp>
Handler float_handler(bool plain, bool nearest) {
  if (nearest)
    return plain ? run_float<F, sources, ftz, clamp, true> : run_float<F, sources, ftz, clamp, false>;
  return functional::run_directed<run_float<F, sources, ftz, clamp, false>>;
}

/// [.FTZ][.rounding][.SAT]
struct FloatModes {
  bool ftz, saturates;
  int direction;
  bool nearest() const { return direction == FE_TONEAREST; }
};
FloatModes take_float_modes(Translation& t) {
  const bool ftz = t.take("FTZ"), saturates = t.take("SAT");
  static constexpr int directions[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
  return {ftz, saturates, directions[t.take_one_of({"RN", "RZ", "RM", "RP"}, 0)]};
}

template <class F, uint32_t sources>
void emit_arithmetic(Translation& t, const FloatModes& modes, Place to, const FloatDetail& d) {
  const bool ftz = modes.ftz, saturates = modes.saturates, nearest = modes.nearest();
  bool plain = true;
  for (uint32_t k = 0; k < sources; ++k) plain &= d.sources[k].plain();
  Op& op = t.emit(ftz         ? saturates ? float_handler<F, sources, true, Clamp::Sat>(plain, nearest)
                                          : float_handler<F, sources, true, Clamp::None>(plain, nearest)
                  : saturates ? float_handler<F, sources, false, Clamp::Sat>(plain, nearest)
                              : float_handler<F, sources, false, Clamp::None>(plain, nearest));
  op.destination = to;
  op.a = d.sources[0].place;
  op.b = d.sources[1].place;
  if (sources == 3) op.c = d.sources[2].place;
  op.immediate = modes.direction;
  t.detail<FloatDetail>() = d;
}

/// op[.FTZ][.rounding][.SAT] d, a, b [, c].
template <class F, uint32_t sources>
void translate_arithmetic(Translation& t) {
  const FloatModes modes = take_float_modes(t);
  const Place to = t.destination(0);
  FloatDetail d;
  for (uint32_t k = 0; k < sources; ++k) d.sources[k] = FloatSource(t, 1 + k);
  emit_arithmetic<F, sources>(t, modes, to, d);
}

/// op2[.FTZ][.rounding] d, a.F32x2.HI_LO, b.F32x2.HI_LO [, c.F32x2.HI_LO]: of both words of pairs. A source
/// .F32 is one word for both.
template <class F, uint32_t sources>
void translate_pair_arithmetic(Translation& t) {
  const FloatModes modes = take_float_modes(t);
  const Place to = t.destination(0, 2);
  FloatDetail low, high;
  bool overwritten = false;  // a word for both is the result's lower one
  for (uint32_t k = 0; k < sources; ++k) {
    const Operand& o = t.operand(1 + k);
    const bool is_register = o.kind == OperandKind::Register || o.kind == OperandKind::Uniform;
    const bool is_pair = o.suffixes == std::vector<std::string_view>{"F32x2", "HI_LO"};
    if (!is_register || (!is_pair && o.suffixes != std::vector<std::string_view>{"F32"}))
      t.unsupported("this form of a source");
    low.sources[k] = high.sources[k] = FloatSource(t, t.source(1 + k, is_pair ? 2 : 1), o);
    if (is_pair)
      high.sources[k].place += place::register_bytes;
    else
      overwritten |= low.sources[k].place == to;
  }
  if (!overwritten) emit_arithmetic<F, sources>(t, modes, to, low);
  emit_arithmetic<F, sources>(t, modes, to + place::register_bytes, high);
  if (overwritten) emit_arithmetic<F, sources>(t, modes, to, low);
}

/// FHADD, FHFMA: the last source is f32, the others are halves of registers, of f16 or bf16.
template <class F, uint32_t sources>
void translate_mixed_arithmetic(Translation& t) {
  const Type half = t.take("BF16") ? Type::BF16 : Type::F16;
  const FloatModes modes = take_float_modes(t);
  const Place to = t.destination(0);
  FloatDetail d;
  for (uint32_t k = 0; k + 1 < sources; ++k) {
    const Place number = number_source(t, 1 + k, half), wide = t.scratch(1);
    functional::emit_conversion(t, {Type::F32, half, {}}, wide, number);
    d.sources[k].place = wide;
  }
  d.sources[sources - 1] = FloatSource(t, sources);
  emit_arithmetic<F, sources>(t, modes, to, d);
}

struct ScaledProductDetail : FloatDetail {
  double factor = 1;
};

/// The product and the factor, a power of two, are rounded once. Double precision holds both exactly.
template <bool ftz, Clamp clamp>
void run_scaled_product(Context& c, const Op& op) {
  const auto& d = op.details<ScaledProductDetail>();
  const uint32_t *a = row(c, op.a), *b = row(c, op.b);
  const FloatSource &x = d.sources[0], &y = d.sources[1];
  const auto number = [](uint32_t bits) {
    return double{functional::operand<ftz>(std::bit_cast<float>(bits))};
  };
  map_words(c, op.destination, [&](uint32_t i) {
    const double exact = number((a[i] & x.keep) ^ x.flip) * number((b[i] & y.keep) ^ y.flip) * d.factor;
    const auto r = static_cast<float>(exact);
    const float flushed = ftz ? functional::flushed_result(r, static_cast<float>(exact * 0x1p64)) : r;
    return std::bit_cast<uint32_t>(functional::finished<false, clamp>(flushed));
  });
}

template <bool ftz, Clamp clamp>
Handler scaled_product_handler(bool nearest) {
  return nearest ? run_scaled_product<ftz, clamp> : functional::run_directed<run_scaled_product<ftz, clamp>>;
}

}  // namespace

void translate_fadd(Translation& t) {
  translate_arithmetic<operations::Add, 2>(t);
}
/// FMUL[.D2, .D4, .D8, .M2, .M4, .M8] d, a, b: the product divided or multiplied by 2, 4 or 8, as ptxas
/// contracts two multiplications.
void translate_fmul(Translation& t) {
  static constexpr double factors[] = {0.5, 0.25, 0.125, 2, 4, 8};
  const int scale = t.take_one_of({"D2", "D4", "D8", "M2", "M4", "M8"});
  if (scale < 0) return translate_arithmetic<operations::Mul, 2>(t);
  const FloatModes modes = take_float_modes(t);
  const Place to = t.destination(0);
  ScaledProductDetail d;
  for (uint32_t k = 0; k < 2; ++k) d.sources[k] = FloatSource(t, 1 + k);
  d.factor = factors[scale];
  Op& op = t.emit(modes.ftz ? modes.saturates ? scaled_product_handler<true, Clamp::Sat>(modes.nearest())
                                              : scaled_product_handler<true, Clamp::None>(modes.nearest())
                  : modes.saturates ? scaled_product_handler<false, Clamp::Sat>(modes.nearest())
                                    : scaled_product_handler<false, Clamp::None>(modes.nearest()));
  op.destination = to;
  op.a = d.sources[0].place;
  op.b = d.sources[1].place;
  op.immediate = modes.direction;
  t.detail<ScaledProductDetail>() = d;
}
void translate_ffma(Translation& t) {
  translate_arithmetic<operations::Fma, 3>(t);
}
void translate_fhadd(Translation& t) {
  translate_mixed_arithmetic<operations::Add, 2>(t);
}
void translate_fhfma(Translation& t) {
  translate_mixed_arithmetic<operations::Fma, 3>(t);
}
void translate_fadd2(Translation& t) {
  translate_pair_arithmetic<operations::Add, 2>(t);
}
void translate_fmul2(Translation& t) {
  translate_pair_arithmetic<operations::Mul, 2>(t);
}
void translate_ffma2(Translation& t) {
  translate_pair_arithmetic<operations::Fma, 3>(t);
}

// --- comparison -------------------------------------------------------------------------------------------

namespace {

struct FloatCompareDetail : Detail {
  FloatSource a, b;
  uint32_t outcomes = 0;
  bool ftz = false, as_number = false;
  Place other_result = place::none;
  Truth with;
  Combine combine = Combine::And;
};

uint32_t compare(Context& c, const FloatCompareDetail& d) {
  const uint32_t *a = row(c, d.a.place), *b = row(c, d.b.place);
  alignas(64) float x[warp_lanes], y[warp_lanes];
  for (uint32_t i = 0; i < warp_lanes; ++i) {
    x[i] = std::bit_cast<float>((a[i] & d.a.keep) ^ d.a.flip);
    y[i] = std::bit_cast<float>((b[i] & d.b.keep) ^ d.b.flip);
    if (d.ftz) {
      x[i] = functional::flushed(x[i]);
      y[i] = functional::flushed(y[i]);
    }
  }
  return compared(d.outcomes, x, y);
}

void run_compare(Context& c, const Op& op) {
  const auto& d = op.details<FloatCompareDetail>();
  const uint32_t holds = compare(c, d), with = d.with.bits(c);
  write_predicate(c, op.destination, combined(d.combine, holds, with));
  if (d.other_result != place::none) write_predicate(c, d.other_result, combined(d.combine, ~holds, with));
}

void run_set(Context& c, const Op& op) {
  const auto& d = op.details<FloatCompareDetail>();
  const uint32_t holds = combined(d.combine, compare(c, d), d.with.bits(c));
  const uint32_t one = d.as_number ? 0x3f800000u : ~0u;
  map_words(c, op.destination, [=](uint32_t i) { return holds >> i & 1 ? one : 0; });
}

}  // namespace

/// FSETP.compare p, p, a, b, p.
void translate_fsetp(Translation& t) {
  FloatCompareDetail d;
  d.outcomes = take_comparison(t);
  d.ftz = t.take("FTZ");
  d.combine = take_combine(t);
  const Place to = t.predicate_destination(0);
  if (t.operand(1).index != Operand::true_predicate) d.other_result = t.predicate_destination(1);
  d.a = FloatSource(t, 2);
  d.b = FloatSource(t, 3);
  d.with = t.predicate(4);
  t.emit(run_compare).destination = to;
  t.detail<FloatCompareDetail>() = d;
}

/// FSET.compare d, a, b, p: all ones, or with .BF 1.0, where it holds.
void translate_fset(Translation& t) {
  FloatCompareDetail d;
  d.as_number = t.take("BF");
  d.outcomes = take_comparison(t);
  d.ftz = t.take("FTZ");
  d.combine = take_combine(t);
  const Place to = t.destination(0);
  d.a = FloatSource(t, 1);
  d.b = FloatSource(t, 2);
  d.with = t.predicate(3);
  t.emit(run_set).destination = to;
  t.detail<FloatCompareDetail>() = d;
}

namespace {

struct FloatSelectDetail : Detail {
  FloatSource a, b, c;
  Truth chosen;
};

template <bool ftz>
void run_select(Context& c, const Op& op) {
  const auto& d = op.details<FloatSelectDetail>();
  const uint32_t *a = row(c, d.a.place), *b = row(c, d.b.place);
  const uint32_t chosen = d.chosen.bits(c);
  const uint32_t ka = d.a.keep, fa = d.a.flip, kb = d.b.keep, fb = d.b.flip;
  map_words(c, op.destination, [=](uint32_t i) {
    const uint32_t bits = chosen >> i & 1 ? (a[i] & ka) ^ fa : (b[i] & kb) ^ fb;
    return ftz ? std::bit_cast<uint32_t>(functional::flushed(std::bit_cast<float>(bits))) : bits;
  });
}

template <bool greater, bool nan, bool xorsign, bool ftz>
uint32_t extreme(uint32_t x, uint32_t y) {
  using F = operations::Extreme<greater, nan, xorsign>;
  const auto number = [](uint32_t bits) { return functional::operand<ftz>(std::bit_cast<float>(bits)); };
  return std::bit_cast<uint32_t>(operations::rounded<F, ftz, Clamp::None>(number(x), number(y)));
}

template <bool nan, bool xorsign, bool ftz>
void run_extreme(Context& c, const Op& op) {
  const auto& d = op.details<FloatSelectDetail>();
  const uint32_t *a = row(c, d.a.place), *b = row(c, d.b.place);
  const uint32_t least = d.chosen.bits(c);
  // .XORSIGN takes the signs before the magnitudes, which it makes itself.
  const uint32_t ka = xorsign ? ~0u : d.a.keep, fa = d.a.flip, kb = xorsign ? ~0u : d.b.keep, fb = d.b.flip;
  map_words(c, op.destination, [=](uint32_t i) {
    const uint32_t x = (a[i] & ka) ^ fa, y = (b[i] & kb) ^ fb;
    return least >> i & 1 ? extreme<false, nan, xorsign, ftz>(x, y) : extreme<true, nan, xorsign, ftz>(x, y);
  });
}

void emit_select(Translation& t, Handler handler) {
  FloatSelectDetail d;
  const Place to = t.destination(0);
  d.a = FloatSource(t, 1);
  d.b = FloatSource(t, 2);
  d.chosen = t.predicate(3);
  t.emit(handler).destination = to;
  t.detail<FloatSelectDetail>() = d;
}

}  // namespace

/// FSEL d, a, b, p.
void translate_fsel(Translation& t) {
  emit_select(t, t.take("FTZ") ? run_select<true> : run_select<false>);
}

/// FMNMX d, a, b, p: the minimum where p holds, else the maximum.
void translate_fmnmx(Translation& t) {
  const bool ftz = t.take("FTZ"), nan = t.take("NAN"), xorsign = t.take("XORSIGN");
  if (xorsign && !(t.operand(1).absolute && t.operand(2).absolute))
    t.unsupported(".XORSIGN of operands that are no magnitudes");
  emit_select(t, xorsign ? nan   ? ftz ? run_extreme<true, true, true> : run_extreme<true, true, false>
                           : ftz ? run_extreme<false, true, true>
                                 : run_extreme<false, true, false>
                 : nan   ? ftz ? run_extreme<true, false, true> : run_extreme<true, false, false>
                 : ftz   ? run_extreme<false, false, true>
                         : run_extreme<false, false, false>);
}

namespace {

template <bool nan, bool ftz>
void run_extreme_of_three(Context& c, const Op& op) {
  const auto& d = op.details<FloatSelectDetail>();
  const uint32_t *a = row(c, d.a.place), *b = row(c, d.b.place), *e = row(c, d.c.place);
  const uint32_t least = d.chosen.bits(c);
  map_words(c, op.destination, [&](uint32_t i) {
    const uint32_t x = (a[i] & d.a.keep) ^ d.a.flip, y = (b[i] & d.b.keep) ^ d.b.flip,
                   z = (e[i] & d.c.keep) ^ d.c.flip;
    return least >> i & 1 ? extreme<false, nan, false, ftz>(extreme<false, nan, false, ftz>(x, y), z)
                          : extreme<true, nan, false, ftz>(extreme<true, nan, false, ftz>(x, y), z);
  });
}

}  // namespace

/// FMNMX3 d, a, b, c, p.
void translate_fmnmx3(Translation& t) {
  const bool ftz = t.take("FTZ"), nan = t.take("NAN");
  FloatSelectDetail d;
  const Place to = t.destination(0);
  d.a = FloatSource(t, 1);
  d.b = FloatSource(t, 2);
  d.c = FloatSource(t, 3);
  d.chosen = t.predicate(4);
  t.emit(nan   ? ftz ? run_extreme_of_three<true, true> : run_extreme_of_three<true, false>
         : ftz ? run_extreme_of_three<false, true>
               : run_extreme_of_three<false, false>)
      .destination = to;
  t.detail<FloatSelectDetail>() = d;
}

// --- special functions ------------------------------------------------------------------------------------

namespace {

/// A source's sign and magnitude applied, for handlers that take plain registers.
void run_signed_copy(Context& c, const Op& op) {
  const FloatSource& s = op.details<FloatDetail>().sources[0];
  const uint32_t* a = row(c, op.a);
  map_words(c, op.destination, [=](uint32_t i) { return (a[i] & s.keep) ^ s.flip; });
}

Place plain_source(Translation& t, uint32_t index) {
  FloatDetail d;
  d.sources[0] = FloatSource(t, index);
  if (d.sources[0].plain()) return d.sources[0].place;
  const Place copy = t.scratch(1);
  Op& op = t.emit(run_signed_copy);
  op.destination = copy;
  op.a = d.sources[0].place;
  t.detail<FloatDetail>() = d;
  return copy;
}

}  // namespace

/// MUFU.function d, a. .F16, .BF16: of EX2 and TANH, the lower half of d. RCP64H and RSQ64H: of upper words.
void translate_mufu(Translation& t) {
  using enum functional::SpecialFunction;
  static constexpr functional::SpecialFunction functions[] = {
      Reciprocal, InverseRoot, Root, Exp2, Log2, SineOfTurns, CosineOfTurns, Tanh, Reciprocal, InverseRoot};
  const int which =
      t.take_one_of({"RCP", "RSQ", "SQRT", "EX2", "LG2", "SIN", "COS", "TANH", "RCP64H", "RSQ64H"});
  if (which < 0) t.unsupported("this function");
  const functional::SpecialFunction function = functions[which];
  const int half = t.take_one_of({"F16", "BF16"});
  if (half >= 0 && function != Exp2 && function != Tanh) t.unsupported("this type");
  Handler handler = nullptr;
  if (half >= 0)  // as PTX has them
    handler = functional::half_function_handler(function, half == 1, false, half == 1 && function == Exp2);
  else if (which < 8)  // MUFU.TANH takes subnormal numbers as they are
    handler = functional::special_function_handler(function, function != Tanh);
  else
    handler = functional::upper_word_handler(function);
  const Place a = half < 0    ? plain_source(t, 1)
                  : half == 0 ? number_source(t, 1, ptx::Type::F16)
                              : number_source(t, 1, ptx::Type::BF16);
  const Place to = t.destination(0);
  Op& op = t.emit(handler);
  op.destination = to;
  op.a = a;
}

namespace {

/// Whether the quotient needs the slow path: the short sequence of FFMAs is exact where no step of it can
/// overflow or lose bits to underflow.
void run_check(Context& c, const Op& op) {
  const uint32_t *a = row(c, op.a), *b = row(c, op.b);
  write_predicate(
      c, op.destination, test_rows([=](uint32_t i) {
        const auto ea = static_cast<int32_t>(a[i] >> 23 & 0xff), eb = static_cast<int32_t>(b[i] >> 23 & 0xff);
        const int32_t quotient = ea - eb;
        return !(eb >= 2 && eb <= 252 && ea >= 25 && ea <= 253 && quotient >= -125 && quotient <= 126);
      }));
}

}  // namespace

/// FCHK p, a, b.
void translate_fchk(Translation& t) {
  t.take("DIVIDE");
  const Place a = plain_source(t, 1), b = plain_source(t, 2), to = t.predicate_destination(0);
  Op& op = t.emit(run_check);
  op.destination = to;
  op.a = a;
  op.b = b;
}

}  // namespace simt::sass
