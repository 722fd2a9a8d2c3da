#pragma once
#include <cstdint>
#include <string>

#include "isa/instruction_source.hpp"
#include "timing/base/spec.hpp"

namespace simt {

/// How many CTAs of a launch fit on an SM, and how its unified memory is split for them.
struct Occupancy {
  uint32_t ctas_per_sm = 0;
  const char* limited_by = "";     ///< "warps", "shared memory", "registers", "CTAs" or "grid"
  uint32_t shared_per_cta = 0;     ///< bytes, after allocation rules
  uint32_t registers_per_cta = 0;  ///< after allocation rules
  uint32_t carve_out_bytes = 0;    ///< shared-memory part of the unified memory
  uint32_t l1_ways = 0;
  uint32_t l1_bytes = 0;
  std::string warning;  ///< set if a CTA needs more than an SM has, and therefore runs alone
};

/// Performance model sections 2 and 4. Throws std::invalid_argument if a CTA has more warps than an SM.
Occupancy occupancy_of(const Spec& spec, const LaunchInfo& launch, uint64_t ctas);

}  // namespace simt
