/* A thread looks at a counter with an ordinary load while others count.

x, out = integers(64, 1, 5), zeros(2)
module.count[2, 32](x, out)
assert fault or (out[0] == x.sum() and out[0] >= out[1] > 0)
*/
extern "C" __global__ void count(const int *x, int *out) {
  atomicAdd(out, x[blockIdx.x * 32 + threadIdx.x]);  // other: race-global
  if (blockIdx.x == 1 && threadIdx.x == 0)
#ifdef FAULT
    out[1] = out[0];  // fault: race-global
#else
    out[1] = atomicAdd(out, 0);
#endif
}
