#include "operations/block_scaled_sum.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "operations/floats.hpp"
#include "operations/small_floats.hpp"

namespace simt::functional {
namespace {

constexpr uint32_t most_terms_of_k = 128;
constexpr int no_exponent = std::numeric_limits<int>::min() / 2;
constexpr int addend_bits = 35;  // below the addend, where groups that it outranks are cut off

/// That of a number other than zero; that of the least normal number for subnormal ones.
int encoded_exponent(float v, int least) {
  return std::max(static_cast<int>(std::bit_cast<uint32_t>(v) << 1 >> 24) - 127, least);
}

int exponent_of_addend(float c) {
  return c == 0 ? no_exponent : encoded_exponent(c, -126);
}

/// v / 2^quantum, cut off to an integer.
double units(double v, int quantum) {
  return std::trunc(std::ldexp(v, -quantum));
}

}  // namespace

ScaleFactor scale_factor(uint8_t code, bool exponent_only) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  if (exponent_only) return {code == 0xff ? nan : std::ldexp(1.0, code - 127), code - 127};
  const uint32_t number = code & 0x7fu;
  return {double{small_float<E4m3>(number)}, std::max(1, static_cast<int>(number >> 3)) - E4m3::bias};
}

/// Products, and their exponents: sums of their factors'; of zero, there is none.
struct BlockScaledSum::Terms {
  double products[most_terms_of_k];
  int exponents[most_terms_of_k];
  int scales[most_terms_of_k];  ///< exponents of the pair of scale factors alone
  int largest = no_exponent, largest_scale = no_exponent;

  /// Where groups of exact sums are cut off. of_c: the addend's exponent, which decides if none is larger.
  int quantum_of_groups(int of_c) const {
    constexpr int window_bits = 39, scale_bits = 35;
    return of_c >= largest ? of_c - addend_bits : std::max(largest - window_bits, largest_scale - scale_bits);
  }
};

float BlockScaledSum::add(const ScaledFactors& a, const ScaledFactors& b, float c) const {
  Terms t;
  double total = c;
  const uint32_t block = form_.k / form_.scales;
  for (uint32_t i = 0; i < form_.k; ++i) {
    const ScaleFactor &sa = a.scales[i / block], &sb = b.scales[i / block];
    t.products[i] = double{a.numbers[i]} * double{b.numbers[i]} * sa.value * sb.value;
    total += t.products[i];
    t.exponents[i] = t.scales[i] = no_exponent;
    if (t.products[i] == 0) continue;
    t.scales[i] = sa.exponent + sb.exponent;
    t.exponents[i] = encoded_exponent(a.numbers[i], form_.least_a) +
                     encoded_exponent(b.numbers[i], form_.least_b) + t.scales[i];
    t.largest = std::max(t.largest, t.exponents[i]);
    t.largest_scale = std::max(t.largest_scale, t.scales[i]);
  }
  if (!std::isfinite(total)) return canonical(static_cast<float>(total));
  if (form_.addition == ScaledAddition::Exact) return static_cast<float>(total);
  if (t.largest == no_exponent) return c;
  switch (form_.addition) {
    case ScaledAddition::Groups:
      return in_groups(t, c);
    case ScaledAddition::FineGroups:
      return in_fine_groups(t, c);
    default:
      return in_window(t, c);
  }
}

float BlockScaledSum::in_window(const Terms& t, float c) const {
  constexpr int bits = 25;
  const int quantum = std::max(t.largest, exponent_of_addend(c)) - bits;
  double sum = units(c, quantum);
  for (uint32_t i = 0; i < form_.k; ++i) sum += units(t.products[i], quantum);
  return cut_off_to_f32(std::ldexp(sum, quantum));
}

namespace {

constexpr uint32_t fine_group_terms = 4;

double sum_of(const double* products, uint32_t count) {
  double sum = 0;
  for (uint32_t i = 0; i < count; ++i) sum += products[i];
  return sum;
}

}  // namespace

/// Where C is at least as large as all products, groups are cut off relative to it.
float BlockScaledSum::in_groups(const Terms& t, float c) const {
  const int of_c = exponent_of_addend(c);
  const bool c_dominates = of_c >= t.largest;
  const int quantum = t.quantum_of_groups(of_c);
  constexpr uint32_t least_group = 16, most_groups = most_terms_of_k / least_group;
  const uint32_t group_terms = form_.group;
  double group[most_groups], sum = units(c, quantum);
  int scale[most_groups];
  const uint32_t groups = form_.k / group_terms;
  for (uint32_t g = 0; g < groups; ++g) {
    const uint32_t first = g * group_terms;
    int largest = no_exponent;
    scale[g] = no_exponent;
    for (uint32_t i = first; i < first + group_terms; ++i) {
      largest = std::max(largest, t.exponents[i]);
      scale[g] = std::max(scale[g], t.scales[i]);
    }
    // C cuts off the groups that it outranks, though another one is larger.
    const bool outranked = !c_dominates && c != 0 && largest != no_exponent && of_c >= largest;
    const int own = outranked ? std::max(quantum, of_c - addend_bits) : quantum;
    group[g] = std::ldexp(units(sum_of(t.products + first, group_terms), own), own - quantum);
    sum += group[g];
  }
  const float result = cut_off_to_f32(std::ldexp(sum, quantum));
  if (c_dominates || result == 0 || std::fabs(result) >= 0x1p-126f) return result;
  // A subnormal result lacks what small groups of lesser scale add to it.
  constexpr int floor_exponent = -174;
  const double least = std::ldexp(1.0, std::max(0, floor_exponent - quantum));
  double kept = units(c, quantum);
  for (uint32_t g = 0; g < groups; ++g)
    if (scale[g] == no_exponent || scale[g] >= t.largest_scale || std::fabs(group[g]) >= least)
      kept += group[g];
  return cut_off_to_f32(std::ldexp(kept, quantum));
}

float BlockScaledSum::in_fine_groups(const Terms& t, float c) const {
  const int of_c = exponent_of_addend(c);
  const bool c_dominates = of_c >= t.largest;
  const int quantum = t.quantum_of_groups(of_c);
  const uint32_t step = c_dominates ? form_.group : fine_group_terms;
  double sum = units(c, quantum);
  for (uint32_t first = 0; first < form_.k; first += step)
    sum += units(sum_of(t.products + first, step), quantum);
  return cut_off_to_f32(std::ldexp(sum, quantum));
}

}  // namespace simt::functional
