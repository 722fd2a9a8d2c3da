#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "stats/counters.hpp"
#include "timing/base/request.hpp"
#include "timing/base/ring_queue.hpp"
#include "timing/base/spec.hpp"
#include "timing/core/in_flight.hpp"
#include "timing/core/l1_observer.hpp"
#include "timing/memory/line_assembly.hpp"
#include "timing/memory/sectored_cache.hpp"
#include "timing/warps/core_traits.hpp"
#include "timing/warps/warp_table.hpp"

namespace simt {

/// The SM's load/store unit: shared memory, the banked L1 data cache, and the port to the interconnect.
///
/// One warp instruction at a time sends its transactions (docs/model/load-store.md). Shared-memory accesses
/// take one cycle per pass, plus `shared_memory.latency`. Global and local accesses go to the L1's banks, one
/// transaction per bank and cycle, and look up the tags `l1.latency` cycles later. Accesses that bypass the
/// L1 go straight to the interconnect. Results return to the registers one per cycle.
class alignas(64) LoadStoreUnit {
 public:
  LoadStoreUnit(const Spec& spec, const CoreTraits& traits, uint16_t sm, WarpTable& warps, InFlightPool& pool,
                std::vector<Counters>& counters, std::vector<MemoryRequest>& requests);

  bool can_accept(Cycle now) const { return dispatch_ == InFlightPool::none && now >= next_accept_; }
  void accept(uint32_t in_flight, Cycle now);
  /// Writes results to the registers as far as `port_free(instruction, warp, written)` permits, and takes the
  /// next ones; call once per cycle, before cycle(). True if anything changed.
  template <class PortFree>
  bool write_back(Cycle now, PortFree&& port_free) {
    bool changed = !results_.empty();
    for (size_t i = 0; i < results_.size();) {
      const InFlight& instruction = pool_[results_[i].in_flight];
      if (!port_free(*instruction.instruction, instruction.warp, results_[i].written)) {
        ++i;
        continue;
      }
      const Done done = results_[i];
      results_.erase(results_.begin() + static_cast<std::ptrdiff_t>(i));
      finish_transaction(done.in_flight, done.lanes, now);
    }
    const bool shared = !shared_pipe_.empty() && shared_pipe_.front().ready <= now;
    if (shared || !bypassed_.empty() || l1_.ready()) changed |= take_results(now);
    return changed;
  }
  /// Brings what the cycles [begin, end) will touch into the host's caches, all at once.
  void prefetch(Cycle begin, Cycle end, const std::vector<MemoryReply>& replies);
  /// One core cycle. True if anything changed.
  bool cycle(Cycle now, const std::vector<MemoryReply>& replies, size_t& next_reply);
  /// The next cycle after `now` in which it can do something on its own, not counting replies; ~0 if none.
  Cycle next_event(Cycle now) const;
  /// Counts as if a cycle without change were repeated `cycles` times.
  void skip(Cycle cycles);
  /// Whether skip() may have something to count.
  bool counts_waiting() const {
    return queued_ > 0 || dispatch_ != InFlightPool::none || !bulk_copies_.empty();
  }

  /// Fetches a multiplication's operands from shared memory, after those already asked for, with what
  /// bandwidth accesses and bulk copies leave. Returns the cycles that takes if they use none from now on.
  Cycle fetch_operands(uint32_t bytes, Cycle now);

  struct BulkDone {
    uint32_t cta_slot;
    uint64_t mbarrier;
  };
  /// Bulk copies that have completed; the caller empties it.
  std::vector<BulkDone>& bulk_done() { return bulk_done_; }

  /// Tells the replacement policy of the L1, and these schedulers, who uses it.
  void observe_l1(std::span<const std::unique_ptr<WarpScheduler>> schedulers) {
    observer_ = std::make_unique<L1Observer>(pool_, warps_, schedulers);
    l1_.set_observer(observer_.get());
  }
  void set_l1_ways(uint32_t ways) { l1_.set_ways(ways); }
  void invalidate_l1() {
    l1_.invalidate();
    ++l1_changes_;
  }
  /// Takes the cycles in which packets left this SM's interconnect buffer; empties `cycles`. Their entries
  /// can be reused interconnect.credit_latency later.
  void take_departures(std::vector<Cycle>& cycles) {
    for (const Cycle cycle : cycles) departures_.push_back(cycle);
    cycles.clear();
  }
  /// Hands a miss of the instruction cache to the interconnect; false if its buffer is full.
  bool send_fetch(uint64_t line, uint32_t line_bytes, AccessKind kind, uint16_t slot, Cycle now);
  /// Whether this is the reply to such a miss.
  static bool is_fetch(const MemoryReply& reply) {
    return reply.kind == AccessKind::InstructionRead || reply.kind == AccessKind::ConstantRead;
  }

