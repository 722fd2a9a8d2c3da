#pragma once
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "check/value_flow.hpp"
#include "machine/context.hpp"

namespace simt::check {

/// Follows where a launch reads memory that holds no values (`DeviceMemory::allocate_unbacked`). What it
/// computes from them holds none either; where addresses or control flow depend on them, its time would, and
/// it ends with a Fault.
///
/// Which instructions use what another loads is found in the program's text; what they access, while they are
/// executed. Whatever the order in which that happens, the same launches are at fault: all is looked at
/// again when an instruction accesses an allocation for the first time.
class Unbacked final : public functional::AccessTracker {
 public:
  Unbacked(const Program& program, functional::DeviceMemory& memory);
  void accessed(const functional::Context& c, uint64_t address) override;

 private:
  /// An allocation, of which is known that an Op accesses it.
  struct Extent {
    uint64_t begin = 0, size = 0;
  };
  using Accesses = std::map<uint32_t, std::set<uint64_t>>;  ///< addresses of allocations

  void settle();
  [[noreturn]] void refuse(uint32_t op, const functional::Allocation& read, const ValueFlow::Use& use) const;

  const Program& program_;
  functional::DeviceMemory& memory_;
  std::mutex mutex_;
  std::vector<std::atomic<const Extent*>> latest_;  ///< by Op
  std::deque<Extent> extents_;
  Accesses reads_;   ///< by Op
  Accesses writes_;  ///< by instruction of the kernel
  std::vector<OpFacts> facts_;
  std::unique_ptr<ValueFlow> flow_;  ///< made when something is read that holds no value
};

/// Whether an address or control flow may depend on the values of matrix products of warps and warp groups.
bool decided_by_products(const Program& program);

}  // namespace simt::check
