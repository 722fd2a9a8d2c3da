#include "machine/executor.hpp"

#include <algorithm>
#include <bit>

#include "machine/calls.hpp"
#include "machine/clock_wait.hpp"
#include "machine/lanes.hpp"

namespace simt::functional {
namespace {

constexpr uint32_t deepest_frames = 16u << 20;  ///< bytes of registers per warp, for all active calls

}  // namespace

Executor::Executor(Grid& grid, bool concurrent)
    : grid_(grid), code_(grid.program().code.data()), machine_code_(grid.program().is_machine_code()) {
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("f16c"))
    throw std::runtime_error(
        "executing kernels needs a processor with AVX2, FMA and F16C (x86-64 of 2013 and later)");
#endif
  context_.grid = &grid;
  context_.memory = &grid.memory();
  context_.concurrent = concurrent;
  observer_ = context_.observer = grid.observer();
  context_.tracker = grid.tracker();
  context_.without_products = grid.without_products();
  if (observer_) watched_ = observer_->watched(grid).data();
  if (machine_code_) context_.first_rank = 0;
  context_.banks[1] =
      const_cast<std::byte*>(reinterpret_cast<const std::byte*>(grid.program().constants.data()));
  context_.banks[3] = grid.launch_bank();
}

void Executor::enter(Cta& cta, Warp& warp) {
  cta_ = &cta;
  warp_ = &warp;
  context_.cta = &cta;
  context_.warp = &warp;
  context_.banks[2] = grid_.thread_bank(warp.number());
  if (machine_code_) context_.own_shared = uint64_t{cta.rank()} << window::rank_shift;
  if (observer_) observer_->enters(context_);
}

void Executor::load(const Warp::Split& split) {
  context_.banks[0] = warp_->frame(split);
  context_.stack = split.stack;
}

Executor::Stop Executor::run(Cta& cta, Warp& warp, uint64_t budget, uint32_t* counts) {
  if (observer_) return run_counting<false, false, true>(cta, warp, budget, counts);
  if (context_.tracker) {
    if (recorder_) return run_counting<true, true, false, true>(cta, warp, budget, counts);
    return lowering_ ? run_counting<true, false, false, true>(cta, warp, budget, counts)
                     : run_counting<false, false, false, true>(cta, warp, budget, counts);
  }
  if (recorder_) return run_counting<true, true>(cta, warp, budget, counts);
  return lowering_ ? run_counting<true, false>(cta, warp, budget, counts)
                   : run_counting<false, false>(cta, warp, budget, counts);
}

void Executor::record_footprint(uint32_t pc) {
  const Lowering::Range& range = lowering_->of_op[pc];
  if (range.access == UINT32_MAX) return;
  if (access_.bulk) {
    const std::vector<uint64_t>& parts = access_.bulk_parts;
    recorder_->add(range.first + range.access, parts.data(), static_cast<uint32_t>(parts.size()),
                   access_.bulk_bytes);
    return;
  }
  std::array<uint64_t, warp_lanes> addresses;
  uint32_t count = 0;
  for (uint32_t rest = access_.mask; rest; rest &= rest - 1)
    addresses[count++] = access_.address[static_cast<size_t>(std::countr_zero(rest))];
  recorder_->add(range.first + range.access, addresses.data(), count, 0);
}

