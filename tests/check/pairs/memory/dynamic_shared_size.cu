/* The launch gives less shared memory than the kernel uses.

x, y = integers(64), zeros(64)
module.reverse[1, 64, 4 * (60 if fault else 64)](x, y)
same(y, x[::-1])
*/
extern "C" __global__ void reverse(const int *x, int *y) {
  extern __shared__ int s[];
  s[threadIdx.x] = x[threadIdx.x];  // fault: out-of-bounds
  __syncthreads();
  y[threadIdx.x] = s[63 - threadIdx.x];  // other: out-of-bounds
}
