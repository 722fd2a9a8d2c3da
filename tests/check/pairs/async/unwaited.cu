/* A block ends while a copy to its shared memory is on its way.

x, y = integers(64), zeros(32)
module.first[1, 32](x, y)
same(y, x[:32])
*/
#include "instructions.cuh"
extern "C" __global__ void first(const int *x, int *y) {
  __shared__ int buffer[2][32];
  const int t = threadIdx.x;
  COPY_ASYNC(&buffer[0][t], &x[t], 4, 4);
  COPY_COMMIT();
  COPY_ASYNC(&buffer[1][t], &x[32 + t], 4, 4);  // fault: async-unwaited
  COPY_COMMIT();
  COPY_WAIT(1);
  y[t] = buffer[0][t];
#ifndef FAULT
  COPY_WAIT(0);
#endif
}
