/* A barrier for the threads that have work, though it is one for all.

x, y = integers(128), zeros(128)
module.reverse[1, 128](x, y)
same(y, np.concatenate([x[39::-1], x[40:]]))
*/
extern "C" __global__ void reverse(const int *x, int *y) {
  __shared__ int s[128];
  const int t = threadIdx.x;
  s[t] = x[t];
  int from = t;
#ifdef FAULT
  if (t < 40) {
    __syncthreads();  // fault: barrier-divergent
    from = 39 - t;
  }
#else
  __syncthreads();
  if (t < 40) from = 39 - t;
#endif
  y[t] = s[from];
}  // other: barrier-divergent
