// Convolution by Fourier transforms: F x F windows of images are transformed, spectra are multiplied and
// added over channels as small matrices at each frequency, and transformed back. A spectrum has F / 2 + 1
// columns of F complex numbers; the others follow from symmetry because images are real.
#include "shape.cuh"

constexpr int FFT_THREADS = 256;

__device__ inline float2 operator+(float2 a, float2 b) {
  return {a.x + b.x, a.y + b.y};
}
__device__ inline float2 operator-(float2 a, float2 b) {
  return {a.x - b.x, a.y - b.y};
}
__device__ inline float2 operator*(float2 a, float2 b) {
  return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x};
}
__device__ inline float2 conjugate(float2 a) {
  return {a.x, -a.y};
}
__device__ inline float2 shuffle(float2 a, int lane, int width) {
  return {__shfl_sync(~0u, a.x, lane, width), __shfl_sync(~0u, a.y, lane, width)};
}
__device__ inline float2 shuffle_xor(float2 a, int mask, int width) {
  return {__shfl_xor_sync(~0u, a.x, mask, width), __shfl_xor_sync(~0u, a.y, mask, width)};
}

template <int F>
struct Fourier {
  static constexpr int LANES = F < 32 ? F : 32, EACH = F / LANES, GROUPS = FFT_THREADS / LANES;
  static constexpr int FREQUENCIES = F * (F / 2 + 1);
  static_assert(EACH <= 2);

  // The first of the lines that the groups of a warp transform together.
  static __device__ int first_of_warp(int line) { return line / (32 / LANES) * (32 / LANES); }

  // Powers of the F-th root of unity.
  static __device__ void roots(float2 (&root)[F]) {
    for (int i = threadIdx.x; i < F; i += FFT_THREADS) sincospif(-2.0f * i / F, &root[i].y, &root[i].x);
    __syncthreads();
  }

  // Transforms F numbers held by LANES neighbouring threads: v[e] of a lane is number lane + LANES * e,
  // before and after. Decimation in frequency (Cooley and Tukey).
  template <bool INVERSE>
  static __device__ void transform(float2 (&v)[EACH], const float2 (&root)[F]) {
    int lane = threadIdx.x % LANES;
    auto turn = [&](float2 value, int i) { return value * (INVERSE ? conjugate(root[i]) : root[i]); };
    if (EACH == 2) {
      float2 sum = v[0] + v[EACH - 1];
      v[EACH - 1] = turn(v[0] - v[EACH - 1], lane);
      v[0] = sum;
    }
#pragma unroll
    for (int half = LANES / 2; half > 0; half /= 2)
#pragma unroll
      for (int e = 0; e < EACH; e++) {
        float2 other = shuffle_xor(v[e], half, LANES);
        v[e] = lane & half ? turn(other - v[e], lane % half * (F / (2 * half))) : v[e] + other;
      }
    // A lane now has the numbers EACH * r + e, where r is its own number with its bits reversed.
    constexpr int SHIFT = LANES == 32 ? 27 : 28;
    if (EACH == 1) {
      v[0] = shuffle(v[0], __brev(lane) >> SHIFT, LANES);
    } else {
      float2 even = v[0], odd = v[EACH - 1];
#pragma unroll
      for (int e = 0; e < EACH; e++) {
        int from = __brev((lane + LANES * e) / 2) >> SHIFT;
        float2 a = shuffle(even, from, LANES), b = shuffle(odd, from, LANES);
        v[e] = lane % 2 ? b : a;
      }
    }
  }
};

// Windows of images: tile (i, j) begins at (i * step_h + top, j * step_w + left); of each, only `rows` rows
// and `columns` columns are read or written.
struct Windows {
  int height, width, down, across, step_h, step_w, top, left, rows, columns;
};

