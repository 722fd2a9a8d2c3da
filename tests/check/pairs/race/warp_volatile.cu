/* A warp reduces with volatile accesses instead of __syncwarp(), as before Volta.
weak: volatile accesses are not ordered, but they are no data race

x, sums = integers(64), zeros(1)
module.reduce[1, 32](x, sums)
same(sums, [x.sum()])
*/
extern "C" __global__ void reduce(const int *x, int *sums) {
  __shared__ int space[64];
  volatile int *s = space;
  const int t = threadIdx.x;
  space[t] = x[t], space[t + 32] = x[t + 32];
  __syncwarp();
  for (int d = 32; d > 0; d /= 2) {
    const int v = s[t] + s[t + d];  // other: race-weak
#ifndef FAULT
    __syncwarp();
#endif
    s[t] = v;  // fault: race-weak
#ifndef FAULT
    __syncwarp();
#endif
  }
  if (t == 0) sums[0] = s[0];
}
