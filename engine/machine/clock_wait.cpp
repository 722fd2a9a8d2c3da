#include "machine/clock_wait.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace simt::functional {
namespace {

using Words = std::array<uint64_t, warp_lanes>;

/// A clock that advances less moves words by less than half of what wraps around.
constexpr uint64_t most_ticks = 1u << 30;

Words words_at(const Context& c, Place p, bool wide) {
  Words words{};
  if (wide)
    std::copy_n(c.lanes<const uint64_t>(p), warp_lanes, words.begin());
  else
    std::copy_n(c.lanes<const uint32_t>(p), warp_lanes, words.begin());
  return words;
}

/// Whether words that moved from `before` to `after`, always in one direction, have kept their order.
bool in_order(const Words& before, const Words& after, uint32_t mask, bool wide, bool is_signed) {
  // A signed word is in order as the unsigned one that is half the range further.
  const uint64_t half = !is_signed ? 0 : wide ? uint64_t{1} << 63 : uint64_t{1} << 31;
  const uint64_t all = wide ? ~uint64_t{0} : 0xffffffffu;
  for (uint32_t i = 0; i < warp_lanes; ++i) {
    if (!(mask >> i & 1)) continue;
    const uint64_t from = (before[i] + half) & all, to = (after[i] + half) & all;
    const uint64_t up = (to - from) & all, down = (from - to) & all;
    if (std::min(up, down) >= most_ticks || (up < down ? to < from : to > from)) return false;
  }
  return true;
}

/// Performs the iteration that begins with the clock at `ticks`, up to its branches.
class Trial {
 public:
  Trial(const ClockWait& wait, Context& c, const Op* code)
      : wait_(wait), c_(c), code_(code), mask_(c.mask), begin_(*c.ticks) {}

  /// The first iteration: what others are compared with. False if not all lanes branch back.
  bool loops() {
    run(0, [&](size_t k, const Words& words, uint32_t result) {
      words_[k] = words;
      results_[k] = result;
      return true;
    });
    for (uint32_t at = wait_.first; at <= wait_.last; ++at)
      if (const Op& op = code_[at];
          op.control == Control::Branch && taken(op) != (at == wait_.last ? mask_ : 0))
        return false;
    return true;
  }
  /// Whether all iterations from the first one to this one branch alike.
  bool like_first(uint64_t iteration) {
    return run(iteration, [&](size_t k, const Words& words, uint32_t result) {
      const ClockWait::Check& check = wait_.checks[k];
      return result == results_[k] &&
             (check.operand == place::none || in_order(words_[k], words, mask_, check.wide, check.is_signed));
    });
  }

 private:
  uint32_t taken(const Op& op) const {
    if (op.guard == place::none) return mask_;
    const uint32_t p = c_.predicate(op.guard);
    return mask_ & (op.guard_negated ? ~p : p);
  }

  template <class F>
  bool run(uint64_t iteration, F each) {
    *c_.ticks = begin_ + iteration * wait_.reads;
    bool good = true;
    size_t next = 0;
    for (uint32_t at = wait_.first; at <= wait_.last; ++at) {
      const Op& op = code_[at];
      if (op.control != Control::None) continue;
      const bool checked = next < wait_.checks.size() && wait_.checks[next].op == at;
      Words words{};
      if (checked && wait_.checks[next].operand != place::none)
        words = words_at(c_, wait_.checks[next].operand, wait_.checks[next].wide);
      op.run(c_, op);
      if (!checked) continue;
      const uint32_t result = wait_.checks[next].compares ? c_.predicate(op.destination) & mask_ : 0;
      good = each(next, words, result) && good;
      ++next;
    }
    return good;
  }

  const ClockWait& wait_;
  Context& c_;
  const Op* code_;
  uint32_t mask_;
  uint64_t begin_;
  std::array<Words, ClockWait::most_checks> words_;
  std::array<uint32_t, ClockWait::most_checks> results_;
};

/// Bytes that an operand or a result takes, for all lanes.
uint32_t extent(bool wide) {
  return place::register_bytes * (wide ? 2 : 1);
}

/// The value of an Op of the loop.
struct Value {
  Place place;
  uint32_t bytes;
  bool advances;  ///< with the clock

