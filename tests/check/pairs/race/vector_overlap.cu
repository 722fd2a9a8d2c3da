/* A vector load also reads the fourth number, which another thread writes; the twin loads three.

x, y = integers(128), zeros(32)
own = x.copy().reshape(32, 4)
module.three[1, 64](x, y)
same(y, own[:, :3].sum(1))
*/
#include "instructions.cuh"
extern "C" __global__ void three(int *x, int *y) {
  const int t = threadIdx.x;
  if (t >= 32) {
    x[4 * (t - 32) + 3] = t;  // other: race-global
    return;
  }
#ifdef FAULT
  int4 v;
  LOAD_GLOBAL4(v, x + 4 * t);  // fault: race-global
#else
  const int2 two = *(const int2 *)(x + 4 * t);
  const int3 v = make_int3(two.x, two.y, x[4 * t + 2]);
#endif
  y[t] = v.x + v.y + v.z;
}
