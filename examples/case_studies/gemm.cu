// Matrix products near the peak of a GPU. C = A B; A is stored by columns (K x M), B by rows (K x N).
//
// MULTIPLY(d, a, b): the instruction wgmma.m64n256k16, for compute capability 9.0.

#include <cuda_fp16.h>
#include <mma.h>

constexpr int TILE = 128;

__device__ float times(float a, float b, float c) {
  return fmaf(a, b, c);
}
__device__ __half2 times(__half2 a, __half2 b, __half2 c) {
  return __hfma2(a, b, c);
}
__device__ void spread(float a, float& to) {
  to = a;
}
__device__ void spread(__half a, __half2& to) {
  to = __half2half2(a);
}

template <class T, int COUNT>
struct alignas(sizeof(T) * COUNT) Vector {
  T value[COUNT];
};

// Copies of 8 or 16 bytes; the compiler copies __half2 one by one.
template <class T>
__device__ void move(T* to, const T* from) {
  if constexpr (sizeof(T) == 16)
    *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from);
  else
    *reinterpret_cast<uint2*>(to) = *reinterpret_cast<const uint2*>(from);
}

// Tiles of 16 HEIGHT x 128 V by 256 threads, HEIGHT x 8 each. V is float, or two columns of __half; n counts
// V.
template <int HEIGHT, class S, class V>
__device__ void simd(const S* a, const V* b, V* c, int m, int n, int k) {
  constexpr int DEPTH = 8, QUARTERS = HEIGHT / 4, FETCHED = HEIGHT / 8;
  using Row = Vector<V, 4>;
  __shared__ Row left[2][DEPTH][16 * QUARTERS], right[2][DEPTH][32];
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16, row = threadIdx.x / 32, column = threadIdx.x % 32;
  const auto* from_a = reinterpret_cast<const Vector<S, 4>*>(a + row * m + blockIdx.y * 16 * HEIGHT) + column;
  const auto* from_b = reinterpret_cast<const Row*>(b + row * n + blockIdx.x * TILE) + column;
  V sum[HEIGHT][8] = {};
  Vector<S, 4> next_a[FETCHED];
  Row next_b;
  auto fetch = [&] {
#pragma unroll
    for (int i = 0; i < FETCHED; ++i) move(&next_a[i], from_a + 32 * i);
    move(&next_b, from_b);
    from_a += DEPTH * m / 4;
    from_b += DEPTH * n / 4;
  };
  fetch();
  for (int step = 0; step < k / DEPTH; ++step) {
    const int buffer = step % 2;
#pragma unroll
    for (int i = 0; i < FETCHED; ++i) {
      Row found;
#pragma unroll
      for (int u = 0; u < 4; ++u) spread(next_a[i].value[u], found.value[u]);
      move(&left[buffer][row][32 * i + column], &found);
    }
    move(&right[buffer][row][column], &next_b);
    __syncthreads();
    if (step + 1 < k / DEPTH) fetch();
    // What the next of the 8 products needs is loaded between the multiply-adds of one.
    Row x[2][QUARTERS], y[2][2];
    auto load = [&](int i, int u) {
      move(&x[i % 2][u], &left[buffer][i][16 * u + ty]);
      if (u < 2) move(&y[i % 2][u], &right[buffer][i][16 * u + tx]);
    };
#pragma unroll
    for (int u = 0; u < QUARTERS; ++u) load(0, u);
#pragma unroll
    for (int i = 0; i < DEPTH; ++i)
#pragma unroll
      for (int u = 0; u < HEIGHT; ++u) {
        if (u % 4 == 0 && i + 1 < DEPTH) load(i + 1, u / 4);
#pragma unroll
        for (int v = 0; v < 8; ++v)
          sum[u][v] = times(x[i % 2][u / 4].value[u % 4], y[i % 2][v / 4].value[v % 4], sum[u][v]);
      }
  }
#pragma unroll
  for (int u = 0; u < HEIGHT; ++u)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      Row found;
#pragma unroll
      for (int v = 0; v < 4; ++v) found.value[v] = sum[u][4 * half + v];
      const int y = blockIdx.y * 16 * HEIGHT + u / 4 * 64 + 4 * ty + u % 4;
      move(reinterpret_cast<Row*>(c + y * n + blockIdx.x * TILE) + 16 * half + tx, &found);
    }
}

