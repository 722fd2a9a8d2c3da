/// f64 arithmetic and comparison. A double is in two registers.
#include "operations/float_operations.hpp"
#include "sass/comparisons.hpp"
#include "sass/instructions.hpp"
#include "sass/rows.hpp"

namespace simt::sass {

namespace operations = functional::float_operations;

namespace {

struct DoubleSource {
  Place place = place::none;
  uint64_t keep = ~uint64_t{0}, flip = 0;

  DoubleSource() = default;
  DoubleSource(Translation& t, uint32_t index) : place(t.source_double(index)) {
    constexpr uint64_t sign = uint64_t{1} << 63;
    const Operand& o = t.operand(index);
    if (o.inverted || !o.suffixes.empty()) t.unsupported("this form of a source");
    if (o.absolute) keep = ~sign;
    if (o.negated) flip = sign;
  }
  double operator()(const uint32_t* rows, uint32_t i) const {
    return std::bit_cast<double>((pair_at(rows, i) & keep) ^ flip);
  }
};

struct DoubleDetail : Detail {
  DoubleSource sources[3];
};

template <class F, uint32_t sources>
void run_double(Context& c, const Op& op) {
  const auto& d = op.details<DoubleDetail>();
  alignas(64) double in[sources][warp_lanes], r[warp_lanes];
  for (uint32_t k = 0; k < sources; ++k) {
    const uint32_t* rows = row(c, d.sources[k].place);
    for (uint32_t i = 0; i < warp_lanes; ++i) in[k][i] = d.sources[k](rows, i);
  }
  uint32_t any = 0;
  for (uint32_t i = 0; i < warp_lanes; ++i) {
    if constexpr (sources == 3)
      r[i] = F{}(in[0][i], in[1][i], in[2][i]);
    else
      r[i] = F{}(in[0][i], in[1][i]);
    any |= r[i] != r[i] ? 1 : 0;
  }
  if (any) [[unlikely]]
    for (uint32_t i = 0; i < warp_lanes; ++i) {
      if constexpr (sources == 3)
        r[i] = functional::finished<functional::Clamp::None>(r[i], in[0][i], in[1][i], in[2][i]);
      else
        r[i] = functional::finished<functional::Clamp::None>(r[i], in[0][i], in[1][i]);
    }
  map_pairs(c, op.destination, [&](uint32_t i) { return std::bit_cast<uint64_t>(r[i]); });
}

/// op[.rounding] d, a, b [, c].
template <class F, uint32_t sources>
void translate_arithmetic(Translation& t) {
  static constexpr int directions[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
  const int direction = directions[t.take_one_of({"RN", "RZ", "RM", "RP"}, 0)];
  const Place to = t.destination(0, 2);
  DoubleDetail d;
  for (uint32_t k = 0; k < sources; ++k) d.sources[k] = DoubleSource(t, 1 + k);
  Op& op = t.emit(direction == FE_TONEAREST ? run_double<F, sources>
                                            : functional::run_directed<run_double<F, sources>>);
  op.destination = to;
  op.immediate = direction;
  t.detail<DoubleDetail>() = d;
}

struct DoubleCompareDetail : Detail {
  DoubleSource a, b;
  uint32_t outcomes = 0;
  Place other_result = place::none;
  Truth with;
  Combine combine = Combine::And;
};

void run_compare(Context& c, const Op& op) {
  const auto& d = op.details<DoubleCompareDetail>();
  const uint32_t *a = row(c, d.a.place), *b = row(c, d.b.place);
  alignas(64) double x[warp_lanes], y[warp_lanes];
  for (uint32_t i = 0; i < warp_lanes; ++i) {
    x[i] = d.a(a, i);
    y[i] = d.b(b, i);
  }
  const uint32_t holds = compared(d.outcomes, x, y), with = d.with.bits(c);
  write_predicate(c, op.destination, combined(d.combine, holds, with));
  if (d.other_result != place::none) write_predicate(c, d.other_result, combined(d.combine, ~holds, with));
}

}  // namespace

void translate_dadd(Translation& t) {
  translate_arithmetic<operations::Add, 2>(t);
}
void translate_dmul(Translation& t) {
  translate_arithmetic<operations::Mul, 2>(t);
}
void translate_dfma(Translation& t) {
  translate_arithmetic<operations::Fma, 3>(t);
}

namespace {

/// DSETP.MIN, .MAX p, q, a, b: whether a is the extreme, and whether neither is a number.
template <bool greater>
void run_choose(Context& c, const Op& op) {
  const auto& d = op.details<DoubleCompareDetail>();
  const uint32_t *a = row(c, d.a.place), *b = row(c, d.b.place);
  write_predicate(c, op.destination, test_rows([&](uint32_t i) {
                    const double x = d.a(a, i), y = d.b(b, i);
                    const bool first_zero = x == y && std::signbit(x) != greater;
                    return (greater ? x > y : x < y) || first_zero || (y != y && x == x);
                  }));
  if (d.other_result == place::none) return;
  write_predicate(c, d.other_result, test_rows([&](uint32_t i) {
                    const double x = d.a(a, i), y = d.b(b, i);
                    return x != x && y != y;
                  }));
}

}  // namespace

/// DSETP.compare p, p, a, b, p.
void translate_dsetp(Translation& t) {
  DoubleCompareDetail d;
  const int extreme = t.take_one_of({"MIN", "MAX"});
  if (extreme >= 0) {
    t.take("AND");
    if (t.operand(4).index != Operand::true_predicate) t.unsupported("a third predicate");
    const Place chosen = t.predicate_destination(0);
    if (t.operand(1).index != Operand::true_predicate) d.other_result = t.predicate_destination(1);
    d.a = DoubleSource(t, 2);
    d.b = DoubleSource(t, 3);
    t.emit(extreme == 0 ? run_choose<false> : run_choose<true>).destination = chosen;
    t.detail<DoubleCompareDetail>() = d;
    return;
  }
  d.outcomes = take_comparison(t);
  d.combine = take_combine(t);
  const Place to = t.predicate_destination(0);
  if (t.operand(1).index != Operand::true_predicate) d.other_result = t.predicate_destination(1);
  d.a = DoubleSource(t, 2);
  d.b = DoubleSource(t, 3);
  d.with = t.predicate(4);
  t.emit(run_compare).destination = to;
  t.detail<DoubleCompareDetail>() = d;
}

}  // namespace simt::sass
