/* A table in constant memory is indexed beyond its end.

x, y = integers(32, 0, 5), zeros(32)
x[7] = 4
module.variable("table", np.int32).set(np.arange(4 if fault else 5) * 10)
module.look_up[1, 32](x, y)
same(y, 10 * x)
*/
#ifdef FAULT
__constant__ int table[4], next_one[4];
#else
__constant__ int table[5], next_one[4];
#endif
extern "C" __global__ void look_up(const int *x, int *y) {
  y[threadIdx.x] = table[x[threadIdx.x]] + next_one[0];  // fault: out-of-bounds
}
