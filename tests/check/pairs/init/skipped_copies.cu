/* Asynchronous copies beyond the end are left out, and what they would have brought is used; the twin's copies are
padded with zeros.

x, y = integers(40), zeros(64)
module.reverse[1, 64](x, y, 40)
want = np.zeros(64, np.int32)
want[24:] = np.abs(x[::-1])
same(y, want)
*/
#include "instructions.cuh"
extern "C" __global__ void reverse(const int *x, int *y, int n) {
  __shared__ int buffer[64];
  const int t = threadIdx.x;
#ifdef FAULT
  if (t < n) COPY_ASYNC(&buffer[t], &x[t], 4, 4);
#else
  COPY_ASYNC(&buffer[t], t < n ? &x[t] : x, 4, t < n ? 4 : 0);
#endif
  COPY_COMMIT();
  COPY_WAIT(0);
  __syncthreads();
  const int v = buffer[63 - t];  // other: uninitialised-shared
  y[t] = v < 0 ? -v : v;         // fault: uninitialised-shared
}