extern "C" __global__ void __launch_bounds__(256, 2)
    fp32(const float* a, const float* b, float* c, int m, int n, int k) {
  simd<8>(a, b, c, m, n, k);
}

// For SMs of 128 lanes, whose shared memory is too slow for smaller tiles.
extern "C" __global__ void __launch_bounds__(256, 1)
    fp32_tall(const float* a, const float* b, float* c, int m, int n, int k) {
  simd<16>(a, b, c, m, n, k);
}

extern "C" __global__ void __launch_bounds__(256, 2)
    fp16(const __half* a, const __half2* b, __half2* c, int m, int n, int k) {
  simd<8>(a, b, c, m, n / 2, k);
}

#if __CUDA_ARCH__ >= 700
// Tiles of 128 x 128 by 256 threads; each warp computes 64 x 32, enough independent sums for Volta's latency.
extern "C" __global__ void __launch_bounds__(256, 2)
    tensor(const __half* a, const __half* b, float* c, int m, int n, int k) {
  using namespace nvcuda::wmma;
  constexpr int DEPTH = 32, PITCH = TILE + 8, ROWS = 16, FETCHED = DEPTH / ROWS, U = 4, V = 2;
  __shared__ __align__(16) __half left[2][DEPTH][PITCH], right[2][DEPTH][PITCH];
  const int warp = threadIdx.x / 32, y = warp / 4 * 64, x = warp % 4 * 32;
  const int row = threadIdx.x / 16, column = threadIdx.x % 16 * 8;
  const __half *from_a = a + row * m + blockIdx.y * TILE + column,
               *from_b = b + row * n + blockIdx.x * TILE + column;
  fragment<accumulator, 16, 16, 16, float> sum[U][V];
#pragma unroll
  for (int i = 0; i < U * V; ++i) fill_fragment(sum[i / V][i % V], 0.0f);
  uint4 next_a[FETCHED], next_b[FETCHED];
  auto fetch = [&] {
#pragma unroll
    for (int i = 0; i < FETCHED; ++i) {
      next_a[i] = *reinterpret_cast<const uint4*>(from_a + ROWS * i * m);
      next_b[i] = *reinterpret_cast<const uint4*>(from_b + ROWS * i * n);
    }
    from_a += DEPTH * m;
    from_b += DEPTH * n;
  };
  fetch();
  for (int step = 0; step < k / DEPTH; ++step) {
    const int buffer = step % 2;
#pragma unroll
    for (int i = 0; i < FETCHED; ++i) {
      *reinterpret_cast<uint4*>(&left[buffer][row + ROWS * i][column]) = next_a[i];
      *reinterpret_cast<uint4*>(&right[buffer][row + ROWS * i][column]) = next_b[i];
    }
    __syncthreads();
    if (step + 1 < k / DEPTH) fetch();
#pragma unroll
    for (int i = 0; i < DEPTH; i += 16) {
      fragment<matrix_a, 16, 16, 16, __half, col_major> fa[U];
      fragment<matrix_b, 16, 16, 16, __half, row_major> fb[V];
#pragma unroll
      for (int u = 0; u < U; ++u) load_matrix_sync(fa[u], &left[buffer][i][y + 16 * u], PITCH);
#pragma unroll
      for (int v = 0; v < V; ++v) load_matrix_sync(fb[v], &right[buffer][i][x + 16 * v], PITCH);
#pragma unroll
      for (int u = 0; u < U * V; ++u) mma_sync(sum[u / V][u % V], fa[u / V], fb[u % V], sum[u / V][u % V]);
    }
  }
#pragma unroll
  for (int u = 0; u < U * V; ++u)
    store_matrix_sync(c + (blockIdx.y * TILE + y + u / V * 16) * n + blockIdx.x * TILE + x + u % V * 16,
                      sum[u / V][u % V], n, mem_row_major);
}
#endif

