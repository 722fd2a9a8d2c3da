#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "functional/context.hpp"
#include "functional/warp.hpp"

namespace simt::functional {

class Grid;
class Cta;

/// Counts threads at a barrier; of a CTA, or of a cluster.
class BarrierCounter {
 public:
  /// The lanes arrive. True if that completes the barrier, which is then as new.
  bool arrive(Cta& cta, Warp& warp, uint32_t lanes, const BarrierRequest& request,
              const std::vector<Cta*>& members);
  /// A warp has lost threads: whether those left complete the barrier.
  bool after_exit(const std::vector<Cta*>& members);
  bool in_use() const { return !arrived_.empty(); }
  /// Whether these lanes arrived in the phase under way.
  bool arrived(const Warp& warp, uint32_t lanes) const;

  uint32_t popcount = 0;  ///< of the completed barrier's predicates
  bool all = false, any = false;

 private:
  struct Arrival {
    const Cta* cta;
    const Warp* warp;
    uint32_t lanes, counted;
  };

  bool finish_if_complete(const std::vector<Cta*>& members);

  uint32_t threads_ = 0;  ///< that arrived; a warp all of whose threads did counts as 32
  uint32_t expected_ = 0;
  uint32_t taking_part_ = 0;  ///< threads that arrived, without rounding
  uint32_t true_ = 0;         ///< of them, whose predicate holds
  std::vector<Arrival> arrived_;
};

/// The CTAs of a cluster, which run at the same time and see each other's shared memory.
struct Cluster {
  std::vector<Cta*> ctas;  ///< by rank
  BarrierCounter barrier;
};

/// The state of one CTA.
class Cta {
 public:
  static constexpr uint32_t barrier_count = 16;
  static constexpr uint32_t warps_in_group = 4;  ///< of a warpgroup

  Cta(Grid& grid, uint64_t linear_index, std::shared_ptr<Cluster> cluster, uint32_t rank);

  Grid& grid() const { return grid_; }
  uint64_t linear_index() const { return linear_index_; }
  const std::array<uint32_t, 3>& index() const { return index_; }
  uint32_t rank() const { return rank_; }
  Cluster& cluster() const { return *cluster_; }
  std::vector<Warp>& warps() { return warps_; }
  bool finished() const { return running_ == 0; }

  std::byte* shared() { return reinterpret_cast<std::byte*>(shared_.data()); }
  uint32_t shared_bytes() const;
  /// Thread-local memory of a lane. Allocated when the warp first needs it.
  std::byte* local(uint32_t warp, uint32_t lane);

  /// Lanes Context::mask of a split arrive at the barrier `op`, for which Context::barrier stands. Lets go
  /// who may go on. A wait for a cluster's barrier is no arrival; where that is complete already,
  /// Context::barrier does not wait.
  void arrive(Context& context, Warp& warp, Warp::Split& split, const Op& op);
  /// Lanes of a warp have exited.
  void exited(Context& context, Warp& warp);

  /// For special registers: what lies on an SM. Set by the timing engine, 0 otherwise.
  uint32_t sm = 0;
  uint64_t barriers_completed = 0;

 private:
  struct Waiting {
    Cta* cta;
    Warp* warp;
    uint32_t lanes;
    uint32_t barrier;  ///< number, or barrier_count for the cluster's, or one above it for a warpgroup's
    const Op* op;
    BarrierRequest::Reduce reduce;
  };

  void release(Context& context, uint32_t barrier, const BarrierCounter& counter);

  Grid& grid_;
  uint64_t linear_index_;
  std::array<uint32_t, 3> index_{};
  std::shared_ptr<Cluster> cluster_;
  uint32_t rank_;
  uint32_t running_ = 0;  ///< warps not finished
  std::vector<Line> shared_;
  std::vector<Warp> warps_;
  std::vector<std::vector<std::byte>> local_;  ///< by warp
  std::array<BarrierCounter, barrier_count + 1 + 32 / warps_in_group> barriers_;
  std::vector<Waiting> waiting_;
};

}  // namespace simt::functional
