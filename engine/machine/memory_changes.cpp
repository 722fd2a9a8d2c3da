#include "machine/memory_changes.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace simt::functional {
namespace {

constexpr uint64_t page = MemoryChanges::page;
constexpr size_t mask_bytes = page / 8;
constexpr uint64_t pages_at_once = 1 << 16;

// Bits of /proc/self/pagemap (Linux, Documentation/admin-guide/mm/pagemap.rst).
constexpr uint64_t present = uint64_t{1} << 63, swapped = uint64_t{1} << 62, of_file = uint64_t{1} << 61;

/// A page of a private mapping that was written: it is no longer one of the file.
bool written(uint64_t state) {
  return (state & (present | swapped)) != 0 && (state & of_file) == 0;
}

}  // namespace

MemoryChanges::MemoryChanges(DeviceMemory& memory, const DeviceMemory& copy)
    : memory_(memory), copy_(copy), pagemap_(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)) {
  for (const Allocation& a : copy.allocations()) {
    const uint64_t begin = a.address / page * page, end = (a.address + a.size + page - 1) / page * page;
    // Small gaps are looked at rather than making another range.
    if (!ranges_.empty() && begin <= ranges_.back().second + 64 * page)
      ranges_.back().second = std::max(ranges_.back().second, end);
    else
      ranges_.emplace_back(begin, end);
  }
  const uint64_t last = memory.base() + memory.capacity();
  for (auto& range : ranges_) range.second = std::min(range.second, last);
  if (!ranges_.empty()) at_ = ranges_[0].first;
}

MemoryChanges::~MemoryChanges() {
  if (pagemap_ >= 0) close(pagemap_);
}

void MemoryChanges::find_written(uint64_t begin, uint64_t end) {
  const uint64_t pages = std::min((end - begin) / page, pages_at_once);
  states_begin_ = begin;
  states_.resize(pages);
  const auto offset = reinterpret_cast<uintptr_t>(copy_.host(begin)) / page * sizeof(uint64_t);
  const auto bytes = static_cast<ssize_t>(pages * sizeof(uint64_t));
  // Without this file every page is compared.
  if (pagemap_ < 0 ||
      pread(pagemap_, states_.data(), static_cast<size_t>(bytes), static_cast<off_t>(offset)) != bytes)
    std::fill(states_.begin(), states_.end(), present);
}

std::vector<std::byte> MemoryChanges::take(size_t limit) {
  std::vector<std::byte> found;
  while (range_ < ranges_.size() && found.size() < limit) {
    const uint64_t end = ranges_[range_].second;
    if (at_ >= end) {
      if (++range_ < ranges_.size()) at_ = ranges_[range_].first;
      states_.clear();
      continue;
    }
    uint64_t index = (at_ - states_begin_) / page;
    if (at_ < states_begin_ || index >= states_.size()) {
      find_written(at_, end);
      index = 0;
    }
    if (written(states_[index])) add(at_, found);
    at_ += page;
  }
  return found;
}

void MemoryChanges::add(uint64_t address, std::vector<std::byte>& found) {
  std::byte* before = memory_.host(address);
  const std::byte* after = copy_.host(address);
  if (std::memcmp(before, after, page) == 0) return;
  const size_t begin = found.size();
  found.resize(begin + sizeof address + mask_bytes + page);
  std::byte* out = found.data() + begin;
  std::memcpy(out, &address, sizeof address);
  std::byte* mask = out + sizeof address;
  std::byte* values = mask + mask_bytes;
  for (size_t word = 0; word < mask_bytes; ++word) {
    const std::byte *b = before + 8 * word, *a = after + 8 * word;
    uint32_t bits = 0;
    if (std::memcmp(a, b, 8) != 0)
      for (uint32_t i = 0; i < 8; ++i)
        if (a[i] != b[i]) {
          bits |= 1u << i;
          *values++ = a[i];
        }
    mask[word] = static_cast<std::byte>(bits);
  }
  std::memcpy(before, after, page);
  found.resize(static_cast<size_t>(values - found.data()));
}

bool apply_changes(DeviceMemory& memory, const std::byte* changes, size_t size) {
  const std::byte* const end = changes + size;
  while (changes < end) {
    uint64_t address;
    if (static_cast<size_t>(end - changes) < sizeof address + mask_bytes) return false;
    std::memcpy(&address, changes, sizeof address);
    const uint64_t offset = address - memory.base();
    if (address % page != 0 || offset >= memory.capacity() || memory.capacity() - offset < page) return false;
    const std::byte* mask = changes + sizeof address;
    const std::byte* values = mask + mask_bytes;
    size_t count = 0;
    for (size_t word = 0; word < mask_bytes; ++word)
      count += static_cast<size_t>(std::popcount(static_cast<uint8_t>(mask[word])));
    if (static_cast<size_t>(end - values) < count) return false;
    std::byte* to = memory.host(address);
    for (size_t word = 0; word < mask_bytes; ++word, to += 8) {
      const auto bits = static_cast<uint32_t>(mask[word]);
      if (bits == 0xff) {
        std::memcpy(to, values, 8);
        values += 8;
      } else {
        for (uint32_t rest = bits; rest; rest &= rest - 1) to[std::countr_zero(rest)] = *values++;
      }
    }
    changes = values;
  }
  return true;
}

}  // namespace simt::functional
