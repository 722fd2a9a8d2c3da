/// Integer arithmetic, comparison, shifts and bits, on general and uniform registers alike.
#include <algorithm>

#include "operations/integers.hpp"
#include "operations/words.hpp"
#include "sass/comparisons.hpp"
#include "sass/instructions.hpp"

namespace simt::sass {

using functional::run_binary;
using functional::run_ternary;
using functional::run_unary;
// What PTX calls by the same names.
using functional::BitMask;
using functional::Extend;
using functional::Max;
using functional::Min;
using functional::Sad;

namespace {

/// Index of the first source: after the result and the predicates that precede the sources.
uint32_t leading_predicates(Translation& t, uint32_t from) {
  uint32_t count = 0;
  while (t.is_predicate(from + count)) ++count;
  return count;
}

/// Of results in predicates that are all PT, the index of the first operand behind them.
uint32_t skip_predicates(Translation& t, uint32_t from) {
  const uint32_t end = from + leading_predicates(t, from);
  for (uint32_t i = from; i < end; ++i)
    if (const Operand& o = t.operand(i); o.index != Operand::true_predicate || o.negated)
      t.unsupported("a result in a predicate");
  return end;
}

// --- IADD3 ------------------------------------------------------------------------------------------------

struct SumDetail : Detail {
  Flipped a, b, c;
  uint32_t plus = 0;  ///< for the operands that are negated
  Place carry_out[2] = {place::none, place::none};
  Truth carry_in[2];
};

template <bool flips>
void run_sum(Context& c, const Op& op) {
  const uint32_t *a = row(c, op.a), *b = row(c, op.b), *e = row(c, op.c);
  if constexpr (flips) {
    const auto& d = op.details<SumDetail>();
    const uint32_t fa = d.a.flip, fb = d.b.flip, fc = d.c.flip, plus = d.plus;
    map_words(c, op.destination, [=](uint32_t i) { return (a[i] ^ fa) + (b[i] ^ fb) + (e[i] ^ fc) + plus; });
  } else {
    map_words(c, op.destination, [=](uint32_t i) { return a[i] + b[i] + e[i]; });
  }
}

/// A sum of words and carries, and how often it overflows; of 32-bit operations, so that it is vectorised.
struct CarriedSum {
  alignas(64) uint32_t sum[warp_lanes], carries[warp_lanes];

