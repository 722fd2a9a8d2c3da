#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace simt::functional {

/// The windows of the generic address space. Global memory (including constants and kernel parameters) is
/// addressed directly; shared and local memory are in windows of 4 GiB.
namespace window {
constexpr uint64_t local = uint64_t{6} << 32;
constexpr uint64_t shared = uint64_t{7} << 32;
constexpr uint64_t global = uint64_t{16} << 32;
inline bool is_local(uint64_t address) {
  return address >> 32 == 6;
}
inline bool is_shared(uint64_t address) {
  return address >> 32 == 7;
}
/// For shared::cluster addresses: bits 24 and up name the CTA. PTX: its rank in the cluster plus 2, or 0 for
/// the CTA's own memory. Machine code: its rank. Bit 24 tells the two CTAs of a pair apart.
constexpr uint32_t rank_shift = 24;
/// The largest offset in a CTA's shared memory.
constexpr uint64_t own_shared = (uint64_t{1} << rank_shift) - 1;
}  // namespace window

/// Who allocated memory, and may free it. Launch parameters are not allocated by the program; they are placed
/// at the end of memory, so that they do not mask uses of freed memory.
enum class Owner : uint8_t { Host, Kernel, Launch };

struct Allocation {
  uint64_t address = 0;
  uint64_t size = 0;  ///< bytes requested
  std::string label;  ///< a variable's name, or what allocated it
  Owner owner = Owner::Host;
  uint64_t open_to = 0;  ///< the other devices of its address space that may access it: bit n for number n
  bool is_unbacked = false;  ///< it has no memory of the host
  /// The label of unbacked memory that what it holds comes from; empty: it holds values.
  std::string unknown_from;
  /// The host's memory, which belongs to no device.
  static constexpr uint64_t everywhere = ~uint64_t{0};
};

/// Is told what becomes of memory, other than by accesses of kernels.
class MemoryWatch {
 public:
  virtual ~MemoryWatch() = default;
  virtual void allocated(const Allocation& made) = 0;
  virtual void freed(const Allocation& freed) = 0;
  /// The host has written there.
  virtual void written(uint64_t address, uint64_t size) = 0;
};

class DeviceMemory;

/// The address space that the devices of a process share. Host addresses of all of them follow from device
/// addresses in the same way.
class AddressSpace {
 public:
  /// Reserves host addresses for so many devices (64 at most), whose memories begin `stride` bytes apart.
  /// Throws std::bad_alloc.
  AddressSpace(uint64_t begin, uint64_t stride, uint32_t devices);
  ~AddressSpace();
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

 private:
  friend DeviceMemory;
  std::byte* arena_ = nullptr;
  uint64_t begin_, stride_;
  std::vector<DeviceMemory*> devices_;  ///< by number; nullptr: without memory so far
};

/// Global memory of a simulated GPU: a reservation of host address space, committed as it is touched.
/// Addresses are the same in every run of a program. Allocation is serialised; accesses are not.
class DeviceMemory {
 public:
  static constexpr uint64_t alignment = 256;
  /// What CUDA's allocators round sizes up to: cudaMalloc places small allocations as many bytes apart, and
  /// hardware does not check accesses within them.
  static constexpr uint64_t granule = 512;

  /// base: its first address. exact_bounds: kernels may access only the bytes requested, not what they are
  /// rounded up to.
  explicit DeviceMemory(uint64_t capacity, uint64_t base = window::global, bool exact_bounds = false);
  /// The memory of device `number` of an address space, in place of an earlier one. Throws std::bad_alloc if
  /// it does not fit.
  DeviceMemory(uint64_t capacity, std::shared_ptr<AddressSpace> space, uint32_t number, bool exact_bounds);
  ~DeviceMemory();
  /// A copy that shares pages with this memory until it writes them; writes to the copy do not affect this
  /// memory. This memory must not be written while the copy is in use.
  std::unique_ptr<DeviceMemory> copy_on_write() const;
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  uint64_t base() const { return base_; }
  uint64_t capacity() const { return capacity_; }
  /// The file that backs it, which other processes may map.
  int file() const { return file_; }
  uint64_t used() const { return used_; }

