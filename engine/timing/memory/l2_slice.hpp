#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "stats/counters.hpp"
#include "timing/base/request.hpp"
#include "timing/base/ring_queue.hpp"
#include "timing/base/spec.hpp"
#include "timing/memory/address_map.hpp"
#include "timing/memory/crossbar.hpp"
#include "timing/memory/dram_channel.hpp"
#include "timing/memory/l2_partitions.hpp"
#include "timing/memory/peer_port.hpp"
#include "timing/memory/sectored_cache.hpp"

namespace simt {

/// Activity of one slice for one launch.
struct SliceActivity {
  uint64_t lookups = 0, hits = 0;  ///< of sectors; a sector missing in a copy is counted at its home slice
};

/// What a slice is asked for: a sector, or sectors that arrive together.
struct SliceRequest {
  uint64_t address = 0;  ///< of the first sector
  uint64_t token = 0;    ///< of the port or slice that asks
  uint32_t byte_mask = ~0u;
  uint32_t set = 0;    ///< of the slice's cache
  uint16_t asker = 0;  ///< a port of the interconnect, or a slice
  uint16_t slot = 0;
  AccessKind kind = AccessKind::GlobalRead;
  uint8_t sectors = 1;
  bool write = false;
  bool of_slice : 1 = false;
  bool to_peer : 1 = false;  ///< to the memory of another device, which the L2 does not cache
  Eviction eviction : 3 = Eviction::Default;
};
static_assert(sizeof(SliceRequest) == 32);  // two share one of the host's cache lines

/// A slice's answer to a port of the interconnect, on its way through the reply network.
struct ReplyPacket {
  uint64_t tick : 58 = 0;  ///< as in Crossbar
  uint64_t flits : 6 = 1;
  uint64_t address = 0;
  uint64_t token = 0;
  uint16_t output = 0;
  uint16_t slot = 0;
  AccessKind kind = AccessKind::GlobalRead;
  bool write = false;
};

/// Which of a channel's slices have something to send: a bit for each.
struct SliceOutputs {
  uint32_t replies = 0;
  uint32_t dram_requests = 0;
};

/// One L2 slice with its queues (docs/model/l2.md). Time is counted in L2 cycles. A request waits
/// `l2.latency` cycles; then one lookup is made per cycle. Hits and writes are answered immediately, misses
/// when DRAM, or the slice of another partition where the sector lives, has answered.
class alignas(64) L2Slice {
 public:
  L2Slice(const Spec& spec, const AddressMap& map, const L2Partitions& partitions, uint32_t slice,
          SliceOutputs& outputs, std::vector<Counters>& counters);

  /// A packet arrives from the interconnect in L2 cycle `cycle`; each of its sectors becomes a request.
  void arrive(const SliceRequest& packet, uint64_t cycle) {
    const bool far = partitioned_ && partitions_.of_port(packet.asker) != partition_;
    const uint64_t ready = cycle + spec_.l2.latency + (far ? spec_.l2.far_latency : 0);
    if (far) {
      insert_by_time(far_, {ready, packet});
    } else {
      Delayed& delayed = near_.add();
      delayed.ready = ready;
      delayed.request = packet;
    }
    if (packet.sectors > 1) add_sectors(far ? far_ : near_, ready, packet);
    wake_ = std::min(wake_, ready);
  }

  /// A message between slices of different partitions.
  enum class FarKind : uint8_t {
    Read,
    Data,    ///< in reply to a read
    Written  ///< copies of the sector are out of date
  };
  struct FarMessage {
    uint64_t ready = 0;  ///< L2 cycle in which it arrives
    uint64_t address = 0;
    uint32_t to = 0;  ///< slice
    uint32_t from = 0;
    uint32_t mshr = 0;  ///< of the slice that reads
    FarKind kind = FarKind::Read;
    AccessKind access = AccessKind::GlobalRead;
    Eviction eviction = Eviction::Default;
    uint16_t slot = 0;
  };
  /// Messages in flight, by ascending `ready`. The caller delivers them with arrive_from_far() before their
  /// destination reaches that cycle.
  std::vector<FarMessage>& far_messages() { return far_messages_; }
  void arrive_from_far(const FarMessage& message);
  /// L2 cycles [begin, end) in which the slice refuses packets from the interconnect: its request queue lacks
  /// room for all sectors of one.
  struct Refusal {
    uint64_t begin, end;
  };
  /// In order; the last one's end is ~0 while it lasts. The caller removes them.
  RingQueue<Refusal>& refused() { return refusals_; }

