#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "isa/basic_blocks.hpp"
#include "isa/footprint.hpp"
#include "isa/instruction.hpp"

namespace simt {

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t count() const { return uint64_t{x} * y * z; }
};

/// A kernel launch as described by the front end.
struct LaunchInfo {
  uint64_t id = 0;
  std::string name;
  Dim3 grid, block;
  uint32_t shared_bytes = 0;  ///< static + dynamic, per CTA
  uint32_t registers_per_thread = 0;
  uint32_t sm_version = 0;  ///< 70, 80, 90, ...
  uint64_t stream = 0;
  uint32_t warp_size = 32;                   ///< lanes of its warps
  uint64_t shared_base = 0;                  ///< start of the generic window of shared memory, 0 if unknown
  uint64_t local_base = 0;                   ///< start of the generic window of local memory, 0 if unknown
  uint64_t window_bytes = 16 * 1024 * 1024;  ///< size of each of the two
};

/// The instruction streams of one CTA's warps. Used by one SM's thread only.
///
/// A stream that executes a program runs ahead of issue by the contents of the instruction buffers. This does
/// not change the values of a program without data races: the stream stops (NotYet) where a warp waits for
/// others, and where a value comes from an access that takes effect in time order, or from the clock. Such an
/// access has a ticket; the SM tells the stream when it issues, and the GPU performs all accesses of a window
/// in the order of issue at the window's end.
class CtaStream {
 public:
  enum class Next : uint8_t { Record, End, NotYet };

  virtual ~CtaStream() = default;
  virtual uint32_t warps() const = 0;
  /// Returns the next record of warp `warp` in program order, as of core cycle `now`.
  /// `record.deltas` stays valid until `lookahead` more records of the same warp have been taken.
  virtual Next next(uint32_t warp, DynamicRecord& record, uint64_t now) = 0;
  static constexpr uint32_t lookahead = 8;
  /// Takes the records that follow the warp's last one as far as they are known to be plain: the next static
  /// indices, with its mask and nothing else. Returns how many.
  virtual uint32_t take_plain(uint32_t warp);
  /// The warp's next record will be taken soon, once `plain` more plain ones have been: brings what that
  /// touches into the host's caches, at 0 what is only known from what was brought at 1.
  virtual void prefetch(uint32_t warp, uint32_t plain) const;

  /// What a warp that got NotYet waits for: other warps, at a barrier, or of its warp group, at
  /// WARPGROUP.DEPBAR; or a value, which comes as time passes.
  enum class Awaits : uint8_t { Warps, WarpGroup, Value };
  virtual Awaits awaits(uint32_t warp) const;
  /// A barrier at which a warp has arrived before its first record. threads: that it is for; 0 for all.
  struct Arrival {
    uint32_t warp, barrier, threads;
    bool waits;
  };
  /// Those of a CTA that begins in the middle.
  virtual std::vector<Arrival> arrivals() const { return {}; }
  /// The CTA is going to run on this SM.
  virtual void placed(uint32_t sm);
  /// Whether warps that got NotYet may have been released since the last call of this function, by a call of
  /// next() of this stream or of another one in its cluster.
  virtual bool take_woken() { return false; }
  /// The access with this ticket issues in cycle `now`; its result is available from `visible` on.
  virtual void issued(uint32_t warp, uint32_t ticket, uint64_t now, uint64_t visible);
  /// Performs the access. Called from one thread, in the order of issue on the whole GPU.
  virtual void perform(uint32_t warp, uint32_t ticket);
  /// Describes what a warp that got NotYet waits for, for messages.
  virtual std::string waits_for(uint32_t warp) const;
};

