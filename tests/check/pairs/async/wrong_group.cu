/* Two tables are copied, in two groups; the wait before the second is used is for the first only.

x, y = integers(64), zeros(32)
module.sum[1, 32](x, y)
same(y, x[:32] + x[32:])
*/
#include "instructions.cuh"
#ifdef FAULT
#define LEFT 1
#else
#define LEFT 0
#endif
extern "C" __global__ void sum(const int *x, int *y) {
  __shared__ int first[32], second[32];
  const int t = threadIdx.x;
  COPY_ASYNC(&first[t], &x[t], 4, 4);
  COPY_COMMIT();
  COPY_ASYNC(&second[t], &x[32 + t], 4, 4);  // other: race-async|async-unwaited
  COPY_COMMIT();
  COPY_WAIT(1);
  int v = first[t];
  COPY_WAIT(LEFT);
  v += second[t];   // fault: race-async
  y[t] = v;
}
