#include "timing/memory/hash.hpp"

namespace simt {
namespace {

const Registered<SliceHash> linear_slices{
    {{"linear", "The slice's bits of the address as they are.", "GPGPU-Sim"},
     [](const SliceCount& n, const SliceAddress& a) { return a.channel * n.slices_per_channel + a.low; },
     /*power_of_two_channels=*/false,
     /*exact_slices=*/0,
     /*most_slices=*/0,
     /*linear=*/true}};

const Registered<SetIndex> linear_sets{
    {{"linear", "The lowest bits of the line's number.", "GPGPU-Sim"},
     [](uint64_t /*address*/, uint64_t line, uint32_t /*count*/) { return static_cast<uint32_t>(line); }}};

}  // namespace
}  // namespace simt
