// Matrix multiplications: latency from accumulator to accumulator, and what an SM's tensor cores do in a cycle.
//
// Macros: CHAINS: independent accumulators of a warp. STEPS: multiplications of each.

#include <cuda_fp16.h>

__device__ __forceinline__ void multiply_once(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

extern "C" __global__ void multiply(long long* cycles, float* sink) {
  unsigned a[4], b[2];
#pragma unroll
  for (int i = 0; i < 4; ++i) a[i] = threadIdx.x + i;
#pragma unroll
  for (int i = 0; i < 2; ++i) b[i] = threadIdx.x + i;
  float d[CHAINS][4] = {};
#pragma unroll 1
  for (int part = -1; part < 2; ++part) {
    const int steps = part < 0 ? 4 : STEPS << part;
    __syncthreads();
    const long long begin = clock64();
#pragma unroll 4
    for (int i = 0; i < steps; ++i)
#pragma unroll
      for (int k = 0; k < CHAINS; ++k) multiply_once(d[k], a, b);
    float sum = 0;
#pragma unroll
    for (int k = 0; k < CHAINS; ++k) sum += d[k][0] + d[k][1] + d[k][2] + d[k][3];
    sink[threadIdx.x] = sum;
    __syncthreads();
    if (part >= 0 && threadIdx.x == 0) cycles[part] = clock64() - begin;
  }
}
