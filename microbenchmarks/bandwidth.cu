// Streams: bytes a cycle from a level of the memory hierarchy.
//
// Each CTA reads its own region of `bytes`, or all read one region, over and over; loads do not depend on each
// other. `within` measures inside one CTA by its SM's clock; of `whole` the launch's time is taken.
//
// Macros: TYPE: of a load (unsigned, uint2, uint4). LOAD: "ld.global.ca", through all caches, or PAST_L1.

#include "past_l1.cuh"

#ifndef TYPE
#define TYPE unsigned
#endif
#ifndef LOAD
#define LOAD "ld.global.ca"
#endif
#define UNROLL 4

__device__ __forceinline__ void load(const unsigned* p, unsigned& v) {
  asm volatile(LOAD ".u32 %0, [%1];" : "=r"(v) : "l"(p));
}
__device__ __forceinline__ void load(const uint2* p, uint2& v) {
  asm volatile(LOAD ".v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(p));
}
__device__ __forceinline__ void load(const uint4* p, uint4& v) {
  asm volatile(LOAD ".v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
}
__device__ __forceinline__ unsigned bits(unsigned v) { return v; }
__device__ __forceinline__ unsigned bits(uint2 v) { return v.x ^ v.y; }
__device__ __forceinline__ unsigned bits(uint4 v) { return v.x ^ v.y ^ v.z ^ v.w; }

__device__ __forceinline__ void load_cg(const uint4* p, unsigned& sum) {
  uint4 v;
  asm volatile(PAST_L1 ".v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
  sum ^= bits(v);
}

// cycles[0], cycles[1]: of `repeats` walks over the region, and of twice as many, after one that fills the cache.
// elements: a power of two; all walks together are a multiple of 8 loads of each thread.
extern "C" __global__ void within(const TYPE* region, int elements, int repeats, long long* cycles, unsigned* sink) {
  unsigned sum = 0;
#pragma unroll 1
  for (int part = -1; part < 2; ++part) {
    const int loads = (part < 0 ? 1 : repeats << part) * (elements / blockDim.x);
    __syncthreads();
    const long long begin = clock64();
#pragma unroll 1
    for (int i = 0; i < loads; i += 8) {
      const TYPE* p = region + ((threadIdx.x + i * blockDim.x) & (elements - 1));
      TYPE v[8];  // all under way at once
#pragma unroll
      for (int k = 0; k < 8; ++k) load(p + ((k * blockDim.x) & (elements - 1)), v[k]);
#pragma unroll
      for (int k = 0; k < 8; ++k) sum ^= bits(v[k]);
    }
    sink[threadIdx.x] = sum;
    __syncthreads();
    if (part >= 0 && threadIdx.x == 0) cycles[part] = clock64() - begin;
  }
}

// All CTAs together walk `repeats` times over `elements`.
extern "C" __global__ void whole(const uint4* data, long long elements, int repeats, unsigned* sink) {
  unsigned sum = 0;
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  const long long first = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
#pragma unroll 1
  for (int r = 0; r < repeats; ++r) {
#pragma unroll UNROLL
    for (long long i = first; i < elements; i += step) load_cg(data + i, sum);
  }
  if (sum == 0x12345678u) sink[0] = sum;
}

// Of `count` sectors that lie `stride` bytes apart, each CTA reads all (`shared`), or all CTAs together each once;
// `repeats` times.
extern "C" __global__ void apart(const char* data, int count, long long stride, int repeats, int shared, unsigned* sink) {
  unsigned sum = 0, v;
  const int first = shared ? threadIdx.x : blockIdx.x * blockDim.x + threadIdx.x;
  const int step = shared ? blockDim.x : gridDim.x * blockDim.x;
#pragma unroll 1
  for (int r = 0; r < repeats; ++r) {
#pragma unroll 4
    for (int i = first; i < count; i += step) {
      asm volatile(PAST_L1 ".u32 %0, [%1];" : "=r"(v) : "l"(data + i * stride) : "memory");
      sum ^= v;
    }
  }
  if (sum == 0x12345678u) sink[0] = sum;
}

// As `within`, from shared memory: lane accesses lie `stride` words apart. TYPE as above.
__device__ __forceinline__ void load_shared(unsigned p, unsigned& v) {
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(p));
}
__device__ __forceinline__ void load_shared(unsigned p, uint2& v) {
  asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "r"(p));
}
__device__ __forceinline__ void load_shared(unsigned p, uint4& v) {
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(p));
}
extern "C" __global__ void within_shared(int stride, int loads, long long* cycles, unsigned* sink) {
  extern __shared__ unsigned memory[];
  const unsigned base = static_cast<unsigned>(__cvta_generic_to_shared(memory));
  const unsigned at = base + (threadIdx.x % 32) * stride;
  unsigned sum = 0;
#pragma unroll 1
  for (int part = -1; part < 2; ++part) {
    const int count = part < 0 ? 8 : loads << part;
    __syncthreads();
    const long long begin = clock64();
#pragma unroll 1
    for (int i = 0; i < count; i += 8) {
      TYPE v[8];
#pragma unroll
      for (int k = 0; k < 8; ++k) load_shared(at, v[k]);
#pragma unroll
      for (int k = 0; k < 8; ++k) sum ^= bits(v[k]);
    }
    sink[threadIdx.x] = sum;
    __syncthreads();
    if (part >= 0 && threadIdx.x == 0) cycles[part] = clock64() - begin;
  }
}
