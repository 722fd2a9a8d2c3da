#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "machine/context.hpp"

namespace simt::functional {

/// Sees what grids execute without timing, on one host thread, and how their threads meet. What a handler is
/// asked for is in Context: the lanes are those in its mask.
class Observer {
 public:
  enum Watch : uint8_t { Before = 1, After = 2 };

  virtual ~Observer() = default;
  /// For each Op of the program, the Watch in which it is observed. Must live as long as the observer.
  virtual const std::vector<uint8_t>& watched(const Grid& grid) = 0;
  /// A warp begins to execute, or goes on.
  virtual void enters(Context& c) = 0;
  /// Before lanes execute an Op, and after they have. An Op at which lanes wait for others may be observed
  /// several times before, once after.
  virtual void before(Context& c, const Op& op, uint32_t pc) = 0;
  virtual void after(Context& c, const Op& op, uint32_t pc) = 0;
  /// The lanes have met in a collective, whose mask has `members`.
  virtual void met(Cta& cta, Warp& warp, uint32_t lanes, uint32_t members, const Op& op) = 0;
  /// barrier: its number; Cta::barrier_count for that of the cluster, and above for those of warpgroups.
  virtual void arrives(Cta& cta, Warp& warp, uint32_t lanes, uint32_t barrier, const BarrierRequest& request,
                       const Op& op) = 0;
  virtual void completes(Cta& cta, uint32_t barrier) = 0;
  /// Lanes of a warp have exited.
  virtual void exits(Cta& cta, Warp& warp) = 0;
  /// Arrivals at an mbarrier, or bytes that it counts; `completed`: the phase ended with it.
  virtual void signals(Context& c, uint64_t address, int lane, bool completed) = 0;
  /// A wait at an mbarrier has found its phase complete.
  virtual void waited(Context& c, uint64_t address, int lane) = 0;
  /// An access that the details of its Op do not describe, at a generic address.
  virtual void touches(Context& c, uint64_t address, uint64_t bytes, int lane, bool writes) = 0;
  /// The launch has ended.
  virtual void ends(const Grid& grid) = 0;

  /// Whether all Ops are observed for the moment.
  bool everything = false;
};

}  // namespace simt::functional