// spectra[image and tile][column of the spectrum][row] of real windows; a block for each.
template <int F>
__global__ void __launch_bounds__(FFT_THREADS) fft_forward(const float* images, float2* spectra, Windows z) {
  using Transform = Fourier<F>;
  constexpr int LANES = Transform::LANES, EACH = Transform::EACH;
  __shared__ float2 root[F], pairs[F / 2][F + 1];
  Transform::roots(root);
  int group = threadIdx.x / LANES, lane = threadIdx.x % LANES, tile = blockIdx.x % (z.down * z.across);
  int top = tile / z.across * z.step_h + z.top, left = tile % z.across * z.step_w + z.left;
  const float* image = images + blockIdx.x / (z.down * z.across) * z.height * z.width;
  auto value = [&](int i, int j) {
    return i < z.rows && j < z.columns ? element(image, top + i, left + j, z.height, z.width) : 0;
  };
  // Two real rows are transformed as one complex row; rows of zeros need not be.
  for (int pair = group; pair < F / 2; pair += Transform::GROUPS) {
    float2 v[EACH];
#pragma unroll
    for (int e = 0; e < EACH; e++) {
      int j = lane + LANES * e;
      v[e] = {value(2 * pair, j), value(2 * pair + 1, j)};
    }
    if (2 * Transform::first_of_warp(pair) < z.rows) Transform::template transform<false>(v, root);
#pragma unroll
    for (int e = 0; e < EACH; e++) pairs[pair][lane + LANES * e] = v[e];
  }
  __syncthreads();
  spectra += blockIdx.x * Transform::FREQUENCIES;
  for (int first = 0; first <= F / 2; first += Transform::GROUPS) {  // all lanes of a warp take part
    int column = min(first + group, F / 2);
    float2 v[EACH];
#pragma unroll
    for (int e = 0; e < EACH; e++) {
      int i = lane + LANES * e;
      float2 a = pairs[i / 2][column], b = conjugate(pairs[i / 2][(F - column) % F]);
      float2 sum = a + b, difference = a - b;
      v[e] = i % 2 ? float2{difference.y / 2, -difference.x / 2} : float2{sum.x / 2, sum.y / 2};
    }
    Transform::template transform<false>(v, root);
    if (first + group <= F / 2)
#pragma unroll
      for (int e = 0; e < EACH; e++) spectra[column * F + lane + LANES * e] = v[e];
  }
}

// The inverse: elements (skip_h + i, skip_w + j) of each window become (i, j) of its tile of the images.
template <int F>
__global__ void __launch_bounds__(FFT_THREADS)
    fft_inverse(const float2* spectra, float* images, Windows z, int skip_h, int skip_w) {
  using Transform = Fourier<F>;
  constexpr int LANES = Transform::LANES, EACH = Transform::EACH;
  __shared__ float2 root[F], half[F][F / 2 + 1];
  Transform::roots(root);
  int group = threadIdx.x / LANES, lane = threadIdx.x % LANES, tile = blockIdx.x % (z.down * z.across);
  spectra += blockIdx.x * Transform::FREQUENCIES;
  for (int first = 0; first <= F / 2; first += Transform::GROUPS) {
    int column = min(first + group, F / 2);
    float2 v[EACH];
#pragma unroll
    for (int e = 0; e < EACH; e++) v[e] = spectra[column * F + lane + LANES * e];
    Transform::template transform<true>(v, root);
#pragma unroll
    for (int e = 0; e < EACH; e++) half[lane + LANES * e][column] = v[e];
  }
  __syncthreads();
  int top = tile / z.across * z.step_h + z.top, left = tile % z.across * z.step_w + z.left;
  float* image = images + blockIdx.x / (z.down * z.across) * z.height * z.width;
  auto store = [&](int i, int j, float value) {
    i -= skip_h, j -= skip_w;
    if ((unsigned)i < (unsigned)z.rows && (unsigned)j < (unsigned)z.columns && top + i < z.height &&
        left + j < z.width)
      image[(top + i) * z.width + left + j] = value / (F * F);
  };
  for (int pair = group; pair < F / 2; pair += Transform::GROUPS) {
    if (2 * Transform::first_of_warp(pair) >= skip_h + z.rows) continue;  // nothing of them is stored
    float2 v[EACH];
#pragma unroll
    for (int e = 0; e < EACH; e++) {
      int j = lane + LANES * e;
      float2 a = half[2 * pair][min(j, F - j)], b = half[2 * pair + 1][min(j, F - j)];
      if (j > F / 2) a = conjugate(a), b = conjugate(b);
      v[e] = {a.x - b.y, a.y + b.x};
    }
    Transform::template transform<true>(v, root);
#pragma unroll
    for (int e = 0; e < EACH; e++) {
      store(2 * pair, lane + LANES * e, v[e].x);
      store(2 * pair + 1, lane + LANES * e, v[e].y);
    }
  }
}

