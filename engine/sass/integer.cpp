/// Integer arithmetic, on general and uniform registers alike.
#include <algorithm>

#include "operations/integers.hpp"
#include "operations/words.hpp"
#include "sass/instructions.hpp"
#include "sass/integer_operands.hpp"
#include "sass/rows.hpp"

namespace simt::sass {

using functional::run_binary;
using functional::run_ternary;
using functional::run_unary;
using functional::Sad;  // what PTX calls by the same name

namespace {

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
  op.clock_use = {.kind = ClockUse::Sum};
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
  op.clock_use = {.kind = ClockUse::Sum};
  if (extended || carries || flips) t.detail<SumDetail>() = d;
}

namespace {

using functional::Add;
using functional::Bytes;
using functional::Halves;
using functional::Saturated;
using functional::Sub;

/// a + b or a - b, of saturated numbers or of the parts of words.
template <class F>
Handler parts_sum(std::string_view type, bool saturates) {
  if (type == "32") return run_binary<Saturated<F>, uint32_t>;
  if (type == "S32") return run_binary<Saturated<F>, int32_t>;
  if (type == "16x2")
    return saturates ? run_binary<Halves<Saturated<F>, uint16_t>, uint32_t>
                     : run_binary<Halves<F, uint16_t>, uint32_t>;
  if (type == "S16x2") return saturates ? run_binary<Halves<Saturated<F>, int16_t>, uint32_t> : nullptr;
  if (!saturates) return run_binary<Bytes<F, uint8_t>, uint32_t>;
  return type == "U8x4" ? run_binary<Bytes<Saturated<F>, uint8_t>, uint32_t>
                        : run_binary<Bytes<Saturated<F>, int8_t>, uint32_t>;
}

}  // namespace

/// VIADD[.16x2,.S16x2,.U8x4,.S8x4,.32,.S32][.ISAT] d, a, b: ISAT does not go beyond the least and the
/// greatest number.
void translate_viadd(Translation& t) {
  static constexpr std::string_view types[] = {"S32", "32", "16x2", "S16x2", "U8x4", "S8x4"};
  t.take("U32");
  const std::string_view type = types[t.take_one_of({"S32", "32", "16x2", "S16x2", "U8x4", "S8x4"}, 0)];
  const bool saturates = t.take("ISAT");
  const Place to = t.destination(0);
  Flipped a(t, 1), b(t, 2);
  if (!saturates && type.ends_with("32")) {
    Op& op = t.emit(run_sum_of_two);
    op.destination = to;
    op.a = a.place;
    op.b = b.place;
    op.clock_use = {.kind = ClockUse::Sum};
    auto& d = t.detail<SumDetail>();
    d.a = a;
    d.b = b;
    d.plus = a.plus + b.plus;
    return;
  }
  const bool subtracts = a.flip || b.flip;
  if (a.plus + b.plus != (subtracts ? 1 : 0) || (subtracts && type.ends_with("16x2")))
    t.unsupported("the signs of its operands");
  if (a.flip) std::swap(a, b);
  const Handler run = subtracts ? parts_sum<Sub>(type, saturates) : parts_sum<Add>(type, saturates);
  if (!run) t.unsupported("this type without .ISAT");
  Op& op = t.emit(run);
  op.destination = to;
  op.a = a.place;
  op.b = b.place;
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
  constexpr int shift = 2;
  const int stands_for = t.take_one_of({"MOV", "IADD", "SHL"}, shift);
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
  if (stands_for != shift && !wide && !high) op.clock_use = {.kind = ClockUse::Sum};
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

// --- one operation per lane -------------------------------------------------------------------------------

namespace {

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

void translate_iabs(Translation& t) {
  const Place to = t.destination(0), a = t.source(1);
  Op& op = t.emit(run_unary<functional::Abs, int32_t>);
  op.destination = to;
  op.a = a;
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
