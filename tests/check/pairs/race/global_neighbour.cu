/* Threads of a block exchange elements through global memory without a barrier.

x, y = integers(128), zeros(128)
want = np.roll((2 * x).reshape(2, 64), -1, 1).ravel()
module.shift[2, 64](x, y)
same(y, want)
*/
extern "C" __global__ void shift(int *x, int *y) {
  int *own = x + blockIdx.x * 64;
  const int t = threadIdx.x;
  own[t] *= 2;  // other: race-global
#ifndef FAULT
  __syncthreads();
#endif
  y[blockIdx.x * 64 + t] = own[(t + 1) % 64];  // fault: race-global
}
