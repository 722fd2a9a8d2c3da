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

/// Performs iterations, whose first one begins with the clock as it is.
class Trial {
 public:
  Trial(const ClockWait& wait, Context& c, const Op* code)
      : wait_(wait), c_(c), code_(code), mask_(c.mask), begin_(*c.ticks) {}

  /// The first iteration: what others are compared with. False if not all lanes branch back.
  bool loops() {
    return run(0, [&](size_t k, const State& state) {
      first_[k] = state;
      return true;
    });
  }
  /// Whether all iterations from the first one to this one branch alike.
  bool like_first(uint64_t iteration) {
    return run(iteration, [&](size_t k, const State& state) {
      const ClockWait::Check& check = wait_.checks[k];
      return state.results == first_[k].results && equal(state.row, first_[k].row) &&
             (check.operand == place::none ||
              in_order(first_[k].operand, state.operand, mask_, check.wide, check.is_signed));
    });
  }

 private:
  /// What is checked of an Op: its operand before it, and its results.
  struct State {
    Words operand{}, row{};
    std::array<uint32_t, 2> results{};
  };

  bool equal(const Words& a, const Words& b) const {
    for (uint32_t i = 0; i < warp_lanes; ++i)
      if ((mask_ >> i & 1) && a[i] != b[i]) return false;
    return true;
  }
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
      if (op.control == Control::Branch) {
        // What follows a branch that leaves is not performed: what it writes may be needed outside.
        if (iteration == 0 && taken(op) != (at == wait_.last ? mask_ : 0)) return false;
        continue;
      }
      if (next == wait_.checks.size() || wait_.checks[next].op != at) {
        op.run(c_, op);
        continue;
      }
      const ClockWait::Check& check = wait_.checks[next];
      State state;
      if (check.operand != place::none) state.operand = words_at(c_, check.operand, check.wide);
      op.run(c_, op);
      for (size_t k = 0; k < state.results.size(); ++k)
        if (check.predicates[k] != place::none) state.results[k] = c_.predicate(check.predicates[k]) & mask_;
      if (check.row != place::none) state.row = words_at(c_, check.row, false);
      good = each(next, state) && good;
      ++next;
    }
    return good;
  }

  const ClockWait& wait_;
  Context& c_;
  const Op* code_;
  uint32_t mask_;
  uint64_t begin_;
  std::array<State, ClockWait::most_checks> first_;
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
      check.predicates[0] = op.destination;
      if (advances) wait.checks.push_back(check);
      advances = false;  // until the check finds a change
      break;
    default:
      if (advances) return false;
  }
  return values.write({op.destination, is_predicate ? predicate_bytes : extent(use.wide_result), advances});
}

/// The same of an instruction of machine code, whose Ops are those from `first` to before `end`.
bool follow(ClockWait& wait, Values& values, const Program& program, const MachineOperands& operands,
            uint32_t instruction, uint32_t first, uint32_t end) {
  const MachineOperands::Instruction& what = operands.instructions[instruction];
  const Op& op = program.code[first];
  const ClockUse use = op.clock_use;
  if (op.guard != place::none || (use.kind != ClockUse::Unknown && end - first != 1)) return false;
  const bool branches =
      program.code[end].control == Control::Branch && program.origins[end].instruction == instruction;
  if (use.kind != ClockUse::Read && !what.computes && !branches) return false;
  const auto is_predicate = [&](Place p) {
    const Place begin = operands.predicates[program.origins[first].function];
    return p >= begin && p < begin + place::register_bytes;
  };
  const auto bytes = [&](Place p) { return is_predicate(p) ? uint32_t{sizeof(uint32_t)} : extent(false); };
  const Place* const places = operands.places.data() + what.first;

  ClockWait::Check check;
  check.op = first;
  check.is_signed = use.is_signed;
  for (uint32_t k = 0; k < what.reads; ++k) {
    const auto advances = values.of(places[k], bytes(places[k]));
    if (!advances) return false;
    if (!*advances || places[k] == check.operand) continue;
    if (check.operand != place::none || (use.kind != ClockUse::Sum && use.kind != ClockUse::Order))
      return false;
    check.operand = places[k];
  }
  // An operand that is read twice moves twice as far, or not at all.
  if (check.operand != place::none &&
      (op.a == check.operand) + (op.b == check.operand) + (op.c == check.operand) != 1)
    return false;
  bool advances = use.kind == ClockUse::Read || (use.kind == ClockUse::Sum && check.operand != place::none);
  if (use.kind == ClockUse::Read) ++wait.reads;
  size_t results = 0;
  for (const Place* p = places + what.reads; p != places + what.reads + what.writes; ++p) {
    const bool of_comparison = is_predicate(*p);
    if (of_comparison && check.operand != place::none) {
      if (results == check.predicates.size()) return false;
      check.predicates[results++] = *p;
    }
    if (!of_comparison && use.kind == ClockUse::Read && p != places + what.reads) check.row = *p;
    const bool moves = !of_comparison && advances && check.row == place::none;
    if (!values.write({*p, bytes(*p), moves})) return false;
  }
  if (results > 0 || check.row != place::none) wait.checks.push_back(check);
  return true;
}

/// Of the loop that the branch at `last` closes.
std::optional<ClockWait> wait_of(const Program& program, const MachineOperands* operands, uint32_t last) {
  const Op& back = program.code[last];
  if (back.detail || back.target > last || last - back.target >= ClockWait::most_ops) return std::nullopt;
  ClockWait wait;
  wait.first = back.target;
  wait.last = last;
  Values values;
  for (uint32_t at = wait.first; at <= last; ++at) {
    const Op& op = program.code[at];
    if (op.control == Control::Branch) {
      ++wait.branches;
      const auto advances = values.of(op.guard, sizeof(uint32_t));
      if (!advances || *advances) return std::nullopt;
    } else if (op.control != Control::None) {
      return std::nullopt;
    } else if (operands) {
      const uint32_t instruction = program.origins[at].instruction;
      uint32_t end = at + 1;
      while (end < last && program.code[end].control == Control::None &&
             program.origins[end].instruction == instruction)
        ++end;
      if (!follow(wait, values, program, *operands, instruction, at, end)) return std::nullopt;
      at = end - 1;
    } else if (!follow(wait, values, op, at)) {
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

void find_clock_waits(Program& program, const MachineOperands* operands) {
  for (uint32_t at = 0; at < program.code.size(); ++at) {
    if (program.code[at].control != Control::Branch) continue;
    const auto wait = wait_of(program, operands, at);
    if (!wait) continue;
    auto owned = std::make_unique<ClockWait>(*wait);
    program.code[at].detail = owned.get();
    program.code[at].clock_use.kind = ClockUse::Wait;
    program.details.push_back(std::move(owned));
  }
}

}  // namespace simt::functional
