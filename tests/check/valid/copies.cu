// What looks like a race and is none: copies that read nothing, and vectors of the same values.
extern "C" __global__ void padded(const int *x, int *y, int n) {
  __shared__ int s[64];
  const unsigned to = (unsigned)__cvta_generic_to_shared(&s[threadIdx.x]);
  const int i = blockIdx.x * 64 + threadIdx.x;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(__cvta_generic_to_global(x + i)),
               "r"(i < n ? 4 : 0)
               : "memory");
  asm volatile("cp.async.wait_all;" ::: "memory");
  const int v = s[threadIdx.x];
  if (i < n) y[i] = v > 0 ? v : -v;
}
extern "C" __global__ void replicated(const int *x, int *y) {
  __shared__ __align__(16) int s[4];
  const unsigned to = (unsigned)__cvta_generic_to_shared(s);
  asm volatile("st.shared.v4.s32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3])
               : "memory");
  __syncthreads();
  y[threadIdx.x] = s[threadIdx.x % 4];
}
#if __CUDA_ARCH__ >= 900
extern "C" __global__ void replicated_rows(const int *x, int *y) {
  __shared__ __align__(16) int s[4];
  const unsigned to = (unsigned)__cvta_generic_to_shared(s);
  asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};" ::"r"(to), "r"(x[threadIdx.x % 4]) : "memory");
  __syncthreads();
  y[threadIdx.x] = s[threadIdx.x % 4];
}
#endif
