/* A flag between blocks is released and acquired, but with the scope of one block.

x, data, y = integers(32), gpu.zeros(32, np.int32), zeros(32)
module.pass_on[2, 32](x, data, gpu.zeros(1, np.int32), y)
same(y, 3 * x)
*/
#include "instructions.cuh"
#ifdef FAULT
#define SCOPE "cta"
#else
#define SCOPE "gpu"
#endif
extern "C" __global__ void pass_on(const int *x, int *data, int *flag, int *y) {
  const int t = threadIdx.x;
  if (blockIdx.x == 0) {
    data[t] = 3 * x[t];  // other: race-global
    __syncthreads();
    if (t == 0) STORE("release." SCOPE, flag, 1);  // other: race-global
  } else {
    if (t == 0) {
      int set;
      do LOAD("acquire." SCOPE, set, flag);  // also: race-global
      while (set == 0);
    }
    __syncthreads();
    y[t] = data[t];  // fault: race-global
  }
}