  void tick(uint64_t cycle);
  /// Counts what ticks before L2 cycle `end` would have, which were left out since they would have done the
  /// same again.
  void count_until(uint64_t end) {
    if (!stalled_ || end <= counted_until_) return;
    access_order_ += end - counted_until_;
    counters_[requests_.front().slot][Counter::l2_reservation_fail] += end - counted_until_;
    counted_until_ = end;
  }
  /// Whether ticks are left out that count_until() must make up for.
  bool stalled() const { return stalled_; }
  /// L2 cycle before which a tick would do nothing; ~0 if never.
  uint64_t next_event() const { return wake_; }
  /// Whether the reply network's input buffer has room for another of the slice's replies in interconnect
  /// cycle `tick`.
  bool has_network_room(uint64_t tick) {
    for (; !departures_.empty() && departures_.front() <= tick; departures_.pop_front()) --in_network_;
    return in_network_ < spec_.interconnect.input_buffer;
  }
  /// A reply leaves that buffer; its entry is free from interconnect cycle `tick`.
  void reply_left(uint64_t tick) { departures_.push_back(tick); }
  /// The reply that enters it next.
  const ReplyPacket& front_reply() const { return replies_.front(); }
  void pop_reply() {
    ++in_network_;
    if (!reply_room()) wake_ = 0;
    replies_.pop_front();
    if (replies_.empty()) outputs_.replies &= ~in_outputs_;
  }

  const DramRequest& front_dram_request() const { return to_dram_.front(); }
  void pop_dram_request() {
    if (!dram_room()) wake_ = 0;
    to_dram_.pop_front();
    if (to_dram_.empty()) outputs_.dram_requests &= ~in_outputs_;
  }
  bool can_take_data() const { return from_dram_.size() < spec_.l2.fill_queue; }
  void take_data(const DramRequest& request) {
    from_dram_.push_back({request.address, request.mshr});
    wake_ = 0;
  }

  /// Bring what the look-ups before L2 cycle `end`, and fills with data from DRAM, will touch into the host's
  /// caches.
  void prefetch_accesses(uint64_t begin, uint64_t end);
  void prefetch_mshr(const DramRequest& request) const { cache_.prefetch_mshr(request.mshr); }
  void prefetch_line(const DramRequest& request) const { cache_.prefetch_line(request.mshr); }

  /// As SectoredCache::insert().
  CacheInsertion insert(uint64_t address, bool modified, uint32_t sectors = 1,
                        Eviction eviction = Eviction::Default);
  /// Invalidates the copy of a sector whose home is in another partition.
  void drop_copy(uint64_t address) { cache().drop(address, map_.set_of(address)); }
  const SectoredCache& cache() const { return cache_; }
  SectoredCache& cache() {
    refused_ = false;
    if (stalled_) wake_ = 0;
    return cache_;
  }
  /// By launch slot.
  std::vector<SliceActivity>& activity() { return activity_; }

