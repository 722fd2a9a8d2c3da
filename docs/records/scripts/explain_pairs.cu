// Pairs of kernels before and after a step that is public knowledge, each of which removes one cause of time.
// M. Harris, Optimizing Parallel Reduction in CUDA (2007): reduce0 to reduce6. CUDA C++ Best Practices Guide, and
// G. Ruetsch, P. Micikevicius, Optimizing Matrix Transpose in CUDA (2009): transposes, strides, matrix products.

#define TILE 32

extern "C" {

__global__ void transpose_naive(float* out, const float* in, int n) {
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) out[x * n + y + j] = in[(y + j) * n + x];
}
__global__ void transpose_tiled(float* out, const float* in, int n) {
  __shared__ float tile[32][32];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) out[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
}
__global__ void transpose_padded(float* out, const float* in, int n) {
  __shared__ float tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) out[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
}

__global__ void reduce0(const int* in, int* out, int n) {
  extern __shared__ int s[];
  unsigned t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  s[t] = in[i];
  __syncthreads();
  for (unsigned k = 1; k < blockDim.x; k *= 2) {
    if (t % (2 * k) == 0) s[t] += s[t + k];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = s[0];
}
__global__ void reduce1(const int* in, int* out, int n) {
  extern __shared__ int s[];
  unsigned t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  s[t] = in[i];
  __syncthreads();
  for (unsigned k = 1; k < blockDim.x; k *= 2) {
    unsigned index = 2 * k * t;
    if (index < blockDim.x) s[index] += s[index + k];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = s[0];
}
__global__ void reduce2(const int* in, int* out, int n) {
  extern __shared__ int s[];
  unsigned t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  s[t] = in[i];
  __syncthreads();
  for (unsigned k = blockDim.x / 2; k > 0; k >>= 1) {
    if (t < k) s[t] += s[t + k];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = s[0];
}
__global__ void reduce3(const int* in, int* out, int n) {
  extern __shared__ int s[];
  unsigned t = threadIdx.x, i = blockIdx.x * blockDim.x * 2 + t;
  s[t] = in[i] + in[i + blockDim.x];
  __syncthreads();
  for (unsigned k = blockDim.x / 2; k > 0; k >>= 1) {
    if (t < k) s[t] += s[t + k];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = s[0];
}
__device__ __forceinline__ void last_warp(volatile int* s, unsigned t) {
  s[t] += s[t + 32]; s[t] += s[t + 16]; s[t] += s[t + 8]; s[t] += s[t + 4]; s[t] += s[t + 2]; s[t] += s[t + 1];
}
__global__ void reduce4(const int* in, int* out, int n) {
  extern __shared__ int s[];
  unsigned t = threadIdx.x, i = blockIdx.x * blockDim.x * 2 + t;
  s[t] = in[i] + in[i + blockDim.x];
  __syncthreads();
  for (unsigned k = blockDim.x / 2; k > 32; k >>= 1) {
    if (t < k) s[t] += s[t + k];
    __syncthreads();
  }
  if (t < 32) last_warp(s, t);
  if (t == 0) out[blockIdx.x] = s[0];
}
__global__ void reduce5(const int* in, int* out, int n) {
  extern __shared__ int s[];
  unsigned t = threadIdx.x, i = blockIdx.x * 256 * 2 + t;
  s[t] = in[i] + in[i + 256];
  __syncthreads();
  if (t < 128) s[t] += s[t + 128];
  __syncthreads();
  if (t < 64) s[t] += s[t + 64];
  __syncthreads();
  if (t < 32) last_warp(s, t);
  if (t == 0) out[blockIdx.x] = s[0];
}
__global__ void reduce6(const int* in, int* out, int n) {
  extern __shared__ int s[];
  unsigned t = threadIdx.x, i = blockIdx.x * 512 + t;
  int sum = 0;
  for (; i < n; i += 512 * gridDim.x) sum += in[i] + in[i + 256];
  s[t] = sum;
  __syncthreads();
  if (t < 128) s[t] += s[t + 128];
  __syncthreads();
  if (t < 64) s[t] += s[t + 64];
  __syncthreads();
  if (t < 32) last_warp(s, t);
  if (t == 0) out[blockIdx.x] = s[0];
}

// C = A B, n x n. In the first, neighbouring threads compute neighbouring rows.
__global__ void product_rows(const float* a, const float* b, float* c, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x, column = blockIdx.y * blockDim.y + threadIdx.y;
  float sum = 0;
  for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column];
  c[row * n + column] = sum;
}
__global__ void product_columns(const float* a, const float* b, float* c, int n) {
  int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  float sum = 0;
  for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column];
  c[row * n + column] = sum;
}
__global__ void product_tiled(const float* a, const float* b, float* c, int n) {
  __shared__ float x[16][16], y[16][16];
  int column = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
  float sum = 0;
  for (int t = 0; t < n; t += 16) {
    x[threadIdx.y][threadIdx.x] = a[row * n + t + threadIdx.x];
    y[threadIdx.y][threadIdx.x] = b[(t + threadIdx.y) * n + column];
    __syncthreads();
    for (int k = 0; k < 16; ++k) sum += x[threadIdx.y][k] * y[k][threadIdx.x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}
// Each thread computes four rows of a column: a quarter of the reads of y.
__global__ void product_registers(const float* a, const float* b, float* c, int n) {
  __shared__ float x[64][17], y[16][16];
  int column = blockIdx.x * 16 + threadIdx.x, first = blockIdx.y * 64;
  float sum[4] = {0, 0, 0, 0};
  for (int t = 0; t < n; t += 16) {
    for (int r = 0; r < 4; ++r)
      x[threadIdx.y + 16 * r][threadIdx.x] = a[(first + threadIdx.y + 16 * r) * n + t + threadIdx.x];
    y[threadIdx.y][threadIdx.x] = b[(t + threadIdx.y) * n + column];
    __syncthreads();
    for (int k = 0; k < 16; ++k) {
      float v = y[k][threadIdx.x];
      for (int r = 0; r < 4; ++r) sum[r] += x[threadIdx.y + 16 * r][k] * v;
    }
    __syncthreads();
  }
  for (int r = 0; r < 4; ++r) c[(first + threadIdx.y + 16 * r) * n + column] = sum[r];
}

__global__ void strided(float* out, const float* in, int stride, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[(long long)i * stride % n] + 1.0f;
}
__global__ void contiguous(float* out, const float* in, int stride, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[(long long)i % n] + 1.0f;
}
struct Particle { float x, y, z, w, vx, vy, vz, m; };
__global__ void structures(Particle* p, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  p[i].x += p[i].vx, p[i].y += p[i].vy, p[i].z += p[i].vz;
}
__global__ void arrays(float* p, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  p[i] += p[i + 4 * n], p[i + n] += p[i + 5 * n], p[i + 2 * n] += p[i + 6 * n];
}
// Each thread sums a part of its own, or every 4,096th element.
__global__ void blocked_parts(const float* in, float* out, int each) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < each; ++k) sum += in[i * each + k];
  out[i] = sum;
}
__global__ void interleaved_parts(const float* in, float* out, int each) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, all = gridDim.x * blockDim.x;
  float sum = 0;
  for (int k = 0; k < each; ++k) sum += in[i + k * all];
  out[i] = sum;
}

// Half of the work is of one kind, by lane or by warp.
__device__ float much(float v, int rounds) {
#pragma unroll 1
  for (int k = 0; k < rounds; ++k) v = v * 1.0001f + 0.5f;
  return v;
}
__device__ float more(float v, int rounds) {
#pragma unroll 1
  for (int k = 0; k < rounds; ++k) v = v * 0.9999f - 0.25f;
  return v;
}
__global__ void diverging_lanes(float* p, int rounds) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x % 2) p[i] = much(p[i], rounds); else p[i] = more(p[i], rounds);
}
__global__ void diverging_warps(float* p, int rounds) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x / 32 % 2) p[i] = much(p[i], rounds); else p[i] = more(p[i], rounds);
}
// One lane in eight works, in all warps or in one warp of eight.
__global__ void sparse_lanes(float* p, int rounds) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x % 8 == 0) p[i] = much(p[i], rounds);
}
__global__ void dense_lanes(float* p, int rounds) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x < blockDim.x / 8) p[i] = much(p[i], rounds);
}

