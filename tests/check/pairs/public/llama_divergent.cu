/* Some warps combine results, with a barrier of the whole block among them.
Of https://github.com/ggml-org/llama.cpp/pull/27870, in words of our own.

x, y = integers((4, 32)), zeros((2, 32))
module.combine[1, (32, 4)](x, y)
same(y, x[::2] + x[1::2])
*/
extern "C" __global__ void combine(const int *x, int *y) {
  __shared__ int s[4][32];
  const int i = threadIdx.x, j = threadIdx.y;
  s[j][i] = x[j * 32 + i];
  __syncthreads();
#ifdef FAULT
  if (j % 2 == 0) {
    const int sum = s[j][i] + s[j + 1][i];
    __syncthreads();  // fault: barrier-divergent
    y[j / 2 * 32 + i] = sum;
  }
#else
  const int sum = j % 2 == 0 ? s[j][i] + s[j + 1][i] : 0;
  __syncthreads();
  if (j % 2 == 0) y[j / 2 * 32 + i] = sum;
#endif
}  // other: barrier-divergent
