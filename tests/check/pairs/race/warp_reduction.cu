/* The last levels of a reduction rely on the lanes of a warp running in lockstep.

x, sums = integers(64), zeros(1)
module.reduce[1, 64](x, sums)
same(sums, [x.sum()])
*/
extern "C" __global__ void reduce(const int *x, int *sums) {
  __shared__ int s[64];
  const int t = threadIdx.x;
  s[t] = x[t];
  __syncthreads();
  if (t >= 32) return;
  for (int d = 32; d > 0; d /= 2) {
    const int v = s[t + d];  // other: race-shared
#ifndef FAULT
    __syncwarp();
#endif
    s[t] += v;  // fault: race-shared
#ifndef FAULT
    __syncwarp();
#endif
  }
  if (t == 0) sums[0] = s[0];
}
