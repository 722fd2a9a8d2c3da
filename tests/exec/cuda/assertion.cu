// A failed assertion of a kernel.
#include <cassert>

#include "check.h"

__global__ void less(int than) { assert(int(threadIdx.x) < than); }

int main() {
  less<<<1, 32>>>(32);
  CUDA(cudaDeviceSynchronize());
  less<<<1, 32>>>(7);
  CHECK(cudaDeviceSynchronize() == cudaErrorAssert);
  std::puts("ok");
}
