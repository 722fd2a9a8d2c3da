/* An inclusive scan in one array: between reading and adding there is no barrier.

x, y = integers(128), zeros(128)
module.scan[1, 128](x, y)
same(y, np.cumsum(x))
*/
extern "C" __global__ void scan(const int *x, int *y) {
  __shared__ int s[128];
  const int t = threadIdx.x;
  s[t] = x[t];
  __syncthreads();
  for (int d = 1; d < 128; d *= 2) {
    const int before = t >= d ? s[t - d] : 0;  // other: race-shared
#ifndef FAULT
    __syncthreads();
#endif
    s[t] += before;  // fault: race-shared
    __syncthreads();
  }
  y[t] = s[t];
}
