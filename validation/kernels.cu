// Kernels by which a GPU is judged: what programs commonly do, one thing each.
//
// Elements are float unless a name says otherwise; n counts elements, rows or a side, as programs.py says.

#include <cuda_fp16.h>
#include <mma.h>

#define AT(i) const int i = blockIdx.x * blockDim.x + threadIdx.x
#define KERNEL extern "C" __global__ void

// --- streams ---

KERNEL copy(const float4* x, float4* y, int n) {
  AT(i);
  if (i < n) y[i] = x[i];
}
KERNEL triad(const float* x, const float* y, float* z, float a, int n) {
  AT(i);
  if (i < n) z[i] = x[i] + a * y[i];
}
KERNEL triad_double(const double* x, const double* y, double* z, double a, int n) {
  AT(i);
  if (i < n) z[i] = x[i] + a * y[i];
}
KERNEL strided(const float* x, float* y, int stride, int n) {
  AT(i);
  if (i < n) y[i] = x[static_cast<long long>(i) * stride];
}
KERNEL gather(const float* x, const int* index, float* y, int n) {
  AT(i);
  if (i < n) y[i] = x[index[i]];
}
KERNEL scatter(const float* x, const int* index, float* y, int n) {
  AT(i);
  if (i < n) y[index[i]] = x[i];
}
KERNEL gelu_half(const __half2* x, __half2* y, int n) {
  AT(i);
  if (i >= n) return;
  const float2 v = __half22float2(x[i]);
  const float a = 0.5f * v.x * (1 + tanhf(0.79788456f * (v.x + 0.044715f * v.x * v.x * v.x)));
  const float b = 0.5f * v.y * (1 + tanhf(0.79788456f * (v.y + 0.044715f * v.y * v.y * v.y)));
  y[i] = __floats2half2_rn(a, b);
}

// --- reductions, scans, sorts ---

__device__ __forceinline__ float warp_sum(float v) {
  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(~0u, v, d);
  return v;
}
// The sum over a CTA of at most 1024 threads, in every thread.
__device__ float block_sum(float v) {
  __shared__ float of_warp[32];
  v = warp_sum(v);
  __syncthreads();
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = v;
  __syncthreads();
  return warp_sum(threadIdx.x % 32 < blockDim.x / 32 ? of_warp[threadIdx.x % 32] : 0);
}
KERNEL reduce(const float* x, float* partial, int n) {
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}
KERNEL dot(const float* x, const float* y, float* total, int n) {
  AT(i);
  const float sum = block_sum(i < n ? x[i] * y[i] : 0);
  if (threadIdx.x == 0) atomicAdd(total, sum);
}
// Inclusive sums within each CTA's elements.
KERNEL scan(const unsigned* x, unsigned* y, int n) {
  __shared__ unsigned part[2][256];
  AT(i);
  int t = threadIdx.x, from = 0;
  part[0][t] = i < n ? x[i] : 0;
  for (int d = 1; d < 256; d *= 2, from ^= 1) {
    __syncthreads();
    part[from ^ 1][t] = part[from][t] + (t >= d ? part[from][t - d] : 0);
  }
  __syncthreads();
  if (i < n) y[i] = part[from][t];
}
// Each CTA sorts 512 elements.
KERNEL bitonic(unsigned* x) {
  __shared__ unsigned part[512];
  unsigned* mine = x + blockIdx.x * 512;
  const int t = threadIdx.x;
  part[t] = mine[t], part[t + 256] = mine[t + 256];
  for (int size = 2; size <= 512; size *= 2)
    for (int d = size / 2; d > 0; d /= 2) {
      __syncthreads();
      const int low = 2 * t - (t & (d - 1)), high = low + d;
      const bool up = (low & size) == 0;
      const unsigned a = part[low], b = part[high];
      if ((a > b) == up) part[low] = b, part[high] = a;
    }
  __syncthreads();
  mine[t] = part[t], mine[t + 256] = part[t + 256];
}

// --- atomics ---

KERNEL histogram_shared(const unsigned* x, unsigned* bins, int n) {
  __shared__ unsigned mine[256];
  mine[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&mine[x[i] % 256], 1);
  __syncthreads();
  atomicAdd(&bins[threadIdx.x], mine[threadIdx.x]);
}
KERNEL histogram_global(const unsigned* x, unsigned* bins, int n) {
  AT(i);
  if (i < n) atomicAdd(&bins[x[i] % 4096], 1);
}

// --- matrices ---