template <bool count_timed, bool follows, bool observes, bool tracks>
Executor::Stop Executor::run_counting(Cta& cta, Warp& warp, uint64_t budget, uint32_t* counts) {
  enter(cta, warp);
  context_.record = follows || observes ? &access_ : nullptr;
  context_.deferred = nullptr;
  context_.ticks = &ticks_;
  uint64_t executed = 0, lanes = 0;
  const auto stop = [&](Stop why) {
    warp_instructions += executed;
    thread_instructions += lanes;
    ticks_ += executed;
    return why;
  };
  uint32_t pc = 0;
  try {
    while (Warp::Split* split = warp.current()) {
      load(*split);
      pc = split->pc;
      const uint32_t mask = split->mask, meeting = split->meeting_pc, begin = pc;
      for (;;) {
        const Op& op = code_[pc];
        if constexpr (tracks) context_.op = &op;
        uint32_t executing = mask;
        if (op.guard != place::none) {
          const uint32_t p = context_.predicate(op.guard);
          executing &= op.guard_negated ? ~p : p;
        }
        ++executed;
        lanes += static_cast<uint32_t>(std::popcount(executing));
        if constexpr (follows || observes) {
          access_.mask = 0;
          access_.bulk = false;
        }
        uint8_t watch = 0;
        if constexpr (observes)
          if (executing || observer_->everything) {
            watch = observer_->everything ? Observer::Before | Observer::After : watched_[pc];
            if (watch & Observer::Before) {
              context_.mask = executing;
              observer_->before(context_, op, pc);
            }
          }
        if (op.control == Control::None) [[likely]] {
          if (executing) {
            context_.mask = executing;
            op.run(context_, op);
            if constexpr (observes)
              if (watch & Observer::After) observer_->after(context_, op, pc);
          }
          if constexpr (count_timed) count_op(pc, executing);
          if constexpr (follows)
            if (access_.mask) record_footprint(pc);
          if (++pc != meeting && executed < budget) continue;
          if (counts) blocks_->count(begin, pc, counts);
          warp.go_to(pc);
          if (executed >= budget) return stop(Stop::Budget);
          break;
        }
        split->pc = pc;
        executed_ = true;
        const bool go_on = control(op, executing, *split);
        if constexpr (observes)
          if (executed_ && (watch & Observer::After)) observer_->after(context_, op, pc);
        // An op whose lanes diverge, or that waits for others, is executed later.
        if (counts) blocks_->count(begin, executed_ ? pc + 1 : pc, counts);
        if constexpr (follows)
          if (executed_ && access_.mask) record_footprint(pc);
        if (count_timed && executed_) count_op(pc, gathers(op) && executing ? context_.mask : executing);
        if (!go_on) return stop(Stop::Yield);
        if constexpr (!observes)
          if (op.clock_use.kind == ClockUse::Wait && executed < budget) {
            const auto& wait = op.details<ClockWait>();
            const auto skipped = wait_for_clock(wait, (budget - executed - 1) / wait.ops(), counts);
            executed += skipped.warp_instructions;
            lanes += skipped.thread_instructions;
          }
        if (executed >= budget) return stop(warp.finished() ? Stop::Finished : Stop::Budget);
        break;
      }
    }
  } catch (const Fault& fault) {
    throw located(fault, grid_, cta_, warp_, pc);
  }
  return stop(warp.finished() ? Stop::Finished : Stop::Blocked);
}

/// Skips at most `most` iterations of a loop, if the warp is at its beginning. The Ops that they execute.
InstructionCounts Executor::wait_for_clock(const ClockWait& wait, uint64_t most, uint32_t* counts) {
  Warp& warp = *warp_;
  const Warp::Split* split = warp.current();
  if (!split || split->pc != wait.first || warp.may_wait() ||
      (split->meeting_pc > wait.first && split->meeting_pc <= wait.last))
    return {};
  load(*split);
  context_.mask = split->mask;
  const uint64_t times = wait.skip(context_, code_, most);
  if (times == 0) return {};
  warp.count_idle(times);
  controls_ += times * wait.branches;
  const auto lanes = static_cast<uint64_t>(std::popcount(split->mask));
  uint64_t ops = 0;  // that lanes execute, of an iteration
  InstructionCounts each;
  for (uint32_t at = wait.first, begin = at; at <= wait.last; ++at) {
    const bool branches = code_[at].control == Control::Branch, executes = !branches || at == wait.last;
    ops += executes;
    if (lowering_) {
      const uint64_t n = lowering_->of_op[at].count;
      each += {n, executes ? n * lanes : 0};
    }
    if (!branches) continue;
    if (counts) blocks_->count(begin, at + 1, counts, static_cast<uint32_t>(times));
    begin = at + 1;
  }
  timed += {times * each.warp_instructions, times * each.thread_instructions};
  return {times * wait.ops(), times * ops * lanes};
}

void Executor::branch_indirect(const Op& op, uint32_t mask, const Warp::Split& split) {
  Warp& warp = *warp_;
  const auto& table = op.details<BranchTable>();
  const int lane = context_.first_lane();
  const uint32_t* index = context_.lanes<uint32_t>(op.a);
  if (index[lane] >= table.targets.size())
    throw Fault(
        "illegal instruction",
        "branch to target " + std::to_string(index[lane]) + " of " + std::to_string(table.targets.size()),
        lane);
  uint32_t same = 0;
  each_lane(context_, [&](int i) { same |= uint32_t{index[i] == index[lane]} << i; });
  const uint32_t target = table.targets[index[lane]];
  if (same == mask)
    warp.go_to(target);
  else
    warp.diverge(same, target, split.pc, op.reconvergence);
  warp.count(false);
}

