// The grid barriers of the runtime for device code (libcudadevrt), as relocatable code and Numba call them.
#include "check.h"

__global__ void reverses(unsigned* x, unsigned* y, unsigned* facts, bool whole) {
  const unsigned long long handle = cudaCGGetIntrinsicHandle(cudaCGScopeGrid);
  unsigned threads = 0, grids = 0, rank = 0, grid_rank = 9;
  unsigned errors = cudaCGGetSize(&threads, &grids, handle) != cudaSuccess;
  errors += cudaCGGetRank(&rank, &grid_rank, handle) != cudaSuccess;
  errors += cudaCGGetRank(nullptr, nullptr, handle) != cudaSuccess;
  x[rank] = rank;
  for (int i = 0; i < 3; ++i) {
    const cudaError_t status = whole ? cudaCGSynchronize(handle, 0) : cudaCGSynchronizeGrid(handle, 0);
    errors += status != cudaSuccess;
    y[rank] = x[threads - 1 - rank] + i;
    errors += (whole ? cudaCGSynchronizeGrid(handle, 0) : cudaCGSynchronize(handle, 0)) != cudaSuccess;
    x[rank] = y[threads - 1 - rank];
  }
  if (grids != 1 || grid_rank != 0) errors += 1;
  if (rank == 0) facts[0] = threads;
  atomicAdd(&facts[1], errors);
}

int main() {
  const dim3 grid(3, 2, 1), block(16, 4, 2);
  const unsigned n = 3 * 2 * 16 * 4 * 2;
  unsigned *x, *y, *facts;
  CUDA(cudaMallocManaged(&x, n * 4));
  CUDA(cudaMallocManaged(&y, n * 4));
  CUDA(cudaMallocManaged(&facts, 8));
  for (bool whole : {true, false}) {
    facts[0] = facts[1] = 0;
    void* arguments[] = {&x, &y, &facts, &whole};
    CUDA(cudaLaunchCooperativeKernel((void*)reverses, grid, block, arguments));
    CUDA(cudaDeviceSynchronize());
    CHECK(facts[0] == n && facts[1] == 0);
    // Reversed twice in each round: as it was, and 0 + 1 + 2 more.
    for (unsigned i = 0; i < n; ++i) CHECK(x[i] == i + 3);
  }
  std::puts("ok");
}
