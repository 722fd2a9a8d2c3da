#include "timing/memory/write_policy.hpp"

namespace simt {
namespace {

const Registered<WritePolicy> registered_write_through{
    {{"write_through", "Writes stay in the line and go to the next level at once.", "GPGPU-Sim"},
     /*through=*/true}};

}  // namespace
}  // namespace simt
