#include "timing/memory/hash.hpp"

namespace simt {
namespace {

uint64_t mix(uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdull;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ull;
  return x ^ (x >> 33);
}

const Registered<SliceHash> random_slices{
    {{"random", "A fixed pseudo-random function of the address.", "GPGPU-Sim"},
     [](const SliceCount& n, const SliceAddress& a) {
       return static_cast<uint32_t>(mix(a.whole >> n.slice_shift) % n.slices);
     }}};

}  // namespace
}  // namespace simt
