// Kernels of the unseen part of the study of systematic sampling (systematic_study.py): written and recorded
// before the method was run on them, and simulated once.

// Counts of one digit, by block.
extern "C" __global__ void radix_count(const unsigned* key, unsigned* count, int n, int shift) {
  __shared__ unsigned bins[64];
  if (threadIdx.x < 64) bins[threadIdx.x] = 0;
  __syncthreads();
  for (int k = 0; k < 8; ++k) {
    int i = (blockIdx.x * 8 + k) * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(bins + (key[i] >> shift & 63), 1u);
  }
  __syncthreads();
  if (threadIdx.x < 64) count[threadIdx.x * gridDim.x + blockIdx.x] = bins[threadIdx.x];
}

// The rows of one level of a sparse triangular matrix.
extern "C" __global__ void level_solve(const int* row, const int* begin, const int* column,
                                       const float* value, const float* right, const float* before, float* x,
                                       int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int r = row[i], at = begin[r], end = begin[r + 1];
  float sum = right[r];
  for (; at < end; ++at) sum -= value[at] * before[column[at]];
  x[r] = sum * 0.5f;
}

// Gauss-Jordan elimination of 4 x 4 matrices, one a thread.
extern "C" __global__ void invert_small(const float4* in, float4* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float a[4][8];
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    float4 v = in[4 * i + r];
    a[r][0] = v.x, a[r][1] = v.y, a[r][2] = v.z, a[r][3] = v.w;
#pragma unroll
    for (int c = 0; c < 4; ++c) a[r][4 + c] = r == c;
  }
#pragma unroll
  for (int p = 0; p < 4; ++p) {
    float f = 1.0f / a[p][p];
#pragma unroll
    for (int c = 0; c < 8; ++c) a[p][c] *= f;
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      if (r == p) continue;
      float g = a[r][p];
#pragma unroll
      for (int c = 0; c < 8; ++c) a[r][c] -= g * a[p][c];
    }
  }
#pragma unroll
  for (int r = 0; r < 4; ++r) out[4 * i + r] = make_float4(a[r][4], a[r][5], a[r][6], a[r][7]);
}

// Pixels that stand out are replaced by the median of their neighbourhood.
extern "C" __global__ void despeckle(const unsigned char* in, unsigned char* out, int w, int h, int far) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < 1 || y < 1 || x >= w - 1 || y >= h - 1) return;
  int p = y * w + x, own = in[p];
  int mean = (in[p - 1] + in[p + 1] + in[p - w] + in[p + w]) >> 2;
  if (abs(own - mean) > far) {
    int below = 0;
    for (int bit = 128; bit; bit >>= 1) {  // the largest value that at most four of nine are below
      int less = 0;
      for (int j = -1; j <= 1; ++j)
        for (int i = -1; i <= 1; ++i) less += in[p + j * w + i] < (below | bit);
      if (less <= 4) below |= bit;
    }
    own = below;
  }
  out[p] = own;
}

// Sphere tracing of two spheres above a plane.
extern "C" __global__ void ray_march(float* depth, int w, int h, float turn) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w || y >= h) return;
  float dx = 2.0f * x / w - 1, dy = 1 - 2.0f * y / h, scale = rsqrtf(dx * dx + dy * dy + 1);
  dx *= scale, dy *= scale;
  float dz = scale, t = 0;
  for (int k = 0; k < 40; ++k) {
    float px = t * dx, py = t * dy, pz = t * dz - 4;
    float a = sqrtf((px - turn) * (px - turn) + py * py + pz * pz) - 1;
    float b = sqrtf((px + 1) * (px + 1) + (py - 0.5f) * (py - 0.5f) + (pz - 1) * (pz - 1)) - 0.7f;
    float d = fminf(fminf(a, b), py + 1);
    t += d;
    if (d < 0.002f || t > 20) break;
  }
  depth[y * w + x] = t;
}

// Boyer-Moore-Horspool: each thread searches its own piece of the text.
extern "C" __global__ void search_text(const unsigned char* text, const unsigned char* wanted,
                                       const unsigned char* shift, int* found, int n, int length, int piece) {
  __shared__ unsigned char shifts[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) shifts[i] = shift[i];
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x, at = i * piece, end = at + piece, count = 0;
  if (end > n - length) end = n - length;
  while (at < end) {
    int k = length - 1;
    while (k >= 0 && text[at + k] == wanted[k]) --k;
    count += k < 0;
    at += shifts[text[at + length - 1]];
  }
  found[i] = count;
}

// Probes of a join: buckets are lists of rows with the same hash.
extern "C" __global__ void join_probe(const unsigned* key, const int* bucket, const unsigned* row_key,
                                      const int* row_value, long long* sum, int n, int buckets) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned k = key[i], h = (k * 2654435761u) % buckets;
  long long s = 0;
  for (int r = bucket[h], end = bucket[h + 1]; r < end; ++r)
    if (row_key[r] == k) s += row_value[r];
  sum[i] = s;
}

// Means of paths of a geometric Brownian motion; paths that fall below a barrier end early.
extern "C" __global__ void barrier_option(float* worth, int n, int steps, float barrier) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned state = i * 747796405u + 2891336453u;
  float price = 1, sum = 0;
  for (int k = 0; k < steps; ++k) {
    state = state * 1664525u + 1013904223u;
    float u = ((state >> 8) + 1) * (1.0f / 16777217.0f);
    state = state * 1664525u + 1013904223u;
    float v = (state >> 8) * (6.2831853f / 16777216.0f);
    price *= __expf(0.05f * sqrtf(-2 * __logf(u)) * __cosf(v));
    if (price < barrier) break;
    sum += price;
  }
  worth[i] = sum / steps;
}