__global__ void columns_in_shared(float* out, int rounds) {
  __shared__ float s[32 * 32];
  for (int i = threadIdx.x; i < 1024; i += blockDim.x) s[i] = i;
  __syncthreads();
  float sum = 0;
#pragma unroll 1
  for (int k = 0; k < rounds; ++k) sum += s[(threadIdx.x % 32 * 32 + k) % 1024];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
__global__ void padded_columns_in_shared(float* out, int rounds) {
  __shared__ float s[32 * 33];
  for (int i = threadIdx.x; i < 1024; i += blockDim.x) s[i / 32 * 33 + i % 32] = i;
  __syncthreads();
  float sum = 0;
#pragma unroll 1
  for (int k = 0; k < rounds; ++k) sum += s[(threadIdx.x % 32 * 33 + k) % 1056];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

__global__ void chase_one(const float* in, float* out, int rounds) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float a = in[i];
#pragma unroll 1
  for (int k = 0; k < rounds; k += 64) {
#pragma unroll
    for (int j = 0; j < 64; ++j) a = a * a + 1.f;
  }
  out[i] = a;
}
__global__ void chase_four(const float* in, float* out, int rounds) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float a = in[i], b = a + 1, c = a + 2, d = a + 3;
#pragma unroll 1
  for (int k = 0; k < rounds; k += 64) {
#pragma unroll
    for (int j = 0; j < 16; ++j) { a = a * a + 1.f; b = b * b + 1.f; c = c * c + 1.f; d = d * d + 1.f; }
  }
  out[i] = a + b + c + d;
}
__global__ void in_double(const float* in, float* out, int rounds) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  double a = in[i];
#pragma unroll 1
  for (int k = 0; k < rounds; ++k) a = a * 1.0001 + 0.5;
  out[i] = a;
}
__global__ void in_single(const float* in, float* out, int rounds) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float a = in[i];
#pragma unroll 1
  for (int k = 0; k < rounds; ++k) a = a * 1.0001f + 0.5f;
  out[i] = a;
}
__global__ void by_roots(const float* in, float* out, int rounds) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float a = in[i], b = a + 1, c = a + 2, d = a + 3;
#pragma unroll 1
  for (int k = 0; k < rounds; ++k) {
    asm("rsqrt.approx.f32 %0, %0;" : "+f"(a)); asm("rsqrt.approx.f32 %0, %0;" : "+f"(b));
    asm("rsqrt.approx.f32 %0, %0;" : "+f"(c)); asm("rsqrt.approx.f32 %0, %0;" : "+f"(d));
  }
  out[i] = a + b + c + d;
}
__global__ void by_products(const float* in, float* out, int rounds) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float a = in[i], b = a + 1, c = a + 2, d = a + 3;
#pragma unroll 1
  for (int k = 0; k < rounds; ++k) { a *= 1.5f; b *= 1.5f; c *= 1.5f; d *= 1.5f; }
  out[i] = a + b + c + d;
}

