// The kernels of functional.py, and two of two_builds.py.
extern "C" __global__ void vecadd(const float *a, const float *b, float *c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}
extern "C" __global__ void saxpy(const float *x, float *y, float a, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] += a * x[i];
}
extern "C" __global__ void sum_tree(const float *x, float *sums, int n) {
  __shared__ float space[256];
  float sum = 0;
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) sum += x[i];
  space[threadIdx.x] = sum;
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (threadIdx.x < half) space[threadIdx.x] += space[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = space[0];
}
extern "C" __global__ void sum_shuffle(const float *x, float *sums, int n) {
  __shared__ float of_warp[8];
  float sum = 0;
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) sum += x[i];
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < 8; ++w) sum += of_warp[w];
    sums[blockIdx.x] = sum;
  }
}
extern "C" __global__ void sgemm_tiled(const float *a, const float *b, float *c, int n) {
  __shared__ float left[16][16], right[16][16];
  const int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  float sum = 0;
  for (int first = 0; first < n; first += 16) {
    left[threadIdx.y][threadIdx.x] = a[y * n + first + threadIdx.x];
    right[threadIdx.y][threadIdx.x] = b[(first + threadIdx.y) * n + x];
    __syncthreads();
#pragma unroll
    for (int s = 0; s < 16; ++s) sum += left[threadIdx.y][s] * right[s][threadIdx.x];
    __syncthreads();
  }
  c[y * n + x] = sum;
}
// Each of 256 threads makes 8 by 8 elements of a tile of 128 by 128.
extern "C" __global__ void __launch_bounds__(256)
sgemm_registers(const float *a, const float *b, float *c, int n) {
  __shared__ float left[8][128], right[8][128];
  const int t = threadIdx.x, row = t / 16 * 8, column = t % 16 * 8;
  a += blockIdx.y * 128 * n + t / 2 * n + t % 2 * 4;
  b += blockIdx.x * 128 + t / 32 * n + t % 32 * 4;
  float sum[8][8] = {};
  for (int first = 0; first < n; first += 8, a += 8, b += 8 * n) {
    const float4 u = *(const float4 *)a;
    const int k = t % 2 * 4;
    left[k][t / 2] = u.x, left[k + 1][t / 2] = u.y, left[k + 2][t / 2] = u.z, left[k + 3][t / 2] = u.w;
    *(float4 *)&right[t / 32][t % 32 * 4] = *(const float4 *)b;
    __syncthreads();
#pragma unroll
    for (int s = 0; s < 8; ++s) {
      float x[8], y[8];
      *(float4 *)x = *(float4 *)&left[s][row];
      *(float4 *)(x + 4) = *(float4 *)&left[s][row + 4];
      *(float4 *)y = *(float4 *)&right[s][column];
      *(float4 *)(y + 4) = *(float4 *)&right[s][column + 4];
#pragma unroll
      for (int i = 0; i < 8; ++i)
#pragma unroll
        for (int j = 0; j < 8; ++j) sum[i][j] += x[i] * y[j];
    }
    __syncthreads();
  }
  c += (blockIdx.y * 128 + row) * n + blockIdx.x * 128 + column;
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 8; j += 4)
      *(float4 *)&c[i * n + j] = make_float4(sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]);
}
