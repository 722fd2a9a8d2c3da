#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "timing/base/request.hpp"

namespace simt {

// The engine's counters, per launch. SIMT_COUNTER(name, "meaning").
#define SIMT_COUNTERS(SIMT_COUNTER)                                                                          \
  SIMT_COUNTER(sm_active_cycles, "core cycles in which an SM had a resident warp, summed over SMs")          \
  SIMT_COUNTER(active_warp_cycles, "resident warps, summed over core cycles and SMs")                        \
  SIMT_COUNTER(ctas, "CTAs that ran")                                                                        \
  SIMT_COUNTER(warps, "warps that ran")                                                                      \
  SIMT_COUNTER(ctas_finished, "CTAs that have finished")                                                     \
  SIMT_COUNTER(finished_instructions, "warp instructions of finished CTAs")                                  \
  SIMT_COUNTER(warp_instructions, "warp instructions issued")                                                \
  SIMT_COUNTER(thread_instructions, "lanes of the warp instructions issued")                                 \
  SIMT_COUNTER(uncovered_dependences, "warp instructions issued before a register was ready")                \
  SIMT_COUNTER(shared_loads, "warp instructions that read shared memory")                                    \
  SIMT_COUNTER(shared_stores, "warp instructions that write shared memory")                                  \
  SIMT_COUNTER(shared_wavefronts, "passes through shared memory")                                            \
  SIMT_COUNTER(shared_bank_conflicts, "passes beyond the first of each access")                              \
  SIMT_COUNTER(shared_store_bank_conflicts, "shared-memory bank conflicts of stores")                        \
  SIMT_COUNTER(register_bank_conflicts, "operand reads delayed by another read or write of the bank")        \
  SIMT_COUNTER(global_load_requests, "warp instructions that load global memory")                            \
  SIMT_COUNTER(global_store_requests, "warp instructions that store to global memory")                       \
  SIMT_COUNTER(global_load_sectors, "sectors requested by global loads, after coalescing")                   \
  SIMT_COUNTER(global_store_sectors, "sectors written by global stores, after coalescing")                   \
  SIMT_COUNTER(local_requests, "warp instructions that access local memory")                                 \
  SIMT_COUNTER(atomic_requests, "warp instructions that perform atomics or reductions on global memory")     \
  SIMT_COUNTER(l1_bank_conflicts, "core cycles in which an access waited for a busy L1 bank")                \
  SIMT_COUNTER(l1_reservation_fail_line, "L1 retries: every way of the set reserved")                        \
  SIMT_COUNTER(l1_reservation_fail_miss_queue, "L1 retries: miss queue full")                                \
  SIMT_COUNTER(l1_reservation_fail_mshr, "L1 retries: no MSHR left")                                         \
  SIMT_COUNTER(l1_reservation_fail_merge, "L1 retries: MSHR cannot merge more")                              \
  SIMT_COUNTER(l2_reservation_fail, "L2 retries for any reason")                                             \
  SIMT_COUNTER(instruction_cache_hits, "fetches served by the SM's instruction caches")                      \
  SIMT_COUNTER(instruction_cache_misses, "fetches that went to the L2")                                      \
  SIMT_COUNTER(constant_cache_hits, "constant lookups that hit the constant caches")                         \
  SIMT_COUNTER(constant_cache_misses, "constant lookups that missed the constant caches")                    \
  SIMT_COUNTER(constant_l1_hits, "their misses that hit the SM's L1 instruction cache")                      \
  SIMT_COUNTER(constant_l1_misses, "their misses that went to the L2")                                       \
  SIMT_COUNTER(network_request_packets, "packets from SMs to the L2")                                        \
  SIMT_COUNTER(network_reply_packets, "packets from the L2 to SMs")                                          \
  SIMT_COUNTER(network_request_wait, "interconnect cycles that request packets waited in input buffers")     \
  SIMT_COUNTER(network_reply_wait, "interconnect cycles that reply packets waited in input buffers")         \
  SIMT_COUNTER(network_full_stalls, "core cycles in which an SM could not send: input buffer full")          \
  SIMT_COUNTER(tlb_misses, "accesses that began a miss of their TLB")                                        \
  SIMT_COUNTER(dram_reads, "sectors read from DRAM")                                                         \
  SIMT_COUNTER(dram_writes, "sectors written to DRAM")                                                       \
  SIMT_COUNTER(dram_activates, "rows opened")                                                                \
  SIMT_COUNTER(dram_precharges, "rows closed")                                                               \
  SIMT_COUNTER(dram_row_hits, "column commands to the open row without an activate since the last one")      \
  SIMT_COUNTER(dram_bus_cycles, "DRAM command cycles in which the data bus is in use, summed over channels") \
  SIMT_COUNTER(dram_pending_cycles, "DRAM command cycles with a request pending, summed over channels")

enum class Counter : uint16_t {
#define SIMT_COUNTER(name, text) name,
  SIMT_COUNTERS(SIMT_COUNTER)
#undef SIMT_COUNTER
      Count
};

enum class CacheOutcome : uint8_t { Hit, HitReserved, Miss, SectorMiss, ReservationFail, Count };

struct Counters {
  static constexpr size_t kinds = static_cast<size_t>(AccessKind::Count);
  static constexpr size_t outcomes = static_cast<size_t>(CacheOutcome::Count);
  using CacheTable = std::array<std::array<uint64_t, outcomes>, kinds>;

  std::array<uint64_t, static_cast<size_t>(Counter::Count)> values{};
  CacheTable l1{}, l2{};  ///< lookups, one per sector, by kind and outcome

  uint64_t& operator[](Counter c) { return values[static_cast<size_t>(c)]; }
  uint64_t operator[](Counter c) const { return values[static_cast<size_t>(c)]; }
  uint64_t& l1_at(AccessKind k, CacheOutcome o) { return l1[static_cast<size_t>(k)][static_cast<size_t>(o)]; }
  uint64_t& l2_at(AccessKind k, CacheOutcome o) { return l2[static_cast<size_t>(k)][static_cast<size_t>(o)]; }

  Counters& operator+=(const Counters& other) {
    for (size_t i = 0; i < values.size(); ++i) values[i] += other.values[i];
    for (size_t k = 0; k < kinds; ++k)
      for (size_t o = 0; o < outcomes; ++o) {
        l1[k][o] += other.l1[k][o];
        l2[k][o] += other.l2[k][o];
      }
    return *this;
  }
};

}  // namespace simt
