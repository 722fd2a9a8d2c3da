/// Instructions at which lanes of a warp wait for each other: collectives, and barriers, where a thread waits
/// for all threads of its warp that have not exited.
#include <algorithm>
#include <bit>
#include <cstring>

#include "machine/collective.hpp"
#include "machine/executor.hpp"
#include "machine/lanes.hpp"

namespace simt::functional {
namespace {

using Kind = CollectiveOperands::Kind;

constexpr size_t longest_operand = warp_lanes * sizeof(uint64_t);

void copy_lanes(Kind kind, uint32_t lanes, const std::byte* from, std::byte* to) {
  if (kind == Kind::Predicate) {
    uint32_t old, bits;
    std::memcpy(&old, to, sizeof old);
    std::memcpy(&bits, from, sizeof bits);
    old = (old & ~lanes) | (bits & lanes);
    std::memcpy(to, &old, sizeof old);
    return;
  }
  const size_t bytes = kind == Kind::Wide ? sizeof(uint64_t) : sizeof(uint32_t);
  for (uint32_t rest = lanes; rest; rest &= rest - 1) {
    const size_t offset = bytes * static_cast<size_t>(std::countr_zero(rest));
    std::memcpy(to + offset, from + offset, bytes);
  }
}

/// The subset of `lanes` whose word is `value`.
uint32_t equal_lanes(const uint32_t* words, uint32_t value, uint32_t lanes) {
  uint32_t same = 0;
  for (uint32_t i = 0; i < warp_lanes; ++i) same |= uint32_t{words[i] == value} << i;
  return same & lanes;
}

/// The lanes in the masks that any of `lanes` has.
uint32_t named_by(const uint32_t* masks, uint32_t lanes) {
  uint32_t named = 0;
  for (uint32_t rest = lanes; rest; rest &= rest - 1) named |= masks[std::countr_zero(rest)];
  return named;
}

}  // namespace

std::byte* Executor::place_of(const Warp::Split& split, Place p) {
  const uint32_t bank = p >> place::bank_shift;
  return (bank == 0 ? warp_->frame(split) : context_.banks[bank]) + (p & ((1u << place::bank_shift) - 1));
}

uint32_t Executor::members_of(const Warp::Split& split) {
  const Op& op = code_[split.pc];
  const auto* members = reinterpret_cast<const uint32_t*>(place_of(split, op.member_mask));
  return members[std::countr_zero(split.waiting)];
}

void Executor::collective(const Op& op, uint32_t mask, Warp::Split& split) {
  Warp& warp = *warp_;
  const uint32_t next = split.pc + 1;
  const uint32_t others = warp.alive() & ~split.mask;  // does not wait for lanes whose guard is false
  uint32_t members = full_mask, same = mask;
  if (op.member_mask != place::none) {
    const auto* words = context_.lanes<const uint32_t>(op.member_mask);
    members = words[context_.first_lane()];
    if (op.member_mask >> place::bank_shift == 0) same = equal_lanes(words, members, mask);
    if (same != mask) {
      // Each group of lanes, such as a tile of a warp, synchronises separately.
      if (named_by(words, mask) & others) {
        warp.diverge(same, split.pc, split.pc, next);  // the first group returns here alone
        executed_ = false;
        return;
      }
      report_met(op, mask, words);
      if (op.details<CollectiveOperands>().lane_by_lane) {
        op.run(context_, op);
      } else {
        // The result may overwrite the masks.
        alignas(64) uint32_t masks[warp_lanes];
        std::copy_n(words, warp_lanes, masks);
        for (uint32_t rest = mask; rest; rest &= ~context_.mask) {
          context_.mask = equal_lanes(masks, masks[std::countr_zero(rest)], rest);
          op.run(context_, op);
        }
        context_.mask = mask;
      }
      warp.go_to(next);
      return;
    }
  }
  if (!(members & others)) [[likely]] {
    if (observer_) observer_->met(*cta_, warp, mask, members, op);
    op.run(context_, op);
    warp.go_to(next);
    return;
  }

  // Lanes join if they wait at the same instruction, or at another of the same kind for the same members.
  const auto is_here = [&](const Warp::Split& s) { return s.pc == split.pc && s.frame == split.frame; };
  const auto joins = [&](const Warp::Split& s) {
    if (s.state != Warp::State::Collective) return false;
    if (op.member_mask == place::none) return is_here(s);
    const Op& other = code_[s.pc];
    return other.run == op.run && other.member_mask != place::none && members_of(s) == members;
  };
  uint32_t here = mask;
  bool same_place = true;
  for (const Warp::Split& s : warp.splits()) {
    if (!joins(s)) continue;
    here |= s.waiting;
    same_place &= is_here(s);
  }
  if (members & others & ~here) {
    split.state = Warp::State::Collective;
    split.waiting = mask;
    executed_ = false;
    return;
  }
  std::vector<Warp::Split*> joined;
  for (Warp::Split& s : warp.splits())
    if (joins(s)) joined.push_back(&s);
  context_.mask = here;
  if (observer_) observer_->met(*cta_, warp, here, members, op);
  if (same_place)
    op.run(context_, op);
  else
    run_joined(op, mask, split, joined);
  for (Warp::Split* s : joined) {
    s->state = Warp::State::Ready;
    s->pc += 1;
  }
  warp.go_to(next);
}

void Executor::report_met(const Op& op, uint32_t mask, const uint32_t* members) const {
  if (!observer_) return;
  for (uint32_t rest = mask, group; rest; rest &= ~group) {
    group = equal_lanes(members, members[std::countr_zero(rest)], rest);
    observer_->met(*cta_, *warp_, group, members[std::countr_zero(group)], op);
  }
}

uint32_t Executor::awaited_by(const Warp::Split& split, uint32_t lanes) const {
  return context_.lanes<const uint32_t>(code_[split.pc].member_mask)[std::countr_zero(lanes)];
}

Executor::Convergence Executor::convergence(const Warp::Split& split, uint32_t mask) const {
  const Warp& warp = *warp_;
  const auto place_of = [&](const Warp::Split& s) { return std::max(code_[s.pc].immediate, int64_t{0}); };
  const uint32_t members = awaited_by(split, mask);
  const int64_t place = place_of(split);
  Convergence found;
  found.here = mask;
  uint32_t gone = 0;
  for (const Warp::Split& s : warp.splits()) {
    if (&s == &split) continue;
    if (s.state == Warp::State::Convergence && (s.waiting & members)) {
      if (place_of(s) == place)
        found.here |= s.waiting;
      else if (place_of(s) == 0 && (awaited_by(s, s.waiting) & mask))
        gone |= s.waiting;
      if (found.common == UINT32_MAX && code_[s.pc].immediate == convergence_in_common_code)
        found.common = s.pc;
    } else if ((s.state == Warp::State::Arrival || s.state == Warp::State::Barrier) &&
               code_[s.waits_at()].awaits_cta) {
      gone |= s.mask;
    }
  }
  found.complete = !(members & warp.alive() & ~found.here & ~gone);
  if (code_[split.pc].immediate == convergence_in_common_code) found.common = split.pc;
  return found;
}

bool Executor::breaks_circle(const Warp::Split& split, uint32_t mask) const {
  if (code_[split.pc].immediate <= 0) return false;
  const uint32_t members = awaited_by(split, mask);
  uint32_t accounted = mask;
  for (const Warp::Split& s : warp_->splits()) {
    if (&s == &split) continue;
    if (s.state != Warp::State::Convergence) return false;
    const uint32_t others = awaited_by(s, s.waiting);
    const bool meets = code_[s.pc].immediate == code_[split.pc].immediate;
    if (std::popcount(others) < std::popcount(members)) return false;  // it goes on first
    if (meets || (others & mask)) accounted |= s.waiting;
  }
  return !(members & warp_->alive() & ~accounted);
}

bool Executor::let_complete_converge() {
  if (warp_->check_convergence([&](const Warp::Split& s) { return convergence(s, s.waiting).complete; }))
    return true;
  return warp_->check_convergence([&](const Warp::Split& s) { return breaks_circle(s, s.waiting); });
}

void Executor::converge(const Op& op, uint32_t mask, Warp::Split& split) {
  Warp& warp = *warp_;
  const auto* words = context_.lanes<const uint32_t>(op.member_mask);
  const uint32_t same = equal_lanes(words, words[context_.first_lane()], mask);
  const bool waits = (named_by(words, mask) & warp.alive() & ~mask) != 0;
  if (same != mask && op.immediate == 0 && !waits) {
    report_met(op, mask, words);
    warp.go_to(split.pc + 1);
    return;
  }
  if (same != mask) {  // each group of lanes waits for others
    warp.diverge(same, split.pc, split.pc, UINT32_MAX);
    executed_ = false;
    return;
  }
  const Convergence found = convergence(split, mask);
  if (!found.complete && !breaks_circle(split, mask)) {
    split.state = Warp::State::Convergence;
    split.waiting = mask;
    executed_ = false;
    let_complete_converge();
    return;
  }
  if (observer_ && op.immediate <= 0)
    observer_->met(*cta_, warp, found.here, found.here | words[context_.first_lane()], op);
  if (found.here == mask)
    warp.go_to(split.pc + 1);
  else
    warp.converge(found.here, [&](uint32_t pc) {
      return 1 + (code_[pc].immediate == convergence_in_common_code ? found.common : pc);
    });
}

void Executor::run_joined(const Op& op, uint32_t mask, Warp::Split& split,
                          const std::vector<Warp::Split*>& joined) {
  const auto& operands = op.details<CollectiveOperands>();
  alignas(64) std::byte bank[5 * longest_operand] = {};
  Op together = op;
  CollectiveOperands with_predicate = operands;
  together.detail = &with_predicate;
  together.member_mask = place::none;  // all have named the same
  together.a = 0;
  together.b = longest_operand;
  together.c = 2 * longest_operand;
  if (operands.destination != Kind::None) together.destination = 3 * longest_operand;
  with_predicate.predicate = 4 * longest_operand;

  const auto each = [&](auto visit) {
    visit(split, op, mask);
    for (Warp::Split* s : joined) visit(*s, code_[s->pc], s->waiting);
  };
  each([&](const Warp::Split& s, const Op& from, uint32_t lanes) {
    const auto take = [&](Kind kind, Place p, Place to) {
      if (kind != Kind::None) copy_lanes(kind, lanes, place_of(s, p), bank + to);
    };
    take(operands.a, from.a, together.a);
    take(operands.b, from.b, together.b);
    take(operands.c, from.c, together.c);
    if (operands.a == Kind::Predicate && from.immediate != op.immediate) {
      uint32_t bits;
      std::memcpy(&bits, bank + together.a, sizeof bits);
      bits ^= lanes;
      std::memcpy(bank + together.a, &bits, sizeof bits);
    }
  });
  context_.banks[0] = bank;
  op.run(context_, together);
  context_.banks[0] = warp_->frame(split);
  each([&](const Warp::Split& s, const Op& to, uint32_t lanes) {
    const auto give = [&](Kind kind, Place from, Place p) {
      if (kind != Kind::None && p != place::none) copy_lanes(kind, lanes, bank + from, place_of(s, p));
    };
    give(operands.destination, together.destination, to.destination);
    give(Kind::Predicate, with_predicate.predicate, to.details<CollectiveOperands>().predicate);
  });
}

void Executor::barrier(const Op& op, uint32_t mask, Warp::Split& split) {
  Warp& warp = *warp_;
  op.run(context_, op);
  const BarrierRequest request = context_.barrier;
  const bool cluster_wait = request.cluster && request.waits;
  if (mask != warp.alive() && !cluster_wait) {
    std::vector<Warp::Split*> joined;
    uint32_t here = mask;
    for (Warp::Split& s : warp.splits()) {
      if (s.state != Warp::State::Arrival) continue;
      const Op& other = code_[s.pc];
      load(s);
      context_.mask = s.mask;
      other.run(context_, other);
      if (!context_.barrier.same_barrier(request)) continue;
      here |= s.mask;
      joined.push_back(&s);
    }
    if (here != warp.alive()) {
      split.state = Warp::State::Arrival;
      if (warp.others_can_run(split) || (machine_code_ && let_complete_converge())) {
        executed_ = false;
        return;
      }
      split.state = Warp::State::Ready;
    }
    for (Warp::Split* s : joined) {
      const Op& other = code_[s->pc];
      load(*s);
      context_.mask = s->mask;
      other.run(context_, other);
      s->state = Warp::State::Ready;
      s->pc += 1;
      cta_->arrive(context_, warp, *s, other);
    }
    load(split);
    context_.mask = mask;
    context_.barrier = request;
    mask = here;
  }
  const uint32_t next = split.pc + 1;
  cta_->arrive(context_, warp, split, op);
  if (context_.barrier.waits)
    split.pc = next;
  else
    warp.go_to(next);
  context_.mask = mask;
}

}  // namespace simt::functional