#if __CUDA_ARCH__ >= 900
// A CTA of 384 threads computes 128 x 256 numbers: a warp copies stages of 64 rows of A and B, two warpgroups
// multiply 64 x 256 each. A is stored as tiles [M / 128][K / 64] of [4][16][2][8][8] halves, B as tiles
// [N / 256][K / 64] of [4][32][2][8][8]: 8 x 8 matrices with k innermost, as wgmma takes them.
constexpr int STAGES = 4, DEEP = 64, A_BYTES = 2 * 128 * DEEP, B_BYTES = 2 * 256 * DEEP;

__device__ void wait(unsigned barrier, unsigned phase) {
  unsigned done = 0;
  while (!done)
    asm volatile(
        "{\n .reg .pred p;\n mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n selp.u32 %0, 1, 0, p;\n}"
        : "=r"(done)
        : "r"(barrier), "r"(phase)
        : "memory");
}

__device__ void copy(unsigned to, const char* from, int bytes, unsigned barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
      "l"(from), "r"(bytes), "r"(barrier)
      : "memory");
}

extern "C" __global__ void __launch_bounds__(384, 1)
    wgmma(const char* a, const char* b, float* c, int m, int n, int k) {
  extern __shared__ __align__(1024) char memory[];
  __shared__ __align__(8) unsigned long long barriers[2 * STAGES];
  const unsigned stages = static_cast<unsigned>(__cvta_generic_to_shared(memory));
  const unsigned full = static_cast<unsigned>(__cvta_generic_to_shared(barriers)), empty = full + 8 * STAGES;
  if (threadIdx.x == 0) {
    for (int i = 0; i < STAGES; ++i) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(full + 8 * i) : "memory");
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 2;" ::"r"(empty + 8 * i) : "memory");
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  const int steps = k / DEEP, group = threadIdx.x / 128;
  if (group == 2) {
    if (threadIdx.x > 256) return;
    for (int step = 0; step < steps; ++step) {
      const int at = step % STAGES;
      const unsigned to = stages + at * (A_BYTES + B_BYTES), barrier = full + 8 * at;
      if (step >= STAGES) wait(empty + 8 * at, (step / STAGES - 1) % 2);
      asm volatile(
          "{\n .reg .b64 state;\n mbarrier.arrive.expect_tx.shared::cta.b64 state, [%0], %1;\n}" ::"r"(
              barrier),
          "r"(A_BYTES + B_BYTES)
          : "memory");
      copy(to, a + (static_cast<long long>(blockIdx.y) * steps + step) * A_BYTES, A_BYTES, barrier);
      copy(to + A_BYTES, b + (static_cast<long long>(blockIdx.x) * steps + step) * B_BYTES, B_BYTES, barrier);
    }
    return;
  }
  float d[128];
#pragma unroll
  for (int i = 0; i < 128; ++i) d[i] = 0;
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  for (int step = 0; step < steps; ++step) {
    const int at = step % STAGES;
    const unsigned from = stages + at * (A_BYTES + B_BYTES);
    wait(full + 8 * at, step / STAGES % 2);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      // 128 bytes between small matrices along k, 256 along the rows.
      const unsigned long long layout = 8ull << 16 | 16ull << 32;
      const unsigned long long x = layout | (from + i * A_BYTES / 4 + group * A_BYTES / 8) >> 4;
      const unsigned long long y = layout | (from + A_BYTES + i * B_BYTES / 4) >> 4;
      MULTIPLY(d, x, y);
    }
    asm volatile("wgmma.commit_group.sync.aligned;\n wgmma.wait_group.sync.aligned 1;" ::: "memory");
    if (step > 0 && threadIdx.x % 128 == 0)
      asm volatile("{\n .reg .b64 state;\n mbarrier.arrive.shared::cta.b64 state, [%0];\n}" ::"r"(
                       empty + 8 * ((step - 1) % STAGES))
                   : "memory");
  }
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  const int lane = threadIdx.x % 32, row = blockIdx.y * 128 + threadIdx.x / 32 * 16 + lane / 4;
#pragma unroll
  for (int i = 0; i < 32; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      *reinterpret_cast<float2*>(c + (row + 8 * half) * n + blockIdx.x * 256 + 8 * i + lane % 4 * 2) =
          make_float2(d[4 * i + 2 * half], d[4 * i + 2 * half + 1]);
}
#endif
