/* Two lanes store different values to one element.

x, y = integers(64), zeros(64)
module.scatter[1, 64](x, y)
same(y, x)
*/
#ifdef FAULT
#define AT (threadIdx.x / 2)
#else
#define AT threadIdx.x
#endif
extern "C" __global__ void scatter(const int *x, int *y) {
  y[AT] = x[threadIdx.x];  // fault: race-global
}
