/* A loop until nothing changes: the flag is cleared while others still ask whether to go on.
one_order: whether threads leave the loop too early

x, y = integers(64), zeros(64)
module.halve[1, 64](x, y)
want = np.abs(x)
while want.max() > 1:
    want = np.where(want > 1, want // 2, want)
same(y, want)
*/
extern "C" __global__ void halve(const int *x, int *y) {
  __shared__ int changed;
  const int t = threadIdx.x;
  int v = abs(x[t]), again;
  do {
    if (t == 0) changed = 0;  // fault: race-shared
    __syncthreads();  // also: barrier-divergent
    if (v > 1) v /= 2, atomicOr(&changed, 1);
    __syncthreads();  // also: barrier-divergent
    again = changed;  // other: race-shared
#ifndef FAULT
    __syncthreads();
#endif
  } while (again);
  y[t] = v;
}
