// What is between cudaProfilerStart and cudaProfilerStop: one of three launches.
#include <cstdio>

// Of cuda_profiler_api.h, which is in a separate package.
extern "C" cudaError_t cudaProfilerStart();
extern "C" cudaError_t cudaProfilerStop();

__global__ void before(int* v) {
  v[threadIdx.x] = 1;
}
__global__ void wanted(int* v) {
  v[threadIdx.x] += 2;
}

int main() {
  int* v = nullptr;
  cudaMalloc(&v, 128);
  before<<<1, 32>>>(v);
  cudaProfilerStart();
  cudaProfilerStart();  // as one
  wanted<<<1, 32>>>(v);
  cudaProfilerStop();
  wanted<<<1, 32>>>(v);
  int found = 0;
  cudaMemcpy(&found, v, 4, cudaMemcpyDeviceToHost);
  std::puts(found == 5 ? "ok" : "wrong");
}
