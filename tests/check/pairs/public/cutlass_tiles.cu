/* A block works on several tiles, whose numbers one thread passes through shared memory, too early for the next one.
Of https://github.com/NVIDIA/cutlass/pull/386, in words of our own.
one_order: a barrier that follows from the race is named in one order only

x, y = integers((5, 64)), zeros((5, 64))
module.tiles[2, 64](x, y, gpu.zeros(1, np.int32), 5)
same(y, 2 * x)
*/
extern "C" __global__ void tiles(const int *x, int *y, int *next, int count) {
  __shared__ int tile;
  const int t = threadIdx.x;
  for (;;) {
    if (t == 0) tile = atomicAdd(next, 1);  // fault: race-shared
    __syncthreads();
    const int own = tile;  // other: race-shared
    if (own >= count) break;
    y[own * 64 + t] = 2 * x[own * 64 + t];
#ifndef FAULT
    __syncthreads();
#endif
  }
}
