/* All lanes take the first lane's value, which also stores its own again, while the others read it.
Of https://github.com/kokkos/kokkos/pull/4855, in words of our own.
weak: the value stays the same

x, y = integers(32), zeros(32)
module.broadcast[1, 32](x, y)
same(y, np.full(32, x[0]))
*/
extern "C" __global__ void broadcast(const int *x, int *y) {
  __shared__ int values[32];
  const int lane = threadIdx.x;
  volatile int *value = values + lane;
  values[lane] = x[lane];
  __syncwarp();
#ifndef FAULT
  if (lane > 0)
#endif
    *value = *(value - lane);  // fault: race-shared|race-weak
  __syncwarp();
  y[lane] = *value;
}