void Executor::jump(const Op& op, uint32_t mask, const Warp::Split& split) {
  op.run(context_, op);
  const uint64_t address = context_.jump[context_.first_lane()];
  uint32_t same = 0;
  each_lane(context_, [&](int i) { same |= uint32_t{context_.jump[i] == address} << i; });
  const uint32_t target = op_at(grid_.program(), address);
  if (target == UINT32_MAX)
    throw Fault("illegal instruction",
                "jump to " + hex(address) + ", which is not the address of a function or of other code",
                context_.first_lane());
  if (same == mask)
    warp_->go_to(target);
  else
    warp_->diverge(same, target, split.pc, UINT32_MAX);
  warp_->count(false);
}

void Executor::call(const Op& op, const Warp::Split& split) {
  Warp& warp = *warp_;
  const CallSite& site = op.details<CallSite>();
  const Program& program = grid_.program();
  const CallTarget target = find_callee(context_, op, program);
  const FunctionCode& caller = program.functions[program.origins[split.pc].function];
  const FunctionCode& callee = program.functions[target.function];
  const auto whole_lines = [](const FunctionCode& f) { return (f.frame_bytes + 63u) & ~63u; };
  const uint32_t frame = warp.free_frame(split.frame + whole_lines(caller), [&](uint32_t at) {
    return whole_lines(program.functions[program.origins[at].function]);
  });
  const uint32_t stack_bytes = (caller.stack_bytes + 15u) & ~15u;
  const uint32_t callee_stack = split.stack + stack_bytes;
  const uint64_t stack_needed = uint64_t{callee_stack} + callee.stack_bytes;
  if (stack_needed + warp.dynamic_stack(target.lanes) > grid_.local_bytes() ||
      frame + callee.frame_bytes > deepest_frames)
    throw Fault("stack overflow",
                "the call of `" + callee.name + "` needs " + std::to_string(stack_needed) +
                    " bytes of stack; a thread has " + std::to_string(grid_.local_bytes()) +
                    ", and its warp " + std::to_string(deepest_frames >> 20) + " MiB for registers",
                context_.first_lane());
  context_.mask = target.lanes;
  pass_arguments(context_, site, callee, callee_stack);
  warp.reserve_frames(frame + callee.frame_bytes);
  warp.call(target.lanes, callee.first, split.pc, split.pc + 1, frame, stack_bytes, &op);
}

bool Executor::control(const Op& op, uint32_t mask, Warp::Split& split) {
  Warp& warp = *warp_;
  const uint32_t pc = split.pc, next = pc + 1;
  ++controls_;
  if (mask == 0) {
    warp.go_to(next);
    return true;
  }
  context_.mask = mask;
  const bool alone = mask == split.mask;
  const auto needs_all_lanes = [&] {
    return op.control == Control::BranchIndirect || op.control == Control::Call ||
           op.control == Control::Barrier || op.control == Control::Jump ||
           op.control == Control::Convergence;
  };
  if (!alone && needs_all_lanes()) {
    // The lanes that execute it become a separate split, which returns here.
    const bool meets = op.control == Control::Call || (op.control == Control::Barrier && !machine_code_);
    warp.diverge(mask, pc, next, meets ? next : op.reconvergence);
    executed_ = false;
    return true;
  }
  switch (op.control) {
    case Control::None:
      break;
    case Control::Branch:
      if (alone)
        warp.go_to(op.target);
      else
        warp.diverge(mask, op.target, next, op.reconvergence);
      warp.count(false);
      break;
    case Control::BranchIndirect:
      branch_indirect(op, mask, split);
      break;
    case Control::Jump:
      jump(op, mask, split);
      break;
    case Control::Call:
      call(op, split);
      break;
    case Control::Return:
      if (split.call != UINT32_MAX) {
        const Program& program = grid_.program();
        const Warp::Meeting& call = warp.innermost_call(split);
        return_results(context_, call.call_op->details<CallSite>(),
                       program.functions[program.origins[pc].function], split.stack, call.stack);
        warp.ret(mask, next);
        break;
      }
      [[fallthrough]];
    case Control::Exit:
      warp.exit(mask, next);
      if (observer_) observer_->exits(*cta_, warp);
      cta_->exited(context_, warp);
      break;
    case Control::Barrier:
      barrier(op, mask, split);
      break;
    case Control::Collective:
      collective(op, mask, split);
      break;
    case Control::Convergence:
      converge(op, mask, split);
      break;
    case Control::Yield:
      context_.yield = false;
      op.run(context_, op);
      warp.go_to(next);
      warp.count(true);
      return !context_.yield;
    case Control::Deferred:
      op.run(context_, op);
      warp.go_to(next);
      warp.count(true);
      return !(yields_when_polling_ && op.destination != place::none && polls(pc));
  }
  return true;
}

