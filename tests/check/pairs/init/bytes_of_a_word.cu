/* One byte of a word is set by shifts and masks, and used; the faulty kernel decides by the next byte.

x, y = integers(32, 0, 99), zeros(32)
module.pack[1, 32](x, y)
same(y, x > 50)
*/
#ifdef FAULT
#define SHIFT 8
#else
#define SHIFT 0
#endif
extern "C" __global__ void pack(const int *x, int *y) {
  __shared__ unsigned s[32];
  volatile unsigned *word = s + threadIdx.x;
  *word = (*word & 0xffffff00u) | x[threadIdx.x];  // other: uninitialised-shared
  if ((*word >> SHIFT & 0xff) > 50)                // fault: uninitialised-shared
    y[threadIdx.x] = 1;
}
