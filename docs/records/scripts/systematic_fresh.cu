// Kernels of the fresh part of the study of systematic sampling (systematic_study.py): no part of its
// development, and simulated with it once, at its end, for the table.

extern "C" __global__ void sobel(const unsigned char* in, unsigned char* out, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < 1 || y < 1 || x >= w - 1 || y >= h - 1) return;
  int p[9];
  for (int j = 0; j < 3; ++j)
    for (int i = 0; i < 3; ++i) p[3 * j + i] = in[(y + j - 1) * w + x + i - 1];
  int gx = p[2] + 2 * p[5] + p[8] - p[0] - 2 * p[3] - p[6];
  int gy = p[6] + 2 * p[7] + p[8] - p[0] - 2 * p[1] - p[2];
  int g = abs(gx) + abs(gy);
  out[y * w + x] = g > 255 ? 255 : g;
}

extern "C" __global__ void bilateral(const float* in, float* out, int w, int h, float s) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < 2 || y < 2 || x >= w - 2 || y >= h - 2) return;
  float center = in[y * w + x], sum = 0, weights = 0;
  for (int j = -2; j <= 2; ++j)
    for (int i = -2; i <= 2; ++i) {
      float v = in[(y + j) * w + x + i], d = v - center;
      float weight = __expf(-(i * i + j * j) * 0.125f - d * d * s);
      sum += weight * v;
      weights += weight;
    }
  out[y * w + x] = sum / weights;
}

// The length of each row grows with its number.
extern "C" __global__ void triangular_sums(const float* in, float* out, int n, int step) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= n) return;
  float sum = 0;
  for (int i = lane; i <= row / step; i += 32) sum += in[(row * 61 + i) % (n * 8)];
  for (int k = 16; k; k /= 2) sum += __shfl_down_sync(0xffffffff, sum, k);
  if (lane == 0) out[row] = sum;
}

// Threads differ in their number of steps.
extern "C" __global__ void collatz(int* steps, int first, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned long long x = first + i;
  int k = 0;
  for (; x != 1 && k < 90; ++k) x = x & 1 ? 3 * x + 1 : x >> 1;
  steps[i] = k;
}

// Dependent loads all over memory.
extern "C" __global__ void chase(const int* next, int* out, int n, int hops) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int at = i;
  for (int k = 0; k < hops; ++k) at = next[at];
  out[i] = at;
}

extern "C" __global__ void scatter_add(const int* where, const float* what, float* sums, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(sums + where[i], what[i]);
}

extern "C" __global__ void matmul_double(const double* a, const double* b, double* c, int m, int n, int k) {
  __shared__ double as[16][16], bs[16][17];
  int col = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
  double sum = 0;
  for (int t = 0; t < k; t += 16) {
    as[threadIdx.y][threadIdx.x] = row < m && t + threadIdx.x < k ? a[row * k + t + threadIdx.x] : 0;
    bs[threadIdx.y][threadIdx.x] = col < n && t + threadIdx.y < k ? b[(t + threadIdx.y) * n + col] : 0;
    __syncthreads();
    for (int i = 0; i < 16; ++i) sum += as[threadIdx.y][i] * bs[i][threadIdx.x];
    __syncthreads();
  }
  if (row < m && col < n) c[row * n + col] = sum;
}

extern "C" __global__ void jacobi_3d(const float* in, float* out, int nx, int ny, int nz) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  int z = blockIdx.z;
  if (x < 1 || y < 1 || z < 1 || x >= nx - 1 || y >= ny - 1 || z >= nz - 1) return;
  int i = (z * ny + y) * nx + x;
  out[i] = (in[i - 1] + in[i + 1] + in[i - nx] + in[i + nx] + in[i - nx * ny] + in[i + nx * ny]) / 6 - in[i];
}

extern "C" __global__ void monte_carlo_pi(float* out, int tries) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x, state = i * 747796405u + 1;
  int inside = 0;
  for (int k = 0; k < tries; ++k) {
    state = state * 1664525u + 1013904223u;
    float x = (state >> 8) * 5.9604645e-8f;
    state = state * 1664525u + 1013904223u;
    float y = (state >> 8) * 5.9604645e-8f;
    inside += x * x + y * y < 1;
  }
  out[i] = 4.0f * inside / tries;
}