  /// From now on; nullptr: nobody.
  void watch(MemoryWatch* watch) { watch_ = watch; }
  MemoryWatch* watch() const { return watch_; }

  /// Zeroed memory, followed by at least 256 unallocated bytes. 0 if there is no room.
  uint64_t allocate(uint64_t size, std::string label, Owner owner = Owner::Host);
  /// As `allocate`, at this address, a multiple of the alignment. False if the range is not free.
  bool allocate_at(uint64_t address, uint64_t size, std::string label, Owner owner = Owner::Host);
  /// As `allocate`, without memory of the host: what is stored there is lost, and loads give anything. Throws
  /// std::bad_alloc where the host has too few mappings.
  uint64_t allocate_unbacked(uint64_t size, std::string label);
  /// Whether there are allocations that hold no values.
  bool has_unknown() const { return unknown_ > 0; }
  /// From now on, what the allocation holds comes from that unbacked memory.
  void make_unknown(uint64_t address, const std::string& from);
  /// The host has written these bytes.
  void make_known(uint64_t address, uint64_t size);
  /// False if `address` is not the start of an allocation of this owner.
  bool free(uint64_t address, Owner owner = Owner::Host);

  /// Host address of a device address within an allocation.
  std::byte* host(uint64_t address) const { return reinterpret_cast<std::byte*>(origin_ + address); }
  /// The allocation that holds [address, address + size), or nullptr.
  const Allocation* find(uint64_t address, uint64_t size) const;
  /// What kernels may access around [address, address + size): the address of an allocation, and its size
  /// with what it is rounded up to. In an address space, also of other devices, if it is open to this one.
  /// {0, 0} if there is none.
  std::pair<uint64_t, uint64_t> accessible(uint64_t address, uint64_t size) const;
  /// Whether an address is in memory of another device of the address space, but not in the host's memory
  /// that this other one holds.
  bool is_in_peer(uint64_t address) const;
  /// Which other devices may access an allocation, see `Allocation`. False if there is none at the address.
  bool open(uint64_t address, uint64_t devices);
  /// Whether kernels of this device may access all memory of device `number`.
  void reach(uint32_t number, bool all);
  /// All allocations, in address order.
  std::vector<Allocation> allocations() const;
  /// Describes what is at or near an address, for messages: "12 bytes behind `x` (4,096 bytes at 0x...)".
  std::string describe(uint64_t address) const;
  /// Changes whenever an allocation is made or freed: results of earlier lookups may then be stale.
  uint64_t generation() const { return generation_; }

 private:
  DeviceMemory() = default;
  void clear(uint64_t begin, uint64_t end);
  void map_sink(const Allocation& a);
  void unmap_sink(const Allocation& a);
  /// Earlier lookups are stale, those of other devices as well.
  void change();
  /// As `accessible`, within this memory. device: the bit of the other device that asks; 0: all is open.
  std::pair<uint64_t, uint64_t> accessible_here(uint64_t address, uint64_t size, uint64_t device) const;
  /// Removes `taken` bytes at `address` from the gap that contains them.
  void take(std::map<uint64_t, uint64_t>::iterator gap, uint64_t address, uint64_t taken, Allocation owned);

  void map(int sharing, int file);

  std::byte* arena_ = nullptr;
  uintptr_t origin_ = 0;  ///< host address of device address 0, if it existed
  uint64_t base_ = window::global;
  int file_ = -1;  ///< backs the arena; a copy has none
  uint64_t capacity_ = 0;
  uint64_t used_ = 0;
  uint64_t unknown_ = 0;       ///< allocations that hold no values
  std::shared_ptr<int> sink_;  ///< the file behind all unbacked memory, made with the first
  uint64_t generation_ = 1;
  mutable std::mutex mutex_;
  std::map<uint64_t, Allocation> live_;
  std::map<uint64_t, uint64_t> gaps_;     ///< free ranges: address -> size
  std::map<uint64_t, Allocation> freed_;  ///< what was last allocated at a freed address
  bool exact_bounds_ = false;
  MemoryWatch* watch_ = nullptr;
  std::shared_ptr<AddressSpace> space_;  ///< nullptr: it is alone
  uint32_t number_ = 0;
  uint64_t reached_ = 0;  ///< devices of which kernels may access everything
};

}  // namespace simt::functional
