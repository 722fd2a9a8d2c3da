#pragma once
#include <cfenv>
#include <cstddef>
#include <cstdint>

#include "machine/tensor_core.hpp"

/// Sums of products as tensor cores make them (Addition), for eight rows of A and eight columns of B at
/// a time.
namespace simt::functional {

/// Exponents of numbers as aligned sums take them, plus 127: that of a subnormal number is that of the type's
/// least normal number, `least`; that of zero -126; that of infinities and NaN above all others. count: a
/// multiple of 16.
void take_exponents(const float* numbers, size_t count, int least, int16_t* exponents);
/// The exponent of a factor of A, held as zero, that takes no part: far below all, and far enough above the
/// negative of that of infinities.
constexpr int16_t absent_exponent = -500;
/// Of a zero that does not count for the largest exponent (Addition::zeros_absent), but takes part: its
/// product with an infinity is NaN.
constexpr int16_t zero_factor_exponent = -400;

constexpr uint32_t sum_rows = 8, sum_columns = 8;

/// Rows of A: `k` numbers each, one after another.
struct SumRows {
  const float* numbers;
  const int16_t* exponents;
};
/// `k` rows of eight numbers of B, and their exponents by pairs of rows: those of one column side by side.
struct SumColumns {
  const float* numbers;
  const int16_t* exponent_pairs;
};

class AlignedSum {
 public:
  struct Rule {
    int bits;
    bool half, zeros_absent;
    uint32_t result_mask;  ///< of an f32 result's bits
  };

  /// k: of the whole product. products: in one sum, for all of A's factors, also those that take no part.
  /// half: the accumulator is f16, else f32.
  AlignedSum(const Addition& addition, uint32_t k, uint32_t products, bool half);

  /// How the host must round while f32 accumulators are added to: a RoundingScope around many calls is cheap.
  int host_rounding() const { return rule_.half ? FE_TONEAREST : FE_TOWARDZERO; }
  /// Adds A B to accumulators in two planes, of four columns each: eight rows, one after another. Numbers of
  /// f16 are held as f32.
  void add(SumRows a, SumColumns b, float* low, float* high) const { run_(*this, a, b, low, high); }

 private:
  using Run = void (*)(const AlignedSum&, SumRows, SumColumns, float*, float*);
  template <bool half, bool wide, uint32_t terms>
  static void run(const AlignedSum& sum, SumRows a, SumColumns b, float* low, float* high);
  template <bool half>
  static Run choose(bool wide, bool by_fours);

  uint32_t k_, products_;
  Rule rule_;
  Run run_;
};

}  // namespace simt::functional
