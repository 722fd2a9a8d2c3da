/* A lock is given back with an ordinary store.

x, sum = integers(4), zeros(1)
module.add[4, 32](x, gpu.zeros(1, np.int32), sum)
same(sum, [x.sum()])
*/
extern "C" __global__ void add(const int *x, int *lock, int *sum) {
  if (threadIdx.x > 0) return;
  while (atomicCAS(lock, 0, 1) != 0) {  // other: race-global
  }
  __threadfence();
  *sum += x[blockIdx.x];  // also: race-global
  __threadfence();
#ifdef FAULT
  *lock = 0;  // fault: race-global
#else
  atomicExch(lock, 0);
#endif
}
