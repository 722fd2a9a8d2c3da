#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "stats/counters.hpp"
#include "timing/base/ring_queue.hpp"
#include "timing/base/spec.hpp"
#include "timing/memory/address_map.hpp"
#include "timing/memory/clock.hpp"
#include "timing/memory/crossbar.hpp"
#include "timing/memory/dram_channel.hpp"
#include "timing/memory/l2_slice.hpp"

namespace simt {

/// A memory channel: its L2 slices, its DRAM, and the controller's queue between them. Independent of other
/// channels between exchanges with the interconnect.
class MemoryChannel {
 public:
  /// Its slices put their replies into `network`, whose inputs are the GPU's slices.
  MemoryChannel(const Spec& spec, const AddressMap& map, const L2Partitions& partitions,
                Crossbar<ReplyPacket>& network, uint32_t channel);

  /// The first tick of each clock domain that a window leaves out.
  struct WindowEnd {
    uint64_t l2, network, dram;
  };
  void run(const WindowEnd& end);

  L2Slice& slice(uint32_t s) { return slices_[s]; }
  const DramChannel& dram() const { return dram_; }
  void append_bank_activity(std::vector<BankActivity>& out) const {
    dram_.append_bank_activity(dram_ticks_.tick(), out);
  }
  /// By launch slot, as many as have been in use: a GPU has many more.
  const std::vector<Counters>& counters() const { return counters_; }
  /// Before the first request of a launch in this slot.
  void reset_counters(uint16_t slot);
  /// Core cycle before which nothing happens here; ~0 if never.
  uint64_t next_core_event() const;
  /// Whether a slice counts refusals, although nothing happens.
  bool counts_refusals() const {
    return std::any_of(slices_.begin(), slices_.end(), [](const L2Slice& s) { return s.stalled(); });
  }

 private:
  /// Brings what the ticks before `end` will touch into the host's caches, all at once: the last window
  /// left little there.
  void prefetch(const WindowEnd& end);
  void send_replies(uint64_t tick);
  void dram_tick(uint64_t tick, uint64_t now);
  /// Takes a request for DRAM from the first of these slices whose turn it is and that can send one. Returns
  /// whether the search is over.
  bool take_dram_request(uint32_t slices, uint64_t now);
  /// A slice's request has left DRAM.
  void give_back_credit(uint32_t slice);
  /// Whether a tick of the DRAM could do more than refresh banks, which can be made up for.
  bool dram_works() const { return !dram_.idle() || !controller_.empty() || outputs_.dram_requests != 0; }
  uint64_t next_l2_event() const;

  const Spec& spec_;
  std::vector<Counters> counters_;
  SliceOutputs outputs_;
  std::vector<L2Slice> slices_;
  DramChannel dram_;
  ClockRatio l2_to_core_;
  // The next to run.
  uint64_t l2_tick_ = 0;
  TickSequence network_ticks_, dram_ticks_;  // with their L2 cycles
  // Requests between the slices and the DRAM scheduler, with the L2 cycle in which they reach it.
  struct Delayed {
    uint64_t ready;
    DramRequest request;
  };
  RingQueue<Delayed> controller_;
  uint32_t last_served_ = 0;          // slice
  std::vector<uint32_t> own_credit_;  // of the slices
  uint32_t shared_credit_ = 0, shared_limit_;
  Crossbar<ReplyPacket>& network_;
  uint32_t first_slice_;  // of the GPU's slices
};

}  // namespace simt
