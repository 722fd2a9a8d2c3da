#include <unistd.h>

#include "driver.hpp"

// Destructors of static objects run after those of the first thread's variables, and free device memory.

namespace {

struct Memory {
  CUdeviceptr address = 0;
  CUcontext context = nullptr;
  ~Memory() {
    CUcontext current = nullptr;
    if (cuCtxGetCurrent(&current) != CUDA_SUCCESS || current != context || cuMemFree(address) != CUDA_SUCCESS)
      _exit(3);
  }
};
Memory memory;

}  // namespace

int main() {
  const Gpu gpu;
  memory.context = gpu.context;
  OK(cuMemAlloc(&memory.address, 1 << 20));
  launch(gpu.count, 1, memory.address, 7u);
  CHECK(word(memory.address) == 7);
  std::puts("passed");
}
