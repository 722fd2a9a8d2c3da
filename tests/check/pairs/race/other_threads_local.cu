/* A thread passes the address of its local variable to another thread, for which it means another place.

x, y = integers(32), zeros(32)
module.share[1, 32](x, y)
same(y, np.roll(x, -1))
*/
extern "C" __global__ void share(const int *x, int *y) {
  __shared__ int *places[32];
  __shared__ int values[32];
  const int t = threadIdx.x;
  int own[2];
  own[t & 1] = x[t], own[~t & 1] = 0;
#ifdef FAULT
  places[t] = &own[t & 1];  // other: race-local
#else
  values[t] = own[t & 1];
  places[t] = &values[t];
#endif
  __syncthreads();
  y[t] = *(volatile int *)places[(t + 1) % 32];  // fault: race-local
}