KERNEL transpose(const float* x, float* y, int n) {
  __shared__ float tile[32][33];
  const int c = blockIdx.x * 32, r = blockIdx.y * 32, t = threadIdx.x % 32, u = threadIdx.x / 32;
  for (int k = u; k < 32; k += 8) tile[k][t] = x[(r + k) * n + c + t];
  __syncthreads();
  for (int k = u; k < 32; k += 8) y[(c + k) * n + r + t] = tile[t][k];
}
KERNEL transpose_naive(const float* x, float* y, int n) {
  const int c = blockIdx.x * 32 + threadIdx.x % 32;
  for (int r = blockIdx.y * 32 + threadIdx.x / 32, k = 0; k < 32; k += 8) y[c * n + r + k] = x[(r + k) * n + c];
}
// 64 x 64 results a CTA of 256 threads, 4 x 4 a thread.
KERNEL __launch_bounds__(256) sgemm(const float* a, const float* b, float* c, int n) {
  __shared__ __align__(16) float left[16][68], right[16][64];
  const int t = threadIdx.x, x = t % 16 * 4, y = t / 16 * 4, k = t % 4 * 4, m = t / 4;
  a += (blockIdx.y * 64 + m) * n + k;
  b += blockIdx.x * 64 + t / 16 * n + x;
  float sum[4][4] = {};
  for (int first = 0; first < n; first += 16, a += 16, b += 16 * n) {
    const float4 u = *reinterpret_cast<const float4*>(a);
    left[k][m] = u.x, left[k + 1][m] = u.y, left[k + 2][m] = u.z, left[k + 3][m] = u.w;
    *reinterpret_cast<float4*>(&right[t / 16][x]) = *reinterpret_cast<const float4*>(b);
    __syncthreads();
#pragma unroll
    for (int s = 0; s < 16; ++s) {
      const float4 p = *reinterpret_cast<float4*>(&left[s][y]), q = *reinterpret_cast<float4*>(&right[s][x]);
      const float column[4] = {p.x, p.y, p.z, p.w}, row[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) sum[i][j] += column[i] * row[j];
    }
    __syncthreads();
  }
  c += (blockIdx.y * 64 + y) * n + blockIdx.x * 64 + x;
  for (int i = 0; i < 4; ++i)
    *reinterpret_cast<float4*>(c + i * n) = make_float4(sum[i][0], sum[i][1], sum[i][2], sum[i][3]);
}
// Tensor cores from shared memory: 64 x 64 results a CTA of four warps, 32 x 32 a warp.
KERNEL __launch_bounds__(128) hgemm(const __half* a, const __half* b, float* c, int n) {
  using namespace nvcuda::wmma;
  __shared__ __align__(32) __half left[64][40], right[32][72];
  fragment<accumulator, 16, 16, 16, float> sum[2][2];
  for (auto& row : sum)
    for (auto& part : row) fill_fragment(part, 0.0f);
  const int t = threadIdx.x, y = t / 64 * 32, x = t / 32 % 2 * 32;
  for (int k = 0; k < n; k += 32) {
    for (int e = t; e < 256; e += 128) {
      *reinterpret_cast<int4*>(&left[e / 4][e % 4 * 8]) =
          *reinterpret_cast<const int4*>(a + (blockIdx.y * 64 + e / 4) * n + k + e % 4 * 8);
      *reinterpret_cast<int4*>(&right[e / 8][e % 8 * 8]) =
          *reinterpret_cast<const int4*>(b + (k + e / 8) * n + blockIdx.x * 64 + e % 8 * 8);
    }
    __syncthreads();
    for (int s = 0; s < 32; s += 16) {
      fragment<matrix_a, 16, 16, 16, __half, row_major> fa[2];
      fragment<matrix_b, 16, 16, 16, __half, row_major> fb[2];
      for (int i = 0; i < 2; ++i) load_matrix_sync(fa[i], &left[y + 16 * i][s], 40);
      for (int j = 0; j < 2; ++j) load_matrix_sync(fb[j], &right[s][x + 16 * j], 72);
      for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j) mma_sync(sum[i][j], fa[i], fb[j], sum[i][j]);
    }
    __syncthreads();
  }
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j)
      store_matrix_sync(c + (blockIdx.y * 64 + y + 16 * i) * n + blockIdx.x * 64 + x + 16 * j, sum[i][j], n,
                        mem_row_major);
}
KERNEL dgemm(const double* a, const double* b, double* c, int n) {
  const int x = blockIdx.x * 32 + threadIdx.x % 32, y = blockIdx.y * 8 + threadIdx.x / 32;
  double sum = 0;
  for (int k = 0; k < n; ++k) sum += a[y * n + k] * b[k * n + x];
  c[y * n + x] = sum;
}
// A warp a row.
KERNEL matvec(const float* a, const float* x, float* y, int n) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  float sum = 0;
  for (int i = lane; i < n; i += 32) sum += a[static_cast<long long>(row) * n + i] * x[i];
  sum = warp_sum(sum);
  if (lane == 0) y[row] = sum;
}
KERNEL matvec_int8(const int* a, const int* x, int* y, int n) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  int sum = 0;
  for (int i = lane; i < n; i += 32) sum = __dp4a(a[row * n + i], x[i], sum);
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  if (lane == 0) y[row] = sum;
}

// --- neural networks: a CTA a row of n ---