 private:
  struct Delayed {
    uint64_t ready;
    SliceRequest request;
  };
  /// That waits for data. Two share one of the host's cache lines.
  struct alignas(32) Waiting {
    SliceRequest request;
  };
  /// Inserts in order of arrival; simultaneous arrivals keep the order of calls.
  template <typename T>
  static void insert_by_time(RingQueue<T>& queue, T item) {
    size_t at = queue.size();
    while (at > 0 && queue[at - 1].ready > item.ready) --at;
    queue.insert(at, std::move(item));
  }
  /// Those of a packet behind the first.
  void add_sectors(RingQueue<Delayed>& queue, uint64_t ready, const SliceRequest& packet);
  void take_far_data(uint64_t cycle);
  void send_miss(uint64_t cycle);
  void take_request(uint64_t cycle);
  void change_acceptance(uint64_t cycle);
  void set_wake(uint64_t cycle);
  void look_up_next(uint64_t cycle);
  void ask_peer(uint64_t cycle);
  static CacheAccess access_of(const SliceRequest& request);
  bool look_up(const SliceRequest& request, uint64_t cycle);  ///< false: refused, to be retried
  void occupy_atomic_unit(uint32_t words, uint64_t cycle);
  void tell_of_write(uint64_t address, uint64_t cycle);
  void drop_outdated(uint64_t cycle);
  void answer(const SliceRequest& request, uint64_t cycle);
  void send_data(const SliceRequest& request, uint64_t cycle);  ///< to the slice that asked
  /// Whether anything waits to leave the slice.
  bool has_output() const { return !replies_.empty() || !to_dram_.empty(); }
  bool dram_room() const { return to_dram_.size() < spec_.l2.dram_queue; }
  bool reply_room() const { return replies_.size() < spec_.l2.reply_queue; }

  struct Filled {
    uint64_t address;
    uint32_t mshr;
  };
  struct Outdated {
    uint64_t ready, address;
  };

  // By the host's cache lines. What the channel reads in every cycle:
  uint64_t wake_ = ~uint64_t{0};  // a tick before does nothing, but for dropping outdated copies
  RingQueue<ReplyPacket> replies_;
  RingQueue<DramRequest> to_dram_;
  SliceOutputs& outputs_;

  // What the networks need:
  std::vector<Waiting> waiting_;  // the cache's tokens are their places
  std::vector<uint32_t> free_waiting_;
  std::array<uint32_t, 2> packet_flits_;
  uint32_t in_outputs_;      // the slice's bit
  uint32_t in_network_ = 0;  // replies in the reply network's input buffer, as far as departures_ were seen
  uint32_t partition_;
  bool partitioned_;
  bool accepts_ = true;   // packets from the interconnect
  bool refused_ = false;  // the first of requests_, by the cache as it is now
  // Nothing happens until something arrives or leaves but that the first is refused again in each cycle,
  // which has been counted for those before counted_until_.
  bool stalled_ = false;

  RingQueue<Delayed> near_;  // on their way to the request queue, from this side
  RingQueue<SliceRequest> requests_;
  uint64_t port_free_at_ = 0;
  uint64_t access_order_ = 0;

  RingQueue<uint64_t> departures_;
  RingQueue<Filled> from_dram_;
  uint64_t counted_until_ = 0;
  size_t looked_up_ = 0;                                      // requests, since the last prefetching
  uint64_t atomic_unit_free_at_ = 0, atomic_unit_parts_ = 0;  // L2 cycle, and thousandths of one

  const Spec& spec_;
  const AddressMap& map_;
  uint32_t index_;  // of the GPU's slices
  uint16_t in_channel_;
  const L2Partitions& partitions_;
  std::vector<Counters>& counters_;
  std::vector<SliceActivity> activity_;  // by launch slot
  SectoredCache cache_;                  // also holds copies of lines whose home is in other partitions
  RingQueue<Refusal> refusals_;
  RingQueue<Delayed> far_;  // as near_, from the other side
  // Requests from slices of other partitions. They need a separate path: queued behind requests that wait for
  // those slices, they would deadlock.
  RingQueue<Delayed> asked_;
  uint32_t waiting_for_far_ = 0;  // sectors requested from other slices
  RingQueue<FarMessage> far_data_;
  RingQueue<Delayed> from_peers_;  // answers of other devices
  PeerPort peer_port_;
  RingQueue<Outdated> outdated_;  // copies; they need not wake the slice
  std::vector<FarMessage> far_messages_;
};

}  // namespace simt
