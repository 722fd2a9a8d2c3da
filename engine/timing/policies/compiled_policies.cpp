#include "timing/policies/compiled_policies.hpp"

#include <bit>
#include <cstring>

#include "timing/memory/hash.hpp"
#include "timing/memory/replacement.hpp"
#include "timing/policies/policy_library.hpp"
#include "timing/schedulers/warp_scheduler.hpp"

namespace simt::compiled {
namespace {

/// Bytes that are aligned as Numba expects, and begin with two numbers.
class State {
 public:
  State(const std::vector<uint8_t>& first, uint32_t a, uint32_t b) : words_((first.size() + 7) / 8) {
    std::memcpy(words_.data(), first.data(), first.size());
    const uint32_t numbers[] = {a, b};
    std::memcpy(words_.data(), numbers, sizeof numbers);
  }
  void* data() { return words_.data(); }

 private:
  std::vector<uint64_t> words_;
};

void check(const std::string& name, int32_t result, const char* of) {
  if (result == raised) throw PolicyFault(name + ": " + of + " raised an exception");
}

class CompiledScheduler final : public WarpScheduler {
 public:
  CompiledScheduler(const std::string& name, const SchedulerFunctions& functions, const Setup& setup)
      : WarpScheduler(setup),
        name_(name),
        functions_(functions),
        state_(functions.state, setup.sm, setup.scheduler),
        rows_(setup.positions) {}

  int32_t choose(uint64_t candidates, uint64_t cycle) override {
    const SchedulerMasks& m = warps_.masks();
    const uint64_t waiting = m.waiting();
    for (uint32_t p = 0; p < positions_; ++p) {
      WarpRow& row = rows_[p];
      row.age = warps_.age(p);
      row.ready = static_cast<uint8_t>(candidates >> p & 1);
      row.resident = static_cast<uint8_t>(m.resident >> p & 1);
      row.waits_memory = static_cast<uint8_t>(m.blocked_long >> p & 1);
      row.waits_other = static_cast<uint8_t>(waiting >> p & 1);
    }
    for (uint64_t rest = functions_.facts ? candidates : 0; rest; rest &= rest - 1)
      fill(static_cast<uint32_t>(std::countr_zero(rest)));
    const auto count = static_cast<int32_t>(positions_);
    const int32_t chosen =
        functions_.choose(state_.data(), rows_.data(), count, static_cast<int32_t>(last_), cycle);
    if (chosen >= 0 && chosen < count && (candidates >> chosen & 1)) return chosen;
    if (chosen == none) return none;
    check(name_, chosen, "choose");
    throw PolicyFault(name_ + ": it chose warp " + std::to_string(chosen) +
                      ", expected one that is ready, or -1");
  }
  uint64_t asks_again(uint64_t cycle) const override { return cycle + 1; }

  void l1_accessed(uint32_t position, const L1Access& a) override {
    if (functions_.l1_accessed)
      check(name_,
            functions_.l1_accessed(state_.data(), static_cast<int32_t>(position), a.address, a.pc, a.hit,
                                   a.write, a.cycle),
            "l1_accessed");
  }
  void l1_evicted(uint32_t position, uint64_t line_address, uint64_t cycle) override {
    if (functions_.l1_evicted)
      check(name_, functions_.l1_evicted(state_.data(), static_cast<int32_t>(position), line_address, cycle),
            "l1_evicted");
  }

 private:
  void fill(uint32_t position) {
    const WarpFacts facts = warps_.facts(position);
    WarpRow& row = rows_[position];
    row.pc = facts.pc;
    row.issued = facts.issued;
    row.unit = static_cast<uint8_t>(facts.unit);
    row.operation = static_cast<uint8_t>(facts.operation);
    row.space = static_cast<uint8_t>(facts.space);
    row.cta = facts.cta_slot;
    row.index_in_cta = facts.index_in_cta;
  }

