/* A spin lock around a sum: lock and unlock are relaxed atomics, which order nothing.

x, sum = integers(4), zeros(1)
module.add[4, 32](x, gpu.zeros(1, np.int32), sum)
same(sum, [x.sum()])
*/
extern "C" __global__ void add(const int *x, int *lock, int *sum) {
  if (threadIdx.x > 0) return;
  while (atomicCAS(lock, 0, 1) != 0) {
  }
#ifndef FAULT
  __threadfence();
#endif
  *sum += x[blockIdx.x];  // fault: race-global
#ifndef FAULT
  __threadfence();
#endif
  atomicExch(lock, 0);
}
