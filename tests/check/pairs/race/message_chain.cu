/* Block 0 tells block 1, which tells block 2: order is transitive only if block 1 acquires.

x, data, y = integers(1), gpu.zeros(1, np.int32), zeros(1)
module.relay[3, 1](x, data, gpu.zeros(2, np.int32), y)
same(y, x)
*/
#include "instructions.cuh"
#ifdef FAULT
#define ORDER "relaxed.gpu"
#else
#define ORDER "acquire.gpu"
#endif
extern "C" __global__ void relay(const int *x, int *data, int *flags, int *y) {
  int set;
  if (blockIdx.x == 0) {
    *data = *x;  // other: race-global
    STORE("release.gpu", flags, 1);
  } else if (blockIdx.x == 1) {
    do LOAD(ORDER, set, flags);
    while (set == 0);
    STORE("release.gpu", flags + 1, 1);
  } else {
    do LOAD("acquire.gpu", set, flags + 1);
    while (set == 0);
    *y = *data;  // fault: race-global
  }
}
