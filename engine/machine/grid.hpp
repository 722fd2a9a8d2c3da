#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "isa/basic_blocks.hpp"
#include "isa/footprint.hpp"
#include "machine/cta.hpp"
#include "machine/fault.hpp"
#include "machine/tensor_core.hpp"

namespace simt::functional {

/// One launch of a kernel.
struct LaunchConfig {
  std::array<uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1}, cluster{1, 1, 1};
  uint32_t dynamic_shared_bytes = 0;
  bool cooperative = false;           ///< all CTAs are resident together, and may wait for each other
  std::vector<std::byte> parameters;  ///< laid out as FunctionCode describes
  uint64_t id = 0;
  uint64_t first_cta = 0;  ///< earlier ones were executed by another launch of this grid; whole clusters
};

/// What kernels can observe of the machine.
struct Machine {
  uint32_t sm_version = 90;
  TensorCore tensor_core = TensorCore::Hopper;
  uint32_t sm_count = 1;
  uint64_t core_khz = 1'000'000;
  uint32_t warps_per_sm = 64;
  uint32_t threads_per_cta = 1024;
  uint32_t shared_bytes_per_cta = 232448;
  uint32_t resident_ctas = 64;       ///< CTAs resident at once when executing without timing
  uint32_t stack_limit = 16 * 1024;  ///< bytes of stack per thread, for calls of unknown depth
};

class BlockMap;
struct Lowering;

/// Receives the output of kernels, in the order of CTAs where that is defined.
using PrintSink = std::function<void(const std::string&)>;

/// A launch in functional execution: what its CTAs share, and how they run without timing.
class Grid {
 public:
  /// Throws ProgramFault if the launch itself is invalid (too many threads, too much shared memory, ...).
  Grid(const Program& program, uint32_t function, LaunchConfig config, DeviceMemory& memory,
       const Machine& machine, PrintSink print);
  ~Grid();
  Grid(const Grid&) = delete;
  Grid& operator=(const Grid&) = delete;

  const Program& program() const { return program_; }
  const FunctionCode& kernel() const { return program_.functions[function_]; }
  uint32_t function() const { return function_; }
  const LaunchConfig& config() const { return config_; }
  DeviceMemory& memory() const { return memory_; }
  const Machine& machine() const { return machine_; }
  uint64_t cta_count() const { return cta_count_; }
  uint32_t cluster_size() const { return config_.cluster[0] * config_.cluster[1] * config_.cluster[2]; }
  uint32_t threads_per_cta() const { return threads_; }
  uint32_t warps_per_cta() const { return (threads_ + warp_lanes - 1) / warp_lanes; }
  uint32_t shared_bytes() const { return shared_bytes_; }
  /// Without what the system has behind it, for PTX that asks where that is.
  uint32_t own_shared_bytes() const { return own_shared_bytes_; }
  uint32_t static_shared_bytes() const { return kernel().shared_bytes; }
  /// Local memory per thread: the stack of all active calls.
  uint32_t local_bytes() const { return local_bytes_; }
  uint64_t parameter_address() const { return parameters_; }  ///< in global memory
  /// Where CUDA's cooperative groups count CTAs at a grid barrier: the second of two words. 0 if the launch
  /// is not cooperative.
  uint64_t workspace() const { return workspace_; }
  /// Whether CTAs must run in a fixed order.
  bool order_matters() const { return kernel().order_sensitive || config_.cooperative; }
  const std::byte* parameters() const { return memory_.host(parameters_); }
  /// From now on, what its CTAs execute without timing is observed, on one host thread.
  void observe(Observer* observer) { observer_ = observer; }
  Observer* observer() const { return observer_; }
  /// From now on, the accesses of its CTAs are tracked.
  void track(std::unique_ptr<AccessTracker> tracker) { tracker_ = std::move(tracker); }
  AccessTracker* tracker() const { return tracker_.get(); }
  /// From now on, its CTAs do not compute the values of matrix products.
  void leave_out_products() { without_products_ = true; }
  bool without_products() const { return without_products_; }
  /// A warp's bank place::threads.
  std::byte* thread_bank(uint32_t warp);
  /// Bank place::launch.
  std::byte* launch_bank() { return reinterpret_cast<std::byte*>(launch_bank_.data()); }
  /// A constant bank of machine code, with the launch's parameters in bank 0.
  const std::vector<std::byte>& constant_bank(uint32_t bank) const { return constant_banks_[bank]; }
  /// Where in memory the variable lies that a bank is a copy of; 0: it is none.
  uint64_t constant_address(uint32_t bank) const { return constant_addresses_[bank]; }
  std::array<uint32_t, 3> position(uint64_t linear_index) const;

  /// Makes a cluster's CTAs, starting at CTA `number`; a single CTA if there are no clusters.
  std::vector<std::unique_ptr<Cta>> make_cluster(uint64_t number);
  /// The same, in place of a finished cluster if that can be.
  std::vector<std::unique_ptr<Cta>> make_cluster(uint64_t number, std::vector<std::unique_ptr<Cta>> finished);
  uint64_t cluster_count() const { return cta_count_ / cluster_size(); }
  uint64_t first_cluster() const { return config_.first_cta / cluster_size(); }

  /// Makes the CTAs in `state`, which `run_to` returned for a launch of the same grid, continue there. Throws
  /// std::invalid_argument if the state does not belong to this grid.
  void restore(const std::vector<std::byte>& state);

