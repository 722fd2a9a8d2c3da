/* A pointer that may be of shared or global memory is written through; the same memory is read by its name.

x, y, far = integers(64), zeros(64), zeros(64)
module.reverse[1, 64](x, y, far, 1)
same(y, x[::-1])
*/
extern "C" __global__ void reverse(const int *x, int *y, int *far, int near) {
  __shared__ int s[64];
  const int t = threadIdx.x;
  s[t] = 0;
  __syncthreads();
  volatile int *to = near ? s : far;
  to[t] = x[t];  // other: race-shared
#ifndef FAULT
  __syncthreads();
#endif
  y[t] = s[63 - t];  // fault: race-shared
}
