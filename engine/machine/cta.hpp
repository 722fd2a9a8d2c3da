#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "machine/context.hpp"
#include "machine/tensor_memory.hpp"
#include "machine/warp.hpp"

namespace simt::functional {

class Grid;
class Cta;

/// Counts the threads that have arrived at a barrier of a CTA or cluster.
class BarrierCounter {
 public:
  /// The lanes arrive. True if this completes the barrier, which is then reset.
  bool arrive(Cta& cta, Warp& warp, uint32_t lanes, const BarrierRequest& request,
              const std::vector<Cta*>& members);
  /// A warp has lost threads: whether the remaining ones complete the barrier.
  bool after_exit(const std::vector<Cta*>& members);
  bool in_use() const { return !arrived_.empty(); }
  /// Whether these lanes have arrived in the current phase.
  bool arrived(const Warp& warp, uint32_t lanes) const;
  uint32_t expected() const { return expected_; }

  uint32_t popcount = 0;  ///< of the completed barrier's predicates
  bool all = false, any = false;

 private:
  friend struct StateAccess;
  /// Of a warp; the same warp may have several.
  struct Arrival {
    const Cta* cta;
    const Warp* warp;
    uint32_t lanes, counted;
  };

  bool finish_if_complete(const std::vector<Cta*>& members);

  uint32_t threads_ = 0;  ///< that have arrived; a warp counts as 32 once all its threads have
  uint32_t expected_ = 0;
  uint32_t taking_part_ = 0;  ///< threads that have arrived, not rounded up to warps
  uint32_t true_ = 0;         ///< those of them whose predicate is true
  std::vector<Arrival> arrived_;
};

/// The CTAs of a cluster, which are resident together and can access each other's shared memory.
struct Cluster {
  std::vector<Cta*> ctas;  ///< by rank
  BarrierCounter barrier;
};

/// The state of one CTA.
class Cta {
 public:
  static constexpr uint32_t barrier_count = 16;
  static constexpr uint32_t warps_in_group = 4;  ///< warps in a warpgroup

  Cta(Grid& grid, uint64_t linear_index, std::shared_ptr<Cluster> cluster, uint32_t rank);
  /// As if newly made, in the memory that it has; the only CTA of its cluster.
  void restart(uint64_t linear_index);

  Grid& grid() const { return grid_; }
  uint64_t linear_index() const { return linear_index_; }
  const std::array<uint32_t, 3>& index() const { return index_; }
  uint32_t rank() const { return rank_; }
  Cluster& cluster() const { return *cluster_; }
  std::vector<Warp>& warps() { return warps_; }
  bool finished() const { return running_ == 0; }

  std::byte* shared() { return reinterpret_cast<std::byte*>(shared_.data()); }
  uint32_t shared_bytes() const;
  /// Made when it is first used.
  TensorMemory& tensor_memory();
  /// Local memory of one lane. Allocated when the warp first uses it.
  std::byte* local(uint32_t warp, uint32_t lane);

  /// The lanes in Context::mask arrive at the barrier of `op`, which Context::barrier describes. Releases the
  /// lanes that may continue. Waiting on a cluster barrier is not an arrival; if the barrier is already
  /// complete, Context::barrier is changed not to wait.
  void arrive(Context& context, Warp& warp, Warp::Split& split, const Op& op);
  /// Lanes of a warp have exited.
  void exited(Context& context, Warp& warp);

  /// For special registers: the SM it runs on. Set by the timing engine, otherwise 0.
  uint32_t sm = 0;
  uint64_t barriers_completed = 0;
  /// Barriers at which warps have arrived and that are not complete.
  struct Arrived {
    uint32_t warp, barrier, threads;
    bool waits;
  };
  std::vector<Arrived> arrived() const;

 private:
  friend struct StateAccess;
  struct Waiting {
    Cta* cta;
    Warp* warp;
    uint32_t lanes;
    uint32_t barrier;  ///< its number; barrier_count for the cluster barrier, or above for those of
                       ///< warpgroups
    const Op* op;
    BarrierRequest::Reduce reduce;
  };

  void release(Context& context, uint32_t barrier, const BarrierCounter& counter);

  Grid& grid_;
  uint64_t linear_index_;
  std::array<uint32_t, 3> index_{};
  std::shared_ptr<Cluster> cluster_;
  uint32_t rank_;
  uint32_t running_ = 0;  ///< warps that have not finished
  std::vector<Line> shared_;
  std::unique_ptr<TensorMemory> tensor_memory_;
  std::vector<Warp> warps_;
  std::vector<std::vector<std::byte>> local_;  ///< by warp
  std::array<BarrierCounter, barrier_count + 1 + 32 / warps_in_group> barriers_;
  std::vector<Waiting> waiting_;
};

}  // namespace simt::functional
