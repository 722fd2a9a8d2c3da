/* A number of eight bytes lies behind an odd count of words in dynamic shared memory.

x, y = integers(32), zeros(32, np.float64)
module.means[1, 32, 1024](x, y)
same(y, x[::-1] / 2)
*/
#ifdef FAULT
#define WORDS 33
#else
#define WORDS 34
#endif
extern "C" __global__ void means(const int *x, double *y) {
  extern __shared__ __align__(16) int space[];
  double *s = (double *)(space + WORDS);
  s[threadIdx.x] = x[threadIdx.x] / 2.0;  // fault: misaligned
  __syncthreads();
  y[threadIdx.x] = s[31 - threadIdx.x];  // other: misaligned
}
