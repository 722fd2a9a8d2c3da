/// Control flow: branches, calls, convergence barriers, CTA barriers, traps.
///
/// Each lane holds its own copy of the convergence barriers, so that a barrier that is used by several groups
/// of diverged lanes at once stays correct: B holds the lanes that go on together with this one.
#include <algorithm>

#include "functional/calls.hpp"
#include "functional/cta.hpp"
#include "functional/fault.hpp"
#include "functional/grid.hpp"
#include "sass/instructions.hpp"
#include "sass/rows.hpp"

namespace simt::sass {

using functional::BarrierRequest;
using functional::Fault;

namespace {

void run_nothing(Context&, const Op&) {}

/// Both predicates.
struct BothDetail : Detail {
  Truth first, second;
};
void run_both(Context& c, const Op& op) {
  const auto& d = op.details<BothDetail>();
  write_predicate(c, op.destination, d.first.bits(c) & d.second.bits(c));
}

/// Whether the active lanes are those in a, or others.
template <bool differ>
void run_compare_lanes(Context& c, const Op& op) {
  const uint32_t expected = row(c, op.a)[c.first_lane()] ^ static_cast<uint32_t>(op.immediate);
  write_predicate(c, op.destination, (c.mask != expected) == differ ? ~0u : 0);
}

struct AddressDetail : Detail {
  uint64_t base = 0;
  bool wide = false;
};

/// Jumps to a register plus a constant.
void run_jump(Context& c, const Op& op) {
  const auto& d = op.details<AddressDetail>();
  const uint32_t* a = row(c, op.a);
  each_lane(c, [&](int i) {
    const auto lane = static_cast<uint32_t>(i);
    c.jump[lane] =
        d.base + (d.wide ? pair_at(a, lane) : static_cast<uint64_t>(int64_t{static_cast<int32_t>(a[lane])}));
  });
}

void jump(Translation& t, Place at, bool wide, uint64_t base) {
  t.emit(run_jump, Control::Jump).a = at;
  auto& d = t.detail<AddressDetail>();
  d.base = base;
  d.wide = wide;
}

Op& branch(Translation& t, uint64_t address) {
  Op& op = t.emit(run_nothing, Control::Branch);
  t.branches_to(address);
  return op;
}

}  // namespace

/// BRA [p,] target: taken by lanes for which p holds, too. BRA.CONV UR, target: where the active lanes are
/// those in UR; BRA.DIV: where they are not.
void translate_bra(Translation& t) {
  t.take("U");
  t.take("ANY");  // lanes for which the guard does not hold are done with the loop
  t.take_one_of({"INC", "DEC"});
  const int by_lanes = t.take_one_of({"DIV", "CONV"});
  const uint32_t last = t.operand_count() - 1;
  if (by_lanes >= 0) {
    const Flipped mask(t, 0);
    Op& test = t.emit(by_lanes == 0 ? run_compare_lanes<true> : run_compare_lanes<false>);
    test.a = mask.place;
    test.immediate = mask.flip;
    const Place result = t.scratch(1);
    test.destination = result;
    Op& op = branch(t, t.target(last));
    op.guard = result;
    op.guard_negated = false;
    return;
  }
  if (last > 0) {
    const Truth second = t.predicate(0);
    Op& both = t.emit(run_nothing);
    const Place guard = both.guard;
    const bool negated = both.guard_negated;
    both.run = run_both;
    both.guard = place::none;
    both.guard_negated = false;
    const Place result = t.scratch(1);
    both.destination = result;
    auto& d = t.detail<BothDetail>();
    d.first =
        guard == place::none ? Truth({t.constant({functional::full_mask}), false}) : Truth({guard, negated});
    d.second = second;
    Op& op = branch(t, t.target(last));
    op.guard = result;
    op.guard_negated = false;
    return;
  }
  branch(t, t.target(last));
}

/// BRX a, offset: to the register plus the offset from the next instruction. BRXU: from a uniform register.
void translate_brx(Translation& t) {
  t.take_one_of({"INC", "DEC"});
  const Place at = t.source(0);
  jump(t, at, false, t.code_address() + 16 + static_cast<uint64_t>(t.integer(1)));
}

/// CALL.REL [a,] target, CALL.ABS a: to the target, or a register and the target. The callee finds in
/// registers where to return to.
void translate_call(Translation& t) {
  t.take("NOINC");
  if (t.take_one_of({"REL", "ABS"}, 0) == 0) {
    if (t.operand_count() > 1) {
      const uint64_t base = t.target(1);
      return jump(t, t.source(0), false, base);
    }
    branch(t, t.target(0));
    return;
  }
  if (!t.is(0, OperandKind::Register) && !t.is(0, OperandKind::Uniform)) {
    branch(t, t.target(0));
    return;
  }
  jump(t, t.source(0, 2), true, 0);
}

/// RET.REL a, base; RET.ABS a.
void translate_ret(Translation& t) {
  t.take("NODEC");
  if (t.take_one_of({"REL", "ABS"}, 0) == 1) return jump(t, t.source(0, 2), true, 0);
  const uint64_t base = t.target(1);
  jump(t, t.source(0), false, base);
}

namespace {

/// Bytes of the arguments of system functions, and of the result.
struct SystemFunction {
  std::string_view name;
  std::initializer_list<uint32_t> arguments;
  uint32_t result;
};
const SystemFunction system_functions[] = {
    {"vprintf", {8, 8}, 4}, {"__assertfail", {8, 8, 4, 8, 8}, 0}, {"malloc", {8}, 8}, {"free", {8}, 0}};

}  // namespace

bool emit_system_call(Translation& t, std::string_view name) {
  const functional::Builtin* builtin = functional::find_builtin(name);
  const auto* known = std::find_if(std::begin(system_functions), std::end(system_functions),
                                   [&](const SystemFunction& f) { return f.name == name; });
  if (!builtin || known == std::end(system_functions)) return false;
  constexpr uint32_t first_register = 4;
  functional::CallSite site;
  site.in_registers = true;
  uint32_t next = first_register;
  for (const uint32_t bytes : known->arguments) {
    const uint32_t words = bytes / 4;
    next = (next + words - 1) / words * words;
    site.arguments.push_back({t.general(next, words, false), bytes});
    next += words;
  }
  if (known->result)
    site.results.push_back({t.general(first_register, known->result / 4, true), known->result});
  if (builtin->ordered)
    for (functional::FunctionCode& f : t.program().functions) f.order_sensitive = true;
  t.emit(builtin->run, builtin->ordered ? Control::Deferred : Control::None);
  t.detail<functional::CallSite>() = site;
  return true;
}

void emit_system_return(Translation& t) {
  constexpr uint32_t return_register = 20;
  jump(t, t.general(return_register, 2, false), true, 0);
}

void translate_exit(Translation& t) {
  t.take_one_of({"KEEPREFCOUNT", "PREEMPTED"});
  t.emit(run_nothing, Control::Exit);
}

namespace {

/// Nothing; it tells BSYNC from other instructions at which lanes wait.
void run_meeting(Context&, const Op&) {}

void run_bssy(Context& c, const Op& op) {
  uint32_t* lanes = c.lanes<uint32_t>(op.destination);
  const uint32_t mask = c.mask;
  each_lane(c, [&](int i) { lanes[i] = mask; });
}

/// The lanes leave the barrier: those that wait no longer wait for them.
void run_break(Context& c, const Op& op) {
  uint32_t* lanes = c.lanes<uint32_t>(op.destination);
  const uint32_t leaving = c.mask;
  for (uint32_t i = 0; i < warp_lanes; ++i) lanes[i] &= ~leaving;
  c.warp->check_convergence();
}

}  // namespace

/// BSSY B, target: the lanes will meet at a BSYNC.
void translate_bssy(Translation& t) {
  t.take_one_of({"RELIABLE", "RECONVERGENT"});
  t.emit(run_bssy).destination = t.barrier(0);
}

void translate_bsync(Translation& t) {
  t.take_one_of({"RELIABLE", "RECONVERGENT"});
  t.emit(run_meeting, Control::Convergence).member_mask = t.barrier(0);
}

void translate_break(Translation& t) {
  t.take_one_of({"RELIABLE", "RECONVERGENT"});
  if (t.is_predicate(0)) t.unsupported("a second predicate");
  t.emit(run_break).destination = t.barrier(0);
}

/// WARPSYNC mask: the lanes in the mask meet. WARPSYNC.COLLECTIVE mask, target: they also execute what
/// follows together, up to ENDCOLLECTIVE, and go on at the target.
void translate_warpsync(Translation& t) {
  const bool all = t.take_one_of({"ALL", "EXCLUSIVE"}) == 0;
  const bool collective = t.take("COLLECTIVE");
  const Place mask = all ? t.constant({functional::full_mask}) : t.source(0);
  if (collective && !t.ends_collective(t.target(1)))
    t.unsupported("collective code that does not end where it goes on");
  t.emit(run_nothing, Control::Convergence).member_mask = mask;
}

namespace {

struct ElectDetail : Detail {
  Truth candidates;
  Place predicate = place::none;
};

void run_elect(Context& c, const Op& op) {
  const auto& d = op.details<ElectDetail>();
  const uint32_t candidates = d.candidates.bits(c) & c.mask;
  if (op.destination != place::none)
    map_words(c, op.destination,
              [&](uint32_t) { return static_cast<uint32_t>(std::countr_zero(candidates)); });
  write_predicate(c, d.predicate, candidates & (0 - candidates));
}

}  // namespace

/// ELECT p, d, candidates: p holds for the first of the lanes, whose number is d.
void translate_elect(Translation& t) {
  ElectDetail d;
  d.predicate = t.predicate_destination(0);
  const Place to = t.operand(1).is_zero() ? place::none : t.destination(1);
  d.candidates = t.predicate(2);
  t.emit(run_elect).destination = to;
  t.detail<ElectDetail>() = d;
}

namespace {

struct BarrierDetail : Detail {
  BarrierRequest request;
  Place id = place::none, threads = place::none;
  Truth predicate;
};

void run_barrier(Context& c, const Op& op) {
  const auto& d = op.details<BarrierDetail>();
  c.barrier = d.request;
  const auto lane = static_cast<uint32_t>(c.first_lane());
  if (d.id != place::none) c.barrier.id = row(c, d.id)[lane];
  if (d.threads != place::none) c.barrier.threads = row(c, d.threads)[lane];
  if (d.predicate.place != place::none) c.barrier.predicate = d.predicate.bits(c);
}

}  // namespace

/// BAR.SYNC id [, threads]; BAR.ARV id, threads; BAR.RED.op id [, threads], p.
void translate_bar(Translation& t) {
  BarrierDetail d;
  const int kind = t.take_one_of({"SYNC", "ARV", "RED", "SYNCALL"});
  if (kind < 0) t.unsupported("this barrier");
  d.request.waits = kind != 1;
  t.take("DEFER_BLOCKING");
  if (kind == 2) {
    static constexpr BarrierRequest::Reduce reductions[] = {
        BarrierRequest::Reduce::Popcount, BarrierRequest::Reduce::And, BarrierRequest::Reduce::Or};
    const int reduction = t.take_one_of({"POPC", "AND", "OR"});
    if (reduction < 0) t.unsupported("this reduction");
    d.request.reduce = reductions[reduction];
  }
  uint32_t next = 0;
  const auto number = [&](uint32_t& value, Place& at) {
    if (t.is(next, OperandKind::Integer))
      value = static_cast<uint32_t>(t.integer(next));
    else
      at = t.source(next);
    ++next;
  };
  if (kind != 3) {
    number(d.request.id, d.id);
    if (next < t.operand_count() && !t.is_predicate(next)) number(d.request.threads, d.threads);
  }
  t.timed().immediate = d.id == place::none ? d.request.id : -1;
  t.timed().immediate2 = d.request.threads;
  if (next < t.operand_count()) d.predicate = t.predicate(next);
  Op& op = t.emit(run_barrier, Control::Barrier);
  if (kind == 2) op.destination = t.barrier_result(d.request.reduce == BarrierRequest::Reduce::Popcount);
  t.detail<BarrierDetail>() = d;
}

namespace {

void run_fetch_count(Context& c, const Op& op) {
  const uint32_t* a = row(c, op.a);
  map_words(c, op.destination, [=](uint32_t i) { return a[i]; });
}
void run_fetch_truth(Context& c, const Op& op) {
  write_predicate(c, op.destination, c.predicate(op.a));
}

}  // namespace

/// B2R.RESULT d [, p]: the result of the last BAR.RED.
void translate_b2r(Translation& t) {
  if (!t.take("RESULT")) t.unsupported("this form");
  if (t.operand_count() > 1) {
    Op& op = t.emit(run_fetch_truth);
    op.destination = t.predicate_destination(1);
    op.a = t.barrier_result(false);
    if (t.operand(0).is_zero()) return;
  }
  const Place to = t.destination(0);
  Op& op = t.emit(run_fetch_count);
  op.destination = to;
  op.a = t.barrier_result(true);
}

namespace {

void run_trap(Context& c, const Op&) {
  throw Fault("trap", "the program stopped itself", c.first_lane());
}

void run_sleep(Context& c, const Op& op) {
  c.sleep = row(c, op.a)[c.first_lane()];
  c.yield = true;
}

/// Lanes that wait at a BSYNC for these lanes go on without them, so that lanes which spin on a lock let its
/// owner proceed.
void run_yield(Context& c, const Op&) {
  const uint32_t yielding = c.mask;
  const auto& code = c.grid->program().code;
  for (const functional::Warp::Split& s : c.warp->splits()) {
    if (s.state != functional::Warp::State::Convergence) continue;
    const Op& op = code[s.pc];
    if (op.run != run_meeting) continue;
    uint32_t* members = c.lanes<uint32_t>(op.member_mask);
    for (uint32_t i = 0; i < warp_lanes; ++i) {
      if (s.waiting >> i & 1) members[i] &= ~yielding;
      if (yielding >> i & 1) members[i] &= ~s.waiting;
    }
  }
  c.warp->check_convergence();
}

}  // namespace

void translate_trap(Translation& t) {
  t.take_all();
  t.emit(run_trap);
}

void translate_yield(Translation& t) {
  t.emit(run_yield, Control::Yield);
}

/// DEPBAR.LE SB, count: waits until at most so many are outstanding.
void translate_depbar(Translation& t) {
  t.take_all();
  if (t.is(0, OperandKind::Dependence)) {
    t.timed().immediate2 = t.operand(0).index;
    if (t.operand_count() > 1) t.timed().immediate = t.integer(1);
  }
  t.emit(run_nothing);
}

void translate_nanosleep(Translation& t) {
  t.take_all();
  t.order_matters();
  const Place duration = t.source(t.is_predicate(0) ? 1 : 0);
  t.emit(run_sleep, Control::Yield).a = duration;
}

}  // namespace simt::sass
