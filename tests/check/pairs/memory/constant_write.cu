/* A kernel writes to constant memory through a pointer.

x, y = integers(32), zeros(32)
module.scale[1, 32](x, y)
same(y, 0 * x)
*/
__constant__ int factor;
extern "C" __global__ void scale(const int *x, int *y) {
  const int own = factor;
#ifdef FAULT
  if (threadIdx.x == 0) asm volatile("st.s32 [%0], 3;" ::"l"(&factor) : "memory");  // fault: read-only-write
#endif
  y[threadIdx.x] = own * x[threadIdx.x];
}