// Where the spectra of a matrix are: that of (i, j) is number row(i) + column(j).
struct Steps {
  int inner, outer, minor;
  __device__ int operator()(int i) const { return i / inner * outer + i % inner * minor; }
};
struct Matrix {
  Steps row, column;
};
// c = a * b at every frequency, with the conjugate of a if asked for. A block makes 32 rows and 4 * WIDTH
// columns for 8 neighbouring frequencies. Grid: groups of frequencies, of rows, of columns.
template <bool CONJUGATE, int WIDTH>
__global__ void __launch_bounds__(FFT_THREADS)
    fft_multiply(const float2* a, Matrix at_a, const float2* b, Matrix at_b, float2* c, Matrix at_c, int rows,
                 int columns, int depth, int frequencies) {
  constexpr int NEAR = 8, HEIGHT = 4, ROWS = 8 * HEIGHT, COLUMNS = 4 * WIDTH, STEP = 8;
  __shared__ float2 left[STEP][ROWS][NEAR], right[STEP][COLUMNS][NEAR];
  int t = threadIdx.x, near = t % NEAR, own_row = t / NEAR % 8, own_column = t / NEAR / 8 * WIDTH;
  int row0 = blockIdx.y * ROWS, column0 = blockIdx.z * COLUMNS, frequency = blockIdx.x * NEAR + near;
  float2 sums[HEIGHT][WIDTH] = {};
  for (int d0 = 0; d0 < depth; d0 += STEP) {
#pragma unroll
    for (int i = 0; i < STEP * ROWS * NEAR / FFT_THREADS; i++) {
      int at = t / NEAR + i * (FFT_THREADS / NEAR), row = row0 + at / STEP, d = d0 + at % STEP;
      left[at % STEP][at / STEP][near] =
          row < rows && d < depth ? a[(at_a.row(row) + at_a.column(d)) * frequencies + frequency] : float2{};
    }
#pragma unroll
    for (int i = 0; i < STEP * COLUMNS * NEAR / FFT_THREADS; i++) {
      int at = t / NEAR + i * (FFT_THREADS / NEAR), column = column0 + at / STEP, d = d0 + at % STEP;
      right[at % STEP][at / STEP][near] =
          column < columns && d < depth ? b[(at_b.row(d) + at_b.column(column)) * frequencies + frequency]
                                        : float2{};
    }
    __syncthreads();
#pragma unroll
    for (int d = 0; d < STEP; d++) {
      float2 u[HEIGHT], v[WIDTH];
#pragma unroll
      for (int i = 0; i < HEIGHT; i++) {
        u[i] = left[d][own_row + 8 * i][near];
        if (CONJUGATE) u[i] = conjugate(u[i]);
      }
#pragma unroll
      for (int j = 0; j < WIDTH; j++) v[j] = right[d][own_column + j][near];
#pragma unroll
      for (int i = 0; i < HEIGHT; i++)
#pragma unroll
        for (int j = 0; j < WIDTH; j++) {
          sums[i][j].x += u[i].x * v[j].x, sums[i][j].x -= u[i].y * v[j].y;
          sums[i][j].y += u[i].x * v[j].y, sums[i][j].y += u[i].y * v[j].x;
        }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < HEIGHT; i++)
#pragma unroll
    for (int j = 0; j < WIDTH; j++) {
      int row = row0 + own_row + 8 * i, column = column0 + own_column + j;
      if (row < rows && column < columns)
        c[(at_c.row(row) + at_c.column(column)) * frequencies + frequency] = sums[i][j];
    }
}
