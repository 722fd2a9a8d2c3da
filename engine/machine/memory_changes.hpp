#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "machine/memory.hpp"

namespace simt::functional {

/// The bytes of `memory` that differ in `copy`, which `memory.copy_on_write()` made and a launch has written.
/// Only pages that were written are compared. Neither may be accessed meanwhile.
///
/// The form: for each page, its address (8 bytes), a bit for each of its bytes, and the bytes whose bit is
/// set.
class MemoryChanges {
 public:
  static constexpr uint64_t page = 4096;

  MemoryChanges(DeviceMemory& memory, const DeviceMemory& copy);
  ~MemoryChanges();
  MemoryChanges(const MemoryChanges&) = delete;
  MemoryChanges& operator=(const MemoryChanges&) = delete;

  /// The next changes, of about `limit` bytes in this form; they are made in `memory` as well. Empty after
  /// the last.
  std::vector<std::byte> take(size_t limit);

 private:
  /// Reads the states of the pages from `begin` on, all in one range, into `states_`.
  void find_written(uint64_t begin, uint64_t end);
  void add(uint64_t address, std::vector<std::byte>& found);

  DeviceMemory& memory_;
  const DeviceMemory& copy_;
  int pagemap_;
  std::vector<std::pair<uint64_t, uint64_t>> ranges_;  ///< of pages that hold allocations
  size_t range_ = 0;
  uint64_t at_ = 0;               ///< within the range: the next page to look at
  std::vector<uint64_t> states_;  ///< of the pages from `states_begin_` on
  uint64_t states_begin_ = 0;
};

/// Makes changes in this form. False if they are malformed or outside of the memory.
bool apply_changes(DeviceMemory& memory, const std::byte* changes, size_t size);

}  // namespace simt::functional
