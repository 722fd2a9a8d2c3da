// Kernels for the second look of few_waves_study.py, for any number of CTAs: written after the methods,
// without having been run with them.

// Ways to complete a board with queens, from other first rows in each thread: depth first, the stack in local
// memory.
extern "C" __global__ void queens_count(const unsigned* begin, int* ways, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, found = 0, depth = 0;
  unsigned all = (1u << n) - 1, open[8], columns[8], left[8], right[8];
  columns[0] = begin[3 * i], left[0] = begin[3 * i + 1], right[0] = begin[3 * i + 2];
  open[0] = all & ~(columns[0] | left[0] | right[0]);
  while (depth >= 0) {
    if (!open[depth]) {
      --depth;
      continue;
    }
    unsigned queen = open[depth] & -open[depth];
    open[depth] ^= queen;
    unsigned c = columns[depth] | queen, l = (left[depth] | queen) << 1, r = (right[depth] | queen) >> 1;
    if (c == all) {
      ++found;
      continue;
    }
    ++depth;
    columns[depth] = c, left[depth] = l, right[depth] = r, open[depth] = all & ~(c | l | r);
  }
  ways[i] = found;
}

// A sparse matrix in ELLPACK's layout, whose rows are of very unequal length, times a vector.
extern "C" __global__ void ell_product(const int* column, const float* value, const float* x, float* y,
                                       int width) {
  int rows = gridDim.x * blockDim.x, row = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < width; ++k) {
    int at = column[(size_t)k * rows + row];
    if (at < 0) break;
    sum += value[(size_t)k * rows + row] * x[at];
  }
  y[row] = sum;
}

// Inserts keys into a table with open addressing.
extern "C" __global__ void hash_insert(const unsigned* key, unsigned* table, int* place, unsigned mask,
                                       int shift) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned own = key[i], at = own * 2654435769u >> shift;
  for (;; at = at + 1 & mask) {
    unsigned there = atomicCAS(&table[at], 0u, own);
    if (there == 0 || there == own) break;
  }
  place[i] = at;
}

// Tridiagonal systems by elimination, one for each thread; the unknowns of all systems are interleaved.
extern "C" __global__ void thomas_solve(const float* lower, const float* middle, const float* upper,
                                        const float* right, float* ratio, float* x, int unknowns) {
  int systems = gridDim.x * blockDim.x, at = blockIdx.x * blockDim.x + threadIdx.x;
  float c = upper[at] / middle[at], d = right[at] / middle[at];
  ratio[at] = c, x[at] = d;
  for (int k = 1; k < unknowns; ++k) {
    at += systems;
    float pivot = 1.0f / (middle[at] - lower[at] * c);
    c = upper[at] * pivot, d = (right[at] - lower[at] * d) * pivot;
    ratio[at] = c, x[at] = d;
  }
  for (int k = 1; k < unknowns; ++k) {
    at -= systems;
    d = x[at] - ratio[at] * d;
    x[at] = d;
  }
}

// The nearest of a few centres for each point, and sizes and sums of the clusters.
extern "C" __global__ void cluster_points(const int4* point, const int4* centre, int* cluster, int* size,
                                          int* sum, int centres) {
  __shared__ int4 near[16];
  __shared__ int sizes[16], sums[16];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x < centres)
    near[threadIdx.x] = centre[threadIdx.x], sizes[threadIdx.x] = sums[threadIdx.x] = 0;
  __syncthreads();
  int4 p = point[i];
  int best = 0x7fffffff, own = 0;
  for (int k = 0; k < centres; ++k) {
    int4 c = near[k];
    int x = p.x - c.x, y = p.y - c.y, z = p.z - c.z, w = p.w - c.w, far = x * x + y * y + z * z + w * w;
    if (far < best) best = far, own = k;
  }
  cluster[i] = own;
  atomicAdd(&sizes[own], 1), atomicAdd(&sums[own], p.x);
  __syncthreads();
  if (threadIdx.x < centres)
    atomicAdd(&size[threadIdx.x], sizes[threadIdx.x]), atomicAdd(&sum[threadIdx.x], sums[threadIdx.x]);
}

// The first of a list of boxes that each ray meets, by slabs; rays end at it.
extern "C" __global__ void first_box(const float* from, const float* inverse, const float* box, int* met,
                                     int boxes) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, rays = gridDim.x * blockDim.x, found = -1;
  float o[3], v[3];
  for (int d = 0; d < 3; ++d) o[d] = from[d * rays + i], v[d] = inverse[d * rays + i];
  for (int k = 0; k < boxes && found < 0; ++k) {
    float in = 0, out = 1e30f;
    for (int d = 0; d < 3; ++d) {
      float a = (box[6 * k + d] - o[d]) * v[d], b = (box[6 * k + 3 + d] - o[d]) * v[d];
      in = fmaxf(in, fminf(a, b)), out = fminf(out, fmaxf(a, b));
    }
    if (in <= out) found = k;
  }
  met[i] = found;
}

