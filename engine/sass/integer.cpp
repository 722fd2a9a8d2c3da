/// Integer arithmetic, comparison, shifts and bits, on general and uniform registers alike.
#include <bit>

#include "sass/instructions.hpp"
#include "sass/rows.hpp"

namespace simt::sass {
namespace {

/// Index of the first source: after the result and the predicates that precede the sources.
uint32_t leading_predicates(Translation& t, uint32_t from) {
  uint32_t count = 0;
  while (t.is_predicate(from + count)) ++count;
  return count;
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

/// UIADD3.64 d, a, b, c.
void translate_wide_sum(Translation& t) {
  if (t.operand_count() != 4) t.unsupported("carries of 64 bits");
  WideSumDetail d;
  for (uint32_t k = 0; k < 3; ++k) {
    const Operand& o = t.operand(k + 1);
    if (o.inverted || o.absolute) t.unsupported("an operand that is inverted or an absolute value");
    d.negated[k] = o.negated;
    d.terms[k] = t.source(k + 1, 2);
  }
  const Place to = t.destination(0, 2);
  t.emit(run_wide_sum).destination = to;
  t.detail<WideSumDetail>() = d;
}

}  // namespace

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

void run_sum_of_two(Context& c, const Op& op) {
  const auto& d = op.details<SumDetail>();
  const uint32_t *a = row(c, op.a), *b = row(c, op.b);
  const uint32_t fa = d.a.flip, fb = d.b.flip, plus = d.plus;
  map_words(c, op.destination, [=](uint32_t i) { return (a[i] ^ fa) + (b[i] ^ fb) + plus; });
}

void run_sums_of_halves(Context& c, const Op& op) {
  const uint32_t *a = row(c, op.a), *b = row(c, op.b);
  map_words(c, op.destination, [=](uint32_t i) {
    return ((a[i] + b[i]) & 0xffffu) | (((a[i] & 0xffff0000u) + (b[i] & 0xffff0000u)) & 0xffff0000u);
  });
}

}  // namespace

/// VIADD[.16x2] d, a, b.
void translate_viadd(Translation& t) {
  t.take("U32");
  const bool halves = t.take("16x2");
  SumDetail d;
  const Place to = t.destination(0);
  d.a = Flipped(t, 1);
  d.b = Flipped(t, 2);
  d.plus = d.a.plus + d.b.plus;
  if (halves && (d.a.flip || d.b.flip)) t.unsupported("a negated operand");
  Op& op = t.emit(halves ? run_sums_of_halves : run_sum_of_two);
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
  if constexpr (is_signed)
    return static_cast<uint64_t>(int64_t{static_cast<int32_t>(a)} * static_cast<int32_t>(b));
  else
    return uint64_t{a} * b;
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

// --- SHF --------------------------------------------------------------------------------------------------

namespace {

/// The funnel shift of {c, a}; shifts by more than the width give zeros or signs, unless they wrap.
template <bool left, bool is_signed>
struct Funnel {
  bool high = false, wraps = false;
  uint32_t bits = 32;

  uint32_t operator()(uint32_t a, uint32_t n, uint32_t c) const {
    n = wraps ? n & (bits - 1) : std::min(n, bits);
    const uint64_t x = a | uint64_t{c} << 32;
    uint64_t shifted;
    if constexpr (left)
      shifted = n >= 64 ? 0 : x << n;
    else if constexpr (is_signed)
      shifted = static_cast<uint64_t>(static_cast<int64_t>(x) >> std::min(n, 63u));
    else
      shifted = n >= 64 ? 0 : x >> n;
    return static_cast<uint32_t>(high ? shifted >> 32 : shifted);
  }
};

template <class F>
struct FunnelDetail : Detail {
  F funnel;
};

template <class F>
void run_funnel(Context& c, const Op& op) {
  const F f = op.details<FunnelDetail<F>>().funnel;
  const uint32_t *a = row(c, op.a), *n = row(c, op.b), *e = row(c, op.c);
  map_words(c, op.destination, [=](uint32_t i) { return f(a[i], n[i], e[i]); });
}

/// Shifts of one word by a constant below 32: Op::immediate.
enum class Shift : uint8_t { Left, Right, SignedRight };
template <Shift shift>
void run_shift(Context& c, const Op& op) {
  const uint32_t* a = row(c, op.a);
  const auto n = static_cast<uint32_t>(op.immediate);
  map_words(c, op.destination, [=](uint32_t i) {
    if constexpr (shift == Shift::Left) return a[i] << n;
    if constexpr (shift == Shift::Right) return a[i] >> n;
    return static_cast<uint32_t>(static_cast<int32_t>(a[i]) >> n);
  });
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
  if (by_constant && left && !high) return simple(run_shift<Shift::Left>, a);
  if (by_constant && !left && high)
    return simple(is_signed ? run_shift<Shift::SignedRight> : run_shift<Shift::Right>, c);
  const auto general = [&](auto funnel) {
    using F = decltype(funnel);
    funnel.high = high;
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
    general(Funnel<true, false>{});
  else if (is_signed)
    general(Funnel<false, true>{});
  else
    general(Funnel<false, false>{});
}

// --- LOP3 -------------------------------------------------------------------------------------------------

namespace {

struct LogicDetail : Detail {
  uint32_t table = 0;
  Place result = place::none;  ///< predicate: the result is not 0, or `other` holds
  Truth other;
  bool both = false;  ///< .PAND: and `other` holds
};

enum class Logic : uint8_t { And, Or, Xor, Not, AndNot, Any };

inline uint32_t by_table(uint32_t table, uint32_t a, uint32_t b, uint32_t c) {
  uint32_t result = 0;
  for (uint32_t k = 0; k < 8; ++k) {
    const uint32_t minterm = (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
    result |= minterm & (0u - (table >> k & 1));
  }
  return result;
}

template <Logic logic>
void run_logic(Context& c, const Op& op) {
  const uint32_t *a = row(c, op.a), *b = row(c, op.b), *e = row(c, op.c);
  const auto& d = op.details<LogicDetail>();
  const uint32_t table = d.table;
  alignas(64) uint32_t value[warp_lanes];
  for (uint32_t i = 0; i < warp_lanes; ++i) {
    if constexpr (logic == Logic::And)
      value[i] = a[i] & b[i];
    else if constexpr (logic == Logic::Or)
      value[i] = a[i] | b[i];
    else if constexpr (logic == Logic::Xor)
      value[i] = a[i] ^ b[i];
    else if constexpr (logic == Logic::Not)
      value[i] = ~b[i];
    else if constexpr (logic == Logic::AndNot)
      value[i] = a[i] & ~b[i];
    else
      value[i] = by_table(table, a[i], b[i], e[i]);
  }
  write_lanes(c, c.lanes<uint32_t>(op.destination), value);
  if (d.result == place::none) return;
  const uint32_t not_zero = test_rows([&](uint32_t i) { return value[i] != 0; });
  write_predicate(c, d.result, d.both ? not_zero & d.other.bits(c) : not_zero | d.other.bits(c));
}

}  // namespace

/// LOP3.LUT [p,] d, a, b, c, table, p.
void translate_lop3(Translation& t) {
  LogicDetail d;
  t.take("LUT");
  d.both = t.take("PAND");
  uint32_t first = 0;
  if (t.is_predicate(0)) d.result = t.predicate_destination(first++);
  const Place to = t.destination(first);
  const Flipped a(t, first + 1), b(t, first + 2), c(t, first + 3);
  if (a.flip | b.flip | c.flip) t.unsupported("an inverted operand");
  d.table = static_cast<uint32_t>(t.integer(first + 4)) & 0xff;
  if (t.is_predicate(first + 5)) d.other = t.predicate(first + 5);
  Handler handler = run_logic<Logic::Any>;
  switch (d.table) {
    case 0xc0:
      handler = run_logic<Logic::And>;
      break;
    case 0xfc:
      handler = run_logic<Logic::Or>;
      break;
    case 0x3c:
      handler = run_logic<Logic::Xor>;
      break;
    case 0x33:
      handler = run_logic<Logic::Not>;
      break;
    case 0x30:
      handler = run_logic<Logic::AndNot>;
      break;
    default:
      break;
  }
  Op& op = t.emit(handler);
  op.destination = to;
  op.a = a.place;
  op.b = b.place;
  op.c = c.place;
  t.detail<LogicDetail>() = d;
}

// --- ISETP ------------------------------------------------------------------------------------------------

namespace {

enum class Compare : uint8_t { F, Lt, Eq, Le, Gt, Ne, Ge, T };

struct CompareDetail : Detail {
  Place other_result = place::none;  ///< of the negated comparison
  Truth with;
  Truth lower;  ///< .EX: the comparison of the lower halves
  Combine combine = Combine::And;
  Compare compare = Compare::F;
};

template <class T>
uint32_t comparison(Compare compare, const uint32_t* a, const uint32_t* b) {
  const auto test = [&](auto f) {
    return test_rows([&](uint32_t i) { return f(static_cast<T>(a[i]), static_cast<T>(b[i])); });
  };
  switch (compare) {
    case Compare::F:
      return 0;
    case Compare::Lt:
      return test([](T x, T y) { return x < y; });
    case Compare::Eq:
      return test([](T x, T y) { return x == y; });
    case Compare::Le:
      return test([](T x, T y) { return x <= y; });
    case Compare::Gt:
      return test([](T x, T y) { return x > y; });
    case Compare::Ne:
      return test([](T x, T y) { return x != y; });
    case Compare::Ge:
      return test([](T x, T y) { return x >= y; });
    case Compare::T:
      break;
  }
  return ~0u;
}

/// T: how the words compare.
template <class T>
void run_compare(Context& c, const Op& op) {
  const auto& d = op.details<CompareDetail>();
  const uint32_t *a = row(c, op.a), *b = row(c, op.b);
  uint32_t holds;
  if (d.lower.place == place::none) {
    holds = comparison<T>(d.compare, a, b);
  } else {
    const uint32_t equal = comparison<T>(Compare::Eq, a, b), lower = d.lower.bits(c);
    switch (d.compare) {
      case Compare::Lt:
      case Compare::Le:
        holds = comparison<T>(Compare::Lt, a, b) | (equal & lower);
        break;
      case Compare::Gt:
      case Compare::Ge:
        holds = comparison<T>(Compare::Gt, a, b) | (equal & lower);
        break;
      case Compare::Eq:
        holds = equal & lower;
        break;
      case Compare::Ne:
        holds = ~equal | lower;
        break;
      default:
        holds = comparison<T>(d.compare, a, b);
    }
  }
  const uint32_t with = d.with.bits(c);
  write_predicate(c, op.destination, combined(d.combine, holds, with));
  if (d.other_result != place::none) write_predicate(c, d.other_result, combined(d.combine, ~holds, with));
}

}  // namespace

/// ISETP.compare p, p, a, b, p [, p].
void translate_isetp(Translation& t) {
  CompareDetail d;
  const int compare = t.take_one_of({"F", "LT", "EQ", "LE", "GT", "NE", "GE", "T"});
  if (compare < 0) t.unsupported("a comparison is missing");
  d.compare = static_cast<Compare>(compare);
  const bool is_signed = !t.take("U32");
  d.combine = take_combine(t);
  const bool extended = t.take("EX");
  const Place to = t.predicate_destination(0);
  d.other_result = t.operand(1).index == Operand::true_predicate ? place::none : t.predicate_destination(1);
  const Flipped a(t, 2), b(t, 3);
  if (a.flip | b.flip) t.unsupported("a negated operand");
  d.with = t.predicate(4);
  if (extended) d.lower = t.predicate(5);
  Op& op = t.emit(is_signed ? run_compare<int32_t> : run_compare<uint32_t>);
  op.destination = to;
  op.a = a.place;
  op.b = b.place;
  t.detail<CompareDetail>() = d;
}

// --- one operation per lane -------------------------------------------------------------------------------

namespace {

struct SelectDetail : Detail {
  Truth chooses;
  bool relu = false;  ///< negative results become 0
  uint32_t flip_b = 0, plus = 0;
};

template <class T>
void run_extreme(Context& c, const Op& op) {
  const uint32_t *a = row(c, op.a), *b = row(c, op.b);
  const auto& d = op.details<SelectDetail>();
  const uint32_t least = d.chooses.bits(c);
  const bool relu = d.relu;
  map_words(c, op.destination, [=](uint32_t i) {
    const auto x = static_cast<T>(a[i]), y = static_cast<T>(b[i]);
    const auto r = static_cast<uint32_t>(least >> i & 1 ? std::min(x, y) : std::max(x, y));
    return relu && static_cast<int32_t>(r) < 0 ? 0 : r;
  });
}

template <class T>
void run_extreme_halves(Context& c, const Op& op) {
  const uint32_t *a = row(c, op.a), *b = row(c, op.b);
  const auto& d = op.details<SelectDetail>();
  const uint32_t least = d.chooses.bits(c);
  const bool relu = d.relu;
  map_words(c, op.destination, [=](uint32_t i) {
    const auto extreme = [&](uint32_t x, uint32_t y) {
      const auto p = static_cast<T>(x), q = static_cast<T>(y);
      const T r = least >> i & 1 ? std::min(p, q) : std::max(p, q);
      return uint32_t{static_cast<uint16_t>(relu && static_cast<int16_t>(r) < 0 ? T{0} : r)};
    };
    return extreme(a[i], b[i]) | extreme(a[i] >> 16, b[i] >> 16) << 16;
  });
}

void run_select(Context& c, const Op& op) {
  const uint32_t *a = row(c, op.a), *b = row(c, op.b);
  const uint32_t chosen = op.details<SelectDetail>().chooses.bits(c);
  map_words(c, op.destination, [=](uint32_t i) { return chosen >> i & 1 ? a[i] : b[i]; });
}

void run_absolute(Context& c, const Op& op) {
  const uint32_t* a = row(c, op.a);
  map_words(c, op.destination, [=](uint32_t i) { return static_cast<int32_t>(a[i]) < 0 ? 0 - a[i] : a[i]; });
}

Op& two_sources(Translation& t, Handler handler) {
  const Place to = t.destination(0);
  const Flipped a(t, 1), b(t, 2);
  if (a.flip | b.flip) t.unsupported("a negated operand");
  Op& op = t.emit(handler);
  op.destination = to;
  op.a = a.place;
  op.b = b.place;
  return op;
}

template <class F>
void run_unary(Context& c, const Op& op) {
  const uint32_t* a = row(c, op.a);
  const auto flip = static_cast<uint32_t>(op.immediate);
  map_words(c, op.destination, [=](uint32_t i) { return F{}(a[i] ^ flip); });
}
template <class F>
void one_source(Translation& t, uint32_t index) {
  const Place to = t.destination(0);
  const Flipped a(t, index);
  if (a.plus) t.unsupported("a negated operand");
  Op& op = t.emit(run_unary<F>);
  op.destination = to;
  op.a = a.place;
  op.immediate = a.flip;
}

struct Population {
  uint32_t operator()(uint32_t x) const { return static_cast<uint32_t>(std::popcount(x)); }
};
struct Reversed {
  uint32_t operator()(uint32_t x) const {
    x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
    x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
    x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
    return __builtin_bswap32(x);
  }
};
/// The position of the highest bit that differs from the sign, or of the highest 1; all ones if there is
/// none. `from_top`: counted from the top.
template <bool is_signed, bool from_top>
struct LeadingOne {
  uint32_t operator()(uint32_t x) const {
    if (is_signed && static_cast<int32_t>(x) < 0) x = ~x;
    if (x == 0) return ~0u;
    const auto zeros = static_cast<uint32_t>(std::countl_zero(x));
    return from_top ? zeros : 31 - zeros;
  }
};

/// Bytes of {b, a} chosen by nibbles of the selector; bit 3 of a nibble repeats the byte's sign.
inline uint32_t permuted(uint32_t a, uint32_t selector, uint32_t b) {
  const uint64_t bytes = a | uint64_t{b} << 32;
  uint32_t result = 0;
  for (uint32_t k = 0; k < 4; ++k) {
    const uint32_t choice = selector >> (4 * k) & 15;
    uint32_t byte = static_cast<uint32_t>(bytes >> (8 * (choice & 7))) & 0xff;
    if (choice & 8) byte = byte & 0x80 ? 0xff : 0;
    result |= byte << (8 * k);
  }
  return result;
}
void run_permute(Context& c, const Op& op) {
  const uint32_t *a = row(c, op.a), *s = row(c, op.b), *b = row(c, op.c);
  map_words(c, op.destination, [=](uint32_t i) { return permuted(a[i], s[i], b[i]); });
}

/// The modes of PRMT, as selectors of the default mode by the two low bits of the selector operand.
constexpr uint32_t permute_modes[][4] = {{0x3210, 0x4321, 0x5432, 0x6543},   // F4E
                                         {0x5670, 0x6701, 0x7012, 0x0123},   // B4E
                                         {0x0000, 0x1111, 0x2222, 0x3333},   // RC8
                                         {0x3210, 0x3211, 0x3222, 0x3333},   // ECL
                                         {0x0000, 0x1110, 0x2210, 0x3210},   // ECR
                                         {0x1010, 0x3232, 0x1010, 0x3232}};  // RC16
void run_permute_by_mode(Context& c, const Op& op) {
  const uint32_t *a = row(c, op.a), *s = row(c, op.b), *b = row(c, op.c);
  const auto& selectors = permute_modes[op.immediate];
  map_words(c, op.destination, [&](uint32_t i) { return permuted(a[i], selectors[s[i] & 3], b[i]); });
}

/// `width` ones from bit `start` on.
template <bool wraps>
void run_mask(Context& c, const Op& op) {
  const uint32_t *a = row(c, op.a), *b = row(c, op.b);
  map_words(c, op.destination, [=](uint32_t i) {
    const uint32_t start = wraps ? a[i] & 31 : a[i], width = wraps ? b[i] & 31 : b[i];
    const uint32_t ones = width >= 32 ? ~0u : (1u << width) - 1;
    return start >= 32 ? 0 : ones << start;
  });
}

/// The low `b` bits of a, sign- or zero-extended.
template <bool is_signed, bool wraps>
void run_extend(Context& c, const Op& op) {
  const uint32_t *a = row(c, op.a), *b = row(c, op.b);
  map_words(c, op.destination, [=](uint32_t i) {
    const uint32_t bits = wraps ? b[i] & 31 : std::min(b[i], 32u);
    if (bits == 0) return 0u;
    const uint32_t shift = 32 - bits;
    return is_signed ? static_cast<uint32_t>(static_cast<int32_t>(a[i] << shift) >> shift)
                     : a[i] << shift >> shift;
  });
}

struct DotDetail : Detail {
  bool signed_a = false, signed_b = false, halves = false, upper = false;
};
void run_dot(Context& c, const Op& op) {
  const auto& d = op.details<DotDetail>();
  const uint32_t *a = row(c, op.a), *b = row(c, op.b), *e = row(c, op.c);
  const auto element = [](uint32_t word, uint32_t bits, uint32_t k, bool is_signed) {
    const uint32_t raised = word << (32 - bits * (k + 1));
    return is_signed ? int64_t{static_cast<int32_t>(raised) >> (32 - bits)} : int64_t{raised >> (32 - bits)};
  };
  map_words(c, op.destination, [&](uint32_t i) {
    int64_t sum = e[i];
    for (uint32_t k = 0; k < (d.halves ? 2u : 4u); ++k)
      sum += element(a[i], d.halves ? 16 : 8, k, d.signed_a) *
             element(b[i], 8, d.halves && d.upper ? k + 2 : k, d.signed_b);
    return static_cast<uint32_t>(sum);
  });
}

void run_absolute_difference(Context& c, const Op& op) {
  const uint32_t *a = row(c, op.a), *b = row(c, op.b), *e = row(c, op.c);
  const bool is_signed = op.immediate != 0;
  map_words(c, op.destination, [=](uint32_t i) {
    const bool less = is_signed ? static_cast<int32_t>(a[i]) < static_cast<int32_t>(b[i]) : a[i] < b[i];
    return (less ? b[i] - a[i] : a[i] - b[i]) + e[i];
  });
}

/// The absolute differences of four bytes each, or their sum and c.
template <class T, bool adds>
void run_byte_differences(Context& c, const Op& op) {
  const uint32_t *a = row(c, op.a), *b = row(c, op.b), *e = row(c, op.c);
  map_words(c, op.destination, [=](uint32_t i) {
    uint32_t bytes = 0, sum = e[i];
    for (uint32_t k = 0; k < 32; k += 8) {
      const int32_t difference = int32_t{static_cast<T>(a[i] >> k)} - int32_t{static_cast<T>(b[i] >> k)};
      const auto magnitude = static_cast<uint32_t>(difference < 0 ? -difference : difference);
      bytes |= magnitude << k;
      sum += magnitude;
    }
    return adds ? sum : bytes;
  });
}

}  // namespace

/// IMNMX, VIMNMX d, a, b, p: the minimum where p holds, else the maximum. Of .16x2 both halves.
void translate_imnmx(Translation& t) {
  const int type = t.take_one_of({"S32", "U32", "S16x2", "U16x2"}, 0);
  static constexpr Handler handlers[] = {run_extreme<int32_t>, run_extreme<uint32_t>,
                                         run_extreme_halves<int16_t>, run_extreme_halves<uint16_t>};
  const bool relu = t.take("RELU");
  const Truth least = t.predicate(3);
  two_sources(t, handlers[type]);
  auto& d = t.detail<SelectDetail>();
  d.chooses = least;
  d.relu = relu;
}

namespace {

/// The extreme of a + b and c, or of all three.
template <class T, bool adds>
void run_extreme_of_three(Context& c, const Op& op) {
  const uint32_t *a = row(c, op.a), *b = row(c, op.b), *e = row(c, op.c);
  const auto& d = op.details<SelectDetail>();
  const uint32_t least = d.chooses.bits(c);
  const bool relu = d.relu;
  const uint32_t flip_b = d.flip_b, plus = d.plus;
  map_words(c, op.destination, [=](uint32_t i) {
    const auto extreme = [&](T x, T y) { return least >> i & 1 ? std::min(x, y) : std::max(x, y); };
    const T z = static_cast<T>(e[i]);
    const T r = adds ? extreme(static_cast<T>(a[i] + (b[i] ^ flip_b) + plus), z)
                     : extreme(extreme(static_cast<T>(a[i]), static_cast<T>(b[i])), z);
    return static_cast<uint32_t>(relu && static_cast<int32_t>(r) < 0 ? T{0} : r);
  });
}

/// The same of both halves.
template <class T, bool adds>
void run_extreme_of_three_halves(Context& c, const Op& op) {
  const uint32_t *a = row(c, op.a), *b = row(c, op.b), *e = row(c, op.c);
  const auto& d = op.details<SelectDetail>();
  const uint32_t least = d.chooses.bits(c);
  const bool relu = d.relu;
  map_words(c, op.destination, [=](uint32_t i) {
    const auto half = [&](uint32_t x, uint32_t y, uint32_t z) {
      const auto extreme = [&](T p, T q) { return least >> i & 1 ? std::min(p, q) : std::max(p, q); };
      const T first = adds ? static_cast<T>(x + y) : extreme(static_cast<T>(x), static_cast<T>(y));
      const T r = extreme(first, static_cast<T>(z));
      return uint32_t{static_cast<uint16_t>(relu && static_cast<int16_t>(r) < 0 ? T{0} : r)};
    };
    return half(a[i], b[i], e[i]) | half(a[i] >> 16, b[i] >> 16, e[i] >> 16) << 16;
  });
}

template <bool adds>
void extreme_of_three(Translation& t) {
  static constexpr Handler handlers[] = {
      run_extreme_of_three<int32_t, adds>, run_extreme_of_three<uint32_t, adds>,
      run_extreme_of_three_halves<int16_t, adds>, run_extreme_of_three_halves<uint16_t, adds>};
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

/// SEL d, a, b, p.
void translate_sel(Translation& t) {
  const Truth chosen = t.predicate(3);
  two_sources(t, run_select);
  t.detail<SelectDetail>().chooses = chosen;
}

void translate_iabs(Translation& t) {
  const Place to = t.destination(0), a = t.source(1);
  Op& op = t.emit(run_absolute);
  op.destination = to;
  op.a = a;
}

/// PRMT d, a, selector, b.
void translate_prmt(Translation& t) {
  const int mode = t.take_one_of({"F4E", "B4E", "RC8", "ECL", "ECR", "RC16"});
  const Place c = t.source(3);
  Op& op = two_sources(t, mode < 0 ? run_permute : run_permute_by_mode);
  op.c = c;
  op.immediate = mode;
}

void translate_popc(Translation& t) {
  one_source<Population>(t, 1);
}

/// FLO d, [p,] a. p: there is such a bit.
void translate_flo(Translation& t) {
  const bool is_signed = !t.take("U32"), from_top = t.take("SH");
  if (t.operand_count() > 2) t.unsupported("a second result");
  if (is_signed)
    from_top ? one_source<LeadingOne<true, true>>(t, 1) : one_source<LeadingOne<true, false>>(t, 1);
  else
    from_top ? one_source<LeadingOne<false, true>>(t, 1) : one_source<LeadingOne<false, false>>(t, 1);
}

void translate_brev(Translation& t) {
  one_source<Reversed>(t, 1);
}

/// BMSK d, start, width.
void translate_bmsk(Translation& t) {
  const bool wraps = t.take_one_of({"C", "W"}, 0) == 1;
  two_sources(t, wraps ? run_mask<true> : run_mask<false>);
}

/// SGXT d, a, bits.
void translate_sgxt(Translation& t) {
  const bool is_signed = !t.take("U32"), wraps = t.take_one_of({"C", "W"}, 0) == 1;
  two_sources(t, is_signed ? wraps ? run_extend<true, true> : run_extend<true, false>
                 : wraps   ? run_extend<false, true>
                           : run_extend<false, false>);
}

/// IDP.4A.A.B, IDP.2A.half.A.B d, a, b, c: dot products of bytes, or of halves and bytes.
void translate_idp(Translation& t) {
  DotDetail d;
  d.halves = t.take_one_of({"4A", "2A"}) == 1;
  if (d.halves) d.upper = t.take_one_of({"LO", "HI"}, 0) == 1;
  const auto sign = [&] { return t.take_next().starts_with("S"); };
  d.signed_a = sign();
  d.signed_b = sign();
  const Place c = t.source(3);
  two_sources(t, run_dot).c = c;
  t.detail<DotDetail>() = d;
}

/// VABSDIFF d, a, b, c.
void translate_vabsdiff(Translation& t) {
  const bool is_signed = !t.take("U32");
  const Place c = t.source(3);
  Op& op = two_sources(t, run_absolute_difference);
  op.c = c;
  op.immediate = is_signed;
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