  void write(Context& c, Place destination, const Place (&carry_out)[2]) const {
    map_words(c, destination, [this](uint32_t i) { return sum[i]; });
    for (uint32_t k = 0; k < 2; ++k)
      if (carry_out[k] != place::none)
        write_predicate(c, carry_out[k], test_rows([&](uint32_t i) { return carries[i] > k; }));
  }
};
template <class A, class B, class C>
inline CarriedSum carried_sum(A a, B b, C e, uint32_t plus, uint32_t in0, uint32_t in1) {
  CarriedSum r;
  for (uint32_t i = 0; i < warp_lanes; ++i) {
    const uint32_t x = a(i), two = x + b(i), three = two + e(i);
    const uint32_t all = three + plus + (in0 >> i & 1) + (in1 >> i & 1);
    r.sum[i] = all;
    r.carries[i] = uint32_t{two < x} + uint32_t{three < two} + uint32_t{all < three};
  }
  return r;
}

uint32_t carry_bits(const Context& c, const Truth& carry) {
  return carry.place == place::none ? 0 : carry.bits(c);
}

void run_sum_with_carry(Context& c, const Op& op) {
  const auto& d = op.details<SumDetail>();
  const uint32_t *a = row(c, op.a), *b = row(c, op.b), *e = row(c, op.c);
  const uint32_t fa = d.a.flip, fb = d.b.flip, fc = d.c.flip;
  carried_sum([=](uint32_t i) { return a[i] ^ fa; }, [=](uint32_t i) { return b[i] ^ fb; },
              [=](uint32_t i) { return e[i] ^ fc; }, d.plus, carry_bits(c, d.carry_in[0]),
              carry_bits(c, d.carry_in[1]))
      .write(c, op.destination, d.carry_out);
}

}  // namespace

namespace {

struct WideSumDetail : Detail {
  Place terms[3] = {};
  bool negated[3] = {};
};
void run_wide_sum(Context& c, const Op& op) {
  const auto& d = op.details<WideSumDetail>();
  map_pairs(c, op.destination, [&](uint32_t i) {
    uint64_t sum = 0;
    for (uint32_t k = 0; k < 3; ++k) {
      const uint64_t term = pair_at(row(c, d.terms[k]), i);
      sum += d.negated[k] ? 0 - term : term;
    }
    return sum;
  });
}

/// UIADD3.64 d, [UPT, UPT,] a, b, c.
void translate_wide_sum(Translation& t) {
  constexpr uint32_t count = 3;
  const uint32_t first = skip_predicates(t, 1);
  if (t.operand_count() != first + count) t.unsupported("carries of 64 bits");
  WideSumDetail d;
  for (uint32_t k = 0; k < count; ++k) {
    const Operand& o = t.operand(first + k);
    if (o.inverted || o.absolute) t.unsupported("an operand that is inverted or an absolute value");
    d.negated[k] = o.negated;
    d.terms[k] = t.source(first + k, 2);
  }
  const Place to = t.destination(0, 2);
  t.emit(run_wide_sum).destination = to;
  t.detail<WideSumDetail>() = d;
}

struct PairSumDetail : Detail {
  uint64_t flip_a = 0, flip_b = 0;
  uint32_t plus = 0;  ///< for the operands that are negated
  Place carry_out = place::none;
  Truth carry_in;
};

void run_pair_sum(Context& c, const Op& op) {
  const uint32_t *a = row(c, op.a), *b = row(c, op.b);
  map_pairs(c, op.destination, [=](uint32_t i) { return pair_at(a, i) + pair_at(b, i); });
}
void run_pair_sum_with_carry(Context& c, const Op& op) {
  const auto& d = op.details<PairSumDetail>();
  const uint32_t *a = row(c, op.a), *b = row(c, op.b);
  const uint32_t in = carry_bits(c, d.carry_in);
  uint64_t sum[warp_lanes];
  uint32_t carry = 0;
  for (uint32_t i = 0; i < warp_lanes; ++i) {
    const unsigned __int128 s = static_cast<unsigned __int128>(pair_at(a, i) ^ d.flip_a) +
                                (pair_at(b, i) ^ d.flip_b) + d.plus + (in >> i & 1);
    sum[i] = static_cast<uint64_t>(s);
    carry |= static_cast<uint32_t>(s >> 64 & 1) << i;
  }
  map_pairs(c, op.destination, [&](uint32_t i) { return sum[i]; });
  if (d.carry_out != place::none) write_predicate(c, d.carry_out, carry);
}

/// IADD.64[.X] d, [p,] a, b [, p].
void translate_pair_sum(Translation& t) {
  const bool extended = t.take("X");
  PairSumDetail d;
  uint32_t first = 1;
  if (t.is_predicate(first)) {
    if (t.operand(first).index != Operand::true_predicate) d.carry_out = t.predicate_destination(first);
    ++first;
  }
  const Operand &x = t.operand(first), &y = t.operand(first + 1);
  if (x.absolute || y.absolute) t.unsupported("the absolute value of an integer");
  d.flip_a = x.negated || x.inverted ? ~uint64_t{0} : 0;
  d.flip_b = y.negated || y.inverted ? ~uint64_t{0} : 0;
  d.plus = uint32_t{x.negated} + uint32_t{y.negated};
  const Place to = t.destination(0, 2), a = t.source(first, 2), b = t.source(first + 1, 2);
  if (extended && t.is_predicate(first + 2)) d.carry_in = t.predicate(first + 2);
  const bool plain = !d.flip_a && !d.flip_b && d.carry_out == place::none && !extended;
  Op& op = t.emit(plain ? run_pair_sum : run_pair_sum_with_carry);
  op.destination = to;
  op.a = a;
  op.b = b;
  if (!plain) t.detail<PairSumDetail>() = d;
}

void run_sum_of_two(Context& c, const Op& op) {
  const auto& d = op.details<SumDetail>();
  const uint32_t *a = row(c, op.a), *b = row(c, op.b);
  const uint32_t fa = d.a.flip, fb = d.b.flip, plus = d.plus;
  map_words(c, op.destination, [=](uint32_t i) { return (a[i] ^ fa) + (b[i] ^ fb) + plus; });
}

}  // namespace

/// IADD[.64][.X] d, [p,] a, b [, p]: the carry is added with .X.
void translate_iadd(Translation& t) {
  if (t.take("64")) return translate_pair_sum(t);
  const bool extended = t.take("X");
  SumDetail d;
  uint32_t first = 1;
  if (t.is_predicate(first)) {
    if (t.operand(first).index != Operand::true_predicate) d.carry_out[0] = t.predicate_destination(first);
    ++first;
  }
  const Place to = t.destination(0);
  d.a = Flipped(t, first);
  d.b = Flipped(t, first + 1);
  d.plus = d.a.plus + d.b.plus;
  if (extended && t.is_predicate(first + 2)) d.carry_in[0] = t.predicate(first + 2);
  const bool carries = extended || d.carry_out[0] != place::none;
  Op& op = t.emit(carries ? run_sum_with_carry : run_sum_of_two);
  op.destination = to;
  op.a = d.a.place;
  op.b = d.b.place;
  if (carries) op.c = t.constant({0});
  t.detail<SumDetail>() = d;
}

/// IADD3 d, [p, [p,]] a, b, c [, p, p]: carries are added where .X says so.
void translate_iadd3(Translation& t) {
  if (t.take("64")) return translate_wide_sum(t);
  const bool extended = t.take("X");
  const Place to = t.destination(0);
  const uint32_t carries = leading_predicates(t, 1), first = 1 + carries;
  SumDetail d;
  d.a = Flipped(t, first);
  d.b = Flipped(t, first + 1);
  d.c = Flipped(t, first + 2);
  d.plus = d.a.plus + d.b.plus + d.c.plus;
  for (uint32_t k = 0; k < std::min(2u, carries); ++k) d.carry_out[k] = t.predicate_destination(1 + k);
  if (extended)
    for (uint32_t k = 0; k < 2; ++k)
      if (t.is_predicate(first + 3 + k)) d.carry_in[k] = t.predicate(first + 3 + k);
  const bool flips = (d.a.flip | d.b.flip | d.c.flip) != 0;
  Op& op = t.emit(extended || carries ? run_sum_with_carry : flips ? run_sum<true> : run_sum<false>);
  op.destination = to;
  op.a = d.a.place;
  op.b = d.b.place;
  op.c = d.c.place;
  if (extended || carries || flips) t.detail<SumDetail>() = d;
}

namespace {

void run_byte_sums(Context& c, const Op& op) {
  const auto& d = op.details<SumDetail>();
  const uint32_t *a = row(c, op.a), *b = row(c, op.b);
  const uint32_t fa = d.a.flip, fb = d.b.flip, plus = d.plus;
  map_words(c, op.destination, [=](uint32_t i) {
    uint32_t r = 0;
    for (uint32_t k = 0; k < 32; k += 8) r |= ((((a[i] ^ fa) >> k) + ((b[i] ^ fb) >> k) + plus) & 0xff) << k;
    return r;
  });
}

/// The sum of signed numbers, which may be negated.
void run_saturated_sum_of_two(Context& c, const Op& op) {
  const auto& d = op.details<SumDetail>();
  const uint32_t *a = row(c, op.a), *b = row(c, op.b);
  const auto number = [](const Flipped& f, uint32_t bits) {
    return int64_t{static_cast<int32_t>(bits ^ f.flip)} + f.plus;
  };
  map_words(c, op.destination, [&](uint32_t i) {
    const int64_t sum = number(d.a, a[i]) + number(d.b, b[i]);
    return static_cast<uint32_t>(std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX));
  });
}

}  // namespace

