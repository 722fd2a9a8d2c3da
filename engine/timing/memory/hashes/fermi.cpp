#include "timing/memory/hash.hpp"

namespace simt {
namespace {

uint32_t set_of(uint64_t address, uint64_t line, uint32_t /*sets*/) {
  const uint64_t low = line & 7, high = (line >> 3 & 3) << 3;
  const uint64_t mixed = low ^ (address >> 13 & 7) ^ (address >> 18 & 7) ^ (address >> 23 & 7);
  return static_cast<uint32_t>(mixed | (high ^ ((address >> 14 & 3) << 3)));
}

const Registered<SetIndex> fermi_sets{
    {{"fermi", "XOR of the low set bits with three groups of address bits above, for up to 32 sets.",
      "Nugteren et al., HPCA 2014"},
     set_of,
     /*most_sets=*/32}};

}  // namespace
}  // namespace simt
