#include "timing/memory/hash.hpp"

namespace simt {
namespace {

const Registered<SliceHash> custom_slices{
    {{"custom", "A user-supplied function, for example compiled from Python.", "docs/policies.md"},
     [](const SliceCount& n, const SliceAddress& a) {
       const int32_t chosen = n.custom(a.whole, static_cast<int32_t>(n.slices));
       return static_cast<uint32_t>(chosen < 0 ? 0 : chosen) % n.slices;
     }}};

}  // namespace
}  // namespace simt
