/* A step uses what other blocks have computed in the step before, after a barrier of its own block only.
slow: cooperative_groups.h compiles for seconds

x, a, y = integers(256), gpu.zeros(256, np.int32), zeros(256)
module.steps[4, 64](x, a, y, cooperative=True)
same(y, np.roll(2 * x, -100))
*/
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void steps(const int *x, int *a, int *y) {
  const cg::grid_group grid = cg::this_grid();
  const int i = grid.thread_rank();
  a[i] = 2 * x[i];  // other: race-global
#ifdef FAULT
  cg::this_thread_block().sync();
#else
  grid.sync();
#endif
  y[i] = a[(i + 100) % 256];  // fault: race-global
}
