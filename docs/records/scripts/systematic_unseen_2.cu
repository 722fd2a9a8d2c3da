// Kernels of the second unseen part of the study of systematic sampling (systematic_study.py): written and
// recorded before the last change of the method, and simulated once, after it.

// How often a letter occurs before each place: a count for each 64 letters, and two bits for each letter.
extern "C" __global__ void rank_letters(const unsigned* counts, const ulonglong2* bits, const int* place,
                                        int* step, int n, int steps) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int at = place[i];
  for (int k = 0; k < steps; ++k) {
    int block = at >> 6, within = at & 63, letter = (at ^ k) & 3;
    ulonglong2 b = bits[block];
    unsigned long long same = (letter & 1 ? b.x : ~b.x) & (letter & 2 ? b.y : ~b.y);
    at = counts[4 * block + letter] + __popcll(same & ((1ull << within) - 1));
  }
  step[i] = at;
}

// Forces between particles that are sorted by the cells of a grid; a thread for each particle.
extern "C" __global__ void cell_forces(const float4* particle, const int* cell_begin, float4* force, int n,
                                       int cells) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float4 p = particle[i];
  int cx = min(cells - 1, (int)(p.x * cells)), cy = min(cells - 1, (int)(p.y * cells));
  float fx = 0, fy = 0;
  for (int y = max(0, cy - 1); y <= min(cells - 1, cy + 1); ++y) {
    int begin = cell_begin[y * cells + max(0, cx - 1)], end = cell_begin[y * cells + min(cells - 1, cx + 1) + 1];
    for (int j = begin; j < end; ++j) {
      float4 q = particle[j];
      float dx = p.x - q.x, dy = p.y - q.y, r2 = dx * dx + dy * dy;
      if (j != i && r2 * cells * cells < 1.0f) {
        float s = q.w * rsqrtf(r2 + 1e-6f) * (1.0f - r2 * cells * cells);
        fx += s * dx;
        fy += s * dy;
      }
    }
  }
  force[i] = make_float4(fx, fy, 0, p.w);
}

// The median of nine successive values.
extern "C" __global__ void running_median(const float* in, float* out, int n) {
  extern __shared__ float tile[];
  int first = blockIdx.x * blockDim.x, i = first + threadIdx.x;
  for (int k = threadIdx.x; k < blockDim.x + 8; k += blockDim.x) tile[k] = in[min(n - 1, max(0, first + k - 4))];
  __syncthreads();
  if (i >= n) return;
  float v[9];
#pragma unroll
  for (int k = 0; k < 9; ++k) v[k] = tile[threadIdx.x + k];
#pragma unroll
  for (int round = 0; round < 9; ++round)
#pragma unroll
    for (int k = round & 1; k + 1 < 9; k += 2) {
      float low = fminf(v[k], v[k + 1]), high = fmaxf(v[k], v[k + 1]);
      v[k] = low, v[k + 1] = high;
    }
  out[i] = v[4];
}

// Where runs of equal values begin, and how long they are; a warp for each 32 values, runs do not cross them.
extern "C" __global__ void run_lengths(const unsigned char* in, unsigned char* value, unsigned char* length,
                                       int* runs, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
  unsigned own = i < n ? in[i] : 256, before = __shfl_up_sync(~0u, own, 1);
  unsigned heads = __ballot_sync(~0u, lane == 0 || own != before);
  if (i >= n) return;
  if (heads >> lane & 1) {
    unsigned later = lane == 31 ? 0 : heads >> (lane + 1);
    int place = (i - lane) + __popc(heads & ((1u << lane) - 1));
    value[place] = own;
    length[place] = later ? __ffs(later) : 32 - lane;
  }
  if (lane == 0) runs[i >> 5] = __popc(heads);
}

__device__ float cubic(float t) {
  t = fabsf(t);
  return t < 1 ? (1.5f * t - 2.5f) * t * t + 1 : t < 2 ? ((-0.5f * t + 2.5f) * t - 4) * t + 2 : 0;
}

