// printf of kernels, in the order in which the program waits for them.
#include "check.h"

__global__ void hello(int who) {
  if (threadIdx.x < 2) printf("hello %d from thread %d, %s %.2f\n", who, threadIdx.x, "text", 1.5 * who);
}

int main() {
  std::printf("before\n");
  std::fflush(stdout);
  hello<<<1, 32>>>(1);
  CUDA(cudaDeviceSynchronize());
  std::printf("between\n");
  hello<<<1, 32>>>(2);
  CUDA(cudaDeviceSynchronize());
  std::puts("ok");
}
