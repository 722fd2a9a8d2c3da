/* Several threads store the same value to one place; the twin uses an atomic.
weak: all stores have the same value

x, found = integers(64), zeros(1)
x[::5] = -1
module.negative[1, 64](x, found)
same(found, [1])
*/
extern "C" __global__ void negative(const int *x, int *found) {
  if (x[threadIdx.x] >= 0) return;
#ifdef FAULT
  *found = 1;  // fault: race-weak
#else
  atomicExch(found, 1);
#endif
}