__global__ void histogram_global(const unsigned char* in, unsigned* bins, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&bins[in[i]], 1);
}
__global__ void histogram_shared(const unsigned char* in, unsigned* bins, int n) {
  __shared__ unsigned own[256];
  own[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&own[in[i]], 1);
  __syncthreads();
  atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}
__global__ void sum_atomics(const int* in, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(out, in[i]);
}
__global__ void sum_warps(const int* in, int* out, int n) {
  int v = in[blockIdx.x * blockDim.x + threadIdx.x];
  for (int k = 16; k > 0; k >>= 1) v += __shfl_down_sync(~0u, v, k);
  if (threadIdx.x % 32 == 0) atomicAdd(out, v);
}

// The same work with much shared memory, which nothing uses, and with little.
__global__ void gather(const int* next, const float* in, float* out, int rounds) {
  extern __shared__ float unused[];
  int i = blockIdx.x * blockDim.x + threadIdx.x, at = i;
#pragma unroll 1
  for (int k = 0; k < rounds; ++k) at = next[at];
  out[i] = in[at];
}

// A load is needed at once, or was issued a round before.
__global__ void load_then_use(const float* in, float* out, int rounds, int all) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
#pragma unroll 1
  for (int k = 0; k < rounds; ++k) {
    float v = in[i + k * all];
    for (int j = 0; j < 8; ++j) sum = sum * v + 1.0f;
  }
  out[i] = sum;
}
__global__ void load_ahead(const float* in, float* out, int rounds, int all) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0, v[4];
  for (int j = 0; j < 4; ++j) v[j] = in[i + j * all];
