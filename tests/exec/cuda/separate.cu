// Device code in several files, linked: nvcc -rdc=true.
#include "check.h"
#include "device_code.h"

__global__ void shift(int* x) { x[threadIdx.x] = shifted(threadIdx.x); }

int main() {
  int* x;
  int host[32];
  CUDA(cudaMalloc(&x, sizeof host));
  const int ten = 10;
  shift<<<1, 32>>>(x);
  CUDA(cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 32; ++i) CHECK(host[i] == i + 5);
  CUDA(cudaMemcpyToSymbol(offset, &ten, sizeof ten));
  shift<<<1, 32>>>(x);
  CUDA(cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 32; ++i) CHECK(host[i] == i + 10);
  std::puts("ok");
}
