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
#include "timing/base/spec.hpp"
#include "timing/control/controller.hpp"
#include "timing/memory/memory_system.hpp"

namespace simt {

/// What transfers occupy one at a time: a direction of the link to the host or to other devices, or the copy
/// engine for copies within the device. `None`: takes no time and excludes nothing.
enum class Link : uint8_t { None, HostToDevice, DeviceToHost, Device, PeerToDevice, DeviceToPeer, Count };

/// Launches and transfers in queueing order: decides when each starts, and when transfers end. A command
/// waits for the previous one in its stream and for those it names; then a launch needs a free launch slot,
/// and a transfer its link.
///
/// All ends are exact cycles, however late they become known: a command starts at the latest end among those
/// it waits for, but not before the host queued it.
class LaunchQueue {
 public:
  struct Launch {
    std::shared_ptr<InstructionSource> source;
    uint64_t id = 0;
    std::vector<uint64_t> after;             ///< ids of launches and transfers that must have ended
    std::shared_ptr<Controller> controller;  ///< nullptr: simulated in full
    AccessWindow window;
  };
  /// Work in stream order other than launches: a copy, a memset, an event, a host function.
  struct Transfer {
    uint64_t id = 0;
    std::optional<uint64_t> stream;  ///< none: ordered by `after` alone
    std::vector<uint64_t> after;     ///< as for launches
    bool barrier = false;            ///< waits for all earlier commands; all later ones wait for it
    Link link = Link::None;
    Cycle cycles = 0;                 ///< for which it occupies its link
    std::vector<MemoryRows> touched;  ///< device memory whose contents may stay in the L2
    std::function<void()> perform;    ///< moves the data, when it ends; may be empty
  };
  /// A launch that the GPU starts in this cycle, in this launch slot.
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
  /// The next launch that can start now, in queueing order. It occupies its slot.
  std::optional<Start> next_start();
  /// The launch in the slot has ended; its last cycle is the one before `end`.
  void ended(uint16_t slot, Cycle end);

  /// The host continues when one of these has ended: what it then queues starts no earlier than that end. Ids
  /// not in the queue have already ended.
  void host_waits_for(const std::vector<uint64_t>& ids);
  /// Whether one of them has ended since the last call.
  bool host_goes_on() { return std::exchange(host_goes_on_, false); }

  /// The next end of a running transfer; the largest cycle if there is none.
  Cycle next_event() const { return under_way_.empty() ? ~Cycle{0} : under_way_.begin()->first; }
  /// Whether nothing is queued or running.
  bool done() const { return unfinished_.empty(); }

  /// Cycles from a launch's start to the dispatch of its first CTA.
  static Cycle latency(const Spec& spec, uint64_t ctas);
  /// Cycles from a launch's end until the GPU learns of it. No window is longer.
  static Cycle notice(const Spec& spec);
  /// Cycles for which a transfer of `bytes` bytes occupies a link. On Link::Device, copied bytes count twice,
  /// since they are read and written.
  static Cycle duration(const Spec& spec, Link link, uint64_t bytes);
  /// What a transfer over a link excludes: without a link to other devices, the way to them is that to the
  /// host.
  static Link occupied(const Spec& spec, Link link);

 private:
  /// A command's position in the queue.
  using Number = uint64_t;
  struct Command {
    std::variant<Launch, Transfer> work;
    uint64_t id = 0;
    std::optional<uint64_t> stream;
    uint32_t waits_for = 0;         // number of unfinished commands
    std::vector<Number> followers;  // commands that wait for this one
    Cycle ready = 0;                // latest end of what it waited for
    Cycle start = 0;                // for a running transfer
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
  std::unordered_map<uint64_t, Number> by_id_;           // of unfinished commands
  std::unordered_map<uint64_t, Number> last_of_stream_;  // if unfinished
  Number barrier_ = 0;                                   // the last one, if unfinished

  std::set<Number> ready_launches_;
  std::vector<std::optional<Number>> running_;  // by launch slot
  Cycle earliest_ = 0;                          // start of the next launch in order

  std::array<std::set<std::pair<Cycle, Number>>, links> ready_transfers_;  // since when
  std::array<std::optional<Cycle>, links> free_since_;                     // none: a transfer is running
  std::set<std::pair<Cycle, Number>> under_way_;                           // by end

  std::vector<Number> awaited_;  // by the host
  bool host_goes_on_ = false;
  Cycle host_ = 0;      // time at which the host queues commands now
  Cycle last_end_ = 0;  // of everything so far
};

}  // namespace simt
