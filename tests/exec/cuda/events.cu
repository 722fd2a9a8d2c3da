// Times of events: they grow with the work, and a copy has a time, too.
#include "check.h"

__global__ void spin(float* x, int rounds) {
  float v = x[threadIdx.x];
  for (int i = 0; i < rounds; ++i) v = v * 0.5f + 1.0f;
  x[threadIdx.x] = v;
}

float milliseconds(float* x, int rounds, cudaEvent_t start, cudaEvent_t end) {
  CUDA(cudaEventRecord(start));
  spin<<<1, 32>>>(x, rounds);
  CUDA(cudaEventRecord(end));
  CUDA(cudaEventSynchronize(end));
  float ms = -1;
  CUDA(cudaEventElapsedTime(&ms, start, end));
  return ms;
}

int main(int count, char**) {
  const bool timed = count > 1;
  float* x;
  CUDA(cudaMalloc(&x, 128));
  CUDA(cudaMemset(x, 0, 128));
  cudaEvent_t start, end;
  CUDA(cudaEventCreate(&start));
  CUDA(cudaEventCreate(&end));
  const float little = milliseconds(x, 10, start, end), much = milliseconds(x, 2000, start, end);
  if (timed)
    CHECK(little > 0 && much > 2 * little);
  else
    CHECK(little == 0 && much == 0);
  CUDA(cudaEventQuery(end));
  CUDA(cudaEventDestroy(start));
  CUDA(cudaEventDestroy(end));
  std::puts("ok");
}
