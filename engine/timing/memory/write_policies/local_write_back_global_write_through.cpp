#include "timing/memory/write_policy.hpp"

namespace simt {
namespace {

const Registered<WritePolicy> registered_local_write_back_global_write_through{
    {{"local_write_back_global_write_through",
      "Local memory is written back; a write to other memory that hits "
      "removes its sector and goes to the next level.",
      "GPGPU-Sim"},
     /*through=*/false,
     /*removes_local=*/false,
     /*removes_global=*/true}};

}  // namespace
}  // namespace simt
