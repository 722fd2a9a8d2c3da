#pragma once
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "timing/base/request.hpp"
#include "timing/base/ring_queue.hpp"
#include "timing/core/cta_barriers.hpp"
#include "timing/warps/decoded_kernel.hpp"
#include "timing/warps/warp_table.hpp"

namespace simt {

/// A CTA being sent to an SM.
struct CtaStart {
  const DecodedKernel* kernel = nullptr;
  std::shared_ptr<CtaStream> stream;
  uint64_t ordinal = 0;      ///< of the CTA in its launch
  uint32_t cta_slot = 0;     ///< chosen by the dispatcher
  uint32_t first_warp = 0;   ///< first warp slot
  Cycle cycle = 0;           ///< first cycle in which its warps can be fetched
  uint64_t thread_base = 0;  ///< index of its first thread among the GPU's concurrent threads (local memory)
  uint64_t concurrent_threads = 1;
};

/// The resident CTAs of one SM, and what synchronises their warps: barriers and bulk copies.
class CtaTable {
 public:
  struct Cta {
    const DecodedKernel* kernel = nullptr;
    std::shared_ptr<CtaStream> stream;  ///< nullptr: the slot is free
    uint64_t ordinal = 0;
    Cycle begin = 0;
    uint32_t first_warp = 0;
    uint32_t warps_left = 0;
    uint32_t warps_started = 0;
    uint64_t first_age = 0;  ///< of its warps
    uint32_t start_interval = 0;
    Cycle next_start = 0;  ///< of the next warp, if not all have started
    uint64_t thread_base = 0, concurrent_threads = 1;
    CtaBarriers barriers{};
    std::vector<std::pair<uint64_t, uint32_t>> bulk_copies;  ///< outstanding, by mbarrier address
    uint64_t instructions = 0;                               ///< issued by its warps that have retired
    uint32_t turn = 0;  ///< by how many slots its warps are moved on, within its own

    uint32_t slot_of(uint32_t warp) const {
      const uint32_t i = warp + turn, warps = kernel->warps_per_cta;
      return first_warp + (i < warps ? i : i - warps);
    }
  };

  /// warp_start_interval: core cycles.
  CtaTable(const SmSpec& spec, uint32_t warp_start_interval, bool begin_in_turn, WarpTable& warps)
      : turn_(begin_in_turn ? spec.sub_cores / 2 : 0),
        warp_start_interval_(warp_start_interval),
        barrier_interval_(spec.barrier_interval),
        barrier_latency_(spec.barrier_latency),
        warps_(warps),
        ctas_(spec.max_ctas) {}

  uint32_t slots() const { return static_cast<uint32_t>(ctas_.size()); }
  const Cta& operator[](uint32_t slot) const { return ctas_[slot]; }
  uint32_t resident() const { return resident_; }

  /// Its warps start one after the other, or all at once if some have arrived at barriers before.
  void place(const CtaStart& start, bool at_once);
  /// Starts the warps that are due. True if there are any.
  bool start_warps(Cycle now);
  Cycle next_start() const;
  /// The warps of a dropped CTA that have not started never do. True if none is left, whereupon its stream is
  /// closed.
  bool drop(uint32_t slot);
  /// Retires a warp that has issued everything. True if it was the last of its CTA, whose stream is then
  /// closed.
  bool retire(uint32_t warp);

  /// `expected`: as CtaBarriers::arrive(). `now` never decreases.
  void arrive(uint32_t warp, uint32_t barrier, bool waits, uint32_t expected, Cycle now);
  /// The warp has issued its last instruction. `index`: in its CTA.
  void exit(uint32_t cta_slot, uint32_t index, Cycle now) {
    Cta& cta = ctas_[cta_slot];
    release(cta, cta.barriers.exit(index), now);
  }
  /// Lets the warps go whose barriers open in this cycle. True if there are any.
  bool open_barriers(Cycle now);
  Cycle next_opening() const { return releases_.empty() ? ~Cycle{0} : releases_.front().cycle; }

  void bulk_copy_started(uint32_t cta_slot, uint64_t mbarrier);
  void bulk_copy_done(uint32_t cta_slot, uint64_t mbarrier);
  /// mbarrier 0: any of the CTA's.
  bool bulk_copies_pending(uint32_t cta_slot, uint64_t mbarrier) const;
  void wait_for_bulk_copies(uint32_t warp, uint64_t mbarrier);

  /// The CTA's streams may have records again. False if the slot is free.
  bool wake(uint32_t cta_slot);

 private:
  struct Release {
    Cycle cycle;
    uint32_t warp;
    uint64_t age;  // of the warp: its slot may hold another one by then
  };
  void release(const Cta& cta, uint64_t warps, Cycle now);
  bool lose(Cta& cta, uint32_t warps);

  uint32_t turn_;  // of every other CTA
  uint32_t warp_start_interval_;
  uint32_t barrier_interval_, barrier_latency_;
  Cycle barriers_counted_ = 0;   // all arrivals so far
  RingQueue<Release> releases_;  // ascending cycles
  WarpTable& warps_;
  std::vector<Cta> ctas_;
  std::vector<uint32_t> starting_;  // slots of CTAs of which not all warps have started, in the order of age
  uint32_t resident_ = 0;
  uint64_t next_age_ = 0;  // of warps
};

}  // namespace simt
