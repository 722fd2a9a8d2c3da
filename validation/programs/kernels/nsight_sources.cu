// Launches kernels of public repositories as those did whose output of Nsight Compute was published, where
// their own programs launch them otherwise. --include names the repository; the flag -DSOURCE="FILE", its
// file with the kernels.
//
//     nsight_sources KERNEL SIZE GRID BLOCK

#include <cstdio>
#include <cstdlib>
#include <cstring>

#define main main_of_the_source
#include SOURCE
#undef main

template <typename T>
static T* array(size_t count) {
  T* at = nullptr;
  if (cudaMalloc(&at, count * sizeof(T)) != cudaSuccess ||
      cudaMemset(at, 0, count * sizeof(T)) != cudaSuccess)
    exit(1);
  return at;
}

int main(int count, char** arguments) {
  if (count != 5) return 2;
  const int n = atoi(arguments[2]), grid = atoi(arguments[3]), block = atoi(arguments[4]);
#if defined(ROW_SUMS)  // rows of n numbers, 3,000 of them
  row_sum_bad<<<grid, block>>>(array<float>(size_t(3000) * n), array<float>(3000), 3000, n);
#elif defined(INTEGERS)
  vector::add<<<grid, block>>>(array<int>(n), array<int>(n), array<int>(n), n);
#else
  float *a = array<float>(n), *b = array<float>(n), *c = array<float>(n);
  KERNEL<<<grid, block>>>(a, b, c, n);
#endif
  return cudaDeviceSynchronize() != cudaSuccess;
}
