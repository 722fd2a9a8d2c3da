/* Shared memory is used for counts and then, cleared again, for other counts. The faulty kernel clears half of it
at first, too.

x, y = integers(64, 0, 8), zeros(16)
module.count[1, 64](x, y)
same(y, np.concatenate([np.bincount(x, minlength=8), np.bincount(7 - x, minlength=8)]))
*/
#ifdef FAULT
#define CLEARED 4
#else
#define CLEARED 8
#endif
extern "C" __global__ void count(const int *x, int *y) {
  __shared__ int bins[8];
  const int t = threadIdx.x;
  if (t < CLEARED) bins[t] = 0;
  __syncthreads();
  atomicAdd(&bins[x[t]], 1);  // fault: uninitialised-shared
  __syncthreads();
  if (t < 8) {
    y[t] = bins[t];  // also: uninitialised-shared
    bins[t] = 0;
  }
  __syncthreads();
  atomicAdd(&bins[7 - x[t]], 1);
  __syncthreads();
  if (t < 8) y[8 + t] = bins[t];
}
