// Threads of the host, each with its own stream, and the default stream of each thread.
#include <thread>
#include <vector>

#include "check.h"

__global__ void fill(int* x, int n, int value) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = value;
}

void work(int number) {
  const int n = 1000;
  int* x;
  CUDA(cudaMalloc(&x, n * 4));
  cudaStream_t stream;
  CUDA(cudaStreamCreate(&stream));
  std::vector<int> host(n);
  for (int round = 0; round < 5; ++round) {
    fill<<<8, 128, 0, round % 2 ? stream : cudaStreamPerThread>>>(x, n, number * 10 + round);
    CUDA(cudaStreamSynchronize(cudaStreamPerThread));
    CUDA(cudaMemcpyAsync(host.data(), x, n * 4, cudaMemcpyDeviceToHost, stream));
    CUDA(cudaStreamSynchronize(stream));
    for (int v : host) CHECK(v == number * 10 + round);
  }
  CUDA(cudaFree(x));
}

int main() {
  std::vector<std::thread> threads;
  for (int k = 0; k < 4; ++k) threads.emplace_back(work, k);
  for (std::thread& t : threads) t.join();
  std::puts("ok");
}
