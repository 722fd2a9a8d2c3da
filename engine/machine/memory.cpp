#include "machine/memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <new>

namespace simt::functional {
namespace {

constexpr uint64_t page = 4096;
constexpr size_t freed_kept = 4096;
/// Bytes of the file that all of unbacked memory shows again and again: few enough to stay in memory, and
/// enough for the host's limit on mappings (65,530) at some TB.
constexpr uint64_t sink_bytes = 64u << 20;

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

/// Bytes that an allocation takes of the address space.
uint64_t taken_by(const Allocation& a) {
  return round_up(a.size, a.is_unbacked ? page : DeviceMemory::alignment) + DeviceMemory::alignment;
}

/// An unnamed file of `size` bytes, whose pages are allocated when touched.
int make_file(uint64_t size) {
#ifdef __linux__
  const int file = memfd_create("simt device memory", MFD_CLOEXEC);
#else
  std::FILE* temporary = std::tmpfile();
  const int file = temporary ? dup(fileno(temporary)) : -1;
  if (temporary) std::fclose(temporary);
#endif
  if (file >= 0 && ftruncate(file, static_cast<off_t>(size)) == 0) return file;
  if (file >= 0) close(file);
  throw std::bad_alloc();
}

std::byte* map_file(int file, uint64_t size, int sharing) {
  void* at = mmap(nullptr, size, PROT_READ | PROT_WRITE, sharing | MAP_NORESERVE, file, 0);
  if (at == MAP_FAILED) throw std::bad_alloc();
  return static_cast<std::byte*>(at);
}

}  // namespace

AddressSpace::AddressSpace(uint64_t begin, uint64_t stride, uint32_t devices)
    : begin_(begin), stride_(stride), devices_(devices) {
  void* at = mmap(nullptr, stride * devices, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) throw std::bad_alloc();
  arena_ = static_cast<std::byte*>(at);
}

AddressSpace::~AddressSpace() {
  munmap(arena_, stride_ * devices_.size());
}

DeviceMemory::DeviceMemory(uint64_t capacity, uint64_t base, bool exact_bounds)
    : base_(base), capacity_(round_up(capacity, page)), exact_bounds_(exact_bounds) {
  file_ = make_file(capacity_);
  map(MAP_SHARED, file_);
  gaps_[base_] = capacity_;
}

DeviceMemory::DeviceMemory(uint64_t capacity, std::shared_ptr<AddressSpace> space, uint32_t number,
                           bool exact_bounds)
    : base_(space->begin_ + number * space->stride_),
      capacity_(round_up(capacity, page)),
      exact_bounds_(exact_bounds),
      space_(std::move(space)),
      number_(number) {
  if (number >= space_->devices_.size() || capacity_ > space_->stride_) throw std::bad_alloc();
  file_ = make_file(capacity_);
  std::byte* const place = space_->arena_ + number * space_->stride_;
  void* at = mmap(place, capacity_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, file_, 0);
  if (at == MAP_FAILED) {
    close(file_);
    throw std::bad_alloc();
  }
  arena_ = place;
  origin_ = reinterpret_cast<uintptr_t>(arena_) - base_;
  gaps_[base_] = capacity_;
  space_->devices_[number] = this;
}

void DeviceMemory::map(int sharing, int file) {
  arena_ = map_file(file, capacity_, sharing);
  origin_ = reinterpret_cast<uintptr_t>(arena_) - base_;
}

DeviceMemory::~DeviceMemory() {
  if (space_ && space_->devices_[number_] == this) {
    change();
    space_->devices_[number_] = nullptr;
    // The addresses stay reserved.
    mmap(arena_, capacity_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  } else if (arena_ && !space_) {
    munmap(arena_, capacity_);
  }
  if (file_ >= 0) close(file_);
}

std::unique_ptr<DeviceMemory> DeviceMemory::copy_on_write() const {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<DeviceMemory> copy(new DeviceMemory);
  copy->base_ = base_;
  copy->capacity_ = capacity_;
  copy->map(MAP_PRIVATE, file_);
  copy->used_ = used_;
  copy->exact_bounds_ = exact_bounds_;
  copy->generation_ = generation_;
  copy->live_ = live_;
  copy->gaps_ = gaps_;
  copy->freed_ = freed_;
  copy->unknown_ = unknown_;
  copy->sink_ = sink_;
  for (const auto& [address, allocation] : live_)
    if (allocation.is_unbacked) copy->map_sink(allocation);
  return copy;
}

void DeviceMemory::clear(uint64_t begin, uint64_t end) {
  // Whole pages are returned to the host, except in a copy, where they would then show the original's
  // contents.
  const uint64_t first = round_up(begin, page), last = end / page * page;
#ifdef __linux__
  const auto offset = static_cast<off_t>(first - base_);
  const auto bytes = static_cast<off_t>(last - first);
  if (file_ >= 0 && first < last &&
      fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, bytes) == 0) {
    std::fill(host(begin), host(first), std::byte{0});
    std::fill(host(last), host(end), std::byte{0});
    return;
  }
#endif
  std::fill(host(begin), host(end), std::byte{0});
}

uint64_t DeviceMemory::allocate(uint64_t size, std::string label, Owner owner) {
  const std::lock_guard lock(mutex_);
  if (size > capacity_) return 0;
  const uint64_t taken = round_up(size, alignment) + alignment;
  const bool at_end = owner == Owner::Launch;
  const auto has_room = [&](const auto& gap) { return gap.second >= taken; };
  auto gap = std::find_if(gaps_.begin(), gaps_.end(), has_room);
  if (gap == gaps_.end()) return 0;
  if (at_end) gap = std::prev(std::find_if(gaps_.rbegin(), gaps_.rend(), has_room).base());
  const uint64_t address = gap->first + (at_end ? gap->second - taken : 0);
  take(gap, address, taken, Allocation{address, size, std::move(label), owner});
  return address;
}

bool DeviceMemory::allocate_at(uint64_t address, uint64_t size, std::string label, Owner owner) {
  const std::lock_guard lock(mutex_);
  if (size > capacity_ || address % alignment != 0) return false;
  const uint64_t taken = round_up(size, alignment) + alignment;
  auto gap = gaps_.upper_bound(address);
  if (gap == gaps_.begin()) return false;
  --gap;
  const uint64_t before = address - gap->first;
  if (before > gap->second || gap->second - before < taken) return false;
  take(gap, address, taken, Allocation{address, size, std::move(label), owner});
  return true;
}

uint64_t DeviceMemory::allocate_unbacked(uint64_t size, std::string label) {
  const std::lock_guard lock(mutex_);
  if (size > capacity_) return 0;
  Allocation made{0, size, std::move(label), Owner::Host};
  made.is_unbacked = true;
  made.unknown_from = made.label;
  const uint64_t taken = taken_by(made);
  const auto has_room = [&](const auto& gap) {
    const uint64_t before = round_up(gap.first, page) - gap.first;
    return gap.second >= before && gap.second - before >= taken;
  };
  const auto gap = std::find_if(gaps_.begin(), gaps_.end(), has_room);
  if (gap == gaps_.end()) return 0;
  const uint64_t address = made.address = round_up(gap->first, page);
  try {
    map_sink(made);
  } catch (const std::bad_alloc&) {
    unmap_sink(made);
    throw;
  }
  ++unknown_;
  take(gap, address, taken, std::move(made));
  return address;
}

/// Its pages show the sink, over and over.
void DeviceMemory::map_sink(const Allocation& a) {
  if (!sink_)
    sink_ = {new int(make_file(sink_bytes)), [](int* file) {
               close(*file);
               delete file;
             }};
  const uint64_t all = round_up(a.size, page);
  for (uint64_t done = 0; done < all; done += sink_bytes)
    if (mmap(host(a.address + done), std::min(sink_bytes, all - done), PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_NORESERVE | MAP_FIXED, *sink_, 0) == MAP_FAILED)
      throw std::bad_alloc();
}

void DeviceMemory::unmap_sink(const Allocation& a) {
  // A copy, which has no file, finds zeros in pages of its own.
  const int flags = file_ >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
  const auto offset = file_ >= 0 ? static_cast<off_t>(a.address - base_) : 0;
  if (mmap(host(a.address), round_up(a.size, page), PROT_READ | PROT_WRITE, flags | MAP_NORESERVE | MAP_FIXED,
           file_, offset) == MAP_FAILED)
    throw std::bad_alloc();
}

void DeviceMemory::make_unknown(uint64_t address, const std::string& from) {
  const std::lock_guard lock(mutex_);
  const auto it = live_.find(address);
  if (it == live_.end() || !it->second.unknown_from.empty()) return;
  it->second.unknown_from = from;
  ++unknown_;
}

void DeviceMemory::make_known(uint64_t address, uint64_t size) {
  const std::lock_guard lock(mutex_);
  const auto it = live_.find(address);
  if (it == live_.end() || it->second.is_unbacked || it->second.unknown_from.empty() ||
      size < it->second.size)
    return;
  it->second.unknown_from.clear();
  --unknown_;
}

void DeviceMemory::take(std::map<uint64_t, uint64_t>::iterator gap, uint64_t address, uint64_t taken,
                        Allocation owned) {
  const uint64_t begin = gap->first, end = begin + gap->second;
  gaps_.erase(gap);
  if (begin < address) gaps_[begin] = address - begin;
  if (address + taken < end) gaps_[address + taken] = end - (address + taken);
  freed_.erase(freed_.lower_bound(address), freed_.lower_bound(address + taken));
  used_ += owned.size;
  if (watch_) watch_->allocated(owned);
  live_[address] = std::move(owned);
  change();
}

bool DeviceMemory::free(uint64_t address, Owner owner) {
  const std::lock_guard lock(mutex_);
  const auto it = live_.find(address);
  if (it == live_.end() || it->second.owner != owner) return false;
  uint64_t begin = address, size = taken_by(it->second);
  used_ -= it->second.size;
  if (!it->second.unknown_from.empty()) --unknown_;
  if (it->second.is_unbacked) unmap_sink(it->second);
  if (watch_) watch_->freed(it->second);
  if (freed_.size() >= freed_kept) freed_.clear();
  freed_[address] = it->second;
  live_.erase(it);
  change();
  clear(begin, begin + size);  // the next owner finds zeros
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

std::pair<uint64_t, uint64_t> DeviceMemory::accessible_here(uint64_t address, uint64_t size,
                                                            uint64_t device) const {
  const std::lock_guard lock(mutex_);
  auto it = live_.upper_bound(address);
  if (it == live_.begin()) return {};
  const Allocation& a = std::prev(it)->second;
  if (device != 0 && (a.open_to & device) == 0) return {};
  // An allocation takes at least as much: its size in units of the alignment, and one more.
  static_assert(granule <= 2 * alignment);
  const bool is_rounded = !exact_bounds_ && a.owner == Owner::Host;
  const uint64_t bytes = is_rounded ? round_up(a.size, granule) : a.size;
  const uint64_t offset = address - a.address;
  if (offset > bytes || size > bytes - offset) return {};
  return {a.address, bytes};
}

std::pair<uint64_t, uint64_t> DeviceMemory::accessible(uint64_t address, uint64_t size) const {
  if (address - base_ < capacity_ || !space_) return accessible_here(address, size, 0);
  for (const DeviceMemory* other : space_->devices_) {
    if (!other || address - other->base_ >= other->capacity_) continue;
    const bool all = (reached_ >> other->number_ & 1) != 0;
    return other->accessible_here(address, size, all ? 0 : uint64_t{1} << number_);
  }
  return {};
}

bool DeviceMemory::is_in_peer(uint64_t address) const {
  if (!space_ || address - base_ < capacity_) return false;
  for (const DeviceMemory* other : space_->devices_) {
    if (!other || address - other->base_ >= other->capacity_) continue;
    const std::lock_guard lock(other->mutex_);
    const auto next = other->live_.upper_bound(address);
    return next == other->live_.begin() || std::prev(next)->second.open_to != Allocation::everywhere;
  }
  return false;
}

bool DeviceMemory::open(uint64_t address, uint64_t devices) {
  const std::lock_guard lock(mutex_);
  const auto it = live_.find(address);
  if (it == live_.end()) return false;
  it->second.open_to = devices;
  change();
  return true;
}

void DeviceMemory::reach(uint32_t number, bool all) {
  const uint64_t bit = uint64_t{1} << number;
  reached_ = all ? reached_ | bit : reached_ & ~bit;
  ++generation_;
}

void DeviceMemory::change() {
  ++generation_;
  if (!space_) return;
  for (DeviceMemory* other : space_->devices_)
    if (other && other != this) ++other->generation_;
}

std::vector<Allocation> DeviceMemory::allocations() const {
  const std::lock_guard lock(mutex_);
  std::vector<Allocation> all;
  for (const auto& [address, allocation] : live_) all.push_back(allocation);
  return all;
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
