#pragma once
#include <array>
#include <bit>
#include <cstring>

#include "machine/code.hpp"
#include "machine/memory.hpp"

namespace simt::functional {

class Warp;
class Cta;
class Grid;
class Observer;
struct Context;

/// The operands of a barrier instruction.
struct BarrierRequest {
  enum class Reduce : uint8_t { None, Popcount, And, Or };
  uint32_t id = 0;
  uint32_t threads = 0;    ///< number of participating threads; 0: the whole CTA
  bool waits = true;       ///< false: only arrives
  bool cluster = false;    ///< barrier.cluster: across all CTAs of the cluster
  bool warpgroup = false;  ///< wgmma.wait_group: across the warps of the warpgroup; `id` is ignored
  Reduce reduce = Reduce::None;
  uint32_t predicate = 0;  ///< of the lanes, for a reduction
  bool same_barrier(const BarrierRequest& o) const {
    return id == o.id && threads == o.threads && waits == o.waits && cluster == o.cluster &&
           warpgroup == o.warpgroup && reduce == o.reduce;
  }
};

struct AccessRecord;

/// Called before a weak access to global memory takes effect; may throw to prevent it.
class AccessGate {
 public:
  virtual ~AccessGate() = default;
  virtual void check(const AccessRecord& record) = 0;
};

/// Is told of every access of kernels to global memory.
class AccessTracker {
 public:
  virtual ~AccessTracker() = default;
  /// Context::op accesses it. May throw Fault. Called on several host threads.
  virtual void accessed(const Context& c, uint64_t address) = 0;
};

/// The memory access of the Op just executed, used by timing and traces.
struct AccessRecord {
  AccessGate* gate = nullptr;
  bool weak = true;  ///< set by the executor: the Op is not Deferred
  uint32_t mask = 0;
  std::array<uint64_t, warp_lanes> address{};  ///< generic addresses of the lanes in `mask`
  bool nothing = false;                        ///< the Op accesses memory, but no lane did
  bool bulk = false;                           ///< a bulk copy, for all lanes together
  uint32_t bulk_bytes = 0;                     ///< of all its parts
  std::vector<uint64_t> bulk_parts;            ///< where its parts, of equal size, begin
  uint64_t mbarrier = 0;                       ///< the mbarrier on which a bulk copy completes
  uint32_t policy = 0;                         ///< upper half of its L2 cache policy; 0: none
};

/// An access that takes effect later than it issues (Control::Deferred).
struct DeferredAccess {
  const Op* op = nullptr;
  uint32_t mask = 0;
  bool of_clock = false;  ///< not a memory access: the value is the cycle of issue, stored in value[0][0]
  std::array<uint64_t, warp_lanes> address{};
  /// Values stored or combined, word by word as they lie in memory; for a compare-and-swap, the values to
  /// compare with come first.
  std::array<std::array<uint64_t, warp_lanes>, 4> value{};
  /// Performs the access, and writes its result to op->destination in the frame of `context`.
  void (*perform)(Context& context, DeferredAccess& access) = nullptr;
};

/// The lanes being executed, and where their state is stored. One per host thread that executes.
struct Context {
  std::array<std::byte*, 4> banks{};
  uint32_t mask = 0;   ///< lanes executing the Op; never empty in a handler
  uint32_t stack = 0;  ///< offset of the running function's stack frame in each thread's local memory
  Warp* warp = nullptr;
  Cta* cta = nullptr;
  Grid* grid = nullptr;
  DeviceMemory* memory = nullptr;
  AccessRecord* record = nullptr;      ///< nullptr if not needed
  Observer* observer = nullptr;        ///< nullptr: nothing is checked
  AccessTracker* tracker = nullptr;    ///< nullptr: all memory holds values
  bool without_products = false;       ///< nothing needs the values of matrix products
  const Op* op = nullptr;              ///< the Op that is executed; only set for the tracker
  DeferredAccess* deferred = nullptr;  ///< where Deferred ops record their access; nullptr: they take effect
                                       ///< immediately
  BarrierRequest barrier;
  std::array<uint64_t, warp_lanes> jump{};  ///< code addresses, set by a Control::Jump op
  uint32_t sleep = 0;                       ///< duration of the last nanosleep in nanoseconds
  uint64_t cycle = 0;                       ///< with timing: the cycle of issue
  uint64_t* ticks = nullptr;                ///< without timing: the clock, which counts executed instructions
  /// What %clock reads: cycles, or, without timing, the number of instructions executed.
  uint64_t now() const { return ticks ? ++*ticks : cycle; }
  /// In shared::cluster addresses: what names the CTA of rank 0, and where the CTA's own memory begins.
  uint32_t first_rank = 2;
  uint64_t own_shared = 0;
  bool concurrent = false;  ///< other host threads are executing CTAs of this grid
  bool yield = false;       ///< set by a Control::Yield op whose wait did not succeed

  template <class T>
  T* lanes(Place p) const {
    return reinterpret_cast<T*>(banks[p >> place::bank_shift] + (p & ((1u << place::bank_shift) - 1)));
  }
  uint32_t& predicate(Place p) const { return *lanes<uint32_t>(p); }
  bool full() const { return mask == full_mask; }
  int first_lane() const { return std::countr_zero(mask); }

  /// Host address of [address, address + size) in global memory. Throws Fault for `lane` if no allocation
  /// contains it.
  std::byte* global(uint64_t address, uint64_t size, int lane) {
    if (std::byte* at = one_piece(address, size)) [[likely]]
      return at;
    illegal_global(address, size, lane);
  }
  /// Host address of [address, address + size) if one allocation of global memory contains it, else nullptr.
  std::byte* one_piece(uint64_t address, uint64_t size) {
    if (generation_ == memory->generation() && recent_[latest_].holds(address, size)) [[likely]]
      return memory->host(address);
    return look_up(address, size);
  }
  /// Host address of a lane's generic address. Throws Fault.
  std::byte* generic(uint64_t address, uint64_t size, int lane);
  std::byte* shared(uint64_t address, uint64_t size, int lane);  ///< `address` within .shared::cluster
  std::byte* local(uint64_t address, uint64_t size, int lane);   ///< `address` within .local
  /// The same offset in the shared memory of the CTA with this rank.
  uint64_t in_cta(uint64_t address, uint32_t rank) const {
    return (address & window::own_shared) | uint64_t{rank + first_rank} << window::rank_shift;
  }
  /// Whether an address is in the CTA's own shared memory, if it is valid.
  bool is_own(uint64_t address) const { return address - own_shared <= window::own_shared; }

 private:
  struct Extent {
    uint64_t begin = 0, size = 0;
    bool holds(uint64_t address, uint64_t bytes) const {
      const uint64_t offset = address - begin;
      return offset < size && bytes <= size - offset;
    }
  };

  std::byte* look_up(uint64_t address, uint64_t size);
  [[noreturn]] void illegal_global(uint64_t address, uint64_t size, int lane);

  // Recently accessed allocations; kernels alternate between a few arrays.
  std::array<Extent, 8> recent_{};
  uint32_t latest_ = 0, next_ = 0;
  uint64_t generation_ = 0;
};

[[noreturn]] void misaligned(uint64_t address, uint64_t size, int lane);

}  // namespace simt::functional
