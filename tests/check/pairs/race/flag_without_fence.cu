/* A block passes data to another and sets a volatile flag, without fences.

x, data, y = integers(32), gpu.zeros(32, np.int32), zeros(32)
module.pass_on[2, 32](x, data, gpu.zeros(1, np.int32), y)
same(y, 3 * x)
*/
#ifdef FAULT
#define FENCE()
#else
#define FENCE __threadfence
#endif
extern "C" __global__ void pass_on(const int *x, int *data, volatile int *flag, int *y) {
  const int t = threadIdx.x;
  if (blockIdx.x == 0) {
    data[t] = 3 * x[t];  // other: race-global
    __syncthreads();
    FENCE();
    if (t == 0) *flag = 1;
  } else {
    while (*flag == 0) {
    }
    FENCE();
    y[t] = data[t];  // fault: race-global
  }
}