// Products of matrices of 32 by 32 with vectors; four of them in each CTA, a thread for each row.
extern "C" __global__ void small_products(const float* matrix, const float* x, float* y) {
  __shared__ float vector[4][32];
  int one = blockIdx.x * 4 + threadIdx.x / 32, row = threadIdx.x % 32;
  vector[threadIdx.x / 32][row] = x[one * 32 + row];
  __syncthreads();
  float sum = 0;
#pragma unroll 8
  for (int k = 0; k < 32; ++k) sum += matrix[(size_t)one * 1024 + k * 32 + row] * vector[threadIdx.x / 32][k];
  y[one * 32 + row] = sum;
}

// Labels of the connected parts of tiles of 16 by 8 points: the least number spreads until nothing changes.
extern "C" __global__ void label_tiles(const unsigned char* set, unsigned char* label) {
  __shared__ int tile[10][18];
  int x = threadIdx.x % 16 + 1, y = threadIdx.x / 16 + 1, i = blockIdx.x * 128 + threadIdx.x;
  for (int k = threadIdx.x; k < 180; k += 128) tile[k / 18][k % 18] = 255;
  __syncthreads();
  int own = set[i] ? threadIdx.x : 255;
  tile[y][x] = own;
  __syncthreads();
  for (bool changed = true; changed;) {
    int least = own;
    if (own < 255)
      least = min(min(min(tile[y - 1][x], tile[y + 1][x]), min(tile[y][x - 1], tile[y][x + 1])), own);
    changed = __syncthreads_or(least != own);
    tile[y][x] = own = least;
    __syncthreads();
  }
  label[i] = own;
}

// Games of craps with a generator for each thread; throws of a die are rejected above six.
extern "C" __global__ void play_craps(const unsigned* seed, int* won, int* throws, int games) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, wins = 0, count = 0;
  unsigned state = seed[i];
  for (int game = 0; game < games; ++game) {
    for (int point = 0;;) {
      int sum = 0;
      for (int dice = 0; dice < 2; ++count) {
        state ^= state << 13, state ^= state >> 17, state ^= state << 5;
        int face = state >> 29;
        if (face < 6) sum += face + 1, ++dice;
      }
      bool first = point == 0;
      if (first ? sum == 7 || sum == 11 : sum == point) {
        ++wins;
        break;
      }
      if (first ? sum == 2 || sum == 3 || sum == 12 : sum == 7) break;
      if (first) point = sum;
    }
  }
  won[i] = wins, throws[i] = count;
}

// Matches of an automaton, each thread in its own stretch of a text; four letters of eight in a word.
extern "C" __global__ void run_automaton(const unsigned* text, const unsigned char* next, int* matches,
                                         int words) {
  __shared__ unsigned char table[24 * 8];
  for (int k = threadIdx.x; k < 24 * 8; k += blockDim.x) table[k] = next[k];
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x, state = 0, count = 0;
  for (int k = 0; k < words; ++k) {
    unsigned word = text[i * words + k];
    for (int letter = 0; letter < 4; ++letter) {
      state = table[state * 8 + (word >> 8 * letter & 7)];
      count += state >= 21;
    }
  }
  matches[i] = count;
}

// Shortest paths between the 16 vertices of each graph, by Floyd and Warshall.
extern "C" __global__ void shortest_tiles(const int* length, int* shortest) {
  __shared__ int tile[16][17];
  int x = threadIdx.x % 16, y = threadIdx.x / 16, i = blockIdx.x * 256 + threadIdx.x;
  int own = tile[y][x] = length[i];
  for (int k = 0; k < 16; ++k) {
    __syncthreads();
    own = min(own, tile[y][k] + tile[k][x]);
    __syncthreads();
    tile[y][x] = own;
  }
  shortest[i] = own;
}

__device__ float slope(int hash, float x, float y) {
  float u = hash & 1 ? x : -x, v = hash & 2 ? y : -y;
  return hash & 4 ? u + v : u - v;
}

// Octaves of gradient noise; the permutation is in shared memory.
extern "C" __global__ void gradient_noise(const unsigned char* permutation, float* out, int width, float step,
                                          int octaves) {
  __shared__ unsigned char mixed[256];
  for (int k = threadIdx.x; k < 256; k += blockDim.x) mixed[k] = permutation[k];
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float x = i % width * step, y = i / width * step, sum = 0, weight = 1;
  for (int k = 0; k < octaves; ++k) {
    int left = (int)floorf(x), top = (int)floorf(y);
    float u = x - left, v = y - top;
    int a = mixed[left & 255] + top, b = mixed[left + 1 & 255] + top;
    float p = u * u * (3 - 2 * u), q = v * v * (3 - 2 * v);
    float above = slope(mixed[a & 255], u, v) * (1 - p) + slope(mixed[b & 255], u - 1, v) * p;
    float below = slope(mixed[a + 1 & 255], u, v - 1) * (1 - p) + slope(mixed[b + 1 & 255], u - 1, v - 1) * p;
    sum += weight * (above * (1 - q) + below * q);
    x *= 2, y *= 2, weight *= 0.5f;
  }
  out[i] = sum;
}

