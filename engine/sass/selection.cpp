/// Comparison and choice of integers, on general and uniform registers alike.
#include <algorithm>

#include "operations/integers.hpp"
#include "operations/words.hpp"
#include "sass/comparisons.hpp"
#include "sass/instructions.hpp"
#include "sass/integer_operands.hpp"
#include "sass/rows.hpp"

namespace simt::sass {

// What PTX calls by the same names.
using functional::Max;
using functional::Min;

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
  const bool orders = (d.outcomes & (Less | Greater)) == Less || (d.outcomes & (Less | Greater)) == Greater;
  if (orders && !extended && !wide) op.clock_use = {.kind = ClockUse::Order, .is_signed = type == 0};
  t.detail<CompareDetail>() = d;
}

// --- extremes and selection ------------------------------------------------------------------------------

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
uint32_t extreme_bytes(bool least, bool relu, uint32_t x, uint32_t y) {
  uint32_t r = 0;
  for (uint32_t k = 0; k < 32; k += 8)
    r |= uint32_t{static_cast<uint8_t>(extreme(least, relu, static_cast<T>(x >> k), static_cast<T>(y >> k)))}
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
    if constexpr (sizeof(T) == 1) return extreme_bytes<T>(least >> i & 1, relu, a[i], b[i]);
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

}  // namespace

/// IMNMX, VIMNMX d, [PT, PT,] a, b, p: the minimum where p holds, else the maximum. Of .16x2 both halves, of
/// .8x4 all bytes. IMNMX.S64, .U64 PT, PT, d, a, b, p, !PT: of pairs.
void translate_imnmx(Translation& t) {
  const int type = t.take_one_of({"S64", "U64", "S32", "U32", "S16x2", "U16x2", "S8x4", "U8x4"}, 2);
  static constexpr Handler handlers[] = {
      run_wide_extreme<int64_t>, run_wide_extreme<uint64_t>, run_extreme<int32_t>, run_extreme<uint32_t>,
      run_extreme<int16_t>,      run_extreme<uint16_t>,      run_extreme<int8_t>,  run_extreme<uint8_t>};
  const bool wide = type < 2, relu = t.take("RELU");
  if (relu && wide) t.unsupported("the modifier .RELU of this type");
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

}  // namespace simt::sass
