#pragma once
#include "process.hpp"

namespace simt::driver {

/// A memory pool. Freed memory is returned to simt immediately; the memory a pool retains is only accounted
/// for.
struct MemoryPool : Handle {
  static constexpr uint64_t tag = 0x73696d745f706f6f;
  MemoryPool(Device& of, Origin memory, uint64_t most, bool is_default)
      : Handle(tag), device(of), origin(memory), max_size(most), standard(is_default) {}
  Device& device;
  Origin origin;           ///< of its allocations: Device, Pinned or Managed
  uint64_t max_size;       ///< bytes; 0: no limit
  bool standard;           ///< a default pool, which cannot be destroyed
  bool destroyed = false;  ///< it is deleted along with its last allocation
  uint64_t open_to = 0;    ///< other devices that may access its memory: bit n for device n
  uint64_t threshold = 0;  ///< bytes it retains when memory is freed
  uint64_t used = 0, reserved = 0, most_used = 0, most_reserved = 0;
  std::map<int, int> reuse{{CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, 1},
                           {CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, 1},
                           {CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, 1}};

  uint64_t allocate(uint64_t size);
  /// Lets these other devices access its memory, what is allocated and what will be.
  void open(uint64_t devices);
  /// One of its allocations has been freed.
  void freed(uint64_t size);
  void trim(uint64_t keep);

 private:
  /// Counts retained device memory as used.
  void count(uint64_t bytes) {
    if (origin != Origin::Pinned) device.used += bytes;
  }
};

}  // namespace simt::driver
