// Kernels of few_waves_study.py, for any number of CTAs: written and recorded before the methods that it
// judges changed.

// --- development -----------------------------------------------------------------------------------------

// Counts of bytes: in shared memory, then added to those of all CTAs.
extern "C" __global__ void histogram_shared(const unsigned char* data, unsigned* counts, int each) {
  __shared__ unsigned bins[256];
  bins[threadIdx.x] = 0;
  __syncthreads();
  const unsigned char* mine = data + (size_t)blockIdx.x * 256 * each;
  for (int k = 0; k < each; ++k) atomicAdd(&bins[mine[k * 256 + threadIdx.x]], 1u);
  __syncthreads();
  if (bins[threadIdx.x]) atomicAdd(&counts[threadIdx.x], bins[threadIdx.x]);
}

// Iterations until points leave the set; CTAs are tiles of 16 by 8.
extern "C" __global__ void mandelbrot_tiles(unsigned short* out, int tiles_across, int tiles, int most) {
  int width = 16 * tiles_across, height = 8 * ((tiles + tiles_across - 1) / tiles_across);
  int x = blockIdx.x % tiles_across * 16 + threadIdx.x % 16,
      y = blockIdx.x / tiles_across * 8 + threadIdx.x / 16;
  float a = -2.0f + 2.5f * x / width, b = -1.25f + 2.5f * y / height, u = 0, v = 0;
  int k = 0;
  for (; k < most && u * u + v * v < 4.0f; ++k) {
    float w = u * u - v * v + a;
    v = 2 * u * v + b;
    u = w;
  }
  out[y * width + x] = k;
}

// C = A B with tiles of 16 by 16 in shared memory.
extern "C" __global__ void sgemm_tiled(const float* a, const float* b, float* c, int tiles_across,
                                       int depth) {
  __shared__ float ta[16][16], tb[16][16];
  int x = threadIdx.x % 16, y = threadIdx.x / 16, n = 16 * tiles_across;
  int column = blockIdx.x % tiles_across * 16 + x, row = blockIdx.x / tiles_across * 16 + y;
  float sum = 0;
  for (int k = 0; k < depth; k += 16) {
    ta[y][x] = a[row * depth + k + x];
    tb[y][x] = b[(k + y) * n + column];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 16; ++i) sum += ta[y][i] * tb[i][x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

// Sums of chunks by a tree in shared memory, added to one sum.
extern "C" __global__ void sum_tree_add(const int* in, int* sum, int each) {
  __shared__ int part[256];
  const int* mine = in + (size_t)blockIdx.x * 256 * each;
  int own = 0;
  for (int k = 0; k < each; ++k) own += mine[k * 256 + threadIdx.x];
  part[threadIdx.x] = own;
  for (int half = 128; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
  }
  if (threadIdx.x == 0) atomicAdd(sum, part[0]);
}

// A sparse matrix times a vector, a row for each thread.
extern "C" __global__ void spmv_rows(const int* begin, const int* column, const float* value, const float* x,
                                     float* y) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int k = begin[row]; k < begin[row + 1]; ++k) sum += value[k] * x[column[k]];
  y[row] = sum;
}

// A seven-point stencil that marches through the planes of a box; CTAs are tiles of 32 by 4.
extern "C" __global__ void stencil_march(const float* in, float* out, int tiles_across, int rows,
                                         int planes) {
  int width = 32 * tiles_across;
  int x = blockIdx.x % tiles_across * 32 + threadIdx.x % 32,
      y = blockIdx.x / tiles_across * 4 + threadIdx.x / 32;
  int plane = width * rows, at = y * width + x;
  float below = in[at], here = in[at + plane];
  for (int z = 1; z + 1 < planes; ++z) {
    int i = z * plane + at;
    float above = in[i + plane];
    float sides = in[i - (x > 0)] + in[i + (x + 1 < width)] + in[i - (y > 0 ? width : 0)] +
                  in[i + (y + 1 < rows ? width : 0)];
    out[i] = 0.4f * here + 0.1f * (below + above + sides);
    below = here;
    here = above;
  }
}

// Inclusive prefix sums within chunks of 256, by doubling steps.
extern "C" __global__ void scan_chunks(const int* in, int* out) {
  __shared__ int part[2][256];
  int i = blockIdx.x * 256 + threadIdx.x, from = 0;
  part[0][threadIdx.x] = in[i];
  for (int step = 1; step < 256; step *= 2) {
    __syncthreads();
    int value = part[from][threadIdx.x];
    if (threadIdx.x >= step) value += part[from][threadIdx.x - step];
    from ^= 1;
    part[from][threadIdx.x] = value;
  }
  out[i] = part[from][threadIdx.x];
}

