#include "timing/memory/write_policy.hpp"

namespace simt {
namespace {

const Registered<WritePolicy> registered_write_evict{
    {{"write_evict", "A write that hits removes its sector and goes to the next level.", "GPGPU-Sim"},
     /*through=*/false,
     /*removes_local=*/true,
     /*removes_global=*/true}};

}  // namespace
}  // namespace simt
