/* Each row's sum is broadcast through shared memory. If it has a place of its own, the barriers between the rows'
other steps are enough; the first warp's place is overwritten too early.

x, y = integers((3, 64)), zeros((3, 64))
module.centre[1, 64](x, y, 3)
same(y, x * 64 - x.sum(1, keepdims=True))
*/
#ifdef FAULT
#define TOTAL parts[0]
#else
#define TOTAL total
#endif
extern "C" __global__ void centre(const int *x, int *y, int rows) {
  __shared__ int parts[2], total;
  const int t = threadIdx.x;
  if (t == 0) total = 0;
#pragma unroll 1
  for (int r = 0; r < rows; ++r) {
    const int own = x[r * 64 + t];
    const int sum = __reduce_add_sync(~0u, own);
    if (t % 32 == 0) parts[t / 32] = sum;  // fault: race-shared
    __syncthreads();
    if (t == 0) TOTAL = parts[0] + parts[1];
    __syncthreads();
    y[r * 64 + t] = own * 64 - TOTAL;  // other: race-shared
  }
}