// Chunks of 256 sorted by Batcher's bitonic network.
extern "C" __global__ void sort_chunks(const int* in, int* out) {
  __shared__ int key[256];
  int t = threadIdx.x;
  key[t] = in[blockIdx.x * 256 + t];
  for (int size = 2; size <= 256; size *= 2)
    for (int step = size / 2; step > 0; step /= 2) {
      __syncthreads();
      int other = t ^ step;
      if (other > t && (key[t] > key[other]) == ((t & size) == 0)) {
        int swap = key[t];
        key[t] = key[other];
        key[other] = swap;
      }
    }
  __syncthreads();
  out[blockIdx.x * 256 + t] = key[t];
}

// --- judging ---------------------------------------------------------------------------------------------

// Steps of Collatz's sequence until 1.
extern "C" __global__ void collatz(const unsigned* start, int* steps) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, k = 0;
  for (unsigned n = start[i]; n != 1; ++k) n = n & 1 ? 3 * n + 1 : n / 2;
  steps[i] = k;
}

// Counts of skewed values, with a histogram for each of eight warps.
extern "C" __global__ void histogram_warps(const unsigned char* data, unsigned* counts, int each) {
  __shared__ unsigned bins[8][64];
  for (int k = threadIdx.x; k < 512; k += 256) bins[k / 64][k % 64] = 0;
  __syncthreads();
  const unsigned char* mine = data + (size_t)blockIdx.x * 256 * each;
  for (int k = 0; k < each; ++k) atomicAdd(&bins[threadIdx.x / 32][mine[k * 256 + threadIdx.x]], 1u);
  __syncthreads();
  if (threadIdx.x < 64) {
    unsigned sum = 0;
    for (int w = 0; w < 8; ++w) sum += bins[w][threadIdx.x];
    if (sum) atomicAdd(&counts[threadIdx.x], sum);
  }
}

// C = A B in double precision: 64 threads with 2 by 2 results each; reads through the caches.
extern "C" __global__ void dgemm_registers(const double* a, const double* b, double* c, int tiles_across,
                                           int depth) {
  int x = threadIdx.x % 8, y = threadIdx.x / 8, n = 16 * tiles_across;
  int column = blockIdx.x % tiles_across * 16 + x, row = blockIdx.x / tiles_across * 16 + y;
  double s00 = 0, s01 = 0, s10 = 0, s11 = 0;
  for (int k = 0; k < depth; ++k) {
    double a0 = a[row * depth + k], a1 = a[(row + 8) * depth + k];
    double b0 = b[k * n + column], b1 = b[k * n + column + 8];
    s00 += a0 * b0, s01 += a0 * b1, s10 += a1 * b0, s11 += a1 * b1;
  }
  c[row * n + column] = s00, c[row * n + column + 8] = s01;
  c[(row + 8) * n + column] = s10, c[(row + 8) * n + column + 8] = s11;
}

// The largest value of each row, and of all rows.
extern "C" __global__ void row_maxima(const int* in, int* of_row, int* of_all, int columns) {
  __shared__ int part[4];
  int found = INT_MIN;
  for (int k = threadIdx.x; k < columns; k += 128) found = max(found, in[(size_t)blockIdx.x * columns + k]);
  for (int step = 16; step > 0; step /= 2) found = max(found, __shfl_xor_sync(~0u, found, step));
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = found;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < 4; ++w) found = max(found, part[w]);
    of_row[blockIdx.x] = found;
    atomicMax(of_all, found);
  }
}

// Several steps of diffusion along a line in shared memory; the part that is right shrinks.
extern "C" __global__ void diffuse_steps(const float* in, float* out, int steps) {
  __shared__ float line[2][320];
  int first = blockIdx.x * 256 - 32, n = gridDim.x * 256, from = 0;
  for (int k = threadIdx.x; k < 320; k += 256) line[0][k] = in[min(max(first + k, 0), n - 1)];
  for (int s = 1; s <= steps; ++s) {
    __syncthreads();
    for (int k = threadIdx.x + s; k < 320 - s; k += 256)
      line[from ^ 1][k] = 0.25f * (line[from][k - 1] + 2 * line[from][k] + line[from][k + 1]);
    from ^= 1;
  }
  __syncthreads();
  out[blockIdx.x * 256 + threadIdx.x] = line[from][threadIdx.x + 32];
}

