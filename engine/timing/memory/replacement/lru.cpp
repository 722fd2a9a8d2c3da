#include "timing/memory/replacement.hpp"

namespace simt {
namespace {

const Registered<ReplacementPolicy> registered_lru{
    {{"lru", "The least recently used line.", "GPGPU-Sim"}, /*renewed_by_use=*/true}};

}  // namespace
}  // namespace simt
