#pragma once
#include <cstdint>
#include <vector>

#include "timing/decoded_kernel.hpp"

namespace simt {

/// One memory transaction of a warp instruction: a 32-byte sector after coalescing.
struct Transaction {
  uint64_t address = 0;    ///< sector address
  uint32_t byte_mask = 0;  ///< bytes of the sector that the lanes access
  uint32_t lanes = 0;      ///< how many lanes it serves
};

/// An issued instruction that has not completed.
struct InFlight {
  const DecodedInstruction* instruction = nullptr;
  uint64_t mask = 0;
  uint16_t warp = 0;
  uint16_t slot = 0;                      ///< launch slot
  MemorySpace space = MemorySpace::None;  ///< after resolving generic addresses
  uint32_t passes = 0;                    ///< shared memory: passes left
  uint32_t further_lines = 0;             ///< of a load that hits the L1: lines but for the first
  uint32_t outstanding = 0;               ///< transactions whose data has not returned
  uint32_t async_group = 0;
  bool counts_as_store = false;  ///< a reduction that the warp's end waits for, as for a store
  uint64_t mbarrier = 0;
  std::vector<Transaction> transactions;  ///< not yet sent; taken from the back
};

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
