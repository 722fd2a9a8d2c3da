#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "isa/footprint.hpp"
#include "stats/counters.hpp"
#include "timing/base/request.hpp"
#include "timing/base/ring_queue.hpp"
#include "timing/base/spec.hpp"
#include "timing/memory/address_map.hpp"
#include "timing/memory/clock.hpp"
#include "timing/memory/crossbar.hpp"
#include "timing/memory/eviction.hpp"
#include "timing/memory/memory_channel.hpp"
#include "timing/memory/tlb.hpp"

namespace simt {

/// Rows of bytes in device memory that a copy or memset uses.
struct MemoryRows {
  enum class Use : uint8_t {
    Read,
    Received,  ///< from the host: new, and the same in memory
    Written
  };
  uint64_t address = 0, width = 0;  ///< of the first row, in bytes
  uint64_t pitch = 0, height = 1;   ///< bytes from row to row; rows of a slice
  uint64_t slice = 0, depth = 1;    ///< bytes from slice to slice; slices
  Use use = Use::Received;
};

/// The memory system outside the SMs: both directions of the interconnect, the L2, and DRAM.
///
/// For each window of core cycles the caller calls find_running(), advance_slices() for all channels that it
/// found, then advance_replies(), then lets the SMs run the window, then advance_requests(). Results are the
/// same for all windows up to look_ahead().
class MemorySystem {
 public:
  MemorySystem(const Spec& spec, uint32_t launch_slots);
  MemorySystem(const MemorySystem&) = delete;
  MemorySystem& operator=(const MemorySystem&) = delete;

  /// The number of requesters: the SMs, and after them the instruction caches that SMs share.
  static uint32_t ports(const Spec& spec);

  /// Longest window, in core cycles, in which no request can cause a reply due in the same window.
  Cycle look_ahead() const;
  /// Core cycles after a request has reached a slice in which it is not looked up.
  Cycle request_look_ahead() const;

  /// Finds the channels that something happens to before core cycle `end`. Returns how many.
  uint32_t find_running(Cycle end);
  /// Runs those, from the first to before the last, up to core cycle `end`. Different channels may run on
  /// different threads.
  void advance_slices(uint32_t first, uint32_t last, Cycle end);
  /// Delivers messages between slices of different L2 partitions, and runs the reply network up to core cycle
  /// `end`; appends to the ports' replies.
  void advance_replies(Cycle end);
  /// Takes a port's requests of the window, for the request network. Different ports may do so on different
  /// threads.
  void take_requests(uint32_t number);
  /// Runs the request network up to core cycle `end`; appends to the ports' departures.
  void advance_requests(Cycle end);
  /// The same while other threads run slices, and the replies, of the next window, which must end within
  /// request_look_ahead() from where the request network is. What arrives waits for hand_over(). Only with
  /// has_room_until().
  void advance_requests_beside(Cycle end);
  /// Whether every slice's buffer has room for all that the request network can move until core cycle `end`.
  bool has_room_until(Cycle end) const;
  /// Gives the slices what has arrived meanwhile.
  void hand_over();

  /// Of an SM, or of a shared instruction cache.
  MemoryPort& port(uint32_t number) { return ports_[number]; }
  /// By port: not 0 if it may have replies or departures.
  const uint8_t* may_have_arrivals() const { return has_arrivals_.data(); }
  /// Whether the port has replies or departures.
  bool has_arrivals(uint32_t number) {
    const bool some = !ports_[number].replies.empty() || !ports_[number].departures.empty();
    has_arrivals_[number] = some;
    return some;
  }

  /// Puts data into the L2 without time or traffic, as if it had been read or, if `modified`, written
  /// completely.
  void insert(uint64_t address, uint64_t bytes, bool modified);
  /// The same of what a copy or memset uses, all rows side by side. Takes time in proportion to what can stay
  /// in the L2, however much that is.
  void insert(std::span<const MemoryRows> rows);
  /// An access by an SM of that L2 partition, without time or traffic. Returns the sectors that would have
  /// been exchanged with DRAM.
  uint32_t warm(const LineAccess& access, uint32_t partition);
  /// Makes the most recently used share of these contents, set by set, the most recently used again. Lines
  /// that are gone come back as they were.
  void renew(const std::vector<std::vector<CacheLine>>& contents, double share);
  const L2Partitions& partitions() const { return partitions_; }
  /// Which addresses are in the memory of other devices; at first, none. Before the first launch.
  void set_peers(std::function<bool(uint64_t)> is_in_peer) { is_in_peer_ = std::move(is_in_peer); }
  /// Of the accesses of a launch to come in this slot that say nothing themselves.
  void set_window(uint16_t slot, const AccessWindow& window);
  /// Bytes of the L2 for lines that are to be evicted last (cudaLimitPersistingL2CacheSize), rounded up to
  /// whole ways. 0: windows have no such lines, and those of single accesses take what could be set aside.
  void set_aside(uint64_t bytes);
  /// Lines that are to be evicted last get normal priority.
  void reset_persisting();

  bool idle() const { return next_event() == ~Cycle{0}; }
  /// Core cycle before which nothing happens; ~0 if never.
  Cycle next_event() const;

  /// Forgets what the L2 holds, without time or traffic. No launch may be running.
  void empty_l2();
  /// Lines of the L2 that have never held data.
  uint64_t free_l2_lines() const;
  /// By slice; requests on their way are left out.
  std::vector<std::vector<CacheLine>> l2_contents() const;
  /// Throws std::invalid_argument if they are not those of such an L2.
  void restore_l2(const std::vector<std::vector<CacheLine>>& contents);

