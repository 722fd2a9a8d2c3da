/// Arithmetic on pairs of f16 or bf16 numbers.
#include "operations/float_operations.hpp"
#include "sass/comparisons.hpp"
#include "sass/instructions.hpp"
#include "sass/rows.hpp"

namespace simt::sass {

using functional::Bfloat;
using functional::Clamp;
using functional::Half;
namespace operations = functional::float_operations;

namespace {

constexpr uint32_t both = 2 * warp_lanes;  ///< the halves of all lanes

/// The f16 number next to v, toward zero.
float toward_zero(float v) {
  constexpr float most = 65504, unit = 0x1p-24f;
  if (std::fabs(v) >= most) return std::isinf(v) ? v : std::copysign(most, v);
  if (std::fabs(v) < Half::least) return std::trunc(v / unit) * unit;
  return v == v ? std::bit_cast<float>(std::bit_cast<uint32_t>(v) & 0xffffe000u) : v;
}

/// A pair of numbers: which halves of the register, and their signs.
struct HalfSource {
  Place place = place::none;
  uint32_t lower = 0, upper = 16;  ///< shifts of the halves
  uint32_t keep = ~0u, flip = 0;
  /// .F32: the register holds one f32 number, which is rounded toward zero to f16; ptxas makes cvt.rz.f16.f32
  /// of HADD2 d, a.F32, -RZ.
  bool single = false;

  HalfSource() = default;
  HalfSource(Translation& t, uint32_t index) {
    const Operand& o = t.operand(index);
    if (o.inverted) t.unsupported("an inverted operand");
    place = t.source(index);
    for (const std::string_view s : o.suffixes) {
      if (s == "H0_H0") {
        upper = 0;
      } else if (s == "H1_H1") {
        lower = 16;
      } else if (s == "H0_NH1") {  // of complex numbers: {H0, -H1}
        upper = 0;
        lower = 16;
        flip = 0x8000u;
      } else if (s == "F32") {
        single = true;
      } else if (s != "H1_H0") {
        t.unsupported("the suffix ." + std::string(s));
      }
    }
    if (o.absolute) keep = single ? 0x7fffffffu : 0x7fff7fffu;
    if (o.negated) flip ^= single ? 0x80000000u : 0x80008000u;
  }