/// VIADD[.16x2,.U8x4,.S32.ISAT] d, a, b: ISAT does not go beyond the least and the greatest number.
void translate_viadd(Translation& t) {
  t.take_one_of({"U32", "S32"});
  const bool halves = t.take("16x2"), bytes = t.take_one_of({"U8x4", "S8x4"}) >= 0,
             saturates = t.take("ISAT");
  SumDetail d;
  const Place to = t.destination(0);
  d.a = Flipped(t, 1);
  d.b = Flipped(t, 2);
  d.plus = d.a.plus + d.b.plus;
  if (halves && (d.a.flip || d.b.flip)) t.unsupported("a negated operand");
  if (saturates && (halves || bytes)) t.unsupported("the modifier .ISAT of this type");
  Op& op = t.emit(halves      ? run_binary<functional::Halves<functional::Add, uint16_t>, uint32_t>
                  : bytes     ? run_byte_sums
                  : saturates ? run_saturated_sum_of_two
                              : run_sum_of_two);
  op.destination = to;
  op.a = d.a.place;
  op.b = d.b.place;
  t.detail<SumDetail>() = d;
}

// --- IMAD -------------------------------------------------------------------------------------------------

namespace {

struct ProductDetail : Detail {
  uint32_t flip_product = 0, flip_c = 0, plus = 0;
  Place carry_out = place::none;
  Truth carry_in;
};

template <bool flips>
void run_product(Context& c, const Op& op) {
  const uint32_t *a = row(c, op.a), *b = row(c, op.b), *e = row(c, op.c);
  if constexpr (flips) {
    const auto& d = op.details<ProductDetail>();
    const uint32_t fp = d.flip_product, fc = d.flip_c, plus = d.plus;
    const uint32_t in = d.carry_in.place == place::none ? 0 : d.carry_in.bits(c);
    map_words(c, op.destination,
              [=](uint32_t i) { return ((a[i] * b[i]) ^ fp) + (e[i] ^ fc) + plus + (in >> i & 1); });
  } else {
    map_words(c, op.destination, [=](uint32_t i) { return a[i] * b[i] + e[i]; });
  }
}

template <bool is_signed>
inline uint64_t wide_product(uint32_t a, uint32_t b) {
  using T = std::conditional_t<is_signed, int32_t, uint32_t>;
  return static_cast<uint64_t>(functional::MulWide{}(static_cast<T>(a), static_cast<T>(b)));
}

/// Upper half of a * b + c, with a 64-bit c: ptxas adds the upper half of c this way.
template <bool is_signed>
void run_high_product(Context& c, const Op& op) {
  const uint32_t *a = row(c, op.a), *b = row(c, op.b), *e = row(c, op.c);
  const auto& d = op.details<ProductDetail>();
  const uint64_t fp = d.flip_product ? ~uint64_t{0} : 0, fc = d.flip_c ? ~uint64_t{0} : 0;
  const uint64_t plus = (d.flip_product ? 1 : 0) + uint64_t{d.plus};
  map_words(c, op.destination, [=](uint32_t i) {
    return static_cast<uint32_t>(((wide_product<is_signed>(a[i], b[i]) ^ fp) + (pair_at(e, i) ^ fc) + plus) >>
                                 32);
  });
}

/// a * b + c, with a 64-bit c.
template <bool is_signed>
void run_wide_product(Context& c, const Op& op) {
  const uint32_t *a = row(c, op.a), *b = row(c, op.b), *e = row(c, op.c);
  map_pairs(c, op.destination,
            [=](uint32_t i) { return wide_product<is_signed>(a[i], b[i]) + pair_at(e, i); });
}
/// With the carry, and of it the whole or, `high`, the upper half.
template <bool is_signed, bool high>
void run_wide_product_with_carry(Context& c, const Op& op) {
  const uint32_t *a = row(c, op.a), *b = row(c, op.b), *e = row(c, op.c);
  const auto& d = op.details<ProductDetail>();
  const uint64_t fp = d.flip_product ? ~uint64_t{0} : 0, plus_p = d.flip_product ? 1 : 0;
  const uint64_t fc = d.flip_c ? ~uint64_t{0} : 0;
  const uint32_t in = d.carry_in.place == place::none ? 0 : d.carry_in.bits(c);
  uint64_t sum[warp_lanes];
  uint32_t carry = 0;
  for (uint32_t i = 0; i < warp_lanes; ++i) {
    const uint64_t p = (wide_product<is_signed>(a[i], b[i]) ^ fp) + plus_p;
    const unsigned __int128 s =
        static_cast<unsigned __int128>(p) + (pair_at(e, i) ^ fc) + d.plus + (in >> i & 1);
    sum[i] = static_cast<uint64_t>(s);
    carry |= static_cast<uint32_t>(s >> 64 & 1) << i;
  }
  if constexpr (high)
    map_words(c, op.destination, [&](uint32_t i) { return static_cast<uint32_t>(sum[i] >> 32); });
  else
    map_pairs(c, op.destination, [&](uint32_t i) { return sum[i]; });
  if (d.carry_out != place::none) write_predicate(c, d.carry_out, carry);
}

}  // namespace

