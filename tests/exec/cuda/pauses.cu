// Launches in two streams, with memory that the host shares with kernels, and pauses of as many milliseconds as the
// first argument says.
#include <unistd.h>

#include "check.h"

__global__ void scale(float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = x[i] * 1.5f + 1;
}

int main(int argc, char** argv) {
  const int pause = argc > 1 ? std::atoi(argv[1]) : 0, n = 4096;
  float *x, *host;
  CUDA(cudaMalloc(&x, n * sizeof *x));
  CUDA(cudaMallocHost(&host, n * sizeof *x));
  for (int k = 0; k < n; ++k) host[k] = 1;
  cudaStream_t streams[2];
  for (cudaStream_t& stream : streams) CUDA(cudaStreamCreate(&stream));
  CUDA(cudaMemcpy(x, host, n * sizeof *x, cudaMemcpyHostToDevice));
  for (int k = 0; k < 6; ++k) {
    scale<<<n / 512, 256, 0, streams[k % 2]>>>(x + k % 2 * (n / 2), n / 2);
    usleep(1000 * pause);
    double sum = 0;  // the host reads what it shares, as programs that check their results do
    for (int i = 0; i < n; ++i) sum += host[i];
    CHECK(sum == n);
    if (k == 3) CUDA(cudaStreamSynchronize(streams[0]));
  }
  CUDA(cudaMemcpy(host, x, n * sizeof *x, cudaMemcpyDeviceToHost));
  for (int k = 0; k < n; ++k) CHECK(host[k] == 8.125f);
  std::puts("ok");
}
