/* A thread's own array is too short for the largest index.

x, y = integers(32, 0, 9), zeros(32)
x[5] = 8
module.look_up[1, 32](x, y)
same(y, 3 * x)
*/
#ifdef FAULT
#define SIZE 8
#else
#define SIZE 9
#endif
extern "C" __global__ void look_up(const int *x, int *y) {
  volatile int table[SIZE];
#pragma unroll 1
  for (int i = 0; i < SIZE; ++i) table[i] = 3 * i;
  y[threadIdx.x] = table[x[threadIdx.x]];  // fault: out-of-bounds
}
