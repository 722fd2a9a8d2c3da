#pragma once
#include <cstdint>
#include <vector>

#include "isa/eviction.hpp"
#include "timing/warps/decoded_kernel.hpp"

namespace simt {

/// One memory transaction of a warp instruction: a 32-byte sector after coalescing.
struct Transaction {
  uint64_t address = 0;    ///< sector address
  uint32_t byte_mask = 0;  ///< bytes of the sector that the lanes access
  uint16_t lanes = 0;      ///< how many lanes it serves
  Eviction l1_eviction = Eviction::Default, l2_eviction = Eviction::Default;
};

/// An issued instruction that has not completed. It takes one of the host's cache lines.
struct alignas(64) InFlight {
  const DecodedInstruction* instruction = nullptr;
  uint64_t mask = 0;
  std::vector<Transaction> transactions;  ///< not yet sent; taken from the back
  /// The group of an asynchronous copy, or the mbarrier on which a bulk copy completes.
  uint64_t async_copy = 0;
  uint32_t passes = 0;       ///< shared memory: passes left
  uint32_t outstanding = 0;  ///< transactions whose data has not returned
  uint16_t warp = 0;
  uint16_t slot = 0;                      ///< launch slot
  uint16_t further_lines = 0;             ///< of a load that hits the L1: lines but for the first
  MemorySpace space = MemorySpace::None;  ///< after resolving generic addresses
  bool counts_as_store : 1 = false;       ///< a reduction that the warp's end waits for, as for a store
  bool has_turn : 1 = false;              ///< a load that missed, and waits for those that did before
  bool data_there : 1 = false;            ///< all data of such a load
};
static_assert(sizeof(InFlight) == 64);

/// Storage for in-flight instructions; indices stay valid until released.
class InFlightPool {
 public:
  static constexpr uint32_t none = ~0u;

  uint32_t allocate() {
    if (free_.empty()) {
      items_.emplace_back();
      return static_cast<uint32_t>(items_.size() - 1);
    }
    const uint32_t index = free_.back();
    free_.pop_back();
    return index;
  }
  void release(uint32_t index) { free_.push_back(index); }
  InFlight& operator[](uint32_t index) { return items_[index]; }
  const InFlight& operator[](uint32_t index) const { return items_[index]; }

 private:
  std::vector<InFlight> items_;
  std::vector<uint32_t> free_;
};

}  // namespace simt
