#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "isa/instruction_source.hpp"
#include "timing/control/controller.hpp"
#include "timing/memory/request.hpp"
#include "timing/spec.hpp"

namespace simt {

/// Launches and copies in the order in which they were queued: which of them starts when. A launch waits for
/// the launches of its stream before it, for those that it names, and for a free launch slot; a copy waits
/// for everything before it.
class LaunchQueue {
 public:
  struct Launch {
    std::shared_ptr<InstructionSource> source;
    uint64_t id = 0;
    std::vector<uint64_t> after;             ///< ids of launches that must have ended
    std::shared_ptr<Controller> controller;  ///< nullptr: simulated in full
  };
  struct Copy {
    uint64_t address = 0, bytes = 0;
  };
  /// A launch that becomes the GPU's to run in this cycle, in this free launch slot.
  struct Start {
    Launch launch;
    uint16_t slot = 0;
    Cycle cycle = 0;
  };

  explicit LaunchQueue(uint16_t slots) : running_(slots) {}

  void push(Launch launch) { commands_.push_back(std::move(launch)); }
  void push(Copy copy) { commands_.push_back(copy); }

  /// Takes what can start now out of the queue. A launch occupies its slot from began() on.
  std::optional<std::variant<Start, Copy>> next();
  void began(uint16_t slot, uint64_t id, uint64_t stream) { running_[slot] = Running{id, stream}; }
  /// The launch in the slot has ended; its last cycle is the one before `end`.
  void ended(uint16_t slot, Cycle end);

  bool empty() const { return commands_.empty(); }
  /// Nothing is queued, and nothing runs.
  bool done() const { return empty() && !any_running(); }
  bool any_running() const {
    return std::any_of(running_.begin(), running_.end(), [](const auto& r) { return r.has_value(); });
  }

  /// Cycles from a launch's start to the dispatch of its first CTA.
  static Cycle latency(const LaunchSpec& spec, uint64_t ctas);

 private:
  using Command = std::variant<Launch, Copy>;
  struct Running {
    uint64_t id, stream;
  };
  bool waits(const Launch& launch, const std::vector<uint64_t>& blocked_streams) const;
  bool is_unfinished(uint64_t id) const;

  std::deque<Command> commands_;
  std::vector<std::optional<Running>> running_;  // by launch slot
  Cycle idle_since_ = 0;                         // cycle after the last launch's end
  Cycle earliest_ = 0;                           // start of the next launch in order
};

}  // namespace simt
