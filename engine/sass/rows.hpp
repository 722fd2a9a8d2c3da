#pragma once
#include "machine/lanes.hpp"
#include "sass/translation.hpp"

/// Loops over the lanes of rows: a row holds one word per lane, a 64-bit value is in two rows. All that an
/// instruction does for a lane is in the lane's column, so results can be written in place.
namespace simt::sass {

using functional::each_lane;
using functional::warp_lanes;
using functional::write_lanes;
using functional::write_predicate;
namespace place = functional::place;

inline const uint32_t* row(const Context& c, Place at) {
  return c.lanes<const uint32_t>(at);
}
/// A lane's 64-bit value.
inline uint64_t pair_at(const uint32_t* rows, uint32_t i) {
  return rows[i] | uint64_t{rows[i + warp_lanes]} << 32;
}
inline void set_pair(uint32_t* rows, uint32_t i, uint64_t value) {
  rows[i] = static_cast<uint32_t>(value);
  rows[i + warp_lanes] = static_cast<uint32_t>(value >> 32);
}

/// A warp executes what has only uniform registers once, with those of its first lane.
inline void run_once(Context& c, const Op& op, Handler handler) {
  const uint32_t lanes = c.mask;
  c.mask = 1u << c.first_lane();
  handler(c, op);
  c.mask = lanes;
}

/// d = f(lane) for the lanes of the mask. f must be defined for all lanes.
template <class F>
inline void map_words(Context& c, Place destination, F f) {
  uint32_t* const d = c.lanes<uint32_t>(destination);
  const bool in_place = c.full();
  alignas(64) uint32_t kept[warp_lanes];
  uint32_t* const r = in_place ? d : kept;
#pragma GCC ivdep
  for (uint32_t i = 0; i < warp_lanes; ++i) r[i] = f(i);
  if (!in_place) write_lanes(c, d, kept);
}

/// As `map_words`, for 64-bit results.
template <class F>
inline void map_pairs(Context& c, Place destination, F f) {
  uint32_t* const d = c.lanes<uint32_t>(destination);
  const bool in_place = c.full();
  alignas(64) uint32_t kept[2 * warp_lanes];
  uint32_t* const r = in_place ? d : kept;
#pragma GCC ivdep
  for (uint32_t i = 0; i < warp_lanes; ++i) {
    const uint64_t v = f(i);
    r[i] = static_cast<uint32_t>(v);
    r[i + warp_lanes] = static_cast<uint32_t>(v >> 32);
  }
  if (in_place) return;
  write_lanes(c, d, kept);
  write_lanes(c, d + warp_lanes, kept + warp_lanes);
}

/// A bit for each lane for which f(lane) holds, active or not.
template <class F>
inline uint32_t test_rows(F f) {
  alignas(32) uint8_t holds[warp_lanes];
  for (uint32_t i = 0; i < warp_lanes; ++i) holds[i] = f(i) ? 1 : 0;
  return functional::gather_bits(holds);
}

/// A predicate read by an Op, as a word of bits.
struct Truth {
  Place place = place::none;
  uint32_t flip = 0;

  Truth() = default;
  Truth(PredicateOperand p) : place(p.place), flip(p.negated ? ~0u : 0) {}
  uint32_t bits(const Context& c) const { return c.predicate(place) ^ flip; }
};

/// An integer operand that is negated (-x = ~x + 1) or inverted (~x).
struct Flipped {
  Place place = place::none;
  uint32_t flip = 0;
  uint32_t plus = 0;

  Flipped() = default;
  Flipped(Translation& t, uint32_t index) : place(t.source(index)) {
    const Operand& o = t.operand(index);
    if (o.absolute) t.unsupported("the absolute value of an integer");
    flip = o.negated || o.inverted ? ~0u : 0;
    plus = o.negated ? 1 : 0;
  }
  uint32_t operator()(const uint32_t* x, uint32_t i) const { return x[i] ^ flip; }
};

/// How predicates are combined: .AND, .OR, .XOR.
enum class Combine : uint8_t { And, Or, Xor };
inline Combine take_combine(Translation& t) {
  return static_cast<Combine>(t.take_one_of({"AND", "OR", "XOR"}, 0));
}
inline uint32_t combined(Combine how, uint32_t a, uint32_t b) {
  return how == Combine::And ? a & b : how == Combine::Or ? a | b : a ^ b;
}

}  // namespace simt::sass