 private:
  struct BankEntry {
    Transaction transaction{};
    uint32_t in_flight = 0;
    uint32_t line = CacheAccess::unknown;  // as in CacheAccess
    Cycle ready = 0;
  };
  struct Bank {
    RingQueue<BankEntry> queue;
    Cycle last_insert = ~Cycle{0};
    uint64_t failed_at_change = ~uint64_t{0};  // l1_changes_ when the head could not be served
    CacheFailure failure = CacheFailure::None;
  };
  struct Bypassing {
    MemoryRequest request{};
    Cycle ready = 0;
  };
  struct Delayed {
    uint32_t in_flight = 0;
    Cycle ready = 0;
  };
  /// A completed transaction on its way to the registers.
  struct Done {
    uint32_t in_flight = 0;
    uint32_t lanes = 0;
    uint8_t written = 0;  // registers written so far, if not all could be written in one cycle
  };

  bool network_full(Cycle now);
  bool held_by_network(uint16_t slot, Cycle now);
  void send(MemoryRequest request, Cycle now);
  bool take_results(Cycle now);
  bool take_reply(Cycle now, const MemoryReply& reply);
  bool drain_miss(Cycle now);
  bool look_up(Cycle now);
  bool dispatch(Cycle now);
  bool send_transactions(InFlight& instruction, Cycle now);
  bool bypass(uint32_t in_flight, Cycle now);
  bool send_bulk_copy(Cycle now);
  void sent(uint32_t in_flight);
  bool tensor_map_read(const InFlight& instruction, Cycle now);
  bool bulk_copy_free(Cycle now);
  bool bulk_line_free(uint64_t address, Cycle now);
  bool drain_bypassing(Cycle now);
  void count_failure(const Bank& bank, Cycle times);
  void finish_transaction(uint32_t in_flight, uint32_t lanes, Cycle now);
  void arrived(uint32_t in_flight, Cycle now);
  void complete(uint32_t in_flight);
  void write_registers(uint32_t in_flight);
  AccessKind kind_of(const InFlight& instruction) const;
  bool bypasses(const InFlight& instruction) const;

  // What every cycle asks comes first, in few of the host's cache lines.
  uint32_t queued_ = 0;  // in all banks
  uint32_t dispatch_ = InFlightPool::none;
  Cycle next_accept_ = 0;
  uint64_t bulk_line_ = ~uint64_t{0};  ///< that a bulk copy is at
  Cycle bulk_line_ends_ = 0;           ///< in half cycles
  Cycle next_bulk_copy_ = 0;           ///< when the next one is prepared
  Cycle tensor_map_known_ = 0;         ///< the last that has been asked for
  bool bulk_copy_begun_ = false;       ///< the first of bulk_copies_
  bool blocked_by_network_ = false;
  uint32_t result_turn_ = 0;
  RingQueue<uint32_t> bulk_copies_;  // in flight and not sent; none if other accesses wait for them
  RingQueue<Delayed> shared_pipe_;
  RingQueue<uint32_t> missed_;  // loads, in the order of their first misses, if they complete in it
  RingQueue<Delayed> leaving_;  // loads of which all data are there, on their way out of the L1
  // At most as many of each as the SM's port is sectors wide.
  RingQueue<Done> bypassed_;  // replies that bypassed the L1, oldest first
  std::vector<Done> results_;
  RingQueue<Bypassing> bypassing_;  // loads
  std::vector<BulkDone> bulk_done_;
  /// When the tensor map of a launch is known. Those of a launch are read together.
  struct TensorMap {
    uint64_t launch = ~uint64_t{0};
    Cycle known = 0;
  };
  std::vector<TensorMap> tensor_maps_;  // per launch slot

  const Spec& spec_;
  uint16_t sm_;
  WarpTable& warps_;
  InFlightPool& pool_;
  std::vector<Counters>& counters_;
  std::vector<MemoryRequest>& requests_;
  std::unique_ptr<L1Observer> observer_;  // nullptr: no policy asks
  SectoredCache l1_;
  uint64_t l1_changes_ = 0;
  LineAssembly arriving_;
  std::vector<Bank> banks_;
  uint32_t shared_latency_;
  uint32_t l1_latency_;
  // Operands: bytes not yet fetched at operands_at_, and bytes that other uses of shared memory took since.
  uint64_t operand_bytes_ = 0, other_bytes_ = 0;
  Cycle operands_at_ = 0;
  uint32_t width_;
  uint64_t in_network_buffer_ = 0;
  RingQueue<Cycle> departures_;
};

}  // namespace simt
