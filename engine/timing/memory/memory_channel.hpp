#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "stats/counters.hpp"
#include "timing/memory/address_map.hpp"
#include "timing/memory/clock.hpp"
#include "timing/memory/dram_channel.hpp"
#include "timing/memory/l2_slice.hpp"
#include "timing/ring_queue.hpp"
#include "timing/spec.hpp"

namespace simt {

/// A memory channel: its L2 slices, its DRAM, and the controller's queue between them. Independent of other
/// channels between exchanges with the interconnect.
class MemoryChannel {
 public:
  MemoryChannel(const Spec& spec, const AddressMap& map, const L2Partitions& partitions, uint32_t channel,
                uint32_t launch_slots);

  /// Runs all ticks up to and including those of core cycle `last_core_cycle`.
  void run(uint64_t last_core_cycle);

  struct Sent {
    uint64_t tick = 0;  ///< interconnect cycle in which the slice put it into the reply network
    L2Slice::Reply reply{};
  };
  /// Replies put into the network by slice `s` of the channel since the caller emptied the list.
  std::vector<Sent>& sent(uint32_t s) { return sent_[s]; }
  /// L2 cycles, since the caller emptied the list, in which slice `s` refused packets.
  RingQueue<uint64_t>& refused(uint32_t s) { return refused_[s]; }
  /// A reply of slice `s` leaves the reply network's input buffer; its entry is free from interconnect cycle
  /// `tick`.
  void reply_left(uint32_t s, uint64_t tick) { departures_[s].push_back(tick); }

  L2Slice& slice(uint32_t s) { return *slices_[s]; }
  const DramChannel& dram() const { return dram_; }
  void append_bank_activity(std::vector<BankActivity>& out) const {
    dram_.append_bank_activity(dram_tick_, out);
  }
  std::vector<Counters>& counters() { return counters_; }
  /// Core cycle before which nothing happens here; ~0 if never.
  uint64_t next_core_event() const;

 private:
  /// Brings what the L2 cycles before `end` will touch into the host's caches, all at once: the last window
  /// left little there.
  void prefetch(uint64_t end) const;
  void send_replies(uint64_t tick);
  void dram_tick(uint64_t tick, uint64_t now);
  /// Whether a tick of the DRAM could do more than refresh banks, which can be made up for.
  bool dram_works() const;
  uint64_t next_l2_event() const;

  const Spec& spec_;
  std::vector<Counters> counters_;
  std::vector<std::unique_ptr<L2Slice>> slices_;
  DramChannel dram_;
  ClockRatio core_to_l2_, core_to_network_, network_to_l2_, dram_to_l2_, l2_to_core_, l2_to_network_,
      l2_to_dram_;
  uint64_t l2_tick_ = 0, network_tick_ = 0, dram_tick_ = 0;  // next to run
  uint64_t network_due_ = 0, dram_due_ = 0;                  // their L2 cycles
  // Requests between the slices and the DRAM scheduler, with the L2 cycle in which they reach it.
  struct Delayed {
    uint64_t ready;
    DramRequest request;
  };
  RingQueue<Delayed> controller_;
  uint32_t last_served_ = 0;  // slice
  std::vector<uint32_t> own_credit_;
  uint32_t shared_credit_ = 0, shared_limit_;
  std::vector<std::vector<Sent>> sent_;
  std::vector<RingQueue<uint64_t>> refused_, departures_;
  std::vector<uint64_t> in_network_;
};

}  // namespace simt