/// IMAD d, [p,] a, b, c [, p]. MOV, SHL and IADD name what the product stands for; c of .HI and .WIDE has 64
/// bits.
void translate_imad(Translation& t) {
  t.take_one_of({"MOV", "SHL", "IADD"});
  const bool high = t.take("HI"), wide = t.take("WIDE"), is_signed = !t.take("U32"), extended = t.take("X");
  const Place to = t.destination(0, wide ? 2 : 1);
  ProductDetail d;
  uint32_t first = 1;
  if (t.is_predicate(first)) d.carry_out = t.predicate_destination(first++);
  const Flipped a(t, first), b(t, first + 1);
  const Operand& addend = t.operand(first + 2);
  const Place c = t.source(first + 2, wide || high ? 2 : 1);
  if (a.flip != a.plus * ~0u || b.flip != b.plus * ~0u) t.unsupported("an inverted factor");
  d.flip_product = a.flip ^ b.flip;
  d.flip_c = addend.negated || addend.inverted ? ~0u : 0;
  d.plus = addend.negated ? 1 : 0;
  if (extended && t.is_predicate(first + 3)) d.carry_in = t.predicate(first + 3);
  const bool carries = d.carry_out != place::none || d.carry_in.place != place::none;
  const bool flips = carries || d.flip_product || d.flip_c;
  Handler handler = flips ? run_product<true> : run_product<false>;
  if (high && carries)
    handler = is_signed ? run_wide_product_with_carry<true, true> : run_wide_product_with_carry<false, true>;
  else if (high)
    handler = is_signed ? run_high_product<true> : run_high_product<false>;
  else if (wide && flips)
    handler =
        is_signed ? run_wide_product_with_carry<true, false> : run_wide_product_with_carry<false, false>;
  else if (wide)
    handler = is_signed ? run_wide_product<true> : run_wide_product<false>;
  else if (d.flip_product)
    d.plus += 1;
  if (!wide && !high && d.carry_out != place::none) t.unsupported("the carry of a 32-bit product");
  Op& op = t.emit(handler);
  op.destination = to;
  op.a = a.place;
  op.b = b.place;
  op.c = c;
  t.detail<ProductDetail>() = d;
}

// --- LEA --------------------------------------------------------------------------------------------------

namespace {

struct LeaDetail : Detail {
  uint32_t flip_b = 0, plus = 0;
  uint32_t shift = 0;
  bool high = false, sign_extends = false, negates_a = false;
  Place upper = place::none;  ///< the upper half of a
  Place carry_out = place::none;
  Truth carry_in;
};

void run_lea(Context& c, const Op& op) {
  const auto& d = op.details<LeaDetail>();
  const uint32_t *a = row(c, op.a), *b = row(c, op.b);
  if (!d.high && d.carry_out == place::none && d.carry_in.place == place::none && !d.flip_b && !d.negates_a) {
    const uint32_t shift = d.shift;
    map_words(c, op.destination, [=](uint32_t i) { return (a[i] << shift) + b[i]; });
    return;
  }
  alignas(64) uint32_t part[warp_lanes];
  const uint32_t shift = d.shift;
  if (!d.high) {
    const uint32_t flip = d.negates_a ? ~0u : 0, one = d.negates_a ? 1 : 0;
    for (uint32_t i = 0; i < warp_lanes; ++i) part[i] = ((a[i] ^ flip) + one) << shift;
  } else {
    const uint32_t* upper = d.upper == place::none ? nullptr : row(c, d.upper);
    const uint64_t flip = d.negates_a ? ~uint64_t{0} : 0, one = d.negates_a ? 1 : 0;
    alignas(64) uint32_t above[warp_lanes];
    for (uint32_t i = 0; i < warp_lanes; ++i)
      above[i] = d.sign_extends ? static_cast<uint32_t>(static_cast<int32_t>(a[i]) >> 31) : 0;
    if (upper)
      for (uint32_t i = 0; i < warp_lanes; ++i) above[i] = upper[i];
    for (uint32_t i = 0; i < warp_lanes; ++i)
      part[i] = static_cast<uint32_t>((((a[i] | uint64_t{above[i]} << 32) ^ flip) + one) << shift >> 32);
  }
  const uint32_t flip_b = d.flip_b;
  carried_sum([&](uint32_t i) { return part[i]; }, [=](uint32_t i) { return b[i] ^ flip_b; },
              [](uint32_t) { return 0u; }, d.plus, carry_bits(c, d.carry_in), 0)
      .write(c, op.destination, {d.carry_out, place::none});
}

}  // namespace

/// LEA d, [p,] a, b, [upper a,] shift [, p]: (a << shift) + b, or with .HI the upper half of the shifted
/// 64-bit a plus b.
void translate_lea(Translation& t) {
  LeaDetail d;
  d.high = t.take("HI");
  const bool extended = t.take("X");
  d.sign_extends = t.take("SX32");
  const Place to = t.destination(0);
  uint32_t next = 1;
  if (t.is_predicate(next)) d.carry_out = t.predicate_destination(next++);
  const Operand& left = t.operand(next);
  if (left.inverted || left.absolute) t.unsupported("this form of its first source");
  d.negates_a = left.negated;
  const Place a = t.source(next++);
  const Flipped b(t, next++);
  d.flip_b = b.flip;
  d.plus = b.plus;
  if (d.high && !d.sign_extends) d.upper = t.source(next++);
  d.shift = static_cast<uint32_t>(t.integer(next++)) & 31;
  if (extended && t.is_predicate(next)) d.carry_in = t.predicate(next);
  Op& op = t.emit(run_lea);
  op.destination = to;
  op.a = a;
  op.b = b.place;
  t.detail<LeaDetail>() = d;
}

