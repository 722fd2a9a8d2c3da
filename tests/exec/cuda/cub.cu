// CUB: a reduction of the whole device, one of a block, and a radix sort.
#include <cub/cub.cuh>
#include <vector>

#include "check.h"

__global__ void sum_of_block(const int* in, int* out) {
  using Reduce = cub::BlockReduce<int, 128>;
  __shared__ typename Reduce::TempStorage storage;
  const int sum = Reduce(storage).Sum(in[blockIdx.x * 128 + threadIdx.x]);
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

int main() {
  const int n = 128 * 16;
  std::vector<int> host(n), sums(16);
  for (int i = 0; i < n; ++i) host[i] = (i * 7919) % 1000;
  int *in, *out;
  CUDA(cudaMalloc(&in, n * 4));
  CUDA(cudaMalloc(&out, n * 4));
  CUDA(cudaMemcpy(in, host.data(), n * 4, cudaMemcpyHostToDevice));
  sum_of_block<<<16, 128>>>(in, out);
  CUDA(cudaMemcpy(sums.data(), out, 16 * 4, cudaMemcpyDeviceToHost));
  int total = 0, of_blocks = 0, of_device = 0;
  for (int x : host) total += x;
  for (int x : sums) of_blocks += x;
  CHECK(total == of_blocks);
  void* scratch = nullptr;
  size_t bytes = 0;
  CUDA(cub::DeviceReduce::Sum(scratch, bytes, in, out, n));
  CUDA(cudaMalloc(&scratch, bytes));
  CUDA(cub::DeviceReduce::Sum(scratch, bytes, in, out, n));
  CUDA(cudaMemcpy(&of_device, out, 4, cudaMemcpyDeviceToHost));
  CHECK(total == of_device);
  CUDA(cudaFree(scratch));
  scratch = nullptr;
  CUDA(cub::DeviceRadixSort::SortKeys(scratch, bytes, in, out, n));
  CUDA(cudaMalloc(&scratch, bytes));
  CUDA(cub::DeviceRadixSort::SortKeys(scratch, bytes, in, out, n));
  CUDA(cudaMemcpy(host.data(), out, n * 4, cudaMemcpyDeviceToHost));
  for (int i = 1; i < n; ++i) CHECK(host[i - 1] <= host[i]);
  std::puts("ok");
}
