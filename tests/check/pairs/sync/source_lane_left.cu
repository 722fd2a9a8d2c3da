/* A shuffle reads from a lane that has ended, whose value is not defined.

x, y = integers(32), zeros(32)
module.neighbours[1, 32](x, y)
same(y, np.concatenate([(x + np.roll(x, -1))[:19], x[19:20], np.zeros(12, np.int32)]))
*/
extern "C" __global__ void neighbours(const int *x, int *y) {
  const int t = threadIdx.x;
  if (t >= 20) return;
  int v = x[t];
  const int other = __shfl_down_sync(0x000fffffu, v, 1);  // fault: mask
#ifdef FAULT
  v += other;
#else
  if (t < 19) v += other;
#endif
  y[t] = v;  // other: mask
}