/// Of the first lane that accesses memory: machine code has one for all of them.
uint32_t Executor::policy_of(const Op& op, uint32_t mask) const {
  if (mask == 0) return 0;
  const auto lane = static_cast<size_t>(std::countr_zero(mask));
  const auto* words = context_.lanes<const uint32_t>(op.policy);
  return op.policy_is_wide ? words[2 * lane + 1] : words[lane];
}

Executor::Step Executor::step(Cta& cta, Warp& warp, AccessRecord* record, DeferredAccess* deferred,
                              uint64_t cycle) {
  enter(cta, warp);
  context_.record = record;
  context_.deferred = deferred;
  context_.ticks = nullptr;
  context_.cycle = cycle;
  Step result;
  Warp::Split* split = warp.current();
  if (!split) return result;
  load(*split);
  const uint32_t pc = split->pc;
  const Op& op = code_[pc];
  result.op = pc;
  result.mask = split->mask;
  if (op.guard != place::none) {
    const uint32_t p = context_.predicate(op.guard);
    result.mask &= op.guard_negated ? ~p : p;
  }
  result.frame = split->frame;
  result.stack = split->stack;
  record->mask = 0;
  record->bulk = false;
  record->nothing = false;
  record->mbarrier = 0;
  record->policy = op.policy == place::none ? 0 : policy_of(op, result.mask);
  record->weak = op.control != Control::Deferred;
  deferred->perform = nullptr;
  deferred->of_clock = false;
  deferred->op = &op;
  context_.op = &op;
  executed_ = true;
  try {
    if (op.control == Control::None) {
      context_.mask = result.mask;
      if (result.mask) op.run(context_, op);
      warp.go_to(pc + 1);
    } else {
      control(op, result.mask, *split);
      if (gathers(op) && executed_ && result.mask) result.mask = context_.mask;
    }
  } catch (const Fault& fault) {
    throw located(fault, grid_, cta_, warp_, pc);
  }
  result.executed = executed_;
  if (!executed_) return result;
  ++warp_instructions;
  thread_instructions += static_cast<uint32_t>(std::popcount(result.mask));
  return result;
}

void Executor::perform(Cta& cta, Warp& warp, DeferredAccess& access, std::byte* frame, uint32_t stack) {
  enter(cta, warp);
  context_.record = nullptr;
  context_.deferred = nullptr;
  context_.banks[0] = frame;
  context_.stack = stack;
  context_.mask = access.mask;
  context_.op = access.op;
  try {
    access.perform(context_, access);
  } catch (const Fault& fault) {
    throw located(fault, grid_, cta_, warp_, static_cast<uint32_t>(access.op - code_));
  }
}

namespace {

/// The Op of machine code that called a function of the system: where that one's last Op returns to, less one
/// instruction.
uint32_t calls_system(const Program& program, const Warp& warp, uint32_t lane) {
  const auto* address = reinterpret_cast<const uint32_t*>(warp.frame_at(program.code.back().a));
  return op_at(program, (address[lane] | uint64_t{address[lane + warp_lanes]} << 32) - instruction_bytes);
}

}  // namespace

