/* A barrier of the grid by hand: the block's first thread arrives before the others have stored.

x, a, y = integers(256), gpu.zeros(256, np.int32), zeros(256)
module.reverse[4, 64](x, a, gpu.zeros(1, np.uint32), y, cooperative=True)
same(y, x[::-1])
*/
extern "C" __global__ void reverse(const int *x, int *a, unsigned *arrived, int *y) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  a[i] = x[i];  // other: race-global
#ifndef FAULT
  __syncthreads();
#endif
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(arrived, 1);
    while (*(volatile unsigned *)arrived < gridDim.x) {
    }
    __threadfence();
  }
  __syncthreads();
  y[i] = a[255 - i];  // fault: race-global
}