  std::string name_;
  SchedulerFunctions functions_;
  State state_;
  std::vector<WarpRow> rows_;
};

class CompiledReplacement final : public Replacement {
 public:
  CompiledReplacement(const std::string& name, const ReplacementFunctions& functions, const CacheShape& shape)
      : name_(name),
        functions_(functions),
        state_(functions.state, shape.sets, shape.ways),
        ways_(shape.ways),
        words_((functions.line.size() + 7) / 8),
        lines_(shape.lines() * words_) {
    for (uint32_t line = 0; line < shape.lines(); ++line)
      std::memcpy(&lines_[line * words_], functions.line.data(), functions.line.size());
  }

  void allocated(uint32_t line, const LineUse& use) override {
    lines_[line * words_] = lines_[line * words_ + 1] = use.time;
    if (functions_.allocated) tell(functions_.allocated, "allocated", line, use);
  }
  void used(uint32_t line, const LineUse& use) override {
    lines_[line * words_] = use.time;
    if (functions_.used) tell(functions_.used, "used", line, use);
  }
  int32_t victim(uint32_t first, std::span<const uint8_t> evictable) const override {
    const int32_t way =
        functions_.victim(state_.data(), &lines_[first * words_], evictable.data(),
                          static_cast<int32_t>(evictable.size()), static_cast<int32_t>(first / ways_));
    const bool possible = way >= 0 && static_cast<size_t>(way) < evictable.size();
    if (way == none || (possible && evictable[static_cast<size_t>(way)])) return way;
    check(name_, way, "victim");
    throw PolicyFault(name_ + ": it chose way " + std::to_string(way) +
                      ", expected one that is evictable, or -1");
  }

 private:
  void tell(ReplacementFunctions::Event event, const char* of, uint32_t line, const LineUse& use) {
    const uint32_t set = line / ways_;
    check(name_,
          event(state_.data(), &lines_[set * ways_ * words_], static_cast<int32_t>(ways_),
                static_cast<int32_t>(set), static_cast<int32_t>(line - set * ways_), use.line_address, use.pc,
                use.write, use.time),
          of);
  }

  std::string name_;
  ReplacementFunctions functions_;
  mutable State state_;
  uint32_t ways_;
  size_t words_;                         // of a line
  mutable std::vector<uint64_t> lines_;  // set by set
};

/// Without the suffix that tells apart policies of one name.
std::string shown(const char* kind, const std::string& name) {
  return std::string(kind) + " " + name.substr(0, name.find('@'));
}

}  // namespace

void add_scheduler(const std::string& name, const std::string& meaning, const SchedulerFunctions& functions) {
  SchedulerPolicy policy;
  policy.observes_l1 = functions.l1_accessed || functions.l1_evicted;
  policy.make = [text = shown(SchedulerPolicy::kind, name), functions](const WarpScheduler::Setup& setup) {
    return std::make_unique<CompiledScheduler>(text, functions, setup);
  };
  policy.meaning = meaning;
  Registered<SchedulerPolicy>::add(name, policy);
}

void add_replacement(const std::string& name, const std::string& meaning,
                     const ReplacementFunctions& functions) {
  ReplacementPolicy policy;
  policy.renewed_by_use = true;
  policy.make = [text = shown(ReplacementPolicy::kind, name), functions](const CacheShape& shape) {
    return std::make_unique<CompiledReplacement>(text, functions, shape);
  };
  policy.meaning = meaning;
  Registered<ReplacementPolicy>::add(name, policy);
}

void add_slice_hash(const std::string& name, const std::string& meaning, SliceHashFunction function) {
  SliceHash policy{};
  policy.of_address = function;
  policy.slice_of = [](const SliceCount& n, const SliceAddress& a) {
    const int32_t chosen = n.of_address(a.whole, static_cast<int32_t>(n.slices));
    if (chosen >= 0 && static_cast<uint32_t>(chosen) < n.slices) return static_cast<uint32_t>(chosen);
    check("slice_hash", chosen, "the function");
    throw PolicyFault("slice_hash: the function returned " + std::to_string(chosen) +
                      ", expected 0 to slices - 1 = " + std::to_string(n.slices - 1));
  };
  policy.meaning = meaning;
  Registered<SliceHash>::add(name, policy);
}

}  // namespace simt::compiled
