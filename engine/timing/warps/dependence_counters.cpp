#include "timing/warps/dependence_counters.hpp"

#include <algorithm>
#include <bit>

namespace simt {
namespace {

constexpr uint32_t uniform_begin = 0, predicates_begin = 64, general_begin = 80;
constexpr bool is_predicate(uint32_t i) {
  return i >= predicates_begin && i < general_begin;
}

// A raised counter is seen one cycle late.
constexpr Cycle seen_after = 2;

enum class PairHalf : uint8_t { None, Lower, Upper };
PairHalf half(const Register& r, uint32_t k) {
  return r.width != 2 ? PairHalf::None : k == r.index ? PairHalf::Lower : PairHalf::Upper;
}

/// Calls f(index, whole, half) for each 32-bit register, by its index in Warp::written; whole: it is the same
/// for all lanes; half: of a pair of registers.
template <class F>
void for_each_register(const std::array<Register, StaticInstruction::max_registers>& registers,
                       uint32_t count, F&& f) {
  for (uint32_t i = 0; i < count; ++i) {
    const Register& r = registers[i];
    switch (r.file) {
      case RegisterFile::General:
        for (uint32_t k = r.index; k < std::min<uint32_t>(r.index + r.width, 255); ++k)
          f(general_begin + k, false, half(r, k));
        break;
      case RegisterFile::Uniform:
        for (uint32_t k = r.index; k < std::min<uint32_t>(r.index + r.width, 63); ++k)
          f(uniform_begin + k, true, half(r, k));
        break;
      case RegisterFile::Predicate:
        if (r.index < 7) f(predicates_begin + r.index, false, PairHalf::None);
        break;
      case RegisterFile::UniformPredicate:
        if (r.index < 7) f(predicates_begin + 8 + r.index, true, PairHalf::None);
        break;
    }
  }
}

}  // namespace

void DependenceCounters::start(uint32_t w, uint32_t registers) {
  std::vector<Written> written = std::move(warps_[w].written);
  written.assign(general_begin + std::min(registers, 255u), {});
  warps_[w] = Warp{};
  warps_[w].written = std::move(written);
}

uint8_t DependenceCounters::held(uint32_t w, const IssueRule& rule) const {
  const Warp& warp = warps_[w];
  uint8_t found = warp.held & rule.waits;
  if (rule.limited != ControlBits::no_counter && warp.counts[rule.limited] > rule.limit)
    found |= static_cast<uint8_t>(1u << rule.limited);
  return found;
}

DependenceCounters::Wait DependenceCounters::wait(uint32_t w, const IssueRule& rule, Cycle now) {
  const Warp& warp = warps_[w];
  if (now < warp.next_issue) {
    check_at(w, warp.next_issue);
    return Wait::Stall;
  }
  uint8_t waits = held(w, rule);
  if (waits != 0 && now < warp.seen_from) {
    waits &= warp.held_before;
    check_at(w, warp.seen_from);
  }
  return waits == 0 ? Wait::None : Wait::Counter;
}

void DependenceCounters::raise(Warp& warp, uint32_t counter, const DecodedInstruction& instruction) {
  const auto bit = static_cast<uint8_t>(1u << counter);
  ++warp.counts[counter];
  ++warp.unfinished;
  warp.held |= bit;
  if (instruction.constant_load ||
      (instruction.memory_pipeline && instruction.fixed.space == MemorySpace::Shared))
    warp.short_held |= bit;
  else if (instruction.memory_pipeline || instruction.fixed.operation == Operation::AsyncCommit)
    warp.long_held |= bit;
}

int DependenceCounters::lead(const DecodedInstruction& reader, Writer writer) {
  const Operation operation = reader.fixed.operation;
  switch (writer) {
    case Writer::FixedLatency: {
      // There is no bypass from fixed-latency to memory instructions, which costs a cycle (section 5.3).
      // SYNCS reads its operands as arithmetic does.
      const bool on_mbarrier = operation == Operation::MbarrierArrive || operation == Operation::MbarrierWait;
      return reader.memory_pipeline && !on_mbarrier ? 1 : 0;
    }
    case Writer::Double:
      return reader.memory_pipeline ? -1 : reader.unit == Unit::Sfu ? -2 : 0;
    case Writer::Uniform:
      return reader.issue.uniform_lead;
    default:
      return 0;
  }
}

bool DependenceCounters::covered(const Warp& warp, const DecodedInstruction& instruction, uint64_t mask,
                                 Cycle now) const {
  const StaticInstruction& s = instruction.fixed;
  bool result = true;
  const IssueRule& rule = instruction.issue;
  for_each_register(s.sources, s.source_count, [&](uint32_t i, bool, PairHalf half) {
    if (i >= warp.written.size() || !(warp.written[i].lanes & mask)) return;
    const Written& written = warp.written[i];
    // Multiplications of a warp group wait for each other.
    if (written.by == Writer::WarpGroup && instruction.issue.warp_group) return;
    const Cycle read = now + (half == PairHalf::Upper ? rule.halves_apart : 0);
    if (written.ready + static_cast<Cycle>(lead(instruction, written.by)) > read) result = false;
  });
  if (instruction.variable_latency) return result;
  for_each_register(s.destinations, s.destination_count, [&](uint32_t i, bool, PairHalf) {
    if (i < warp.written.size() && warp.written[i].ready > now + rule.result_after &&
        (warp.written[i].lanes & mask))
      result = false;
  });
  return result;
}

bool DependenceCounters::issue(uint32_t w, const DecodedInstruction& instruction, uint64_t mask, Cycle now) {
  Warp& warp = warps_[w];
  const IssueRule& rule = instruction.issue;
  const bool result = mask == 0 || covered(warp, instruction, mask, now);
  warp.next_issue = now + rule.next;
  warp.held_before = warp.held;
  warp.seen_from = now + seen_after;
  if (rule.write_counter != ControlBits::no_counter) raise(warp, rule.write_counter, instruction);
  if (rule.read_counter != ControlBits::no_counter) raise(warp, rule.read_counter, instruction);
  if (rule.closes_group) raise(warp, IssueRule::group_counter, instruction);
  if (instruction.awaited) ++warp.unfinished;
  if (mask == 0) return result;
  const auto ready = [&](uint32_t i, PairHalf half) {
    if (instruction.variable_latency) return unknown;
    const uint32_t early = is_predicate(i)           ? rule.predicate_early
                           : half == PairHalf::Lower ? rule.halves_apart
                                                     : 0;
    return now + std::max<Cycle>(rule.result_after, early + 1) - early;
  };
  for_each_register(instruction.fixed.destinations, instruction.fixed.destination_count,
                    [&](uint32_t i, bool whole, PairHalf half) {
                      if (i >= warp.written.size()) return;
                      Written& written = warp.written[i];
                      if (written.ready <= now) written.lanes = 0;
                      written.lanes |= whole ? ~uint64_t{0} : mask;
                      written.ready = ready(i, half);
                      written.by = writer(instruction);
                    });
  return result;
}

void DependenceCounters::finish(uint32_t w, const DecodedInstruction& instruction, Cycle now) {
  Warp& warp = warps_[w];
  const IssueRule& rule = instruction.issue;
  --warp.unfinished;
  if (instruction.variable_latency)
    for_each_register(instruction.fixed.destinations, instruction.fixed.destination_count,
                      [&](uint32_t i, bool, PairHalf) {
                        if (i < warp.written.size() && warp.written[i].ready == unknown)
                          warp.written[i].ready = now + rule.result_delay;
                      });
  if (rule.closes_group) lower(w, IssueRule::group_counter);
  // The counter of LDGDEPBAR falls when the copies before it are complete.
  if (rule.write_counter != ControlBits::no_counter &&
      instruction.fixed.operation != Operation::AsyncCommit) {
    if (rule.result_delay == 0)
      lower(w, rule.write_counter);
    else
      lower_at(w, rule.write_counter, now + rule.result_delay);
  }
}

void DependenceCounters::lower(uint32_t w, uint32_t counter) {
  Warp& warp = warps_[w];
  --warp.unfinished;
  if (--warp.counts[counter] != 0) return;
  const auto others = static_cast<uint8_t>(~(1u << counter));
  warp.held &= others;
  warp.long_held &= others;
  warp.short_held &= others;
}

void DependenceCounters::lower_at(uint32_t w, uint32_t counter, Cycle at) {
  lowerings_[at % horizon].push_back({static_cast<uint8_t>(w), static_cast<uint8_t>(counter)});
  occupied_ |= uint64_t{1} << (at % horizon);
}

uint64_t DependenceCounters::take_due(Cycle now) {
  const uint32_t slot = now % horizon;
  uint64_t changed = checks_[slot];
  for (const Lowering& l : lowerings_[slot]) {
    lower(l.warp, l.counter);
    changed |= uint64_t{1} << l.warp;
  }
  checks_[slot] = 0;
  lowerings_[slot].clear();
  occupied_ &= ~(uint64_t{1} << slot);
  return changed;
}

Cycle DependenceCounters::next_due(Cycle now) const {
  if (occupied_ == 0) return ~Cycle{0};
  return now + 1 +
         static_cast<Cycle>(std::countr_zero(std::rotr(occupied_, static_cast<int>((now + 1) % horizon))));
}

}  // namespace simt
