/* Raking threads sum up rows of shared memory and then use the same memory for the sum of the warp, without waiting
for each other. Of https://github.com/NVIDIA/cccl/pull/2699, in words of our own.

x, y = integers(128), zeros(1)
module.reduce[1, 128](x, y)
same(y, [x.sum()])
*/
extern "C" __global__ void reduce(const int *x, int *y) {
  __shared__ union {
    int rows[128];
    int warp[32];
  } space;
  const int t = threadIdx.x;
  space.rows[t] = x[t];
  __syncthreads();
  if (t >= 32) return;
  int sum = 0;
  for (int i = 0; i < 4; ++i) sum += space.rows[4 * t + i];  // other: race-shared
#ifndef FAULT
  __syncwarp();
#endif
  space.warp[t] = sum;  // fault: race-shared
  for (int d = 16; d > 0; d /= 2) {
    __syncwarp();
    const int v = t < d ? space.warp[t + d] : 0;
    __syncwarp();
    if (t < d) space.warp[t] += v;
  }
  if (t == 0) *y = space.warp[0];
}