ProgramFault located(const Fault& fault, const Grid& grid, const Cta* cta, const Warp* warp, uint32_t op) {
  const Program& program = grid.program();
  const uint32_t lane = fault.lane >= 0         ? static_cast<uint32_t>(fault.lane)
                        : warp && warp->alive() ? static_cast<uint32_t>(std::countr_zero(warp->alive()))
                                                : 0;
  if (warp && op >= program.system_code)
    if (const uint32_t call = calls_system(program, *warp, lane); call != UINT32_MAX) op = call;
  const InstructionPlace place = program.where(op);
  const auto& block = grid.config().block;
  const uint32_t thread = (warp ? warp->number() : 0) * warp_lanes + lane;
  const std::array<uint32_t, 3> t{thread % block[0], thread / block[0] % block[1],
                                  thread / block[0] / block[1]};
  const auto dim = [](const std::array<uint32_t, 3>& d) {
    return "(" + std::to_string(d[0]) + "," + std::to_string(d[1]) + "," + std::to_string(d[2]) + ")";
  };
  std::string text = fault.kind + " in kernel `" + grid.kernel().name + "`";
  if (cta) text += ", block " + dim(cta->index());
  if (warp) text += ", thread " + dim(t);
  text += ": " + std::string(fault.what()) + "\n  at " + place.position + ": " + program.text(op);
  if (place.source_line)
    text += "\n  from " + (place.file.empty() ? "source" : std::string(place.file)) + ":" +
            std::to_string(place.source_line);
  const FunctionCode& function = program.functions[program.origins[op].function];
  const std::string_view called = function.entry ? program.called_function(op) : function.name;
  if (!called.empty()) text += "\n  in function `" + std::string(called) + "`";
  ProgramFault result(text);
  result.kind = fault.kind;
  result.kernel = grid.kernel().name;
  result.instruction = program.text(op);
  result.source_file = std::string(place.file);
  result.source_line = place.source_line;
  result.ptx_line = place.line;
  result.launch = grid.config().id;
  for (int i = 0; i < 3; ++i) {
    result.cta[i] = cta ? cta->index()[i] : 0;
    result.thread[i] = t[i];
  }
  result.address = fault.address;
  result.has_address = fault.has_address;
  return result;
}

namespace {

/// Describes where the threads of these CTAs wait, and how many have exited.
std::string who_waits(const Program& program, const std::vector<Cta*>& ctas) {
  struct Waiting {
    uint32_t op, threads = 0;
    std::vector<uint32_t> warps;
  };
  std::vector<Waiting> places;
  uint32_t exited = 0;
  for (Cta* cta : ctas) {
    for (const Warp& warp : cta->warps()) {
      exited += static_cast<uint32_t>(std::popcount(warp.lanes() & ~warp.alive()));
      for (const Warp::Split& split : warp.splits()) {
        const uint32_t op = split.waits_at();
        auto it =
            std::find_if(places.begin(), places.end(), [&](const Waiting& place) { return place.op == op; });
        if (it == places.end()) it = places.insert(places.end(), Waiting{op, 0, {}});
        it->threads += static_cast<uint32_t>(std::popcount(split.mask));
        if (it->warps.empty() || it->warps.back() != warp.number()) it->warps.push_back(warp.number());
      }
    }
  }
  std::string text;
  for (const Waiting& place : places) {
    text += (text.empty() ? "" : ", ") + std::to_string(place.threads) + " threads of warp";
    constexpr size_t most = 8;
    for (size_t k = 0; k < std::min(most, place.warps.size()); ++k)
      text += " " + std::to_string(place.warps[k]);
    text += (place.warps.size() > most ? " ... wait at `" : " wait at `") + program.text(place.op) + "`";
  }
  if (exited) text += ", " + std::to_string(exited) + " have exited";
  return text;
}

}  // namespace

void deadlocked(Grid& grid, const std::vector<Cta*>& ctas) {
  for (Cta* cta : ctas) {
    for (Warp& warp : cta->warps()) {
      for (const Warp::Split& split : warp.splits()) {
        const bool collective = split.state == Warp::State::Collective;
        const Fault fault(collective ? "divergent warp operation" : "divergent barrier",
                          (collective ? "lanes named by its member mask never arrive: "
                                      : "threads it waits for never arrive: ") +
                              who_waits(grid.program(), ctas),
                          std::countr_zero(split.mask));
        throw located(fault, grid, cta, &warp, split.waits_at());
      }
    }
  }
  throw ProgramFault("kernel `" + grid.kernel().name + "`: no warp can go on");
}

void waits_without_end(Grid& grid, const std::vector<Cta*>& ctas) {
  for (Cta* cta : ctas) {
    for (Warp& warp : cta->warps()) {
      for (const Warp::Split& split : warp.splits()) {
        const Fault fault("endless wait",
                          "its warps only repeat themselves, as if they waited for memory to change, which "
                          "no kernel and no other thread of the program can do: " +
                              who_waits(grid.program(), ctas),
                          std::countr_zero(split.mask));
        throw located(fault, grid, cta, &warp, split.waits_at());
      }
    }
  }
  throw ProgramFault("kernel `" + grid.kernel().name + "`: no warp is left");
}

}  // namespace simt::functional