namespace {

void run_scaled_sum(Context& c, const Op& op) {
  const uint32_t *a = row(c, op.a), *b = row(c, op.b);
  const auto shift = static_cast<uint32_t>(op.immediate);
  map_words(c, op.destination, [=](uint32_t i) { return (a[i] << shift) + b[i]; });
}

}  // namespace

/// ISCADD d, a, b, shift: (a << shift) + b.
void translate_iscadd(Translation& t) {
  const int64_t shift = t.integer(3);
  if (shift < 0 || shift > 31) t.unsupported("a shift beyond 31");
  const Place to = t.destination(0), a = t.source(1), b = t.source(2);
  Op& op = t.emit(run_scaled_sum);
  op.destination = to;
  op.a = a;
  op.b = b;
  op.immediate = shift;
}

// --- SHF --------------------------------------------------------------------------------------------------

namespace {

template <class F>
struct FunnelDetail : Detail {
  F funnel;
};

template <class F>
void run_funnel(Context& c, const Op& op) {
  const F f = op.details<FunnelDetail<F>>().funnel;
  const uint32_t *a = row(c, op.a), *n = row(c, op.b), *e = row(c, op.c);
  map_words(c, op.destination, [=](uint32_t i) { return f(a[i], e[i], n[i]); });
}

/// Shifts of one word by a constant: Op::immediate.
template <class F, class T>
void run_shift(Context& c, const Op& op) {
  const uint32_t* a = row(c, op.a);
  const auto n = static_cast<uint32_t>(op.immediate);
  map_words(c, op.destination,
            [=](uint32_t i) { return static_cast<uint32_t>(F{}(static_cast<T>(a[i]), n)); });
}

}  // namespace

/// SHF d, a, n, c.
void translate_shf(Translation& t) {
  const bool left = t.take_one_of({"R", "L"}) == 1, wraps = t.take("W");
  const int type = t.take_one_of({"U32", "S32", "U64", "S64"}, 0);
  const bool high = t.take("HI"), is_signed = type == 1 || type == 3;
  const Operand& amount = t.operand(2);
  const Place to = t.destination(0), a = t.source(1), n = t.source(2), c = t.source(3);
  const bool by_constant = amount.kind == OperandKind::Integer && amount.value >= 0 && amount.value < 32;
  const auto simple = [&](Handler handler, Place from) {
    Op& op = t.emit(handler);
    op.destination = to;
    op.a = from;
    op.immediate = amount.value;
  };
  using functional::Funnel;
  using functional::ShiftLeft;
  using functional::ShiftRight;
  if (by_constant && left && !high) return simple(run_shift<ShiftLeft, uint32_t>, a);
  if (by_constant && !left && high)
    return simple(is_signed ? run_shift<ShiftRight, int32_t> : run_shift<ShiftRight, uint32_t>, c);
  const auto general = [&](auto funnel) {
    using F = decltype(funnel);
    funnel.wraps = wraps;
    funnel.bits = type >= 2 ? 64 : 32;
    Op& op = t.emit(run_funnel<F>);
    op.destination = to;
    op.a = a;
    op.b = n;
    op.c = c;
    t.detail<FunnelDetail<F>>().funnel = funnel;
  };
  if (left)
    high ? general(Funnel<true, true, false>{}) : general(Funnel<true, false, false>{});
  else if (is_signed)
    high ? general(Funnel<false, true, true>{}) : general(Funnel<false, false, true>{});
  else
    high ? general(Funnel<false, true, false>{}) : general(Funnel<false, false, false>{});
}

// --- LOP3 -------------------------------------------------------------------------------------------------

/// LOP3.LUT [p,] d, a, b, c, table, p.
void translate_lop3(Translation& t) {
  t.take("LUT");
  const bool both = t.take("PAND");
  uint32_t first = 0;
  const Place truth = t.is_predicate(0) ? t.predicate_destination(first++) : place::none;
  const Place to = t.destination(first);
  const Flipped a(t, first + 1), b(t, first + 2), c(t, first + 3);
  if (a.flip | b.flip | c.flip) t.unsupported("an inverted operand");
  const Handler logic = functional::logic3_handler(static_cast<uint32_t>(t.integer(first + 4)) & 0xff);
  const bool combines = t.is_predicate(first + 5);
  const PredicateOperand other = combines ? t.predicate(first + 5) : PredicateOperand{};
  if (truth != place::none && !combines) t.unsupported("a predicate is missing");
  Op& op = t.emit(truth == place::none ? logic : functional::run_logic_test);
  op.destination = truth == place::none ? to : truth;
  op.a = a.place;
  op.b = b.place;
  op.c = c.place;
  if (truth == place::none) return;
  auto& d = t.detail<functional::LogicTest>();
  d.logic = logic;
  d.result = to;
  d.combined = other;
  d.is_or = !both;
}

// --- ISETP ------------------------------------------------------------------------------------------------

