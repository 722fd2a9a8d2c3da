#include "timing/memory/replacement.hpp"

namespace simt {
namespace {

const Registered<ReplacementPolicy> registered_fifo{
    {{"fifo", "First in, first out: the line that was taken first.", "GPGPU-Sim"},
     /*renewed_by_use=*/false}};

}  // namespace
}  // namespace simt