/// The source of a launch's instructions: a trace, or functional execution.
class InstructionSource {
 public:
  virtual ~InstructionSource() = default;
  virtual const LaunchInfo& launch() const = 0;
  virtual const std::vector<StaticInstruction>& instructions() const = 0;
  virtual const std::vector<std::string>& opcodes() const = 0;
  /// CTAs that have instructions, in the order in which they are dispatched.
  virtual uint64_t cta_count() const = 0;
  /// Called by the CTA dispatcher, from one thread at a time, with ascending `ordinal`.
  virtual std::unique_ptr<CtaStream> open_cta(uint64_t ordinal) = 0;
  /// Writes the address of each active lane (in lane order) to `out`, which holds at least 64 entries
  /// (bulk_count for TMA records); returns how many were written.
  virtual uint32_t lane_addresses(const DynamicRecord& record, uint64_t* out) const = 0;
  /// CTAs that run together, with consecutive ordinals.
  virtual uint32_t cluster_size() const { return 1; }
  /// CTAs act on each other's state while they execute (clusters): SMs then advance cycle by cycle, one after
  /// the other.
  bool couples_ctas() const { return cluster_size() > 1; }
  /// A range of global memory.
  struct Buffer {
    uint64_t address = 0, bytes = 0;
    bool stored = false;  ///< the launch may write to it
  };
  /// The memory that the launch works on, as far as its arguments show.
  virtual std::vector<Buffer> buffers() const { return {}; }
  /// CTAs interact through memory, so their behaviour depends on their order.
  virtual bool order_matters() const { return false; }
  /// The same launch on a copy of memory, which must not be written while the copy is in use. nullptr: this
  /// source has no effect on memory.
  virtual std::shared_ptr<InstructionSource> without_effect() const { return nullptr; }
  /// Nothing that can be read changes when its CTAs are executed, as far as its code and arguments show: they
  /// store to memory without values only. What CTAs store shows the rest, with `holds_values`.
  virtual bool leaves_no_values() const { return false; }
  /// The same for launches that take the same time from the same contents of the L2: all that it does follows
  /// from it. Empty if that is not known. Of launches whose sources exist at the same time.
  virtual std::string signature() const { return {}; }
  /// Whether the memory at this address holds values.
  virtual bool holds_values(uint64_t) const { return true; }

  /// Static indices of jump targets, as far as known. Sources that replay know those of some CTAs, spread
  /// over the grid.
  virtual std::vector<uint32_t> leaders();
  /// Follows these CTAs on up to `threads` host threads, with no effect on memory or on their later
  /// simulation. CTAs of a cluster are followed together, so `ordinals` names whole clusters.
  virtual BlockCounts preview(const std::vector<uint64_t>& ordinals, const BasicBlocks& blocks,
                              uint32_t threads);
  /// CTAs [first, end), whole clusters, will never be opened: performs their effects on memory now, on up to
  /// `threads` host threads. Counts their blocks, unless `blocks` is nullptr. Unless `footprints` is nullptr,
  /// it becomes the footprints of these CTAs.
  virtual BlockCounts execute(uint64_t first, uint64_t end, const BasicBlocks* blocks, uint32_t threads,
                              std::vector<Footprint>* footprints);
  /// No more instructions will be requested from the unfinished CTAs of `begun`, or from those from `first`
  /// on: performs their effects on memory now, on up to `threads` host threads. Unless `blocks` is nullptr,
  /// counts, CTA by CTA, the blocks that warps of `begun` have not begun, then those of the others.
  virtual BlockCounts finish(const std::vector<std::shared_ptr<CtaStream>>& begun, uint64_t first,
                             const BasicBlocks* blocks, uint32_t threads);
};

inline uint32_t CtaStream::take_plain(uint32_t) {
  return 0;
}
inline void CtaStream::prefetch(uint32_t, uint32_t) const {}
inline CtaStream::Awaits CtaStream::awaits(uint32_t) const {
  return Awaits::Warps;
}
inline void CtaStream::placed(uint32_t) {}
inline void CtaStream::issued(uint32_t, uint32_t, uint64_t, uint64_t) {}
inline void CtaStream::perform(uint32_t, uint32_t) {}
inline std::string CtaStream::waits_for(uint32_t) const {
  return {};
}

}  // namespace simt
