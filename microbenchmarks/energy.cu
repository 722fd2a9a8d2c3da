// Loads of one kind for as long as needed: what an operation or an access takes in energy.
//
// Each kernel repeats the same work `repeats` times, so that the energy of a repetition follows from the power.
// Macros: TYPE: of the values. STEP(x, a, b): the operation, a statement that changes x. CHAINS: independent chains
// of a thread. LENGTH: operations of each chain in a repetition. LOAD: as in bandwidth.cu.

#include <cuda_fp16.h>
#include <mma.h>

#include "past_l1.cuh"

#ifndef TYPE
#define TYPE unsigned
#endif
#ifndef STEP
#define STEP(x, a, b)
#endif
#ifndef CHAINS
#define CHAINS 4
#endif
#ifndef LENGTH
#define LENGTH 32
#endif
#ifndef LOAD
#define LOAD "ld.global.ca"
#endif

// The first `lanes` lanes of each warp compute.
extern "C" __global__ void compute(TYPE* values, int repeats, int lanes, TYPE a, TYPE b) {
  if (threadIdx.x % 32 >= lanes) return;
  TYPE x[CHAINS];
#pragma unroll
  for (int k = 0; k < CHAINS; ++k) x[k] = values[threadIdx.x + k * blockDim.x];
#pragma unroll 1
  for (int r = 0; r < repeats; ++r)
#pragma unroll
    for (int i = 0; i < LENGTH; ++i)
#pragma unroll
      for (int k = 0; k < CHAINS; ++k) { STEP(x[k], a, b); }
#pragma unroll
  for (int k = 0; k < CHAINS; ++k) values[threadIdx.x + k * blockDim.x] = x[k];
}

#ifdef ACCUMULATOR
// Products of 16 x 16 matrices of halves, accumulated in ACCUMULATOR.
extern "C" __global__ void products(half* values, int repeats) {
  using namespace nvcuda;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> b;
  wmma::fragment<wmma::accumulator, 16, 16, 16, ACCUMULATOR> c[2];
  wmma::load_matrix_sync(a, values, 16);
  wmma::load_matrix_sync(b, values + 256, 16);
  for (int k = 0; k < 2; ++k) wmma::fill_fragment(c[k], ACCUMULATOR(0.0f));
#pragma unroll 1
  for (int r = 0; r < repeats; ++r)
#pragma unroll
    for (int i = 0; i < LENGTH; ++i) wmma::mma_sync(c[i % 2], a, b, c[i % 2]);
  for (int k = 0; k < 2; ++k) wmma::store_matrix_sync(reinterpret_cast<ACCUMULATOR*>(values), c[k], 16, wmma::mem_row_major);
}
#endif

// Reads of shared memory; lane accesses lie `stride` words apart.
extern "C" __global__ void shared_reads(unsigned* sink, int repeats, int lanes, int stride) {
  extern __shared__ unsigned memory[];
  for (int i = threadIdx.x; i < 32 * 32; i += blockDim.x) memory[i] = sink[i % 32] + i;
  __syncthreads();
  if (threadIdx.x % 32 >= lanes) return;
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(memory)) + threadIdx.x % 32 * stride * 4;
  unsigned sum = 0;
#pragma unroll 1
  for (int r = 0; r < repeats; ++r)
#pragma unroll
    for (int i = 0; i < LENGTH; ++i) {
      unsigned v;
      asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(at));
      sum ^= v;
    }
  if (sum == 0x12345678u) sink[threadIdx.x] = sum;
}

// All CTAs together read `elements` (`each`: each CTA all of them), one in `step`.
extern "C" __global__ void reads(const uint4* data, int repeats, int elements, int step, int each) {
  const int stride = each ? blockDim.x : gridDim.x * blockDim.x;
  const int first = each ? threadIdx.x : blockIdx.x * blockDim.x + threadIdx.x;
  unsigned sum = 0;
#pragma unroll 1
  for (int r = 0; r < repeats; ++r)
#pragma unroll 4
    for (int i = first; i < elements / step; i += stride) {
      uint4 v;
      asm volatile(LOAD ".v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                   : "l"(data + static_cast<long long>(i) * step));
      sum ^= v.x ^ v.y ^ v.z ^ v.w;
    }
  if (sum == 0x12345678u) const_cast<uint4*>(data)[0].x = sum;
}

// All CTAs together write `elements`.
extern "C" __global__ void writes(uint4* data, int repeats, int elements) {
  const uint4 v = data[threadIdx.x];
#pragma unroll 1
  for (int r = 0; r < repeats; ++r)
#pragma unroll 4
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < elements; i += gridDim.x * blockDim.x)
      data[i] = make_uint4(v.x + r, v.y, v.z, v.w);
}

__constant__ unsigned table[1024];

// Constants at addresses that are only known when the kernel runs.
extern "C" __global__ void constants(unsigned* sink, int repeats) {
  unsigned at = sink[0] % 32, sum = 0;
#pragma unroll 1
  for (int r = 0; r < repeats; ++r, at = (at + 7 + sum) % 512)
#pragma unroll
    for (int i = 0; i < LENGTH; ++i) sum ^= table[at + i];
  if (sum == 0x12345678u) sink[threadIdx.x] = sum;
}
