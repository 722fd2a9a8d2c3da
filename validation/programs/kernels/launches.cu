// The two kernels of h100-pcie-kernels.csv, from their description and from the published traces of the second.
//
//     launches empty BLOCKS THREADS
//     launches ffma BLOCKS THREADS ITERATIONS

#include <cstdio>
#include <cstdlib>
#include <cstring>

__global__ void emptyKernel() {}

// The published traces have rounds of 128 dependent FFMAs, and no store unless the result is 0.
__global__ void ffmaKernel(int rounds) {
  float x = 0;
#pragma unroll 1
  for (int i = 0; i < rounds; ++i) {
#pragma unroll
    for (int k = 0; k < 128; ++k) x = x * 1.0001f + 2.0002f;
  }
  if (rounds > 0 && x == 0) printf("zero\n");
}

int main(int count, char** arguments) {
  if (count < 4) return 2;
  const int blocks = atoi(arguments[2]), threads = atoi(arguments[3]);
  if (!strcmp(arguments[1], "empty"))
    emptyKernel<<<blocks, threads>>>();
  else if (count > 4)
    ffmaKernel<<<blocks, threads>>>(atoi(arguments[4]));
  return cudaDeviceSynchronize() != cudaSuccess || cudaGetLastError() != cudaSuccess;
}
