/* Atomics count in memory that holds no number yet.

x, kept = integers(64), zeros(64)
n = gpu.empty(1, np.int32)
if not fault:
    module.clear[1, 1](n)
module.keep[1, 64](x, kept, n)
assert fault or sorted(kept[: n.numpy()[0]]) == sorted(x[x > 0])
*/
extern "C" __global__ void clear(int *n) { *n = 0; }
extern "C" __global__ void keep(const int *x, int *kept, int *n) {
  if (x[threadIdx.x] <= 0) return;
  const int at = atomicAdd(n, 1);               // fault: uninitialised-global
  if (at < 64) kept[at] = x[threadIdx.x];  // other: uninitialised-global
}