// A sparse matrix whose rows differ widely times a vector, a warp for each row.
extern "C" __global__ void spmv_warps(const int* begin, const int* column, const float* value, const float* x,
                                      float* y) {
  int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
  float sum = 0;
  for (int k = begin[row] + lane; k < begin[row + 1]; k += 32) sum += value[k] * x[column[k]];
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
  if (lane == 0) y[row] = sum;
}

// Prefix sums of rows, by a warp each.
extern "C" __global__ void scan_rows(const int* in, int* out, int columns) {
  int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32, before = 0;
  for (int k = lane; k < columns; k += 32) {
    int value = in[(size_t)row * columns + k];
    for (int step = 1; step < 32; step *= 2) {
      int left = __shfl_up_sync(~0u, value, step);
      if (lane >= step) value += left;
    }
    out[(size_t)row * columns + k] = before + value;
    before += __shfl_sync(~0u, value, 31);
  }
}

// A pass of a radix sort within chunks of 256: order by four bits, equal ones as they were.
extern "C" __global__ void radix_pass(const unsigned* in, unsigned* out, int shift) {
  __shared__ int count[8][16];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  unsigned key = in[blockIdx.x * 256 + threadIdx.x], digit = key >> shift & 15, same = ~0u;
  for (int bit = 0; bit < 4; ++bit) {
    unsigned votes = __ballot_sync(~0u, digit >> bit & 1);
    same &= digit >> bit & 1 ? votes : ~votes;
  }
  if (lane < 16) count[warp][lane] = 0;
  __syncwarp();
  int rank = __popc(same & ((1u << lane) - 1));
  if (rank == 0) count[warp][digit] = __popc(same);
  __syncthreads();
  for (int d = 0; d <= digit; ++d)
    for (int w = 0; w < 8; ++w)
      if (d < digit || w < warp) rank += count[w][d];
  out[blockIdx.x * 256 + rank] = key;
}

// Accelerations of bodies by some of the others, in tiles of 128.
extern "C" __global__ void bodies(const float4* body, float4* pull, int tiles) {
  __shared__ float4 tile[128];
  float4 own = body[blockIdx.x * 128 + threadIdx.x];
  float ax = 0, ay = 0, az = 0;
  for (int k = 0; k < tiles; ++k) {
    tile[threadIdx.x] = body[(blockIdx.x + k) % gridDim.x * 128 + threadIdx.x];
    __syncthreads();
#pragma unroll 4
    for (int j = 0; j < 128; ++j) {
      float dx = tile[j].x - own.x, dy = tile[j].y - own.y, dz = tile[j].z - own.z;
      float near = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f), s = tile[j].w * near * near * near;
      ax += dx * s, ay += dy * s, az += dz * s;
    }
    __syncthreads();
  }
  pull[blockIdx.x * 128 + threadIdx.x] = make_float4(ax, ay, az, 0);
}

// Places of keys in a table with linear probing.
extern "C" __global__ void hash_probe(const unsigned* table, const unsigned* key, int* place, unsigned mask) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, found = -1;
  unsigned wanted = key[i];
  for (unsigned at = wanted * 2654435761u >> 7 & mask; table[at]; at = at + 1 & mask)
    if (table[at] == wanted) {
      found = at;
      break;
    }
  place[i] = found;
}

// A convolution with 3 by 3 weights over several channels; CTAs are tiles of 16 by 8.
extern "C" __global__ void conv_direct(const float* in, const float* weight, float* out, int tiles_across,
                                       int rows, int channels) {
  int width = 16 * tiles_across + 2;
  int x = blockIdx.x % tiles_across * 16 + threadIdx.x % 16,
      y = blockIdx.x / tiles_across * 8 + threadIdx.x / 16;
  float sum = 0;
  for (int c = 0; c < channels; ++c)
    for (int dy = 0; dy < 3; ++dy)
      for (int dx = 0; dx < 3; ++dx)
        sum += weight[9 * c + 3 * dy + dx] * in[(c * (rows + 2) + y + dy) * width + x + dx];
  out[y * 16 * tiles_across + x] = sum;
}