// Convolution with a tile and its halo in shared memory.
extern "C" __global__ void blur_tiled(const float* in, const float* weight, float* out, int w, int h) {
  __shared__ float tile[14][38];
  int x0 = blockIdx.x * 32, y0 = blockIdx.y * 8;
  for (int i = threadIdx.y * 32 + threadIdx.x; i < 14 * 38; i += 256) {
    int x = x0 + i % 38 - 3, y = y0 + i / 38 - 3;
    tile[i / 38][i % 38] = x >= 0 && y >= 0 && x < w && y < h ? in[y * w + x] : 0;
  }
  __syncthreads();
  int x = x0 + threadIdx.x, y = y0 + threadIdx.y;
  if (x >= w || y >= h) return;
  float sum = 0;
  for (int j = 0; j < 7; ++j)
    for (int i = 0; i < 7; ++i) sum += weight[7 * j + i] * tile[threadIdx.y + j][threadIdx.x + i];
  out[y * w + x] = sum;
}

// A round of Jones and Plassmann's graph colouring.
extern "C" __global__ void color_round(const int* begin, const int* neighbour, const unsigned* priority,
                                       const int* before, int* after, int n, int round) {
  int v = blockIdx.x * blockDim.x + threadIdx.x;
  if (v >= n) return;
  int color = before[v];
  if (color < 0) {
    bool largest = true;
    for (int k = begin[v], end = begin[v + 1]; k < end && largest; ++k) {
      int u = neighbour[k];
      largest = before[u] >= 0 || priority[u] < priority[v] || (priority[u] == priority[v] && u <= v);
    }
    if (largest) color = round;
  }
  after[v] = color;
}

// A pass of quick select: each block puts its values below the pivot before the others.
extern "C" __global__ void partition_block(const float* in, float* out, int* below, int n, float pivot) {
  __shared__ int sums[256];
  int t = threadIdx.x, i = blockIdx.x * 256 + t;
  float v = i < n ? in[i] : 1e30f;
  int small = v < pivot;
  sums[t] = small;
  __syncthreads();
  for (int step = 1; step < 256; step *= 2) {
    int other = t >= step ? sums[t - step] : 0;
    __syncthreads();
    sums[t] += other;
    __syncthreads();
  }
  int all = sums[255], to = small ? sums[t] - 1 : all + t - sums[t];
  out[blockIdx.x * 256 + to] = v;
  if (t == 0) below[blockIdx.x] = all;
}

// Edit distances of pairs of strings: one block follows the diagonals of one pair's table.
extern "C" __global__ void edit_distance(const unsigned char* a, const unsigned char* b, int* distance,
                                         int length) {
  __shared__ int row[3][65];
  int t = threadIdx.x;  // row t + 1 of the table
  const unsigned char* own = a + blockIdx.x * length;
  const unsigned char* other = b + blockIdx.x * length;
  unsigned char c = t < length ? own[t] : 0;
  for (int d = 2; d <= 2 * length; ++d) {
    int j = d - t - 1;
    __syncthreads();
    if (t < length && j >= 1 && j <= length) {
      int left = j == 1 ? t + 1 : row[(d - 1) % 3][t + 1];
      int up = t == 0 ? j : row[(d - 1) % 3][t];
      int corner = t == 0 ? j - 1 : (j == 1 ? t : row[(d - 2) % 3][t]);
      int best = min(min(left, up) + 1, corner + (c != other[j - 1]));
      row[d % 3][t + 1] = best;
      if (d == 2 * length) distance[blockIdx.x] = best;
    }
  }
}

// Half of the sites of an Ising model, with a hash in place of a generator.
extern "C" __global__ void ising(signed char* spin, const float* chance, int w, int h, int parity,
                                 unsigned seed) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
  if (x >= w / 2) return;
  x = 2 * x + ((y + parity) & 1);
  int p = y * w + x;
  int sum = spin[y * w + (x + 1) % w] + spin[y * w + (x + w - 1) % w] + spin[(y + 1) % h * w + x] +
            spin[(y + h - 1) % h * w + x];
  int s = spin[p];
  unsigned r = (p ^ seed) * 2654435761u;
  r ^= r >> 15, r *= 2246822519u, r ^= r >> 13;
  if ((r >> 8) * (1.0f / 16777216.0f) < chance[(s * sum + 4) >> 1]) spin[p] = -s;
}

// A product of a matrix in blocks of 8 x 8 with a vector: a warp follows a row of blocks.
extern "C" __global__ void spmv_blocked(const int* begin, const int* column, const float* block,
                                        const float* x, float* y, int rows) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  float low = 0, high = 0;
  for (int k = begin[row]; k < begin[row + 1]; ++k) {
    float v = x[8 * column[k] + lane % 8];
    low += block[64 * k + lane] * v;
    high += block[64 * k + 32 + lane] * v;
  }
  for (int k = 4; k; k /= 2) {
    low += __shfl_down_sync(0xffffffff, low, k, 8);
    high += __shfl_down_sync(0xffffffff, high, k, 8);
  }
  if (lane % 8 == 0) {
    y[8 * row + lane / 8] = low;
    y[8 * row + 4 + lane / 8] = high;
  }
}
