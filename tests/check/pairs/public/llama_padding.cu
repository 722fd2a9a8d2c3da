/* All lanes of a warp store, though only half of them have a value; the others' zeros hit the array behind.
Of https://github.com/ggml-org/llama.cpp/pull/28358, in words of our own.

x, y = integers(16), zeros(17)
module.quantise[1, 32, 4 * 48](x, y, 16)
same(y, np.append(x // 2, x[0]))
*/
extern "C" __global__ void quantise(const int *x, int *y, int n) {
  extern __shared__ int values[];
  int *scales = values + n;
  const int t = threadIdx.x;
  const int v = t < n ? x[t] >> 1 : 0;
#ifndef FAULT
  if (t < n)
#endif
    values[t] = v;  // other: race-shared
  if (t == 0) scales[0] = x[0];  // fault: race-shared
  __syncwarp();
  if (t < n) y[t] = values[t];
  if (t == n) y[n] = scales[0];
}