KERNEL layer_norm(const float* x, float* y, int n) {
  x += static_cast<long long>(blockIdx.x) * n, y += static_cast<long long>(blockIdx.x) * n;
  float sum = 0, squares = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += x[i];
  const float mean = block_sum(sum) / n;
  for (int i = threadIdx.x; i < n; i += blockDim.x) squares += (x[i] - mean) * (x[i] - mean);
  const float scale = rsqrtf(block_sum(squares) / n + 1e-5f);
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = (x[i] - mean) * scale;
}
KERNEL softmax(const float* x, float* y, int n) {
  x += static_cast<long long>(blockIdx.x) * n, y += static_cast<long long>(blockIdx.x) * n;
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += __expf(x[i]);
  const float scale = 1 / block_sum(sum);
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = __expf(x[i]) * scale;
}

// --- grids ---

KERNEL stencil_2d(const float* x, float* y, int n) {
  const int c = blockIdx.x * 32 + threadIdx.x % 32, r = blockIdx.y * 8 + threadIdx.x / 32;
  if (c < 1 || r < 1 || c >= n - 1 || r >= n - 1) return;
  const float* p = x + r * n + c;
  y[r * n + c] = 0.2f * (p[0] + p[-1] + p[1] + p[-n] + p[n]);
}
KERNEL stencil_3d(const float* x, float* y, int n) {
  const int c = blockIdx.x * 32 + threadIdx.x % 32, r = blockIdx.y * 8 + threadIdx.x / 32;
  if (c < 1 || r < 1 || c >= n - 1 || r >= n - 1) return;
  const int plane = n * n;
  for (int z = 1; z < n - 1; ++z) {
    const float* p = x + z * plane + r * n + c;
    y[z * plane + r * n + c] = p[0] + 0.1f * (p[-1] + p[1] + p[-n] + p[n] + p[-plane] + p[plane]);
  }
}
KERNEL mandelbrot(int* steps, int n) {
  const int c = blockIdx.x * 32 + threadIdx.x % 32, r = blockIdx.y * 8 + threadIdx.x / 32;
  const float a = -2.0f + 3.0f * c / n, b = -1.5f + 3.0f * r / n;
  float x = 0, y = 0;
  int k = 0;
  for (; k < 256 && x * x + y * y < 4; ++k) {
    const float next = x * x - y * y + a;
    y = 2 * x * y + b, x = next;
  }
  steps[r * n + c] = k;
}

// --- arithmetic ---

KERNEL n_body(const float4* body, float4* force, int n) {
  __shared__ float4 tile[128];
  AT(i);
  const float4 me = body[i];
  float4 sum = {};
  for (int first = 0; first < n; first += 128) {
    tile[threadIdx.x] = body[first + threadIdx.x];
    __syncthreads();
#pragma unroll 8
    for (int j = 0; j < 128; ++j) {
      const float4 other = tile[j];
      const float dx = other.x - me.x, dy = other.y - me.y, dz = other.z - me.z;
      const float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
      const float f = other.w * inverse * inverse * inverse;
      sum.x += f * dx, sum.y += f * dy, sum.z += f * dz;
    }
    __syncthreads();
  }
  force[i] = sum;
}
KERNEL black_scholes(const float* price, const float* strike, const float* years, float* call, int n) {
  AT(i);
  if (i >= n) return;
  const float s = price[i], k = strike[i], t = years[i], rate = 0.02f, sigma = 0.3f;
  const float root = sigma * sqrtf(t), d = (logf(s / k) + (rate + 0.5f * sigma * sigma) * t) / root;
  call[i] = s * normcdff(d) - k * expf(-rate * t) * normcdff(d - root);
}
KERNEL monte_carlo(unsigned* inside, int draws) {
  AT(i);
  unsigned state = i * 2654435761u + 12345u, found = 0;
  for (int k = 0; k < draws; ++k) {
    state ^= state << 13, state ^= state >> 17, state ^= state << 5;
    const float x = (state >> 8) * (1.0f / (1 << 24));
    state ^= state << 13, state ^= state >> 17, state ^= state << 5;
    const float y = (state >> 8) * (1.0f / (1 << 24));
    found += x * x + y * y < 1;
  }
  inside[i] = found;
}
KERNEL polynomial(const float* x, float* y, int degree, int n) {
  AT(i);
  if (i >= n) return;
  const float v = x[i];
  float sum = 1;
  for (int k = 0; k < degree; ++k) sum = sum * v + 1;
  y[i] = sum;
}

// --- searches ---

KERNEL binary_search(const int* sorted, const int* wanted, int* place, int length, int n) {
  AT(i);
  if (i >= n) return;
  int low = 0, high = length;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (sorted[middle] < wanted[i]) low = middle + 1;
    else high = middle;
  }
  place[i] = low;
}
KERNEL walk(const int* next, int* end, int steps, int n) {
  AT(i);
  if (i >= n) return;
  int at = i;
  for (int k = 0; k < steps; ++k) at = next[at];
  end[i] = at;
}