#pragma unroll 4
  for (int k = 0; k < rounds; ++k) {
    float now = v[k % 4];
    if (k + 4 < rounds) v[k % 4] = in[i + (k + 4) * all];
    for (int j = 0; j < 8; ++j) sum = sum * now + 1.0f;
  }
  out[i] = sum;
}
__global__ void copy_words(float* out, const float* in) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[i] * 2.0f;
}
__global__ void copy_vectors(float4* out, const float4* in) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float4 v = in[i];
  v.x *= 2.0f, v.y *= 2.0f, v.z *= 2.0f, v.w *= 2.0f;
  out[i] = v;
}
// Reads the array's rows twice, the second time after all of them, or after each.
__global__ void two_passes(const float* in, float* out, int n, int all) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < n; ++k) sum += in[i + k * all];
  float square = 0;
  for (int k = 0; k < n; ++k) square += (in[i + k * all] - sum) * (in[i + k * all] - sum);
  out[i] = square;
}
__global__ void one_pass(const float* in, float* out, int n, int all) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0, squares = 0;
  for (int k = 0; k < n; ++k) { float v = in[i + k * all]; sum += v; squares += v * v; }
  out[i] = squares - sum * sum * n;
}
__global__ void bytes_as_floats(const float* in, float* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[i] + 1.0f;
}
__global__ void bytes(const unsigned char* in, unsigned char* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[i] + 1;
}
__global__ void many_barriers(float* out, int rounds) {
  __shared__ float s[1024];
  float v = threadIdx.x;
#pragma unroll 1
  for (int k = 0; k < rounds; ++k) {
    if (threadIdx.x / 32 == k % 32) v = much(v, 40);
    s[threadIdx.x] = v;
    __syncthreads();
    v += s[threadIdx.x ^ 32];
    __syncthreads();
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}
__global__ void no_barriers(float* out, int rounds) {
  __shared__ float s[1024];
  float v = threadIdx.x;
#pragma unroll 1
  for (int k = 0; k < rounds; ++k) {
    if (threadIdx.x / 32 == k % 32) v = much(v, 40);
    s[threadIdx.x] = v;
    __syncwarp();
    v += s[threadIdx.x ^ 1];
    __syncwarp();
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}
__global__ void small(float* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] += 1.0f;
}
__global__ void looping(float* out, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] += 1.0f;
}
__global__ void divisions(const unsigned* in, unsigned* out, unsigned d, int rounds) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned v = in[i];
#pragma unroll 1
  for (int k = 0; k < rounds; ++k) v += (v + k) / d;
  out[i] = v;
}
__global__ void shifts(const unsigned* in, unsigned* out, unsigned d, int rounds) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned v = in[i];
#pragma unroll 1
  for (int k = 0; k < rounds; ++k) v += (v + k) >> 5;
  out[i] = v;
}
}
