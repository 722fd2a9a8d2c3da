/* Bins lie in the shared memory of several blocks; the faulty kernel counts without atomics.
gpu: h100

x, bins = integers(128, 0, 16), zeros(16)
module.count[2, 64, 0, None, 2](x, bins)
same(bins, np.bincount(x, minlength=16))
*/
#include "instructions.cuh"
extern "C" __global__ void count(const int *x, int *bins) {
  __shared__ int own[8];
  const int t = threadIdx.x, bin = x[blockIdx.x * 64 + t];
  unsigned place;
  if (t < 8) own[t] = 0;
  CLUSTER_SYNC();
  CLUSTER_PLACE(place, &own[bin % 8], bin / 8);
#ifdef FAULT
  int v;
  CLUSTER_LOAD(v, place);       // other: race-cluster|race-shared
  CLUSTER_STORE(place, v + 1);  // fault: race-cluster|race-shared
#else
  CLUSTER_ADD(place, 1);
#endif
  CLUSTER_SYNC();
  if (t < 8) bins[blockIdx.x * 8 + t] = own[t];
}