// A transposition through shared memory; each CTA moves a column of four tiles of 32 by 32.
extern "C" __global__ void transpose_tiles(const float* in, float* out, int tiles_across, int rows) {
  __shared__ float tile[32][33];
  int width = 32 * tiles_across, x = threadIdx.x % 32, y = threadIdx.x / 32;
  int left = blockIdx.x % tiles_across * 32;
  for (int t = 0; t < 4; ++t) {
    int top = (blockIdx.x / tiles_across * 4 + t) * 32;
    for (int k = y; k < 32; k += 8) tile[k][x] = in[(top + k) * width + left + x];
    __syncthreads();
    for (int k = y; k < 32; k += 8) out[(left + k) * rows + top + x] = tile[x][k];
    __syncthreads();
  }
}

// Marks the neighbours of the vertices of a frontier.
extern "C" __global__ void mark_neighbours(const int* frontier, const int* begin, const int* neighbour,
                                           int* mark) {
  int vertex = frontier[blockIdx.x * blockDim.x + threadIdx.x];
  for (int k = begin[vertex]; k < begin[vertex + 1]; ++k)
    if (!mark[neighbour[k]]) mark[neighbour[k]] = 1;
}

// Longest common subsequences of pairs of words whose lengths differ.
extern "C" __global__ void align_pairs(const unsigned char* letters, const int* begin, int* score) {
  int pair = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned char *a = letters + begin[2 * pair], *b = letters + begin[2 * pair + 1];
  int na = begin[2 * pair + 1] - begin[2 * pair], nb = begin[2 * pair + 2] - begin[2 * pair + 1];
  unsigned char row[25];
  for (int j = 0; j <= nb; ++j) row[j] = 0;
  for (int i = 0; i < na; ++i) {
    int corner = 0;
    for (int j = 1; j <= nb; ++j) {
      int above = row[j];
      row[j] = a[i] == b[j - 1] ? corner + 1 : max((int)row[j - 1], above);
      corner = above;
    }
  }
  score[pair] = row[nb];
}

// Steps of random walks until they leave a strip whose width changes along the grid.
extern "C" __global__ void walk_out(const unsigned* seed, int* steps, int most) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, at = 0, k = 0, wide = 3 + 8 * blockIdx.x / gridDim.x;
  unsigned state = seed[i];
  for (; k < most && abs(at) < wide; ++k) {
    state ^= state << 13, state ^= state >> 17, state ^= state << 5;
    at += state >> 16 & 1 ? 1 : -1;
  }
  steps[i] = k;
}

// Cholesky's decomposition of a matrix of 24 by 24 in each CTA; work shrinks from column to column.
extern "C" __global__ void cholesky_small(const float* in, float* out) {
  __shared__ float m[24][25];
  for (int k = threadIdx.x; k < 576; k += 64) m[k / 24][k % 24] = in[blockIdx.x * 576 + k];
  __syncthreads();
  for (int j = 0; j < 24; ++j) {
    if (threadIdx.x == 0) m[j][j] = sqrtf(m[j][j]);
    __syncthreads();
    for (int i = j + 1 + threadIdx.x; i < 24; i += 64) m[i][j] /= m[j][j];
    __syncthreads();
    int left = 23 - j;
    for (int k = threadIdx.x; k < left * left; k += 64) {
      int r = j + 1 + k / left, c = j + 1 + k % left;
      if (c <= r) m[r][c] -= m[r][j] * m[c][j];
    }
    __syncthreads();
  }
  for (int k = threadIdx.x; k < 576; k += 64)
    out[blockIdx.x * 576 + k] = k % 24 <= k / 24 ? m[k / 24][k % 24] : 0;
}

// Two phases: a stretch of arithmetic on what is read in order, then reads at random places.
extern "C" __global__ void gather_after(const int* in, const int* table, int* out, int mask, int rounds,
                                        int gathers) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned at = in[i];
  for (int k = 0; k < rounds; ++k) at = at * 1664525u + 1013904223u;
  int sum = 0;
  for (int k = 0; k < gathers; ++k) {
    sum += table[at >> 8 & mask];
    at = at * 1664525u + 1013904223u;
  }
  out[i] = sum;
}

// Tasks of unequal length that CTAs take from a common counter.
extern "C" __global__ void take_tasks(const int* length, int* result, int* next, int tasks) {
  __shared__ int task;
  for (;;) {
    if (threadIdx.x == 0) task = atomicAdd(next, 1);
    __syncthreads();
    int mine = task;
    __syncthreads();
    if (mine >= tasks) return;
    int value = threadIdx.x;
    for (int k = 0; k < length[mine]; ++k) value = (value * 5 + k) & 65535;
    result[mine * 64 + threadIdx.x] = value;
  }
}