namespace {

struct CompareDetail : Detail {
  Place other_result = place::none;  ///< of the negated comparison
  Truth with;
  Truth lower;  ///< .EX: the comparison of the lower halves
  Combine combine = Combine::And;
  uint32_t outcomes = 0;
};

/// T: how the words compare.
template <class T>
void run_compare(Context& c, const Op& op) {
  const auto& d = op.details<CompareDetail>();
  const uint32_t *a = row(c, op.a), *b = row(c, op.b);
  const auto test = [&](uint32_t outcomes) {
    return compared(outcomes, reinterpret_cast<const T*>(a), reinterpret_cast<const T*>(b));
  };
  // Where the upper halves are equal, the lower ones decide.
  const bool decides = d.lower.place != place::none && d.outcomes != 0 && d.outcomes != all_outcomes;
  const uint32_t holds =
      decides ? test(d.outcomes & ~Equal) | (test(Equal) & d.lower.bits(c)) : test(d.outcomes);
  const uint32_t with = d.with.bits(c);
  write_predicate(c, op.destination, combined(d.combine, holds, with));
  if (d.other_result != place::none) write_predicate(c, d.other_result, combined(d.combine, ~holds, with));
}

/// T: how pairs of words compare.
template <class T>
void run_wide_compare(Context& c, const Op& op) {
  const auto& d = op.details<CompareDetail>();
  T a[warp_lanes], b[warp_lanes];
  for (uint32_t i = 0; i < warp_lanes; ++i) {
    a[i] = static_cast<T>(pair_at(row(c, op.a), i));
    b[i] = static_cast<T>(pair_at(row(c, op.b), i));
  }
  const uint32_t holds = compared(d.outcomes, a, b), with = d.with.bits(c);
  write_predicate(c, op.destination, combined(d.combine, holds, with));
  if (d.other_result != place::none) write_predicate(c, d.other_result, combined(d.combine, ~holds, with));
}

/// A source of 64 bits without a sign.
Place plain_pair(Translation& t, uint32_t index) {
  const Operand& o = t.operand(index);
  if (o.negated || o.inverted || o.absolute) t.unsupported("a negated operand");
  return t.source(index, 2);
}

}  // namespace

/// ISETP.compare p, p, a, b, p [, p]; .S64, .U64: of pairs.
void translate_isetp(Translation& t) {
  CompareDetail d;
  d.outcomes = take_comparison(t);
  if (d.outcomes == (Less | Greater)) d.outcomes |= Unordered;  // one operation, and no integers are
  const int type = t.take_one_of({"S32", "U32", "S64", "U64"}, 0);
  const bool wide = type >= 2;
  d.combine = take_combine(t);
  const bool extended = t.take("EX");
  const Place to = t.predicate_destination(0);
  d.other_result = t.operand(1).index == Operand::true_predicate ? place::none : t.predicate_destination(1);
  static constexpr Handler handlers[] = {run_compare<int32_t>, run_compare<uint32_t>,
                                         run_wide_compare<int64_t>, run_wide_compare<uint64_t>};
  const auto word = [&](uint32_t index) {
    const Flipped x(t, index);
    if (x.flip) t.unsupported("a negated operand");
    return x.place;
  };
  const Place a = wide ? plain_pair(t, 2) : word(2), b = wide ? plain_pair(t, 3) : word(3);
  d.with = t.predicate(4);
  if (extended && wide) t.unsupported("the comparison of lower halves of 64 bits");
  if (extended) d.lower = t.predicate(5);
  Op& op = t.emit(handlers[type]);
  op.destination = to;
  op.a = a;
  op.b = b;
  t.detail<CompareDetail>() = d;
}

// --- one operation per lane -------------------------------------------------------------------------------

