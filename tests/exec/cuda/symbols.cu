// Constant and device variables: copied to and from by name, and their addresses.
#include "check.h"

__constant__ float weights[8];
__device__ int total = 100;
__device__ int* pointer;

__global__ void weigh(float* out) {
  out[threadIdx.x] = weights[threadIdx.x] * 2;
  atomicAdd(&total, threadIdx.x);
  if (threadIdx.x == 0) *pointer = 77;
}

int main() {
  float host[8], *out;
  for (int i = 0; i < 8; ++i) host[i] = i + 0.5f;
  CUDA(cudaMemcpyToSymbol(weights, host, sizeof host));
  CUDA(cudaMalloc(&out, sizeof host));
  int* target;
  CUDA(cudaMalloc(&target, sizeof(int)));
  CUDA(cudaMemcpyToSymbol(pointer, &target, sizeof target));
  weigh<<<1, 8>>>(out);
  CUDA(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 8; ++i) CHECK(host[i] == 2 * i + 1);
  int found, value;
  CUDA(cudaMemcpyFromSymbol(&found, total, sizeof found));
  CHECK(found == 128);
  CUDA(cudaMemcpy(&value, target, sizeof value, cudaMemcpyDefault));
  CHECK(value == 77);
  void* address;
  size_t size;
  CUDA(cudaGetSymbolAddress(&address, total));
  CUDA(cudaGetSymbolSize(&size, weights));
  CHECK(size == sizeof host);
  found = 5;
  CUDA(cudaMemcpy(address, &found, sizeof found, cudaMemcpyHostToDevice));
  weigh<<<1, 8>>>(out);
  CUDA(cudaMemcpyFromSymbol(&found, total, sizeof found));
  CHECK(found == 33);
  std::puts("ok");
}
