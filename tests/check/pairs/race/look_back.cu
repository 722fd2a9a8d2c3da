/* A chained scan over blocks. The faulty one passes sum and flag in two words without fences; in the twin, one
64-bit word holds both, which needs no fence.

x, y = integers(4), zeros(4)
module.chain[4, 1](x, gpu.zeros(4, np.uint64), gpu.zeros(4, np.int32), y)
same(y, np.cumsum(x))
*/
extern "C" __global__ void chain(const int *x, unsigned long long *states, int *sums, int *y) {
  const int b = blockIdx.x;
  volatile unsigned long long *state = states;
  int before = 0;
  if (b > 0) {
    unsigned long long word;
    while (!((word = state[b - 1]) >> 32)) {
    }
#ifdef FAULT
    before = sums[b - 1];  // fault: race-global
#else
    before = (int)word;
#endif
  }
  const int sum = before + x[b];
#ifdef FAULT
  sums[b] = sum;  // other: race-global
  state[b] = 1ull << 32;
#else
  state[b] = 1ull << 32 | (unsigned)sum;
#endif
  y[b] = sum;
}