// Merges two sorted lists of 256 in each CTA; each thread finds where its four values begin, by bisection.
extern "C" __global__ void merge_lists(const int* in, int* out) {
  __shared__ int both[512];
  for (int k = threadIdx.x; k < 512; k += 128) both[k] = in[blockIdx.x * 512 + k];
  __syncthreads();
  const int *a = both, *b = both + 256;
  int at = 4 * threadIdx.x, low = max(0, at - 256), high = min(at, 256);
  while (low < high) {
    int middle = (low + high) / 2;
    if (a[middle] <= b[at - middle - 1])
      low = middle + 1;
    else
      high = middle;
  }
  int i = low, j = at - low;
  for (int k = 0; k < 4; ++k) {
    bool first = j >= 256 || (i < 256 && a[i] <= b[j]);
    out[blockIdx.x * 512 + at + k] = first ? a[i++] : b[j++];
  }
}

// Shortens distances along the edges of a graph once.
extern "C" __global__ void relax_edges(const int2* edge, const int* length, const int* before, int* after,
                                       int each) {
  int stride = gridDim.x * blockDim.x, i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int k = 0; k < each; ++k, i += stride) {
    int2 e = edge[i];
    int found = before[e.x] + length[i];
    if (found < before[e.y]) atomicMin(&after[e.y], found);
  }
}

// Vertices moved by four weighted bones each.
extern "C" __global__ void skin_vertices(const float4* vertex, const uchar4* bone, const float4* weight,
                                         const float4* row, float4* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float4 p = vertex[i], w = weight[i];
  uchar4 b = bone[i];
  float x = 0, y = 0, z = 0;
  int bones[4] = {b.x, b.y, b.z, b.w};
  float weights[4] = {w.x, w.y, w.z, w.w};
  for (int k = 0; k < 4; ++k) {
    float4 r = row[3 * bones[k]], s = row[3 * bones[k] + 1], t = row[3 * bones[k] + 2];
    x += weights[k] * (r.x * p.x + r.y * p.y + r.z * p.z + r.w);
    y += weights[k] * (s.x * p.x + s.y * p.y + s.z * p.z + s.w);
    z += weights[k] * (t.x * p.x + t.y * p.y + t.z * p.z + t.w);
  }
  out[i] = make_float4(x, y, z, 1);
}

// A generation of the game of life on 32 cells of a word at once; each thread marches down some rows.
extern "C" __global__ void life_words(const unsigned* in, unsigned* out, int across, int each) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, column = i % across, first = i / across * each;
  int west = (column + across - 1) % across, east = (column + 1) % across;
  int rows = gridDim.x * blockDim.x / across * each;
  unsigned ones[3], twos[3], middle[3];
  for (int k = -1; k <= each; ++k) {
    const unsigned* row = in + (first + k + rows) % rows * across;
    unsigned m = row[column], l = m << 1 | row[west] >> 31, r = m >> 1 | row[east] << 31;
    ones[0] = ones[1], twos[0] = twos[1], middle[0] = middle[1];
    ones[1] = ones[2], twos[1] = twos[2], middle[1] = middle[2];
    ones[2] = l ^ m ^ r, twos[2] = (l & m) | (l & r) | (m & r), middle[2] = m;
    if (k < 1) continue;
    // Of nine cells: three live, or four of which the middle one is.
    unsigned one = ones[0] ^ ones[1] ^ ones[2];
    unsigned carry = (ones[0] & ones[1]) | (ones[0] & ones[2]) | (ones[1] & ones[2]);
    unsigned a = twos[0] ^ twos[1], b = twos[0] & twos[1], c = a ^ twos[2], d = b ^ (a & twos[2]);
    unsigned two = c ^ carry, fours = d ^ (c & carry), eights = d & c & carry;
    unsigned three = one & two & ~fours & ~eights, four = ~one & ~two & fours & ~eights;
    out[(first + k - 1) * across + column] = three | (four & middle[1]);
  }
}

// Powers modulo 2^31 - 1, whose exponents become longer along the grid.
extern "C" __global__ void powers_modulo(const unsigned* base, const unsigned* exponent, unsigned* out) {
  const unsigned prime = 0x7fffffff;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned power = base[i], left = exponent[i], result = 1;
  for (; left; left >>= 1) {
    if (left & 1) {
      unsigned long long p = (unsigned long long)result * power;
      result = (unsigned)(p & prime) + (unsigned)(p >> 31);
      if (result >= prime) result -= prime;
    }
    unsigned long long p = (unsigned long long)power * power;
    power = (unsigned)(p & prime) + (unsigned)(p >> 31);
    if (power >= prime) power -= prime;
  }
  out[i] = result;
}