  Counters counters(uint16_t slot) const;
  /// now: the end of the last window.
  void reset_counters(uint16_t slot, Cycle now);
  /// Per slice, since reset_counters().
  std::vector<SliceActivity> slice_activity(uint16_t slot) const;
  /// Totals per channel since the start.
  std::vector<ChannelActivity> channel_activity() const;
  /// Totals per bank since the start, channel after channel.
  std::vector<BankActivity> bank_activity() const;

 private:
  struct Arrival {
    uint64_t l2_cycle;  // first cycle in which the slice can accept it
    SliceRequest request;
  };
  struct RequestPacket {
    uint64_t tick : 58 = 0;  // as in Crossbar
    uint64_t flits : 6 = 1;
    uint16_t output = 0;
    SliceRequest request{};
  };
  /// What a window needs to know of a channel that has nothing to do in it.
  struct ChannelState {
    Cycle next_event = 0;   // after its last window, unless `changed`
    uint32_t arriving = 0;  // packets in its slices' ports
    bool changed = true;    // requests have reached slices since, or these count refusals
    bool live = true;       // in live_
    Cycle last_run = 0;     // end of the last window in which it has
  };
  /// Between the request network and a slice.
  struct alignas(64) SlicePort {
    L2Slice* slice = nullptr;
    ChannelState* channel = nullptr;
    uint64_t next_arrival = 0;  // L2 cycle after the last packet taken
    RingQueue<Arrival> buffer{};
  };
  /// A request whose translation comes in that cycle.
  struct Translating {
    Cycle ends = 0;
    MemoryRequest request;
  };
  struct alignas(64) Port : MemoryPort {
    uint64_t busy_until = 0;  // flits of replies, of `sm_port_sectors` per cycle
    Cycle last_reply = 0;
    uint32_t last_replies = 0;               // due in that cycle
    std::vector<Translating> translating{};  // in ascending cycles
    std::vector<MemoryRequest> missed{};     // the TLB in this window
  };
  L2Slice& slice(uint32_t number) const { return *slices_[number].slice; }
  /// Sectors of a line of 128 bytes that are in one line of an L2 slice.
  struct LinePart {
    uint64_t address = 0;  ///< of the first
    uint32_t sectors = 0;  ///< a bit for each, from the address on
    AddressMap::Home home{};
  };
  bool in_peer(uint64_t address) const { return is_in_peer_ && is_in_peer_(address); }
  template <typename Use>
  void for_each_part(uint64_t line, uint32_t sectors, Use use) const;
  void wake(ChannelState& state);
  void take_arrivals(uint32_t slice);
  void notice_sent();
  template <bool Beside>
  void run_requests(Cycle end);
  Tlb& tlb_of(uint32_t port) { return tlbs_[port % tlbs_.size()]; }
  void take(uint32_t number, const MemoryRequest& request, Cycle at);
  void translate(uint32_t number, Cycle end);
  void take_misses(Cycle end);
  void known_in_tlbs(uint64_t address, uint64_t bytes);
  void exchange_far_messages();
  void deliver(SlicePort& port, uint64_t l2_end);
  void deliver_to_channel(uint32_t channel);

  const Spec spec_;
  AddressMap map_;
  L2Partitions partitions_;
  std::vector<std::unique_ptr<MemoryChannel>> channels_;
  std::vector<ChannelState> states_;  // of the channels
  std::vector<uint32_t> live_;        // channels that have something to do some day, ascending
  std::vector<uint32_t> running_;     // of these, in the window
  ClockRatio core_to_network_, network_to_core_, network_to_l2_, core_to_l2_, l2_to_dram_;
  std::vector<SlicePort> slices_;
  std::vector<Port> ports_;
  std::vector<Tlb> tlbs_;                  // none if addresses need no translation
  Cycle window_end_ = 0;                   // of the window that the SMs run
  Cycle next_translation_ = ~Cycle{0};     // the first that a request waits for, after the last window
  uint64_t last_inserted_ = ~uint64_t{0};  // page that all TLBs know, as nothing has missed since
  // Side by side for all ports, of which most have nothing in a window: whether there have been replies or
  // departures since they were found to be none, and packets that the request network has not noticed.
  std::vector<uint8_t> has_arrivals_, has_sent_;
  Crossbar<RequestPacket> request_network_;
  Crossbar<ReplyPacket> reply_network_;
  std::array<uint32_t, 2> packet_flits_;
  uint64_t request_tick_ = 0, reply_tick_ = 0;  // next interconnect cycle of each direction
  uint64_t delivered_until_ = 0;  // L2 cycle before which packets reach the slices before these go on
  std::vector<uint64_t> entry_busy_until_;  // by slice: network cycle, with packets of several flits
  // Packets for slices that arrived beside them, by slice, until and after hand_over().
  std::vector<std::vector<Arrival>> arriving_beside_, arrivals_;
  uint64_t beside_until_ = 0;               // L2 cycle before which the former have come
  std::vector<Counters> network_counters_;  // per launch slot
  std::vector<Cycle> counted_since_;        // likewise
  std::vector<AccessWindow> windows_;       // likewise
  bool has_windows_ = false;
  std::function<bool(uint64_t)> is_in_peer_;
  bool persists_ = false;  // some of the L2 is set aside
};

}  // namespace simt