// An image is made larger or smaller, with bicubic weights.
extern "C" __global__ void resize_cubic(const float* in, float* out, int w, int h, int wide, int high) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= wide || y >= high) return;
  float sx = (x + 0.5f) * w / wide - 0.5f, sy = (y + 0.5f) * h / high - 0.5f, sum = 0;
  int ix = (int)floorf(sx), iy = (int)floorf(sy);
  for (int j = -1; j <= 2; ++j) {
    float row = 0;
    int line = min(h - 1, max(0, iy + j)) * w;
    for (int i = -1; i <= 2; ++i) row += cubic(sx - ix - i) * in[line + min(w - 1, max(0, ix + i))];
    sum += cubic(sy - iy - j) * row;
  }
  out[y * wide + x] = sum;
}

// LU decomposition of 16 x 16 matrices in shared memory; two in a block.
extern "C" __global__ void lu_batch(const float* in, float* out, int count) {
  __shared__ float a[2][16][17];
  int part = threadIdx.y, matrix = 2 * blockIdx.x + part, r = threadIdx.x >> 2, c4 = 4 * (threadIdx.x & 3);
  bool there = matrix < count;
  for (int k = 0; k < 4; ++k) a[part][r][c4 + k] = there ? in[matrix * 256 + r * 16 + c4 + k] : 1.0f;
  __syncthreads();
  for (int p = 0; p < 15; ++p) {
    if (r > p && c4 == 0) a[part][r][p] /= a[part][p][p];
    __syncthreads();
    if (r > p)
      for (int k = 0; k < 4; ++k)
        if (c4 + k > p) a[part][r][c4 + k] -= a[part][r][p] * a[part][p][c4 + k];
    __syncthreads();
  }
  for (int k = 0; k < 4; ++k)
    if (there) out[matrix * 256 + r * 16 + c4 + k] = a[part][r][c4 + k];
}

// The four largest values of each row; a warp for each row.
extern "C" __global__ void top_four(const float* in, float* out, int rows, int columns) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, lane = threadIdx.x & 31;
  if (row >= rows) return;
  float best[4] = {-1, -1, -1, -1};
  for (int c = lane; c < columns; c += 32) {
    float v = in[(size_t)row * columns + c];
    if (v > best[3]) {
      best[3] = v;
      for (int k = 3; k > 0 && best[k] > best[k - 1]; --k) {
        float t = best[k];
        best[k] = best[k - 1], best[k - 1] = t;
      }
    }
  }
  for (int k = 0; k < 4; ++k) {
    float v = best[0], most = v;
    for (int d = 16; d; d >>= 1) most = fmaxf(most, __shfl_xor_sync(~0u, most, d));
    unsigned who = __ballot_sync(~0u, v == most);
    if (lane == __ffs(who) - 1) best[0] = best[1], best[1] = best[2], best[2] = best[3], best[3] = -1;
    if (lane == 0) out[4 * row + k] = most;
  }
}

// A step of the lattice Boltzmann method with nine directions, on a torus.
extern "C" __global__ void lattice_step(const float* in, float* out, int w, int h, float omega) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
  if (x >= w) return;
  const int dx[9] = {0, 1, 0, -1, 0, 1, -1, -1, 1}, dy[9] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
  float f[9], rho = 0, u = 0, v = 0;
  int n = w * h;
#pragma unroll
  for (int k = 0; k < 9; ++k) {
    int fx = (x - dx[k] + w) % w, fy = (y - dy[k] + h) % h;
    f[k] = in[k * n + fy * w + fx];
    rho += f[k];
    u += f[k] * dx[k];
    v += f[k] * dy[k];
  }
  u /= rho, v /= rho;
#pragma unroll
  for (int k = 0; k < 9; ++k) {
    float weight = k == 0 ? 4.0f / 9 : k < 5 ? 1.0f / 9 : 1.0f / 36, cu = 3 * (dx[k] * u + dy[k] * v);
    float goal = weight * rho * (1 + cu + 0.5f * cu * cu - 1.5f * (u * u + v * v));
    out[k * n + y * w + x] = f[k] + omega * (goal - f[k]);
  }
}

struct Node {
  float low, high;
  int left, right;  // negative: a leaf
};

// How many intervals of a tree contain each value; with a stack for each thread.
extern "C" __global__ void stab_tree(const Node* tree, const float* value, int* hits, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int stack[24], top = 0, found = 0;
  float v = value[i];
  stack[top++] = 0;
  while (top) {
    Node node = tree[stack[--top]];
    if (v < node.low || v > node.high) continue;
    if (node.left < 0) {
      ++found;
    } else {
      stack[top++] = node.right;
      stack[top++] = node.left;
    }
  }
  hits[i] = found;
}