  /// Prints a thread's text. Throws Stopped: a print takes as long as thousands of instructions, so endless
  /// printing must be stopped here.
  void print(const Context& context, const std::string& text);
  /// From now on, printed text is kept for `printed` instead of being passed to the sink.
  void keep_printed() { keeps_printed_ = true; }
  /// The text kept, ordered by cycle and CTA, so that host threads do not affect it.
  std::string printed() const;

  struct Counts {
    uint64_t warp_instructions = 0;
    uint64_t thread_instructions = 0;
    InstructionCounts timed;  ///< if requested
    AccessCounts accesses;    ///< if followed
    bool complete = true;     ///< false: abandoned or stopped
  };
  /// Thrown through the executor when `stop` returned true while a thread was printing.
  struct Stopped {};
  /// Runs all CTAs without timing on up to `threads` host threads, in a fixed order where order can matter.
  /// Polls `stop`. Throws ProgramFault.
  Counts run(uint32_t threads, const std::function<bool()>& stop);

  /// A subset of a grid's clusters: some already begun, and others not.
  struct Part {
    std::vector<std::vector<Cta*>> begun;
    uint64_t count = 0;                        ///< of clusters not begun
    std::function<uint64_t(uint64_t)> number;  ///< number of the i-th of these
    /// Whether to give up when no CTA finishes for long: they may be waiting for one outside this part.
    /// Applies where CTAs influence each other.
    bool may_wait = false;
    uint64_t cycle = 0;                  ///< used to order prints
    const Lowering* lowering = nullptr;  ///< if set, instructions are counted as the timing model is given
                                         ///< them
    const BlockMap* blocks = nullptr;
    uint32_t* block_counts = nullptr;  ///< indexed by cluster of this part, CTA, warp and block
    uint32_t block_count = 0;
    /// To follow accesses to global memory, with `lowering`.
    struct Follow {
      const LaunchInfo* launch = nullptr;
      const std::vector<StaticInstruction>* instructions = nullptr;  ///< those of `lowering`
      std::vector<Footprint>* footprints = nullptr;                  ///< by CTA of this part
    };
    Follow follow{};
  };
  /// Runs part of the CTAs in the same way.
  Counts run(const Part& part, uint32_t threads, const std::function<bool()>& stop);

  /// A point within the launch: CTAs before `cta` have finished, and of the `partial` that follow, each warp
  /// has executed `instructions`, or fewer if it has ended, or waits for others that have stopped.
  struct Point {
    uint64_t cta = 0, partial = 0, instructions = 0;
  };
  /// Runs all CTAs up to the point. Returns the state of those that have begun. Throws ProgramFault.
  std::vector<std::byte> run_to(const Point& point, uint32_t threads, const std::function<bool()>& stop,
                                Counts& counts);

 private:
  friend class GridRun;
  void fill_constants(const ConstantBanks& banks);
  uint64_t parameter_room() const { return parameter_gap_ + std::max(1u, kernel().parameter_bytes); }

  const Program& program_;
  uint32_t function_;
  LaunchConfig config_;
  DeviceMemory& memory_;
  Machine machine_;
  PrintSink print_;
  Observer* observer_ = nullptr;
  std::unique_ptr<AccessTracker> tracker_;
  bool without_products_ = false;
  mutable std::mutex print_mutex_;
  bool keeps_printed_ = false;
  const std::function<bool()>* stop_ = nullptr;  ///< set while CTAs run without timing
  std::atomic<bool> stopped_{false};
  uint64_t prints_ = 0;
  struct Printed {
    uint64_t cycle, cta;
    std::string text;
  };
  std::vector<Printed> printed_;
  uint64_t cta_count_ = 0;
  uint32_t threads_ = 0, shared_bytes_ = 0, own_shared_bytes_ = 0, local_bytes_ = 0;
  uint64_t parameters_ = 0;
  uint64_t parameter_gap_ = 0;  ///< bytes of their allocation before them
  uint64_t workspace_ = 0;
  bool has_restored_ = false;
  std::mutex restored_mutex_;
  std::map<uint64_t, std::vector<std::unique_ptr<Cta>>> restored_;  ///< by cluster, until it is made
  std::vector<Line> thread_banks_, launch_bank_;
  std::array<std::vector<std::byte>, ConstantBanks::count> constant_banks_;
  std::array<uint64_t, ConstantBanks::count> constant_addresses_{};
};

/// Places in bank place::threads.
namespace thread_place {
constexpr Place tid_x = place::threads + 0 * place::register_bytes;
constexpr Place tid_y = place::threads + 1 * place::register_bytes;
constexpr Place tid_z = place::threads + 2 * place::register_bytes;
constexpr Place laneid = place::threads + 3 * place::register_bytes;
constexpr Place lanemask_eq = place::threads + 4 * place::register_bytes;
constexpr Place lanemask_le = place::threads + 5 * place::register_bytes;
constexpr Place lanemask_lt = place::threads + 6 * place::register_bytes;
constexpr Place lanemask_ge = place::threads + 7 * place::register_bytes;
constexpr Place lanemask_gt = place::threads + 8 * place::register_bytes;
constexpr Place warpid = place::threads + 9 * place::register_bytes;
constexpr uint32_t bytes = 10 * place::register_bytes;
}  // namespace thread_place

}  // namespace simt::functional
