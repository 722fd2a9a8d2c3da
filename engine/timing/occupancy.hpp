#pragma once
#include <cstdint>
#include <string>

#include "isa/instruction_source.hpp"
#include "timing/spec.hpp"

namespace simt {

/// How many CTAs of a launch an SM holds, and how it divides its unified memory for them.
struct Occupancy {
  uint32_t ctas_per_sm = 0;
  const char* limited_by = "";     ///< "warps", "shared memory", "registers", "CTAs" or "grid"
  uint32_t shared_per_cta = 0;     ///< bytes, allocation rules applied
  uint32_t registers_per_cta = 0;  ///< allocation rules applied
  uint32_t carve_out_bytes = 0;    ///< shared-memory part of the unified memory
  uint32_t l1_ways = 0;
  uint32_t l1_bytes = 0;
  std::string warning;  ///< set where the launch needs more than an SM has and runs one CTA at a time
};

/// Performance model sections 2 and 4. Throws std::invalid_argument if one CTA has more warps than an SM.
Occupancy occupancy_of(const Spec& spec, const LaunchInfo& launch, uint64_t ctas);

}  // namespace simt
