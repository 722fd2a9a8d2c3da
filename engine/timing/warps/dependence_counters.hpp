#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "timing/base/request.hpp"
#include "timing/warps/decoded_kernel.hpp"

namespace simt {

/// Stall counts and dependence counters of the warps that run machine code, one SM's: Huerta et al., MICRO
/// 2025, section 4. Other warps have no state here.
class DependenceCounters {
 public:
  explicit DependenceCounters(uint32_t warp_slots) : warps_(warp_slots) {}

  void start(uint32_t w, uint32_t registers);

  enum class Wait : uint8_t { None, Stall, Counter };
  /// Why the warp cannot issue an instruction in cycle `now`. It is among the warps of take_due() in the
  /// cycle when a stall ends.
  Wait wait(uint32_t w, const IssueRule& rule, Cycle now);
  /// The instructions that hold the counters for which a warp waits access global or local memory, or shared
  /// memory.
  bool waits_for_long(uint32_t w, const IssueRule& rule) const { return warps_[w].long_held & held(w, rule); }
  bool waits_for_short(uint32_t w, const IssueRule& rule) const {
    return warps_[w].short_held & held(w, rule);
  }
  bool waits_for_group(uint32_t w, const IssueRule& rule) const {
    return held(w, rule) >> IssueRule::group_counter & 1;
  }

  /// The instruction issues for the lanes in `mask`. Returns whether its control bits cover its dependences:
  /// no register that it reads or writes is about to be written, as far as the latencies are known.
  bool issue(uint32_t w, const DecodedInstruction& instruction, uint64_t mask, Cycle now);
  /// Delays the warp's next instruction, as the one that has just issued has been delayed.
  void delay(uint32_t w, uint32_t cycles) { warps_[w].next_issue += cycles; }
  /// The instruction's operands are read in cycle `at`.
  void operands_read(uint32_t w, const IssueRule& rule, Cycle at) {
    if (rule.read_counter != ControlBits::no_counter) lower_at(w, rule.read_counter, at);
  }
  /// The instruction's result is written.
  void finish(uint32_t w, const DecodedInstruction& instruction, Cycle now);
  /// Lowers a counter.
  void lower(uint32_t w, uint32_t counter);

  bool due(Cycle now) const { return occupied_ >> (now % horizon) & 1; }
  /// Lowers the counters that are due; bit per warp slot for which something may have changed.
  uint64_t take_due(Cycle now);
  /// First cycle after `now` in which something is due; ~0 if none.
  Cycle next_due(Cycle now) const;
  /// Whether an instruction of the warp still has to read its operands or to write its result.
  bool unfinished(uint32_t w) const { return warps_[w].unfinished != 0; }

 private:
  static constexpr uint32_t horizon = 64;  ///< largest distance into the future, in cycles
  enum class Writer : uint8_t { FixedLatency, Double, Uniform, UniformMove, VariableLatency, WarpGroup };
  struct Written {
    Cycle ready = 0;  ///< from then on, instructions can read it; `unknown` while that is not known
    uint64_t lanes = 0;
    Writer by = Writer::FixedLatency;
  };
  static constexpr Cycle unknown = ~Cycle{0};
  static Writer writer(const DecodedInstruction& instruction) {
    if (instruction.issue.warp_group) return Writer::WarpGroup;
    if (instruction.variable_latency) return Writer::VariableLatency;
    if (instruction.issue.reaches_all) return Writer::UniformMove;
    if (instruction.fixed.unit == Unit::Uniform) return Writer::Uniform;
    return instruction.unit == Unit::Fp64 ? Writer::Double : Writer::FixedLatency;
  }
  struct Warp {
    Cycle next_issue = 0;
    std::array<uint16_t, IssueRule::counters> counts{};
    uint8_t held = 0;         ///< bit per counter that is not 0
    uint8_t held_before = 0;  ///< without those raised last, which are seen from `seen_from` on
    uint8_t long_held = 0, short_held = 0;
    Cycle seen_from = 0;
    uint32_t unfinished = 0;
    std::vector<Written> written{};  ///< by register
  };
  struct Lowering {
    uint8_t warp, counter;
  };

  void raise(Warp& warp, uint32_t counter, const DecodedInstruction& instruction);
  void lower_at(uint32_t w, uint32_t counter, Cycle at);
  void check_at(uint32_t w, Cycle at) {
    checks_[at % horizon] |= uint64_t{1} << w;
    occupied_ |= uint64_t{1} << (at % horizon);
  }
  uint8_t held(uint32_t w, const IssueRule& rule) const;
  /// Cycles by which an instruction reads what such a writer writes before that is ready for the writer's own
  /// kind. 0 where the time of writing is not fixed.
  static int lead(const DecodedInstruction& reader, Writer writer);
  bool covered(const Warp& warp, const DecodedInstruction& instruction, uint64_t mask, Cycle now) const;

  std::vector<Warp> warps_;
  uint64_t occupied_ = 0;  // bit per cycle, modulo the horizon
  std::array<uint64_t, horizon> checks_{};
  std::array<std::vector<Lowering>, horizon> lowerings_;
};

}  // namespace simt
