// Kernels of our own after descriptions, or after short sources in repositories that are not named, of
// kernels whose output of Nsight Compute people have published (nsight-compute-outputs). Each launches one
// kernel once.
//
//     nsight KERNEL SIZE GRID BLOCK

#include <cuda_fp16.h>

#include <cstdlib>
#include <cstring>
#include <vector>

// ------------------------------------------------------------------------------------------------------
// additions

__global__ void add(const float* a, const float* b, float* c, int n) {
  const int i = blockDim.x * blockIdx.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

__global__ void add_pairs(const float* a, const float* b, float* c, int n) {
  const int i = 2 * (blockDim.x * blockIdx.x + threadIdx.x);
  if (i < n) c[i] = a[i] + b[i];
  if (i + 1 < n) c[i + 1] = a[i + 1] + b[i + 1];
}

__global__ void add_strided(const float* a, const float* b, float* c, int n) {
  for (int i = blockDim.x * blockIdx.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) c[i] = a[i] + b[i];
}

__global__ void add_in_parts(const float* a, const float* b, float* c, int n, int part) {
  const int first = part * (blockDim.x * blockIdx.x + threadIdx.x);
  for (int i = first; i < n && i < first + part; ++i) c[i] = a[i] + b[i];
}

__global__ void add_staged(float* a, float* b, float* c, int n) {
  extern __shared__ float stage[];
  const int i = blockDim.x * blockIdx.x + threadIdx.x;
  if (i < n) {
    stage[threadIdx.x] = a[i];
    stage[blockDim.x + threadIdx.x] = b[i];
    __syncthreads();
    c[i] = stage[threadIdx.x] + stage[blockDim.x + threadIdx.x];
  }
}

__global__ void add_staged_strided(float* a, float* b, float* c, int n) {
  extern __shared__ float stage[];
  for (int i = blockDim.x * blockIdx.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
    stage[threadIdx.x] = a[i];
    stage[blockDim.x + threadIdx.x] = b[i];
    __syncthreads();
    c[i] = stage[threadIdx.x] + stage[blockDim.x + threadIdx.x];
    __syncthreads();
  }
}

// --------------------------------------------------------------------------------------------------------
// one CTA

__global__ void number_lanes(float* to) {
  to[threadIdx.x] = threadIdx.x;
}

__global__ void number_threads(int* to, int n) {
  const int i = blockDim.x * blockIdx.x + threadIdx.x;
  if (i < n) to[i] = i;
}

// -----------------------------------------------------------------------------------------------------
// reductions

__global__ void logistic_loss(const float* guess, const float* label, float* mean, int n) {
  __shared__ float part[256];
  const int i = blockDim.x * blockIdx.x + threadIdx.x;
  float loss = 0;
  if (i < n) loss = -label[i] * logf(guess[i]) - (1 - label[i]) * logf(1 - guess[i]);
  part[threadIdx.x] = loss;
  __syncthreads();
  for (int half = blockDim.x / 2; half != 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(mean, part[0] / n);
}

constexpr int COLUMNS = 256;

__global__ void sum_rows(float* data, float* sums, int) {
  const int row = blockDim.x * blockIdx.x + threadIdx.x;
  float sum = 0;
  for (int column = 0; column < COLUMNS; ++column) sum += data[row * COLUMNS + column];
  sums[row] = sum;
}

template <int ROWS>
__global__ void sum_rows_coalesced(float* data, float* sums) {
  const int row = blockDim.x * blockIdx.x + threadIdx.x;
  float sum = 0;
  for (int column = 0; column < COLUMNS; ++column) sum += data[column * ROWS + row];
  sums[row] = sum;
}

__global__ void triangle_by_threads(unsigned n, char part, const half* __restrict__ matrix,
                                    const half* __restrict__ in, half* __restrict__ out) {
  const int row = blockDim.x * blockIdx.x + threadIdx.x;
  if (row >= n) return;
  float sum = 0;
  if (part == 'U') {
#pragma unroll
    for (int i = row; i < n; ++i) sum += __half2float(matrix[row * n + i]) * __half2float(in[i]);
  } else if (part == 'L') {
#pragma unroll
    for (int i = 0; i <= row; ++i) sum += __half2float(matrix[row * n + i]) * __half2float(in[i]);
  }
  out[row] = __float2half(sum);
}

__global__ void triangle_by_warps(unsigned n, char part, const half* __restrict__ matrix,
                                  const half* __restrict__ in, half* __restrict__ out) {
  const unsigned row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= n) return;
  const unsigned columns = part == 'U' ? n - row : row + 1;
  const unsigned steps = columns % 32 ? columns / 32 + 1 : columns / 32;
  float sum = 0;
#pragma unroll
  for (unsigned step = 0; step < steps; ++step) {
    const unsigned column = (part == 'U' ? row : 0) + step * 32 + lane;
    if (column < n) sum += __half2float(matrix[n * row + column]) * __half2float(in[column]);
  }
#pragma unroll
  for (unsigned other = 16; other >= 1; other /= 2) sum += __shfl_xor_sync(0xffffffff, sum, other);
  if (lane == 0) out[row] = __float2half(sum);
}

// ----------------------------------------------------------------------------------------------- Sobel,
// divergence

constexpr int TILE = 32;

// As published: the rows of an array of n columns are taken to be n wide though they are n + 2, and the
// gradient down is added twice in place of its square.
__global__ void sobel(const float* a, float* out, int, int n) {
  const int y = blockIdx.y * TILE + threadIdx.y + 1, x = blockIdx.x * TILE + threadIdx.x + 1;
  const float across = -a[(y - 1) * n + x - 1] + a[(y - 1) * n + x + 1] - 2 * a[y * n + x - 1] +
                       2 * a[y * n + x + 1] - a[(y + 1) * n + x - 1] + a[(y + 1) * n + x + 1];
  const float down = -a[(y - 1) * n + x - 1] - 2 * a[(y - 1) * n + x] - a[(y - 1) * n + x + 1] +
                     a[(y + 1) * n + x - 1] + 2 * a[(y + 1) * n + x] + a[(y + 1) * n + x + 1];
  out[(y - 1) * n + x - 1] = sqrt(across * across + down + down);
}

__global__ void sobel_shared(const float* in, float* out, int, int n) {
  __shared__ float a[TILE + 2][TILE + 2];
  const int top = blockIdx.y * TILE + threadIdx.y, left = blockIdx.x * TILE + threadIdx.x;
#pragma unroll
  for (int i = 0; i < 3; ++i)
#pragma unroll
    for (int j = 0; j < 3; ++j) a[threadIdx.y + i][threadIdx.x + j] = in[(top + i) * n + left + j];
  __syncthreads();
  const int y = threadIdx.y + 1, x = threadIdx.x + 1;
  const float across = -a[y - 1][x - 1] + a[y - 1][x + 1] - 2 * a[y][x - 1] + 2 * a[y][x + 1] -
                       a[y + 1][x - 1] + a[y + 1][x + 1];
  const float down = -a[y - 1][x - 1] - 2 * a[y - 1][x] - a[y - 1][x + 1] + a[y + 1][x - 1] +
                     2 * a[y + 1][x] + a[y + 1][x + 1];
  out[top * n + left] = sqrt(across * across + down + down);
}

__global__ void branch(float* data, int n, int group) {
  const int i = blockDim.x * blockIdx.x + threadIdx.x;
  if (i >= n) return;
  constexpr int UP = 400, DOWN = 600;
  float value = data[i];
  if (i / group % 2 == 0)
    for (int turn = 0; turn < UP; ++turn) value = value * 1.001f + 1.0f;
  else
    for (int turn = 0; turn < DOWN; ++turn) value = value * 0.999f - 1.0f;
  data[i] = value;
}

// --------------------------------------------------------------------------------------------------- tensor
// cores

__global__ void chain_of_products(float* out, int count) {
  unsigned a[4] = {threadIdx.x, 1, 2, 3}, b[2] = {4, 5};
  float c[4] = {};
#if __CUDA_ARCH__ >= 800
  for (int i = 0; i < count; ++i)
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
  out[blockDim.x * blockIdx.x + threadIdx.x] = c[0] + c[1] + c[2] + c[3];
}

template <typename T>
static T* array(size_t count) {
  T* at = nullptr;
  if (cudaMalloc(&at, count * sizeof(T)) != cudaSuccess ||
      cudaMemset(at, 0, count * sizeof(T)) != cudaSuccess)
    exit(1);
  return at;
}

int main(int count, char** arguments) {
  if (count != 5) return 2;
  const int n = atoi(arguments[2]), grid = atoi(arguments[3]), block = atoi(arguments[4]);
  const auto is = [&](const char* name) { return !strcmp(arguments[1], name); };
  if (!strncmp(arguments[1], "add", 3)) {
    float *a = array<float>(n), *b = array<float>(n), *c = array<float>(n);
    const int threads = grid * block;
    if (is("add")) add<<<grid, block>>>(a, b, c, n);
    if (is("add_pairs")) add_pairs<<<grid, block>>>(a, b, c, n);
    if (is("add_strided")) add_strided<<<grid, block>>>(a, b, c, n);
    if (is("add_in_parts")) add_in_parts<<<grid, block>>>(a, b, c, n, (n + threads - 1) / threads);
    if (is("add_staged")) add_staged<<<grid, block, 2 * block * sizeof(float)>>>(a, b, c, n);
    if (is("add_staged_strided")) add_staged_strided<<<grid, block, 2 * block * sizeof(float)>>>(a, b, c, n);
  } else if (is("number_lanes")) {
    number_lanes<<<grid, block>>>(array<float>(256));
  } else if (is("number_threads")) {
    number_threads<<<grid, block>>>(array<int>(n), n);
  } else if (is("logistic_loss")) {
    float* guess = array<float>(n);
    const std::vector<float> halves(n, 0.5f);
    cudaMemcpy(guess, halves.data(), n * sizeof(float), cudaMemcpyHostToDevice);
    logistic_loss<<<grid, block>>>(guess, array<float>(n), array<float>(1), n);
  } else if (is("sum_rows")) {
    sum_rows<<<grid, block>>>(array<float>(size_t(n) * COLUMNS), array<float>(n), n);
  } else if (is("sum_rows_coalesced")) {
    if (n != 1 << 20) return 2;
    sum_rows_coalesced<1 << 20><<<grid, block>>>(array<float>(size_t(n) * COLUMNS), array<float>(n));
  } else if (!strncmp(arguments[1], "triangle", 8)) {
    half *matrix = array<half>(n * n), *in = array<half>(n), *out = array<half>(n);
    if (is("triangle_by_threads")) triangle_by_threads<<<grid, block>>>(n, 'U', matrix, in, out);
    if (is("triangle_by_warps")) triangle_by_warps<<<grid, block>>>(n, 'U', matrix, in, out);
  } else if (!strncmp(arguments[1], "sobel", 5)) {
    const dim3 ctas(grid, 127), threads(TILE, TILE);
    const int m = n, columns = 1024;
    float *in = array<float>(size_t(m + 64) * columns), *out = array<float>(size_t(m + 64) * columns);
    if (is("sobel")) sobel<<<ctas, threads>>>(in, out, m - 2, columns - 2);
    if (is("sobel_shared")) sobel_shared<<<ctas, threads>>>(in, out, m - 2, columns - 2);
  } else if (!strncmp(arguments[1], "branch", 6)) {
    branch<<<grid, block>>>(array<float>(n), n, is("branch_in_warps") ? 1 : 32);
  } else if (is("chain_of_products")) {
    chain_of_products<<<grid, block>>>(array<float>(grid * block), n);
  } else {
    return 2;
  }
  return cudaDeviceSynchronize() != cudaSuccess;
}
