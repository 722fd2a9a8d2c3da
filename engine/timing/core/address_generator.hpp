#pragma once
#include <cstdint>
#include <vector>

#include "timing/base/spec.hpp"
#include "timing/core/cta_table.hpp"
#include "timing/core/in_flight.hpp"
#include "timing/core/shared_passes.hpp"
#include "timing/warps/core_traits.hpp"
#include "timing/warps/warp_table.hpp"

namespace simt {

/// Turns an issuing memory instruction into what the load/store unit sends: its address space, and its
/// transactions after coalescing or its passes through shared memory.
class AddressGenerator {
 public:
  AddressGenerator(const Spec& spec, const CoreTraits& traits, WarpTable& warps, const CtaTable& ctas)
      : spec_(spec),
        traits_(traits),
        warps_(warps),
        ctas_(ctas),
        shared_passes_(spec.shared_memory.banks, spec.shared_memory.wide_accesses_take_wavefronts) {}

  /// Fills in space, passes and transactions.
  void start(InFlight& instruction, const DynamicRecord& record);

 private:
  MemorySpace resolve_generic(const LaunchInfo& launch, uint64_t address) const;
  /// policy: the access's cache policy; 0: none.
  void set_eviction(InFlight& instruction, uint32_t policy) const;
  static void keep_filled(std::vector<Transaction>& transactions);
  void start_local(InFlight& instruction, const DynamicRecord& record, uint32_t count);
  void coalesce_sub_warps(InFlight& instruction, const DynamicRecord& record, uint32_t count);

  const Spec& spec_;
  const CoreTraits& traits_;
  WarpTable& warps_;
  const CtaTable& ctas_;
  SharedPasses shared_passes_;
  std::vector<uint64_t> addresses_;  // of the lanes
  std::vector<uint64_t> words_;      // of local memory
  std::vector<Transaction> part_;    // of a sub-warp
};

}  // namespace simt