  bool overlaps(Place p, uint32_t n) const { return p < place + bytes && place < p + n; }
};

/// What the loop's Ops have written, as far as it has been followed.
class Values {
 public:
  /// Whether an operand advances with the clock; nothing if that is not known.
  std::optional<bool> of(Place p, uint32_t bytes) const {
    if (p == place::none || p >> place::bank_shift) return false;
    for (auto v = values_.rbegin(); v != values_.rend(); ++v)
      if (v->overlaps(p, bytes))
        return v->place == p && v->bytes == bytes ? std::optional(v->advances) : std::nullopt;
    read_.push_back({p, bytes, false});
    return false;
  }
  /// False if the last iteration's value is needed in the next one.
  bool write(const Value& value) {
    values_.push_back(value);
    return std::none_of(read_.begin(), read_.end(),
                        [&](const Value& r) { return r.overlaps(value.place, value.bytes); });
  }

 private:
  std::vector<Value> values_;
  mutable std::vector<Value> read_;  ///< from before the loop
};

/// Adds to the wait what must be checked of an Op. False if the loop does more than wait.
bool follow(ClockWait& wait, Values& values, const Op& op, uint32_t at) {
  const ClockUse use = op.clock_use;
  const bool is_logic = use.kind == ClockUse::Logic;
  const bool is_predicate = is_logic || use.kind == ClockUse::Order || use.kind == ClockUse::Equality;
  const uint32_t predicate_bytes = sizeof(uint32_t);
  const uint32_t operand_bytes = is_logic ? predicate_bytes : extent(use.wide_operands);
  if (op.guard != place::none || use.kind == ClockUse::Unknown) return false;
  const auto a = values.of(op.a, operand_bytes), b = values.of(op.b, operand_bytes),
             c = values.of(op.c, predicate_bytes);
  if (!a || !b || !c || *c) return false;
  ClockWait::Check check;
  check.op = at;
  check.wide = use.wide_operands;
  check.is_signed = use.is_signed;
  check.operand = *a ? op.a : *b ? op.b : place::none;
  bool advances = *a || *b;
  switch (use.kind) {
    case ClockUse::Read:
      ++wait.reads;
      advances = true;
      break;
    case ClockUse::Sum:
      if (*a && *b) return false;
      if (advances && use.wide_result != use.wide_operands) wait.checks.push_back(check);
      break;
    case ClockUse::Choice:
      break;
    case ClockUse::Order:
      if (*a && *b) return false;
      check.compares = true;
      if (advances) wait.checks.push_back(check);
      advances = false;  // until the check finds a change
      break;
    default:
      if (advances) return false;
  }
  return values.write({op.destination, is_predicate ? predicate_bytes : extent(use.wide_result), advances});
}

/// Of the loop that the branch at `last` closes.
std::optional<ClockWait> wait_of(const Program& program, uint32_t last) {
  const Op& back = program.code[last];
  if (back.target > last || last - back.target >= ClockWait::most_ops) return std::nullopt;
  ClockWait wait;
  wait.first = back.target;
  wait.last = last;
  Values values;
  for (uint32_t at = wait.first; at <= last; ++at) {
    const Op& op = program.code[at];
    if (op.control == Control::Branch) {
      ++wait.branches;
      if (!values.of(op.guard, sizeof(uint32_t))) return std::nullopt;
    } else if (op.control != Control::None || !follow(wait, values, op, at)) {
      return std::nullopt;
    }
  }
  if (wait.reads == 0 || wait.checks.size() > ClockWait::most_checks) return std::nullopt;
  return wait;
}

}  // namespace

uint64_t ClockWait::skip(Context& c, const Op* code, uint64_t most) const {
  most = std::min(most, most_ticks / reads);
  const uint64_t begin = *c.ticks;
  Trial trial(*this, c, code);
  if (most == 0 || !trial.loops()) {
    *c.ticks = begin;  // its Ops are performed again
    return 0;
  }
  uint64_t alike = 0, other = most;
  if (trial.like_first(most - 1)) alike = most - 1;
  while (other - alike > 1) {
    const uint64_t middle = alike + (other - alike) / 2;
    (trial.like_first(middle) ? alike : other) = middle;
  }
  trial.like_first(alike);
  return alike + 1;
}

void find_clock_waits(Program& program) {
  for (uint32_t at = 0; at < program.code.size(); ++at) {
    if (program.code[at].control != Control::Branch) continue;
    const auto wait = wait_of(program, at);
    if (!wait) continue;
    auto owned = std::make_unique<ClockWait>(*wait);
    program.code[at].detail = owned.get();
    program.code[at].clock_use.kind = ClockUse::Wait;
    program.details.push_back(std::move(owned));
  }
}

}  // namespace simt::functional