  /// The numbers of all lanes: lower halves first.
  template <class H, bool ftz>
  void read(const Context& c, float* to) const {
    const uint32_t* a = row(c, place);
    if (single) {
      for (uint32_t i = 0; i < warp_lanes; ++i) {
        to[i] = to[i + warp_lanes] = toward_zero(std::bit_cast<float>((a[i] & keep) ^ flip));
      }
      return;
    }
    alignas(64) uint16_t halves[both];
    for (uint32_t i = 0; i < warp_lanes; ++i) {
      halves[i] = static_cast<uint16_t>(((a[i] >> lower & 0xffffu) & keep) ^ flip);
      halves[i + warp_lanes] = static_cast<uint16_t>(((a[i] >> upper & 0xffffu) & keep) ^ flip >> 16);
    }
    H::template widen<both>(halves, to);
    if constexpr (ftz)
      for (uint32_t i = 0; i < both; ++i)
        to[i] = std::fabs(to[i]) < H::least ? std::copysign(0.0f, to[i]) : to[i];
  }
};

struct HalfDetail : Detail {
  HalfSource sources[3];
  uint32_t count = 2;  ///< of sources, where that varies
  Clamp clamp = Clamp::None;
  bool single = false;  ///< the result is the f32 number of the lower half
  Truth least;
};

template <class H, bool ftz>
void finish(Context& c, const Op& op, const HalfDetail& d, float* r) {
  if (d.single) {
    map_words(c, op.destination,
              [&](uint32_t i) { return std::bit_cast<uint32_t>(functional::canonical(r[i])); });
    return;
  }
  if (d.clamp == Clamp::Sat)
    for (uint32_t i = 0; i < both; ++i) r[i] = functional::clamped<Clamp::Sat>(r[i]);
  if (d.clamp == Clamp::Relu)
    for (uint32_t i = 0; i < both; ++i) r[i] = functional::clamped<Clamp::Relu>(r[i]);
  if constexpr (ftz) {
    constexpr float tiny = H::least - H::least / static_cast<float>(4 << H::mantissa);
    for (uint32_t i = 0; i < both; ++i) r[i] = std::fabs(r[i]) < tiny ? std::copysign(0.0f, r[i]) : r[i];
  }
  alignas(64) uint16_t halves[both];
  H::template narrow<both>(r, halves);
  map_words(c, op.destination,
            [&](uint32_t i) { return uint32_t{halves[i]} | uint32_t{halves[i + warp_lanes]} << 16; });
}

template <class H, bool ftz>
void run_fused(Context& c, const Op& op) {
  const auto& d = op.details<HalfDetail>();
  alignas(64) float a[both], b[both], e[both], r[both];
  d.sources[0].read<H, ftz>(c, a);
  d.sources[1].read<H, ftz>(c, b);
  d.sources[2].read<H, ftz>(c, e);
  for (uint32_t i = 0; i < both; ++i) r[i] = H::fused(a[i], b[i], e[i]);
  finish<H, ftz>(c, op, d, r);
}

/// .OOB: zero where a or b is the NaN that tensor copies write for elements outside a tensor.
template <class H>
void run_fused_oob(Context& c, const Op& op) {
  const auto& d = op.details<HalfDetail>();
  alignas(64) float a[both], b[both], e[both], r[both];
  d.sources[0].read<H, false>(c, a);
  d.sources[1].read<H, false>(c, b);
  d.sources[2].read<H, false>(c, e);
  const auto outside = [&](const HalfSource& s, uint32_t i) {
    constexpr uint32_t absent = 0x7fff;
    return (row(c, s.place)[i % warp_lanes] >> (i < warp_lanes ? s.lower : s.upper) & 0xffffu) == absent;
  };
  for (uint32_t i = 0; i < both; ++i)
    r[i] = outside(d.sources[0], i) || outside(d.sources[1], i) ? 0.0f : H::fused(a[i], b[i], e[i]);
  finish<H, false>(c, op, d, r);
}

template <class H, class F, bool ftz>
void run_binary(Context& c, const Op& op) {
  const auto& d = op.details<HalfDetail>();
  alignas(64) float a[both], b[both], r[both];
  d.sources[0].read<H, ftz>(c, a);
  d.sources[1].read<H, ftz>(c, b);
  for (uint32_t i = 0; i < both; ++i) r[i] = F{}(a[i], b[i]);
  finish<H, ftz>(c, op, d, r);
}

/// The extreme of two or three numbers.
template <class H, bool nan, bool xorsign, bool ftz>
void run_extreme(Context& c, const Op& op) {
  const auto& d = op.details<HalfDetail>();
  alignas(64) float next[both], r[both];
  d.sources[0].read<H, ftz>(c, r);
  const uint32_t least = d.least.bits(c);
  for (uint32_t k = 1; k < d.count; ++k) {
    d.sources[k].read<H, ftz>(c, next);
    for (uint32_t i = 0; i < both; ++i)
      r[i] = least >> (i % warp_lanes) & 1 ? operations::Extreme<false, nan, xorsign>{}(r[i], next[i])
                                           : operations::Extreme<true, nan, xorsign>{}(r[i], next[i]);
  }
  finish<H, ftz>(c, op, d, r);
}
template <class H, bool nan, bool xorsign>
Handler extreme_handler(bool ftz) {
  return ftz ? run_extreme<H, nan, xorsign, true> : run_extreme<H, nan, xorsign, false>;
}
template <class H>
Handler extreme_handler(bool nan, bool xorsign, bool ftz) {
  if (nan) return xorsign ? extreme_handler<H, true, true>(ftz) : extreme_handler<H, true, false>(ftz);
  return xorsign ? extreme_handler<H, false, true>(ftz) : extreme_handler<H, false, false>(ftz);
}

struct Modes {
  bool bfloat, ftz;
};
Modes take_modes(Translation& t, HalfDetail& d) {
  t.take("MMA");
  const bool bfloat = t.take("BF16_V2") || t.take("BF16");
  const bool ftz = t.take("FTZ");
  d.clamp = t.take("SAT") ? Clamp::Sat : t.take("RELU") ? Clamp::Relu : Clamp::None;
  d.single = t.take("F32");
  return {bfloat, ftz};
}

/// The immediate of a pair is written as two numbers.
uint32_t take_source(Translation& t, HalfDetail& d, uint32_t k, uint32_t index) {
  d.sources[k] = HalfSource(t, index);
  if (!t.is(index, OperandKind::Number) && !t.is(index, OperandKind::Integer)) return index + 1;
  t.operand(index + 1);
  return index + 2;
}

template <class F>
void translate_binary(Translation& t) {
  HalfDetail d;
  const Modes modes = take_modes(t, d);
  const Place to = t.destination(0);
  const uint32_t next = take_source(t, d, 0, 1);
  take_source(t, d, 1, next);
  if (modes.bfloat && (d.sources[0].single || d.sources[1].single)) t.unsupported("a source of f32");
  t.emit(modes.bfloat ? run_binary<Bfloat, F, false>
         : modes.ftz  ? run_binary<Half, F, true>
                      : run_binary<Half, F, false>)
      .destination = to;
  t.detail<HalfDetail>() = d;
}

}  // namespace

void translate_hadd2(Translation& t) {
  translate_binary<operations::Add>(t);
}
void translate_hmul2(Translation& t) {
  translate_binary<operations::Mul>(t);
}

namespace {

void run_word(Context& c, const Op& op) {
  const uint32_t* a = row(c, op.a);
  map_words(c, op.destination, [=](uint32_t i) { return a[i]; });
}

/// Whether it is HFMA2 d, -RZ, RZ, immediate, as which ptxas writes constants: -0 is added to them.
bool is_constant(Translation& t, const Modes& modes, const HalfDetail& d) {
  constexpr uint32_t infinity = 0x7c00;
  const auto is_number = [](uint32_t half) { return (half & 0x7fffu) <= infinity; };
  const uint32_t bits = t.immediate_bits();
  return !modes.bfloat && !modes.ftz && d.clamp == Clamp::None && !d.single && t.operand(1).is_zero() &&
         t.operand(2).is_zero() && t.operand(1).negated != t.operand(2).negated &&
         t.is(3, OperandKind::Number) && d.sources[2].flip == 0 && is_number(bits) && is_number(bits >> 16);
}

}  // namespace

/// HFMA2 d, a, b, c.
void translate_hfma2(Translation& t) {
  HalfDetail d;
  const bool oob = t.take("OOB");
  const Modes modes = take_modes(t, d);
  const Place to = t.destination(0);
  uint32_t next = 1;
  for (uint32_t k = 0; k < 3; ++k) next = take_source(t, d, k, next);
  if (oob) {
    for (const HalfSource& s : d.sources)
      if (s.flip || s.keep != ~0u || s.single) t.unsupported(".OOB of this form of a source");
    if (modes.ftz || d.single || d.clamp == Clamp::Sat) t.unsupported("this form of .OOB");
    t.emit(modes.bfloat ? run_fused_oob<Bfloat> : run_fused_oob<Half>).destination = to;
    t.detail<HalfDetail>() = d;
    return;
  }
  if (is_constant(t, modes, d)) {
    Op& op = t.emit(run_word);
    op.destination = to;
    op.a = d.sources[2].place;
    return;
  }
  t.emit(modes.bfloat ? run_fused<Bfloat, false>
         : modes.ftz  ? run_fused<Half, true>
                      : run_fused<Half, false>)
      .destination = to;
  t.detail<HalfDetail>() = d;
}

namespace {

/// With .XORSIGN the extreme of the magnitudes, with the product of the signs.
void extreme(Translation& t, uint32_t count) {
  HalfDetail d;
  d.count = count;
  const bool nan = t.take("NAN"), xorsign = t.take("XORSIGN");
  const Modes modes = take_modes(t, d);
  const Place to = t.destination(0);
  uint32_t next = 1;
  for (uint32_t k = 0; k < d.count; ++k) {
    next = take_source(t, d, k, next);
    if (!xorsign) continue;
    if (d.sources[k].keep == ~0u) t.unsupported(".XORSIGN of operands that are no magnitudes");
    d.sources[k].keep = ~0u;
  }
  d.least = t.predicate(next);
  t.emit(modes.bfloat ? extreme_handler<Bfloat>(nan, xorsign, modes.ftz)
                      : extreme_handler<Half>(nan, xorsign, modes.ftz))
      .destination = to;
  t.detail<HalfDetail>() = d;
}

}  // namespace

/// HMNMX2 d, a, b, p.
void translate_hmnmx2(Translation& t) {
  extreme(t, 2);
}
/// VHMNMX d, a, b, c, p.
void translate_vhmnmx(Translation& t) {
  extreme(t, 3);
}

namespace {

struct HalfCompareDetail : Detail {
  HalfSource a, b;
  uint32_t outcomes = 0;
  Place results[2] = {place::none, place::none};
  Truth with;
  Combine combine = Combine::And;
  bool together = false;  ///< .H_AND: one result, of both halves
  uint32_t one = 0xffff;
};

template <class H, bool ftz>
void compare(Context& c, const HalfCompareDetail& d, uint32_t* holds) {
  alignas(64) float a[both], b[both];
  d.a.read<H, ftz>(c, a);
  d.b.read<H, ftz>(c, b);
  for (uint32_t k = 0; k < 2; ++k)
    holds[k] =
        combined(d.combine, compared(d.outcomes, a + k * warp_lanes, b + k * warp_lanes), d.with.bits(c));
}

template <class H, bool ftz>
void run_setp(Context& c, const Op& op) {
  const auto& d = op.details<HalfCompareDetail>();
  uint32_t holds[2];
  compare<H, ftz>(c, d, holds);
  if (d.together) {
    const uint32_t all = holds[0] & holds[1];
    holds[0] = all;
    holds[1] = ~all;
  }
  for (uint32_t k = 0; k < 2; ++k)
    if (d.results[k] != place::none) write_predicate(c, d.results[k], holds[k]);
}

template <class H, bool ftz>
void run_set(Context& c, const Op& op) {
  const auto& d = op.details<HalfCompareDetail>();
  uint32_t holds[2];
  compare<H, ftz>(c, d, holds);
  const uint32_t one = d.one;
  map_words(c, op.destination,
            [=](uint32_t i) { return (holds[0] >> i & 1 ? one : 0) | (holds[1] >> i & 1 ? one << 16 : 0); });
}

}  // namespace

/// HSETP2.compare p, p, a, b, p: the predicates of the lower and of the upper halves.
void translate_hsetp2(Translation& t) {
  HalfCompareDetail d;
  const bool bfloat = t.take("BF16_V2");
  d.together = t.take("H_AND");
  d.outcomes = take_comparison(t);
  d.combine = take_combine(t);
  const bool ftz = t.take("FTZ");
  for (uint32_t k = 0; k < 2; ++k)
    if (t.operand(k).index != Operand::true_predicate) d.results[k] = t.predicate_destination(k);
  HalfDetail sources;
  uint32_t next = take_source(t, sources, 0, 2);
  next = take_source(t, sources, 1, next);
  d.a = sources.sources[0];
  d.b = sources.sources[1];
  d.with = t.predicate(next);
  t.emit(bfloat ? ftz ? run_setp<Bfloat, true> : run_setp<Bfloat, false>
         : ftz  ? run_setp<Half, true>
                : run_setp<Half, false>);
  t.detail<HalfCompareDetail>() = d;
}

/// HSET2.compare d, a, b, p: all ones, or with .BF 1.0, in each half where it holds.
void translate_hset2(Translation& t) {
  HalfCompareDetail d;
  const bool bfloat = t.take("BF16_V2");
  if (t.take("BF")) d.one = bfloat ? 0x3f80 : 0x3c00;
  d.outcomes = take_comparison(t);
  d.combine = take_combine(t);
  const bool ftz = t.take("FTZ");
  const Place to = t.destination(0);
  HalfDetail sources;
  uint32_t next = take_source(t, sources, 0, 1);
  next = take_source(t, sources, 1, next);
  d.a = sources.sources[0];
  d.b = sources.sources[1];
  d.with = t.predicate(next);
  t.emit(bfloat ? ftz ? run_set<Bfloat, true> : run_set<Bfloat, false>
         : ftz  ? run_set<Half, true>
                : run_set<Half, false>)
      .destination = to;
  t.detail<HalfCompareDetail>() = d;
}

}  // namespace simt::sass
