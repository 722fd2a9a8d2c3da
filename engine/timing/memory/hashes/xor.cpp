#include <bit>

#include "timing/memory/hash.hpp"

namespace simt {
namespace {

const Registered<SliceHash> xor_slices{
    {{"xor", "XOR of the channel number with the bits above it.", "GPGPU-Sim"},
     [](const SliceCount& n, const SliceAddress& a) {
       const uint32_t channel = (a.channel ^ static_cast<uint32_t>(a.high)) & (n.channels_up - 1);
       return channel % n.channels * n.slices_per_channel + a.low;
     },
     /*power_of_two_channels=*/true,
     /*exact_slices=*/0,
     /*most_slices=*/0,
     /*linear=*/true}};

const Registered<SetIndex> xor_sets{
    {{"xor", "XOR of the lowest bits of the line's number with as many bits above them.", "GPGPU-Sim"},
     [](uint64_t /*address*/, uint64_t line, uint32_t count) {
       const auto bits = static_cast<uint32_t>(std::bit_width(count) - 1);
       return static_cast<uint32_t>(line ^ (line >> bits));
     }}};

}  // namespace
}  // namespace simt