// Prefix codes of up to eight bits are decoded with a table; a thread for each block of the text.
extern "C" __global__ void decode_prefix(const unsigned* bits, const int* begin, const unsigned short* table,
                                         unsigned char* text, int blocks, int letters) {
  __shared__ unsigned short entry[256];
  for (int k = threadIdx.x; k < 256; k += blockDim.x) entry[k] = table[k];
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= blocks) return;
  int at = begin[i];
  for (int k = 0; k < letters; ++k) {
    unsigned word = __funnelshift_r(bits[at >> 5], bits[(at >> 5) + 1], at & 31);
    unsigned short e = entry[word & 255];
    text[k * blocks + i] = e >> 8;
    at += e & 255;
  }
}

// The input transform of Winograd's convolution, F(2 x 2, 3 x 3): 16 values of each 4 x 4 tile.
extern "C" __global__ void winograd_input(const float* in, float* out, int w, int h, int tiles_x, int tiles) {
  int tile = blockIdx.x * blockDim.x + threadIdx.x, channel = blockIdx.y;
  if (tile >= tiles) return;
  int x0 = 2 * (tile % tiles_x), y0 = 2 * (tile / tiles_x);
  const float* image = in + (size_t)channel * w * h;
  float d[4][4], t[4][4];
#pragma unroll
  for (int j = 0; j < 4; ++j)
#pragma unroll
    for (int i = 0; i < 4; ++i) d[j][i] = image[(y0 + j) * w + x0 + i];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    t[0][i] = d[0][i] - d[2][i];
    t[1][i] = d[1][i] + d[2][i];
    t[2][i] = d[2][i] - d[1][i];
    t[3][i] = d[1][i] - d[3][i];
  }
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    float o[4] = {t[j][0] - t[j][2], t[j][1] + t[j][2], t[j][2] - t[j][1], t[j][1] - t[j][3]};
#pragma unroll
    for (int i = 0; i < 4; ++i) out[((4 * j + i) * gridDim.y + channel) * (size_t)tiles + tile] = o[i];
  }
}

// Products of rows of two matrices, where a third has a value; a warp for each value.
extern "C" __global__ void sampled_product(const int* row, const int* column, const float* left,
                                           const float* right, float* out, int n, int width) {
  int i = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, lane = threadIdx.x & 31;
  if (i >= n) return;
  const float *a = left + (size_t)row[i] * width, *b = right + (size_t)column[i] * width;
  float sum = 0;
  for (int k = lane; k < width; k += 32) sum += a[k] * b[k];
  for (int d = 16; d; d >>= 1) sum += __shfl_xor_sync(~0u, sum, d);
  if (lane == 0) out[i] = sum;
}

// Sums of rows of a table, by lists of different lengths; 32 threads for each list, a float4 of the row each.
extern "C" __global__ void bag_sums(const float4* table, const int* begin, const int* index, float4* out,
                                    int bags) {
  int bag = blockIdx.x * blockDim.y + threadIdx.y;
  if (bag >= bags) return;
  float4 sum = make_float4(0, 0, 0, 0);
  for (int k = begin[bag]; k < begin[bag + 1]; ++k) {
    float4 v = table[(size_t)index[k] * 32 + threadIdx.x];
    sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
  }
  out[(size_t)bag * 32 + threadIdx.x] = sum;
}

// Rows are scaled to eight bits: their largest value first, then the quotients. A block for each row.
extern "C" __global__ void quantize_rows(const float* in, signed char* out, float* scale, int columns) {
  __shared__ float part[4];
  const float* row = in + (size_t)blockIdx.x * columns;
  float most = 0;
  for (int c = threadIdx.x; c < columns; c += blockDim.x) most = fmaxf(most, fabsf(row[c]));
  for (int d = 16; d; d >>= 1) most = fmaxf(most, __shfl_xor_sync(~0u, most, d));
  if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = most;
  __syncthreads();
  most = fmaxf(fmaxf(part[0], part[1]), fmaxf(part[2], part[3]));
  float f = 127.0f / most;
  for (int c = threadIdx.x; c < columns; c += blockDim.x)
    out[(size_t)blockIdx.x * columns + c] = (signed char)rintf(row[c] * f);
  if (threadIdx.x == 0) scale[blockIdx.x] = most / 127.0f;
}
