#include "timing/memory/write_policy.hpp"

namespace simt {
namespace {

const Registered<WritePolicy> registered_write_back{
    {{"write_back", "Writes stay in the line, which is written to the next level when it is evicted.",
      "GPGPU-Sim"}}};

}  // namespace
}  // namespace simt
