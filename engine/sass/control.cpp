/// Control flow: branches, calls, convergence barriers, CTA barriers, traps.
///
/// Each lane holds its own copy of the convergence barriers, so that a barrier that is used by several groups
/// of diverged lanes at once stays correct: B holds the lanes that go on together with this one.
#include <algorithm>
#include <bit>

#include "machine/calls.hpp"
#include "machine/cta.hpp"
#include "machine/fault.hpp"
#include "machine/grid.hpp"
#include "operations/builtins.hpp"
#include "operations/collectives.hpp"
#include "sass/instructions.hpp"
#include "sass/rows.hpp"

namespace simt::sass {

using functional::BarrierRequest;
using functional::Fault;

namespace {

void run_nothing(Context&, const Op&) {}

struct GuardDetail : Detail {
  Truth guard;
};
/// Whether the active lanes for which the guard holds are those in a, or others.
template <bool differ>
void run_compare_lanes(Context& c, const Op& op) {
  const uint32_t expected = row(c, op.a)[c.first_lane()] ^ static_cast<uint32_t>(op.immediate);
  const uint32_t lanes = op.details<GuardDetail>().guard.bits(c) & c.mask;
  write_predicate(c, op.destination, (lanes != expected) == differ ? ~0u : 0);
}

/// All lanes, if the guard holds for any.
void run_any(Context& c, const Op& op) {
  const uint32_t holds = op.details<GuardDetail>().guard.bits(c) & c.mask;
  write_predicate(c, op.destination, holds ? ~0u : 0);
}

struct AddressDetail : Detail {
  uint64_t base = 0;
  bool wide = false;
};

/// Jumps to a register plus a constant.
template <bool call>
void run_jump(Context& c, const Op& op) {
  const auto& d = op.details<AddressDetail>();
  const uint32_t* a = row(c, op.a);
  each_lane(c, [&](int i) {
    const auto lane = static_cast<uint32_t>(i);
    const uint64_t value =
        d.wide ? pair_at(a, lane) : static_cast<uint64_t>(int64_t{static_cast<int32_t>(a[lane])});
    if (call && value == 0) throw Fault("illegal address", "a call through a null pointer", i);
    c.jump[lane] = d.base + value;
  });
}

void jump(Translation& t, Place at, bool wide, uint64_t base, bool call = false) {
  if (call) t.calls_by_register();
  t.emit(call ? run_jump<true> : run_jump<false>, Control::Jump).a = at;
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

/// Instructions here may have a predicate as their first operand: lanes take part for which it holds, too.
///
/// BRA [p,] target. BRA.CONV [p,] [UR,] target: where the active lanes are those in UR, or all. BRA.DIV: all
/// active lanes branch if those for which the guard holds are not those in UR (ptxas has R2UR name those
/// whose member mask is another one, and excludes them by the guard). BRA.ANY: all lanes branch if the guard
/// holds for one.
void translate_bra(Translation& t) {
  if (t.operand_count() == 1) t.leaves();
  t.take("U");
  const bool any = t.take("ANY");
  t.take_one_of({"INC", "DEC"});
  const int by_lanes = t.take_one_of({"DIV", "CONV"});
  const uint32_t first = t.take_condition();
  if (by_lanes >= 0) {
    const bool has_mask = t.operand_count() > first + 1;
    const Flipped mask = has_mask ? Flipped(t, first) : Flipped();
    const bool diverged = by_lanes == 0;
    Op& test = t.emit(diverged ? run_compare_lanes<true> : run_compare_lanes<false>);
    const Truth guard = t.take_guard(test);
    const Place result = t.scratch(1);
    test.a = has_mask ? mask.place : t.constant({functional::full_mask});
    test.immediate = mask.flip;
    test.destination = result;
    t.detail<GuardDetail>().guard = diverged ? guard : Truth({t.constant({functional::full_mask}), false});
    if (!diverged) t.also_guarded_by({result, false});
    Op& op = branch(t, t.target(first + has_mask));
    if (!diverged) return;
    op.guard = result;
    op.guard_negated = false;
    return;
  }
  if (any) {
    Op& test = t.emit(run_any);
    const Truth guard = t.take_guard(test);
    const Place result = t.scratch(1);
    test.destination = result;
    t.detail<GuardDetail>().guard = guard;
    Op& op = branch(t, t.target(first));
    op.guard = result;
    op.guard_negated = false;
    return;
  }
  branch(t, t.target(first));
}

/// BRX a, offset: to the register plus the offset from the next instruction. BRXU: from a uniform register.
void translate_brx(Translation& t) {
  t.leaves();
  t.take_one_of({"INC", "DEC"});
  const uint32_t first = t.take_condition();
  const Place at = t.source(first);
  jump(t, at, false, t.code_address() + 16 + static_cast<uint64_t>(t.integer(first + 1)));
}

/// CALL.REL [a,] target, CALL.ABS a: to the target, or a register and the target. The callee finds in
/// registers where to return to. Pointers to functions are relative to the beginning of the kernel or of the
/// program, where no function is: 0 is null.
void translate_call(Translation& t) {
  t.take("NOINC");
  const uint32_t first = t.take_condition();
  const bool by_register = t.is(first, OperandKind::Register) || t.is(first, OperandKind::Uniform);
  const bool relative = t.take_one_of({"REL", "ABS"}, 0) == 0;
  if (!by_register) {
    branch(t, t.target(first));
  } else if (relative) {
    const uint64_t base = t.target(first + 1);
    jump(t, t.source(first), false, base, true);
  } else {
    jump(t, t.source(first, 2), true, 0, true);
  }
}

/// RET.REL a, base; RET.ABS a [, offset].
void translate_ret(Translation& t) {
  t.take("NODEC");
  t.leaves();
  const uint32_t first = t.take_condition();
  if (t.take_one_of({"REL", "ABS"}, 0) == 1) {
    const int64_t offset = t.operand_count() > first + 1 ? t.integer(first + 1) : 0;
    return jump(t, t.source(first, 2), true, static_cast<uint64_t>(offset));
  }
  const uint64_t base = t.target(first + 1);
  jump(t, t.source(first), false, base);
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
  t.emit(builtin->run, builtin->ordered ? Control::Deferred : Control::None).orders_memory = builtin->ordered;
  t.detail<functional::CallSite>() = site;
  return true;
}

void emit_system_return(Translation& t) {
  constexpr uint32_t return_register = 20;
  jump(t, t.general(return_register, 2, false), true, 0);
}

void translate_exit(Translation& t) {
  t.take_one_of({"KEEPREFCOUNT", "PREEMPTED"});
  t.take_condition();
  t.leaves();
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
  t.target(1);
  t.emit(run_bssy).destination = t.barrier(0);
}

void translate_bsync(Translation& t) {
  t.take_one_of({"RELIABLE", "RECONVERGENT"});
  const uint32_t first = t.take_condition();
  Op& op = t.emit(run_meeting, Control::Convergence);
  op.member_mask = t.barrier(first);
  op.immediate = 1 + t.operand(first).index;
}

void translate_break(Translation& t) {
  t.take_one_of({"RELIABLE", "RECONVERGENT"});
  const uint32_t first = t.take_condition();
  t.emit(run_break).destination = t.barrier(first);
}

namespace {

/// Each lane goes on at its own address when the collective code ends.
void run_enter_collective(Context& c, const Op& op) {
  const auto target = static_cast<uint64_t>(op.immediate);
  map_pairs(c, op.destination, [=](uint32_t) { return target; });
}

}  // namespace

/// WARPSYNC mask: the lanes in the mask meet; .EXCLUSIVE: those of different masks part. WARPSYNC.COLLECTIVE
/// mask, target: they meet although they may be at several of these, execute together what follows one of
/// them, which is the same at all and names the same registers, up to ENDCOLLECTIVE, and go on each at its
/// target.
void translate_warpsync(Translation& t) {
  const bool all = t.take("ALL"), exclusive = t.take("EXCLUSIVE");
  const bool collective = t.take("COLLECTIVE");
  const Place mask = all ? t.constant({functional::full_mask}) : t.source(0);
  if (collective) {
    const uint64_t target = t.target(all ? 0 : 1);
    Op& enter = t.emit(run_enter_collective);
    enter.destination = t.after_collective();
    enter.immediate = static_cast<int64_t>(target);
  }
  Op& op = t.emit(run_nothing, Control::Convergence);
  op.member_mask = mask;
  if (exclusive) op.immediate = functional::convergence_by_mask;
  if (collective) op.immediate = functional::convergence_in_common_code;
}

void translate_end_collective(Translation& t) {
  jump(t, t.after_collective(), true, 0);
}

/// ELECT p, d, candidates: p holds for the first of the lanes, whose number is d.
void translate_elect(Translation& t) {
  functional::CollectiveOperands operands;
  operands.predicate = t.predicate_destination(0);
  operands.a = functional::CollectiveOperands::Kind::Predicate;
  const Place to = t.operand(1).is_zero() ? place::none : t.destination(1);
  const PredicateOperand candidates = t.predicate(2);
  Op& op = t.emit(functional::run_elect);
  op.destination = to;
  op.a = candidates.place;
  op.immediate = candidates.negated;
  t.detail<functional::CollectiveOperands>() = operands;
}

namespace {

struct BarrierDetail : Detail {
  BarrierRequest request;
  Place id = place::none, threads = place::none;
  uint32_t threads_shift = 0;
  Truth predicate;
};

void run_barrier(Context& c, const Op& op) {
  const auto& d = op.details<BarrierDetail>();
  c.barrier = d.request;
  const auto lane = static_cast<uint32_t>(c.first_lane());
  if (d.id != place::none) c.barrier.id = row(c, d.id)[lane] & 0xf;
  if (d.threads != place::none) c.barrier.threads = row(c, d.threads)[lane] >> d.threads_shift;
  if (d.predicate.place != place::none) c.barrier.predicate = d.predicate.bits(c);
}

}  // namespace

/// BAR.SYNC id [, threads]; BAR.ARV id, threads; BAR.RED.op id [, threads], p. If both are registers, it is
/// one: with the barrier in bits 0 to 3 and the threads from bit 16 on.
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
    if (d.id != place::none && d.threads != place::none) {
      if (d.id != d.threads) t.unsupported("barrier and threads in two registers");
      d.threads_shift = 16;
    }
  }
  const bool known = d.id == place::none && d.threads == place::none;
  t.timed().immediate = known ? int64_t{d.request.id} : -1;
  t.timed().immediate2 = known ? d.request.threads : 0;
  if (next < t.operand_count()) d.predicate = t.predicate(next);
  Op& op = t.emit(run_barrier, Control::Barrier);
  op.awaits_cta = d.request.waits && d.request.threads == 0 && d.threads == place::none;
  if (kind == 2) op.destination = t.barrier_result(d.request.reduce == BarrierRequest::Reduce::Popcount);
  t.detail<BarrierDetail>() = d;
}

namespace {

void cluster_barrier(Translation& t, bool waits) {
  BarrierDetail d;
  d.request.cluster = true;
  d.request.waits = waits;
  t.emit(run_barrier, Control::Barrier);
  t.detail<BarrierDetail>() = d;
}

}  // namespace

/// UCGABAR_ARV: arrival at the barrier of the cluster.
void translate_cluster_arrive(Translation& t) {
  cluster_barrier(t, false);
}
/// UCGABAR_WAIT: waits there.
void translate_cluster_wait(Translation& t) {
  cluster_barrier(t, true);
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

/// USETMAXREG.DEALLOC n, USETMAXREG.TRY_ALLOC p, n: there are always registers enough.
void translate_set_registers(Translation& t) {
  if (t.take_one_of({"DEALLOC", "TRY_ALLOC"}) < 0) t.unsupported("this form");
  t.take("CTAPOOL");
  const bool tries = t.is_predicate(0);
  t.integer(tries ? 1 : 0);
  if (!tries) return translate_nothing(t);
  Op& op = t.emit(run_fetch_truth);
  op.destination = t.predicate_destination(0);
  op.a = t.constant({functional::full_mask});
}

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

/// Lanes that wait at a BSYNC for these lanes go on, so that lanes which spin on a lock let its owner
/// proceed. All others will meet at that barrier without them.
void run_yield(Context& c, const Op&) {
  const uint32_t yielding = c.mask;
  const auto& code = c.grid->program().code;
  const auto meets = [&](const functional::Warp::Split& s) {
    return s.state == functional::Warp::State::Convergence && code[s.pc].run == run_meeting;
  };
  for (const functional::Warp::Split& s : c.warp->splits()) {
    if (!meets(s)) continue;
    uint32_t* members = c.lanes<uint32_t>(code[s.pc].member_mask);
    if (!(members[std::countr_zero(s.waiting)] & yielding)) continue;
    uint32_t waiting = 0;
    for (const functional::Warp::Split& other : c.warp->splits())
      if (meets(other) && code[other.pc].immediate == code[s.pc].immediate) waiting |= other.waiting;
    for (uint32_t i = 0; i < warp_lanes; ++i) members[i] &= waiting >> i & 1 ? waiting : ~waiting;
  }
  c.warp->check_convergence();
}

/// Lanes that sleep let others proceed: from sm_80 on, ptxas no longer puts a YIELD before each NANOSLEEP.
void run_sleep(Context& c, const Op& op) {
  c.sleep = row(c, op.a)[c.first_lane()];
  c.yield = true;
  run_yield(c, op);
}

}  // namespace

void translate_trap(Translation& t) {
  t.take_all();
  t.emit(functional::run_trap);
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

/// NANOSLEEP a. .SYNCS: until an mbarrier changes, but not longer than a; here lanes only yield.
void translate_nanosleep(Translation& t) {
  if (t.take("SYNCS")) {
    t.source(0);
    t.emit(run_sleep, Control::Yield).a = t.constant({0});
    return;
  }
  t.take_all();
  t.order_matters();
  const Place duration = t.source(t.is_predicate(0) ? 1 : 0);
  t.emit(run_sleep, Control::Yield).a = duration;
}

}  // namespace simt::sass
