/// Shifts, logic and bits, on general and uniform registers alike.
#include "operations/integers.hpp"
#include "operations/words.hpp"
#include "sass/instructions.hpp"
#include "sass/integer_operands.hpp"
#include "sass/rows.hpp"

namespace simt::sass {

using functional::run_binary;
// What PTX calls by the same names.
using functional::BitMask;
using functional::Extend;

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

// --- one operation per lane -------------------------------------------------------------------------------

namespace {

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

}  // namespace

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

}  // namespace simt::sass