// Pixels of the set take longest: their number changes along the grid.
extern "C" __global__ void julia(unsigned char* out, int w, int h, int most) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w || y >= h) return;
  float a = 3.2f * x / w - 1.6f, b = 2.4f * y / h - 1.2f;
  int k = 0;
  for (; k < most && a * a + b * b < 4; ++k) {
    float t = a * a - b * b - 0.8f;
    b = 2 * a * b + 0.156f;
    a = t;
  }
  out[y * w + x] = k;
}

// Array of structures to structure of arrays.
extern "C" __global__ void split_records(const float* in, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  for (int k = 0; k < 7; ++k) out[k * n + i] = in[7 * i + k];
}

extern "C" __global__ void argmax_rows(const float* in, int* out, int rows, int columns) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  float best = -1;
  int at = 0;
  for (int i = lane; i < columns; i += 32) {
    float v = in[row * columns + i];
    if (v > best) best = v, at = i;
  }
  for (int k = 16; k; k /= 2) {
    float v = __shfl_xor_sync(0xffffffff, best, k);
    int i = __shfl_xor_sync(0xffffffff, at, k);
    if (v > best || (v == best && i < at)) best = v, at = i;
  }
  if (lane == 0) out[row] = at;
}

extern "C" __global__ void search_sorted(const int* table, int size, const int* keys, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int key = keys[i], low = 0, high = size;
  while (low < high) {
    int middle = (low + high) / 2;
    if (table[middle] < key)
      low = middle + 1;
    else
      high = middle;
  }
  out[i] = low;
}

extern "C" __global__ void depthwise(const float* in, const float* filter, float* out, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y, c = blockIdx.z;
  if (x >= w - 4 || y >= h - 4) return;
  float sum = 0;
  for (int j = 0; j < 5; ++j)
    for (int i = 0; i < 5; ++i) sum += in[(c * h + y + j) * w + x + i] * filter[(c * 5 + j) * 5 + i];
  out[(c * h + y) * w + x] = sum;
}

// A matrix of 6 by 6 for each thread.
extern "C" __global__ void cholesky(const float* in, float* out, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n) return;
  float a[6][6];
#pragma unroll
  for (int i = 0; i < 6; ++i)
#pragma unroll
    for (int j = 0; j <= i; ++j) a[i][j] = in[(i * (i + 1) / 2 + j) * n + t] + (i == j ? 6.0f : 0.0f);
#pragma unroll
  for (int j = 0; j < 6; ++j) {
#pragma unroll
    for (int k = 0; k < j; ++k)
#pragma unroll
      for (int i = j; i < 6; ++i) a[i][j] -= a[i][k] * a[j][k];
    float r = rsqrtf(a[j][j]);
#pragma unroll
    for (int i = j; i < 6; ++i) a[i][j] *= r;
  }
#pragma unroll
  for (int i = 0; i < 6; ++i)
#pragma unroll
    for (int j = 0; j <= i; ++j) out[(i * (i + 1) / 2 + j) * n + t] = a[i][j];
}

extern "C" __global__ void bit_reversal(const float2* in, float2* out, int bits) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  out[__brev(i) >> (32 - bits)] = in[i];
}

// Each CTA compacts what is positive of its part.
extern "C" __global__ void compact(const float* in, float* out, int* counts, int n) {
  __shared__ int of_warp[8];
  int i = blockIdx.x * blockDim.x + threadIdx.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  float v = i < n ? in[i] : 0;
  unsigned mask = __ballot_sync(0xffffffff, v > 0.5f);
  if (lane == 0) of_warp[warp] = __popc(mask);
  __syncthreads();
  int before = 0;
  for (int k = 0; k < warp; ++k) before += of_warp[k];
  if (v > 0.5f) out[blockIdx.x * blockDim.x + before + __popc(mask & ((1u << lane) - 1))] = v;
  if (threadIdx.x == blockDim.x - 1) counts[blockIdx.x] = before + __popc(mask);
}

extern "C" __global__ void scan_block(const int* in, int* out, int n) {
  __shared__ int s[2][192];
  int i = blockIdx.x * 192 + threadIdx.x, from = 0;
  s[0][threadIdx.x] = i < n ? in[i] : 0;
  __syncthreads();
  for (int d = 1; d < 192; d *= 2) {
    s[1 - from][threadIdx.x] = s[from][threadIdx.x] + (threadIdx.x >= d ? s[from][threadIdx.x - d] : 0);
    from = 1 - from;
    __syncthreads();
  }
  if (i < n) out[i] = s[from][threadIdx.x];
}
