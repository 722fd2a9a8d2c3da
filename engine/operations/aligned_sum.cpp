#include "operations/aligned_sum.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "operations/floats.hpp"

namespace simt::functional {
namespace {

using Four [[gnu::vector_size(16)]] = float;
using Float8 [[gnu::vector_size(32)]] = float;
using Int8 [[gnu::vector_size(32)]] = int32_t;
using Unsigned8 [[gnu::vector_size(32)]] = uint32_t;
using Short16 [[gnu::vector_size(32)]] = int16_t;

template <class Vector>
Vector loaded(const void* from) {
  Vector v;
  std::memcpy(&v, from, sizeof v);
  return v;
}
template <class Vector>
Vector larger(Vector a, Vector b) {
  return a > b ? a : b;
}
Float8 everywhere(float v) {
  return Float8{v, v, v, v, v, v, v, v};
}
/// Wraps.
Int8 plus(Int8 a, Int8 b) {
  return std::bit_cast<Int8>(std::bit_cast<Unsigned8>(a) + std::bit_cast<Unsigned8>(b));
}
/// Keeps the compiler from adding the terms in another order, which takes more registers than there are.
void keep(Int8& v) {
#if defined(__AVX__)
  asm("" : "+x"(v));
#else
  (void)v;
#endif
}
bool any(Int8 mask) {
#if defined(__AVX__)
  return !_mm256_testz_si256(std::bit_cast<__m256i>(mask), std::bit_cast<__m256i>(mask));
#else
  int32_t all = 0;
  for (int i = 0; i < 8; ++i) all |= mask[i];
  return all != 0;
#endif
}
/// Cut off to integers; the largest negative one where that cannot be.
Int8 whole(Float8 v) {
#if defined(__AVX__)
  return std::bit_cast<Int8>(_mm256_cvttps_epi32(v));
#else
  Int8 r;
  for (int i = 0; i < 8; ++i) r[i] = std::fabs(v[i]) < 0x1p31f ? static_cast<int32_t>(v[i]) : INT32_MIN;
  return r;
#endif
}
Float8 as_float(Int8 v) {
  return __builtin_convertvector(v, Float8);
}

/// Both, one after the other; below 65,536.
Short16 narrowed(Unsigned8 a, Unsigned8 b) {
#if defined(__AVX2__)
  const __m256i mixed = _mm256_packus_epi32(std::bit_cast<__m256i>(a), std::bit_cast<__m256i>(b));
  return std::bit_cast<Short16>(_mm256_permute4x64_epi64(mixed, 0b11011000));
#else
  Short16 r;
  for (int i = 0; i < 8; ++i) {
    r[i] = static_cast<int16_t>(a[i]);
    r[i + 8] = static_cast<int16_t>(b[i]);
  }
  return r;
#endif
}

// Exponents have f32's bias.
constexpr int bias = 127, zero_exponent = 1, half_least = bias - 14;
constexpr int special_exponent = 1000;  ///< of infinities and NaN

int exponent_of(float v, int least) {
  const int field = static_cast<int>(std::bit_cast<uint32_t>(v) << 1 >> 24);
  if (field == 255) return special_exponent;
  return field == 0 ? zero_exponent : std::max(field, least);
}
/// Infinities and NaN have 255.
Int8 exponents_of(Float8 v, int least) {
  const auto field = std::bit_cast<Int8>((std::bit_cast<Unsigned8>(v) << 1) >> 24);
  if (least == zero_exponent) return larger(field, Int8{} + least);
  return larger(field, ((field > 0) & (least - zero_exponent)) + zero_exponent);
}

/// Between these exponents, with the bias twice, the numbers of a sum are normal f32 numbers, or too small to
/// matter.
constexpr int least_quick = 2 * bias - 90, most_quick = 2 * bias + 120;

struct Terms {
  const float* a;
  const int16_t* a_exponents;
  const float* b;
  const int16_t* b_exponents;
  uint32_t count;
};

/// One element's sum, whatever its numbers are.
float slow_sum(const Terms& t, uint32_t column, float c, const AlignedSum::Rule& rule) {
  const auto product = [&](uint32_t k) {
    return t.a_exponents[k] == absent_exponent ? 0.0 : double{t.a[k]} * double{t.b[k * sum_columns + column]};
  };
  double sum = c;
  int largest = rule.zeros_absent && c == 0 ? 2 * absent_exponent
                                            : exponent_of(c, rule.half ? half_least : zero_exponent) + bias;
  for (uint32_t k = 0; k < t.count; ++k) {
    sum += product(k);
    if (t.a_exponents[k] == absent_exponent) continue;
    const int b_exponent = t.b_exponents[(k / 2 * sum_columns + column) * 2 + k % 2];
    largest = std::max(largest, t.a_exponents[k] + b_exponent);
  }
  if (!std::isfinite(sum)) return canonical(static_cast<float>(sum));
  const int scale = rule.bits - (largest - 2 * bias);
  sum = std::trunc(std::ldexp(double{c}, scale));
  for (uint32_t k = 0; k < t.count; ++k) sum += std::trunc(std::ldexp(product(k), scale));
  sum = std::ldexp(sum, -scale);
  if (rule.half) return narrowed_to_odd(sum);
  const auto kept = std::bit_cast<uint32_t>(cut_off_to_f32(sum)) & rule.result_mask;
  return std::bit_cast<float>(kept << 1 == 0 ? 0 : kept);
}

bool has_special(const int16_t* exponents, size_t count) {
  return std::any_of(exponents, exponents + count, [](int16_t e) { return e == special_exponent; });
}

/// Sums of the columns in `mask`; the others are kept.
[[gnu::noinline]] Float8 slow_sums(const Terms& t, Int8 mask, Float8 c, Float8 others,
                                   const AlignedSum::Rule& rule) {
  // Rows and columns of zeros are frequent, and cheap; but zero times infinity is not zero.
  Int8 nonzero = std::bit_cast<Int8>(c);
  if (has_special(t.a_exponents, t.count) || has_special(t.b_exponents, size_t{t.count} * sum_columns))
    nonzero = Int8{} + 1;
  else if (std::any_of(t.a, t.a + t.count, [](float v) { return v != 0.0f; }))
    for (uint32_t k = 0; k < t.count; ++k) nonzero |= loaded<Int8>(t.b + k * sum_columns);
  Float8 found = mask != 0 ? Float8{} : others;
  mask &= (nonzero << 1) != 0;
  if (any(mask))
    for (uint32_t i = 0; i < sum_columns; ++i)
      if (mask[i]) found[i] = slow_sum(t, i, c[i], rule);
  return found;
}

/// Rounded to nearest even, for f16; the input is rounded to odd, at f32's last bit or before. A sum that
/// vanishes is +0.
Float8 rounded_to_half(Float8 v) {
#if defined(__F16C__)
  const Float8 rounded = _mm256_cvtph_ps(_mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
#else
  float wide[8];
  uint16_t halves[8];
  std::memcpy(wide, &v, sizeof wide);
  Half::narrow<8>(wide, halves);
  Half::widen<8>(halves, wide);
  const auto rounded = loaded<Float8>(wide);
#endif
  return rounded + 0.0f;
}

/// An integer as f32, rounded to odd.
Float8 to_odd(Int8 v) {
  const Int8 sign = v >> 31;
  const Unsigned8 magnitude = std::bit_cast<Unsigned8>(v ^ sign) - std::bit_cast<Unsigned8>(sign);
  const Int8 coarse = (v & ~127) | (((v & 127) != 0) & 128);
  return as_float(magnitude >= (1u << 24) ? coarse : v);
}

/// Whether all sums are +0, as B and the accumulators are zeros, and A is finite. What is timed only, such as
/// memory that nothing has written, is of zeros.
bool vanishes(uint32_t k, const SumRows& a, const SumColumns& b, const float* low, const float* high) {
  Int8 bits{};
  for (uint32_t i = 0; i < k; ++i) {
    bits |= loaded<Int8>(b.numbers + i * sum_columns);
    if (any(bits)) return false;
  }
  for (uint32_t i = 0; i < sum_rows * sum_columns / 2; i += 8)
    bits |= loaded<Int8>(low + i) | loaded<Int8>(high + i);
  return !any(bits << 1) && !has_special(a.exponents, size_t{sum_rows} * k);
}

constexpr uint32_t rows_at_once = 4;
constexpr uint32_t most_terms = 8;  ///< whose sum is sure to fit in 32 bits, with an accumulator

}  // namespace

void take_exponents(const float* numbers, size_t count, int least, int16_t* exponents) {
  const auto each = [&](auto raised) {
    for (size_t i = 0; i < count; i += 16) {
      const Short16 f = narrowed((loaded<Unsigned8>(numbers + i) << 1) >> 24,
                                 (loaded<Unsigned8>(numbers + i + 8) << 1) >> 24);
      const Short16 e = raised(f) + ((f == 255) & int16_t{special_exponent - 255});
      std::memcpy(exponents + i, &e, sizeof e);
    }
  };
  const auto lowest = static_cast<int16_t>(least + bias);
  if (lowest == zero_exponent)
    each([=](Short16 f) { return larger(f, Short16{} + lowest); });
  else
    each([=](Short16 f) {
      return larger(f, ((f > 0) & static_cast<int16_t>(lowest - zero_exponent)) + int16_t{zero_exponent});
    });
}

template <bool half>
AlignedSum::Run AlignedSum::choose(bool wide, bool by_fours) {
  if (by_fours) return run<half, false, 4>;
  return wide ? run<half, true, most_terms> : run<half, false, most_terms>;
}

AlignedSum::AlignedSum(const Addition& addition, uint32_t k, uint32_t products, bool half)
    : k_(k),
      products_(std::min(products, k)),
      rule_{addition.bits, half, addition.zeros_absent, ~0u << (23 - addition.fraction)} {
  // Terms are less than 4, the accumulator is less than 2.
  const bool wide = (4 * uint64_t{std::min<uint32_t>(addition.products, k)} + 2) << addition.bits >> 31 != 0;
  const bool by_fours = products_ < most_terms;
  run_ = half ? choose<true>(wide, by_fours) : choose<false>(wide, by_fours);
}

template <bool half, bool wide, uint32_t terms>
void AlignedSum::run(const AlignedSum& sum, SumRows a, SumColumns b, float* low, float* high) {
  const size_t stride = sum.k_;
  if (vanishes(sum.k_, a, b, low, high)) {
    std::fill_n(low, sum_rows * sum_columns / 2, 0.0f);
    std::fill_n(high, sum_rows * sum_columns / 2, 0.0f);
    return;
  }
  for (uint32_t block = 0; block < sum_rows / rows_at_once; ++block) {
    Float8 total[rows_at_once];
    for (uint32_t r = 0; r < rows_at_once; ++r)
      total[r] = __builtin_shufflevector(loaded<Four>(low + 4 * r), loaded<Four>(high + 4 * r), 0, 1, 2, 3, 4,
                                         5, 6, 7);
    for (size_t first = 0; first < sum.k_; first += sum.products_) {
      const size_t end = first + sum.products_;
      // The largest exponents.
      Short16 pairs[rows_at_once];
      for (auto& p : pairs) p = Short16{} + int16_t{2 * absent_exponent};
      for (size_t k = first; k < end; k += terms)
        for (size_t i = k; i < k + terms; i += 2) {
          const auto of_b = loaded<Short16>(b.exponent_pairs + i * sum_columns);
          for (uint32_t r = 0; r < rows_at_once; ++r) {
            int32_t of_a;
            std::memcpy(&of_a, a.exponents + r * stride + i, sizeof of_a);
            pairs[r] = larger(pairs[r], std::bit_cast<Short16>(Int8{} + of_a) + of_b);
          }
        }
      Int8 integers[rows_at_once], slow[rows_at_once];
      Float8 scale[rows_at_once];
      for (uint32_t r = 0; r < rows_at_once; ++r) {
        const auto both = std::bit_cast<Int8>(pairs[r]);
        const Int8 of_c = exponents_of(total[r], half ? half_least : zero_exponent) + bias;
        const Int8 largest = larger(larger(both >> 16, (both << 16) >> 16), of_c);
        slow[r] = (largest < least_quick) | (largest > most_quick);
        // Without a sign: lanes that are slow wrap around, and are not used.
        scale[r] = std::bit_cast<Float8>(std::bit_cast<Unsigned8>(sum.rule_.bits + 3 * bias - largest) << 23);
        integers[r] = whole(total[r] * scale[r]);
      }
      // Terms as multiples of the last bit kept.
      for (size_t k = first; k < end; k += terms) {
        Int8 part[rows_at_once];
        for (uint32_t r = 0; r < rows_at_once; ++r) part[r] = wide ? Int8{} : integers[r];
#pragma GCC unroll 8
        for (size_t i = k; i < k + terms; ++i) {
          const auto of_b = loaded<Float8>(b.numbers + i * sum_columns);
          for (uint32_t r = 0; r < rows_at_once; ++r) {
            part[r] = plus(part[r], whole(everywhere(a.numbers[r * stride + i]) * of_b * scale[r]));
            keep(part[r]);
          }
        }
        for (uint32_t r = 0; r < rows_at_once; ++r) {
          const Int8 s = wide ? plus(integers[r], part[r]) : part[r];
          if constexpr (wide) slow[r] |= ((s ^ integers[r]) & (s ^ part[r])) >> 31;
          integers[r] = s;
        }
      }
      for (uint32_t r = 0; r < rows_at_once; ++r) {
        const auto back =
            std::bit_cast<Float8>((Unsigned8{} + (2u * bias << 23)) - std::bit_cast<Unsigned8>(scale[r]));
        // as_float rounds as the host does.
        Float8 found = half ? to_odd(integers[r]) : as_float(integers[r]);
        if constexpr (!half)
          found = std::bit_cast<Float8>(std::bit_cast<Unsigned8>(found) & sum.rule_.result_mask);
        found *= back;
        if (any(slow[r])) [[unlikely]] {
          const Terms t{a.numbers + r * stride + first, a.exponents + r * stride + first,
                        b.numbers + first * sum_columns, b.exponent_pairs + first * sum_columns,
                        sum.products_};
          found = slow_sums(t, slow[r], total[r], found, sum.rule_);
        }
        total[r] = half ? rounded_to_half(found) : found;
      }
    }
    for (uint32_t r = 0; r < rows_at_once; ++r) {
      const Four lows = __builtin_shufflevector(total[r], total[r], 0, 1, 2, 3),
                 highs = __builtin_shufflevector(total[r], total[r], 4, 5, 6, 7);
      std::memcpy(low + 4 * r, &lows, sizeof lows);
      std::memcpy(high + 4 * r, &highs, sizeof highs);
    }
    a.numbers += rows_at_once * stride;
    a.exponents += rows_at_once * stride;
    low += 4 * rows_at_once;
    high += 4 * rows_at_once;
  }
}

}  // namespace simt::functional
