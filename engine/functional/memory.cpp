#include "functional/memory.hpp"

#include <sys/mman.h>

#include <new>

namespace simt::functional {
namespace {

constexpr uint64_t page = 4096;
constexpr size_t freed_kept = 4096;

uint64_t round_up(uint64_t value, uint64_t to) {
  return (value + to - 1) / to * to;
}

std::string hex(uint64_t value) {
  static const char* digits = "0123456789abcdef";
  std::string text;
  do text.insert(text.begin(), digits[value & 15]);
  while (value >>= 4);
  return "0x" + text;
}

std::string extent(const Allocation& a) {
  return "`" + a.label + "` (" + std::to_string(a.size) + " bytes at " + hex(a.address) + ")";
}

}  // namespace

DeviceMemory::DeviceMemory(uint64_t capacity) : capacity_(round_up(capacity, page)) {
  void* at =
      mmap(nullptr, capacity_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) throw std::bad_alloc();
  arena_ = static_cast<std::byte*>(at);
  gaps_[window::global] = capacity_;
}

DeviceMemory::~DeviceMemory() {
  munmap(arena_, capacity_);
}

uint64_t DeviceMemory::allocate(uint64_t size, std::string label, Owner owner) {
  const std::lock_guard lock(mutex_);
  if (size > capacity_) return 0;
  const uint64_t taken = round_up(size, alignment) + alignment;
  for (auto gap = gaps_.begin(); gap != gaps_.end(); ++gap) {
    if (gap->second < taken) continue;
    const uint64_t address = gap->first, rest = gap->second - taken;
    gaps_.erase(gap);
    if (rest) gaps_[address + taken] = rest;
    freed_.erase(freed_.lower_bound(address), freed_.lower_bound(address + taken));
    live_[address] = Allocation{address, size, std::move(label), owner};
    used_ += size;
    ++generation_;
    return address;
  }
  return 0;
}

bool DeviceMemory::free(uint64_t address, Owner owner) {
  const std::lock_guard lock(mutex_);
  const auto it = live_.find(address);
  if (it == live_.end() || it->second.owner != owner) return false;
  uint64_t begin = address, size = round_up(it->second.size, alignment) + alignment;
  used_ -= it->second.size;
  if (freed_.size() < freed_kept) freed_[address] = it->second;
  live_.erase(it);
  ++generation_;
  // The next owner finds zeros, and the host gets whole pages back.
  const uint64_t first = round_up(begin, page), last = (begin + size) / page * page;
  if (first < last) {
    madvise(host(first), last - first, MADV_DONTNEED);
    std::fill(host(begin), host(first), std::byte{0});
    std::fill(host(last), host(begin + size), std::byte{0});
  } else {
    std::fill(host(begin), host(begin + size), std::byte{0});
  }
  auto next = gaps_.lower_bound(begin);
  if (next != gaps_.end() && next->first == begin + size) {
    size += next->second;
    next = gaps_.erase(next);
  }
  if (next != gaps_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == begin) {
      before->second += size;
      return true;
    }
  }
  gaps_[begin] = size;
  return true;
}

const Allocation* DeviceMemory::find(uint64_t address, uint64_t size) const {
  const std::lock_guard lock(mutex_);
  auto it = live_.upper_bound(address);
  if (it == live_.begin()) return nullptr;
  const Allocation& a = std::prev(it)->second;
  const uint64_t offset = address - a.address;
  return offset <= a.size && size <= a.size - offset ? &a : nullptr;
}

std::string DeviceMemory::describe(uint64_t address) const {
  const std::lock_guard lock(mutex_);
  if (address < page) return "a null pointer";
  const auto holds = [&](const std::map<uint64_t, Allocation>& map) -> const Allocation* {
    auto it = map.upper_bound(address);
    if (it == map.begin()) return nullptr;
    const Allocation& a = std::prev(it)->second;
    return address - a.address < a.size ? &a : nullptr;
  };
  if (const Allocation* a = holds(live_))
    return std::to_string(address - a->address) + " bytes into " + extent(*a);
  if (const Allocation* a = holds(freed_))
    return std::to_string(address - a->address) + " bytes into freed " + extent(*a);
  const auto next = live_.upper_bound(address);
  const Allocation* below = next == live_.begin() ? nullptr : &std::prev(next)->second;
  const Allocation* above = next == live_.end() ? nullptr : &next->second;
  if (!below && !above) return "no memory is allocated";
  const uint64_t behind = below ? address - (below->address + below->size) : UINT64_MAX;
  const uint64_t before = above ? above->address - address : UINT64_MAX;
  if (behind <= before) return std::to_string(behind) + " bytes behind the end of " + extent(*below);
  return std::to_string(before) + " bytes before " + extent(*above);
}

}  // namespace simt::functional
