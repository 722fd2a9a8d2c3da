#pragma once
#include "sass/rows.hpp"

/// The operands of integer instructions.
namespace simt::sass {

/// Index of the first source: after the result and the predicates that precede the sources.
inline uint32_t leading_predicates(Translation& t, uint32_t from) {
  uint32_t count = 0;
  while (t.is_predicate(from + count)) ++count;
  return count;
}

/// Of results in predicates that are all PT, the index of the first operand behind them.
inline uint32_t skip_predicates(Translation& t, uint32_t from) {
  const uint32_t end = from + leading_predicates(t, from);
  for (uint32_t i = from; i < end; ++i)
    if (const Operand& o = t.operand(i); o.index != Operand::true_predicate || o.negated)
      t.unsupported("a result in a predicate");
  return end;
}

/// An Op of two sources without signs. first: index of the first.
inline Op& two_sources(Translation& t, Handler handler, uint32_t first = 1) {
  const Place to = t.destination(0);
  const Flipped a(t, first), b(t, first + 1);
  if (a.flip | b.flip) t.unsupported("a negated operand");
  Op& op = t.emit(handler);
  op.destination = to;
  op.a = a.place;
  op.b = b.place;
  return op;
}

}  // namespace simt::sass
