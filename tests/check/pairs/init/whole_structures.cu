/* Structures are copied whole, with a field that nobody has set; only the faulty kernel decides by it.

x, y = integers(32, 1, 99), zeros(32)
module.select[1, 32](x, gpu.empty(64, np.int32), y)
same(y, 2 * x[::-1])
*/
struct __align__(8) Item {
  int key, extra;
};
extern "C" __global__ void select(const int *x, Item *copy, int *y) {
  __shared__ Item items[32];
  const int t = threadIdx.x;
  items[t].key = x[t];
  __syncthreads();
  copy[t] = items[31 - t];  // other: uninitialised-shared
  __syncthreads();
  const volatile Item *own = copy + t;
#ifdef FAULT
  if (own->extra != 0) return;  // fault: uninitialised-shared|uninitialised-global
#endif
  y[t] = 2 * own->key;
}