namespace {

struct SelectDetail : Detail {
  Truth chooses;
  bool relu = false;  ///< negative results become 0
  uint32_t flip_b = 0, plus = 0;
};

/// The lesser or the greater; `relu`: 0 if it is negative.
template <class T>
T extreme(bool least, bool relu, T x, T y) {
  const T r = least ? Min{}(x, y) : Max{}(x, y);
  return relu && static_cast<std::make_signed_t<T>>(r) < 0 ? T{0} : r;
}
template <class T>
uint32_t extreme_halves(bool least, bool relu, uint32_t x, uint32_t y) {
  const auto one = [&](uint32_t p, uint32_t q) {
    return uint32_t{static_cast<uint16_t>(extreme(least, relu, static_cast<T>(p), static_cast<T>(q)))};
  };
  return one(x, y) | one(x >> 16, y >> 16) << 16;
}

template <class T>
uint32_t extreme_bytes(bool least, uint32_t x, uint32_t y) {
  uint32_t r = 0;
  for (uint32_t k = 0; k < 32; k += 8)
    r |= uint32_t{static_cast<uint8_t>(extreme(least, false, static_cast<T>(x >> k), static_cast<T>(y >> k)))}
         << k;
  return r;
}

template <class T>
void run_extreme(Context& c, const Op& op) {
  const uint32_t *a = row(c, op.a), *b = row(c, op.b);
  const auto& d = op.details<SelectDetail>();
  const uint32_t least = d.chooses.bits(c);
  const bool relu = d.relu;
  map_words(c, op.destination, [=](uint32_t i) {
    if constexpr (sizeof(T) == 1) return extreme_bytes<T>(least >> i & 1, a[i], b[i]);
    if constexpr (sizeof(T) == 2) return extreme_halves<T>(least >> i & 1, relu, a[i], b[i]);
    return static_cast<uint32_t>(extreme(least >> i & 1, relu, static_cast<T>(a[i]), static_cast<T>(b[i])));
  });
}

template <class T>
void run_wide_extreme(Context& c, const Op& op) {
  const uint32_t *a = row(c, op.a), *b = row(c, op.b);
  const uint32_t least = op.details<SelectDetail>().chooses.bits(c);
  map_pairs(c, op.destination, [=](uint32_t i) {
    return static_cast<uint64_t>(
        extreme(least >> i & 1, false, static_cast<T>(pair_at(a, i)), static_cast<T>(pair_at(b, i))));
  });
}

void run_select(Context& c, const Op& op) {
  const uint32_t *a = row(c, op.a), *b = row(c, op.b);
  const uint32_t chosen = op.details<SelectDetail>().chooses.bits(c);
  map_words(c, op.destination, [=](uint32_t i) { return chosen >> i & 1 ? a[i] : b[i]; });
}
void run_wide_select(Context& c, const Op& op) {
  const uint32_t *a = row(c, op.a), *b = row(c, op.b);
  const uint32_t chosen = op.details<SelectDetail>().chooses.bits(c);
  map_pairs(c, op.destination, [=](uint32_t i) { return chosen >> i & 1 ? pair_at(a, i) : pair_at(b, i); });
}

/// first: index of the first source.
Op& two_pairs(Translation& t, Handler handler, uint32_t result, uint32_t first) {
  const Place to = t.destination(result, 2), a = plain_pair(t, first), b = plain_pair(t, first + 1);
  Op& op = t.emit(handler);
  op.destination = to;
  op.a = a;
  op.b = b;
  return op;
}

/// first: index of the first source.
Op& two_sources(Translation& t, Handler handler, uint32_t first = 1) {
  const Place to = t.destination(0);
  const Flipped a(t, first), b(t, first + 1);
  if (a.flip | b.flip) t.unsupported("a negated operand");
  Op& op = t.emit(handler);
  op.destination = to;
  op.a = a.place;
  op.b = b.place;
  return op;
}

/// Of a source that may be inverted: Op::immediate.
template <class F, class T>
void run_of_flipped(Context& c, const Op& op) {
  const uint32_t* a = row(c, op.a);
  const auto flip = static_cast<uint32_t>(op.immediate);
  map_words(c, op.destination,
            [=](uint32_t i) { return static_cast<uint32_t>(F{}(static_cast<T>(a[i] ^ flip))); });
}
template <class F, class T = uint32_t>
void one_source(Translation& t, uint32_t index) {
  const Place to = t.destination(0);
  const Flipped a(t, index);
  if (a.plus) t.unsupported("a negated operand");
  Op& op = t.emit(run_of_flipped<F, T>);
  op.destination = to;
  op.a = a.place;
  op.immediate = a.flip;
}

/// The absolute differences of four bytes each, or their sum and c.
template <class T, bool adds>
void run_byte_differences(Context& c, const Op& op) {
  const uint32_t *a = row(c, op.a), *b = row(c, op.b), *e = row(c, op.c);
  map_words(c, op.destination, [=](uint32_t i) {
    uint32_t bytes = 0, sum = e[i];
    for (uint32_t k = 0; k < 32; k += 8) {
      const auto magnitude = static_cast<uint32_t>(functional::AbsoluteDifference{}(
          int32_t{static_cast<T>(a[i] >> k)}, int32_t{static_cast<T>(b[i] >> k)}));
      bytes |= magnitude << k;
      sum += magnitude;
    }
    return adds ? sum : bytes;
  });
}

}  // namespace

/// IMNMX, VIMNMX d, [PT, PT,] a, b, p: the minimum where p holds, else the maximum. Of .16x2 both halves, of
/// .8x4 all bytes. IMNMX.S64, .U64 PT, PT, d, a, b, p, !PT: of pairs.
void translate_imnmx(Translation& t) {
  const int type = t.take_one_of({"S64", "U64", "S32", "U32", "S16x2", "U16x2", "S8x4", "U8x4"}, 2);
  static constexpr Handler handlers[] = {
      run_wide_extreme<int64_t>, run_wide_extreme<uint64_t>, run_extreme<int32_t>, run_extreme<uint32_t>,
      run_extreme<int16_t>,      run_extreme<uint16_t>,      run_extreme<int8_t>,  run_extreme<uint8_t>};
  const bool wide = type < 2, bytes = type >= 6, relu = t.take("RELU");
  if (relu && (wide || bytes)) t.unsupported("the modifier .RELU of this type");
  Truth least;
  if (wide) {
    const uint32_t to = skip_predicates(t, 0);
    least = t.predicate(to + 3);
    const Operand& last = t.operand(to + 4);
    if (last.index != Operand::true_predicate || !last.negated) t.unsupported("its last operand");
    two_pairs(t, handlers[type], to, to + 1);
  } else {
    const uint32_t first = skip_predicates(t, 1);
    least = t.predicate(first + 2);
    two_sources(t, handlers[type], first);
  }
  auto& d = t.detail<SelectDetail>();
  d.chooses = least;
  d.relu = relu;
}

namespace {

/// The extreme of a + b and c, or of all three; of halves, if T has 16 bits.
template <class T, bool adds>
void run_extreme_of_three(Context& c, const Op& op) {
  const uint32_t *a = row(c, op.a), *b = row(c, op.b), *e = row(c, op.c);
  const auto& d = op.details<SelectDetail>();
  const uint32_t least = d.chooses.bits(c);
  const bool relu = d.relu;
  const uint32_t flip_b = d.flip_b, plus = d.plus;
  map_words(c, op.destination, [=](uint32_t i) {
    const bool lesser = least >> i & 1;
    const uint32_t y = b[i] ^ flip_b;
    if constexpr (sizeof(T) == 2) {
      using functional::Add;
      const uint32_t first =
          adds ? functional::Halves<Add, T>{}(a[i], y) : extreme_halves<T>(lesser, false, a[i], y);
      return extreme_halves<T>(lesser, relu, first, e[i]);
    } else {
      const T first = adds ? static_cast<T>(a[i] + y + plus)
                           : extreme(lesser, false, static_cast<T>(a[i]), static_cast<T>(y));
      return static_cast<uint32_t>(extreme(lesser, relu, first, static_cast<T>(e[i])));
    }
  });
}

template <bool adds>
void extreme_of_three(Translation& t) {
  static constexpr Handler handlers[] = {
      run_extreme_of_three<int32_t, adds>, run_extreme_of_three<uint32_t, adds>,
      run_extreme_of_three<int16_t, adds>, run_extreme_of_three<uint16_t, adds>};
  const int type = t.take_one_of({"S32", "U32", "S16x2", "U16x2"}, 0);
  const bool relu = t.take("RELU"), halves = type >= 2;
  const Truth least = t.predicate(4);
  const Place to = t.destination(0);
  const Flipped a(t, 1), b(t, 2), c(t, 3);
  if (a.flip || c.flip || (b.flip && (!adds || halves))) t.unsupported("a negated operand");
  Op& op = t.emit(handlers[type]);
  op.destination = to;
  op.a = a.place;
  op.b = b.place;
  op.c = c.place;
  auto& d = t.detail<SelectDetail>();
  d.chooses = least;
  d.relu = relu;
  d.flip_b = b.flip;
  d.plus = b.plus;
}

}  // namespace

