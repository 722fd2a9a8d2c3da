#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "check.hpp"

// Memory of the program's heap that is registered for the device and given back.

namespace {

const char* const ptx = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry increment(.param .u64 bytes) {
  .reg .b64 %a, %i; .reg .b32 %t, %v;
  ld.param.u64 %a, [bytes]; mov.u32 %t, %tid.x; cvt.u64.u32 %i, %t; add.u64 %a, %a, %i;
  ld.global.u8 %v, [%a]; add.u32 %v, %v, 1; st.global.u8 [%a], %v;
  ret; }
)";

}  // namespace

int main() {
  start();
  const CUfunction increment = function(load(ptx), "increment");
  // Of many sizes, with free memory of the heap behind each: what the library allocates may come to lie in
  // the page that ends what is registered.
  for (size_t bytes = 200; bytes < 40'000; bytes += 1'800) {
    auto* const used = static_cast<unsigned char*>(std::malloc(bytes));
    void* const hole = std::malloc(bytes + 8192);
    void* const end = std::malloc(5'000);
    std::fill_n(used, bytes, static_cast<unsigned char>(41));
    std::free(hole);
    OK(cuMemHostRegister(used, bytes, CU_MEMHOSTREGISTER_DEVICEMAP));
    CUdeviceptr device;
    OK(cuMemHostGetDevicePointer(&device, used, 0));
    launch(increment, 100, device + bytes - 100);
    OK(cuCtxSynchronize());
    OK(cuMemHostUnregister(used));
    RETURNS(cuMemHostUnregister(used), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    for (size_t k = 0; k < bytes; ++k) CHECK(used[k] == (k < bytes - 100 ? 41 : 42));
    std::free(used);
    std::free(end);
  }
  std::puts("passed");
}
