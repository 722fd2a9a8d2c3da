// Errors: those of wrong calls, which pass, and those of kernels, which stay.
#include "check.h"

__global__ void write(int* where) { *where = 1; }
__global__ void nothing() {}

int main() {
  void* memory;
  CHECK(cudaMalloc(&memory, size_t{1} << 50) == cudaErrorMemoryAllocation);
  CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
  CHECK(cudaGetLastError() == cudaSuccess);
  nothing<<<1, 4096>>>();
  CHECK(cudaPeekAtLastError() == cudaErrorInvalidConfiguration || cudaPeekAtLastError() == cudaErrorInvalidValue);
  cudaGetLastError();
  CHECK(cudaSetDevice(77) == cudaErrorInvalidDevice);
  CHECK(cudaFree(reinterpret_cast<void*>(0x1234)) == cudaErrorInvalidValue);
  cudaGetLastError();
  nothing<<<1, 1>>>();
  CUDA(cudaDeviceSynchronize());
  write<<<1, 1>>>(nullptr);
  CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
  CHECK(cudaMalloc(&memory, 4) == cudaErrorIllegalAddress);
  CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
  CUDA(cudaDeviceReset());
  CUDA(cudaMalloc(&memory, 4));
  write<<<1, 1>>>(static_cast<int*>(memory));
  CUDA(cudaDeviceSynchronize());
  std::puts("ok");
}