/// VIADDMNMX d, a, b, c, p: the extreme of a + b and c.
void translate_viaddmnmx(Translation& t) {
  extreme_of_three<true>(t);
}
/// VIMNMX3 d, a, b, c, p.
void translate_vimnmx3(Translation& t) {
  extreme_of_three<false>(t);
}

/// SEL[.64] d, a, b, p.
void translate_sel(Translation& t) {
  const Truth chosen = t.predicate(3);
  if (t.take("64"))
    two_pairs(t, run_wide_select, 0, 1);
  else
    two_sources(t, run_select);
  t.detail<SelectDetail>().chooses = chosen;
}

void translate_iabs(Translation& t) {
  const Place to = t.destination(0), a = t.source(1);
  Op& op = t.emit(run_unary<functional::Abs, int32_t>);
  op.destination = to;
  op.a = a;
}

/// PRMT d, a, selector, b.
void translate_prmt(Translation& t) {
  const int mode = t.take_one_of({"F4E", "B4E", "RC8", "ECL", "ECR", "RC16"});
  const Place to = t.destination(0);
  const Flipped a(t, 1), b(t, 3);
  const Operand& selector = t.operand(2);
  if (a.flip | b.flip) t.unsupported("a negated operand");
  const bool fixed = selector.kind == OperandKind::Integer;
  const Place chosen = t.source(2);
  Op& op = t.emit(fixed ? functional::run_permute_fixed : functional::permute_handler(mode));
  op.destination = to;
  op.a = a.place;
  op.b = b.place;
  op.c = chosen;
  if (fixed) op.immediate = functional::permute_selector(mode, static_cast<uint32_t>(selector.value));
}

void translate_popc(Translation& t) {
  one_source<functional::PopulationCount>(t, 1);
}

/// FLO d, [p,] a. p: there is such a bit.
void translate_flo(Translation& t) {
  const bool is_signed = !t.take("U32"), from_top = t.take("SH");
  if (t.operand_count() > 2) t.unsupported("a second result");
  using functional::FindLeading;
  if (is_signed)
    from_top ? one_source<FindLeading<true>, int32_t>(t, 1) : one_source<FindLeading<false>, int32_t>(t, 1);
  else
    from_top ? one_source<FindLeading<true>>(t, 1) : one_source<FindLeading<false>>(t, 1);
}

void translate_brev(Translation& t) {
  one_source<functional::Reverse>(t, 1);
}

/// BMSK d, start, width.
void translate_bmsk(Translation& t) {
  const bool wraps = t.take_one_of({"C", "W"}, 0) == 1;
  two_sources(t, wraps ? run_binary<BitMask<true>, uint32_t> : run_binary<BitMask<false>, uint32_t>);
}

/// SGXT d, a, bits.
void translate_sgxt(Translation& t) {
  const bool is_signed = !t.take("U32"), wraps = t.take_one_of({"C", "W"}, 0) == 1;
  two_sources(t, is_signed ? wraps ? run_binary<Extend<true>, int32_t> : run_binary<Extend<false>, int32_t>
                 : wraps   ? run_binary<Extend<true>, uint32_t>
                           : run_binary<Extend<false>, uint32_t>);
}

/// IDP.4A.A.B, IDP.2A.half.A.B d, a, b, c: dot products of bytes, or of halves and bytes.
void translate_idp(Translation& t) {
  const bool halves = t.take_one_of({"4A", "2A"}) == 1;
  const bool upper = halves && t.take_one_of({"LO", "HI"}, 0) == 1;
  const auto sign = [&] { return t.take_next().starts_with("S"); };
  const bool a_signed = sign(), b_signed = sign();
  const Place c = t.source(3);
  two_sources(t, halves ? functional::dot2_handler(upper, a_signed, b_signed)
                        : functional::dot4_handler(a_signed, b_signed))
      .c = c;
}

/// VABSDIFF d, a, b, c.
void translate_vabsdiff(Translation& t) {
  const bool is_signed = !t.take("U32");
  const Place c = t.source(3);
  two_sources(t, is_signed ? run_ternary<Sad, int32_t> : run_ternary<Sad, uint32_t>).c = c;
}

/// VABSDIFF4[.U8] d, a, b, c: c only counts with .ACC.
void translate_vabsdiff4(Translation& t) {
  const bool is_signed = !t.take("U8"), adds = t.take("ACC");
  const Place c = t.source(3);
  two_sources(t, adds ? is_signed ? run_byte_differences<int8_t, true> : run_byte_differences<uint8_t, true>
                 : is_signed ? run_byte_differences<int8_t, false>
                             : run_byte_differences<uint8_t, false>)
      .c = c;
}

}  // namespace simt::sass
