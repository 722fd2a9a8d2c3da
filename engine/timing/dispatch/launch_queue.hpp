#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "isa/instruction_source.hpp"
#include "timing/control/controller.hpp"
#include "timing/memory/request.hpp"
#include "timing/spec.hpp"

namespace simt {

/// What one transfer at a time occupies: a direction of the link to the host, or the copy engine for copies
/// within the device. `None`: what takes no time and excludes nothing.
enum class Link : uint8_t { None, HostToDevice, DeviceToHost, Device, Count };

/// Launches and transfers in the order in which they were queued: which of them starts when, and when a
/// transfer ends. A command waits for the one before it in its stream and for those that it names; then a
/// launch needs a free launch slot, and a transfer its link.
///
/// All ends are exact cycles, however late they become known: a command starts at the latest end that it
/// waits for, but not before the host queued it.
class LaunchQueue {
 public:
  struct Launch {
    std::shared_ptr<InstructionSource> source;
    uint64_t id = 0;
    std::vector<uint64_t> after;             ///< ids of launches and transfers that must have ended
    std::shared_ptr<Controller> controller;  ///< nullptr: simulated in full
  };
  /// Work in stream order that is no launch: a copy, a memset, an event, a function of the host.
  struct Transfer {
    uint64_t id = 0;
    std::optional<uint64_t> stream;  ///< none: ordered by `after` alone
    std::vector<uint64_t> after;     ///< as a launch's
    bool barrier = false;            ///< waits for everything before it; everything behind it waits
    Link link = Link::None;
    Cycle cycles = 0;                 ///< during which it occupies its link
    uint64_t address = 0, bytes = 0;  ///< device memory whose new contents may stay in the L2
    std::function<void()> perform;    ///< moves the data, when it ends; may be empty
  };
  /// A launch that becomes the GPU's to run in this cycle, in this launch slot.
  struct Start {
    Launch launch;
    uint16_t slot = 0;
    Cycle cycle = 0;
    bool alone = false;  ///< no other launch runs
  };
  struct End {
    Transfer transfer;
    Cycle start = 0, end = 0;
  };

  explicit LaunchQueue(uint16_t slots) : running_(slots) { free_since_.fill(0); }

  void push(Launch launch);
  void push(Transfer transfer);

  /// Ends the next transfer whose end is at or before `now`.
  std::optional<End> next_end(Cycle now);
  /// The next launch that can start now, in the order of queueing. It occupies its slot.
  std::optional<Start> next_start();
  /// The launch in the slot has ended; its last cycle is the one before `end`.
  void ended(uint16_t slot, Cycle end);

  /// The host goes on when one of these has ended: what it then queues starts no earlier than that end.
  /// What is not in the queue has ended already.
  void host_waits_for(const std::vector<uint64_t>& ids);
  /// Whether one of them has ended since this was asked last.
  bool host_goes_on() { return std::exchange(host_goes_on_, false); }

  /// The next end of a transfer under way; the largest cycle if there is none.
  Cycle next_event() const { return under_way_.empty() ? ~Cycle{0} : under_way_.begin()->first; }
  /// Nothing is queued, and nothing runs.
  bool done() const { return unfinished_.empty(); }

  /// Cycles from a launch's start to the dispatch of its first CTA.
  static Cycle latency(const LaunchSpec& spec, uint64_t ctas);
  /// Cycles for which a transfer of so many bytes occupies a link. On Link::Device, bytes that are copied
  /// count twice: they are read and written.
  static Cycle duration(const Spec& spec, Link link, uint64_t bytes);

 private:
  /// A command's place in the queue.
  using Number = uint64_t;
  struct Command {
    std::variant<Launch, Transfer> work;
    uint64_t id = 0;
    std::optional<uint64_t> stream;
    uint32_t waits_for = 0;         // commands that have not ended
    std::vector<Number> followers;  // which wait for this one
    Cycle ready = 0;                // latest end of what it waited for
    Cycle start = 0;                // of a transfer under way
  };
  void push(Command command, const std::vector<uint64_t>& after, bool barrier);
  void is_ready(Number number);
  bool start_transfer(Cycle before);
  void finish(Number number, Cycle end);
  size_t running() const {
    return static_cast<size_t>(
        std::count_if(running_.begin(), running_.end(), [](const auto& r) { return r.has_value(); }));
  }

  static constexpr size_t links = static_cast<size_t>(Link::Count);

  std::map<Number, Command> unfinished_;
  Number next_ = 1;
  std::unordered_map<uint64_t, Number> by_id_;           // of the unfinished
  std::unordered_map<uint64_t, Number> last_of_stream_;  // where unfinished
  Number barrier_ = 0;                                   // the last one, where unfinished

  std::set<Number> ready_launches_;
  std::vector<std::optional<Number>> running_;  // by launch slot
  Cycle earliest_ = 0;                          // start of the next launch in order

  std::array<std::set<std::pair<Cycle, Number>>, links> ready_transfers_;  // since when
  std::array<std::optional<Cycle>, links> free_since_;                     // none: a transfer is under way
  std::set<std::pair<Cycle, Number>> under_way_;                           // by end

  std::vector<Number> awaited_;  // by the host
  bool host_goes_on_ = false;
  Cycle host_ = 0;      // when the host queues what it queues now
  Cycle last_end_ = 0;  // of everything so far
};

}  // namespace simt
