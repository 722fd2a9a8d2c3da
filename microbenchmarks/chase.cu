// Pointer chases: the latency of a load, and from it the sizes and lines of what serves it.
//
// `link` makes a ring of `count` pointers that lie `stride` bytes apart, each to the one `jump` places further;
// `chase` follows it with one thread. Each load needs the one before, so that the loop's own instructions hide
// behind it.
//
// Macros: LOAD(p): follows the pointer p once; by default through all caches.

#include "clock.cuh"
#include "past_l1.cuh"

#ifndef LOAD
#define LOAD(p) asm volatile("ld.global.ca.u64 %0, [%0];" : "+l"(p)::"memory")
#endif

extern "C" __global__ void link(char* ring, long long count, long long stride, long long jump) {
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x; i < count; i += step) {
    *reinterpret_cast<char**>(ring + i * stride) = ring + (i + jump) % count * stride;
  }
}

// cycles[0], cycles[1]: of `steps` loads, and of twice as many; `warm` loads come before. Nothing is stored until
// the end, so that the ring has the caches for itself.
__device__ __forceinline__ void timed(char* p, long long steps, long long* cycles) {
  long long once = 0, twice = 0;
#pragma unroll 1
  for (int part = -1; part < 2; ++part) {  // the first brings the instructions into the caches
    const long long count = part < 0 ? 4 : steps << part;
    const long long begin = clock_after(p);
#pragma unroll 1
    for (long long i = 0; i < count; i += 4) {
      LOAD(p);
      LOAD(p);
      LOAD(p);
      LOAD(p);
    }
    once = twice;
    twice = clock_after(p) - begin;
  }
  cycles[0] = once;
  cycles[1] = twice;
}

extern "C" __global__ void chase(char* ring, long long warm, long long steps, long long* cycles) {
  if (threadIdx.x > 0) return;
  char* p = ring;
#pragma unroll 1
  for (long long i = 0; i < warm; ++i) LOAD(p);
  timed(p, steps, cycles);
}

// The same after two walks of all threads together over the ring's `count` pointers.
extern "C" __global__ void chase_after_all(char* ring, long long count, long long stride, long long steps, long long* cycles) {
  for (long long i = threadIdx.x; i < 2 * count; i += blockDim.x) {
    char* p = ring + i % count * stride;
    LOAD(p);
  }
  __syncthreads();
  if (threadIdx.x == 0) timed(ring, steps, cycles);
}

__device__ __forceinline__ void each(char* p, int steps, int* latencies) {
  extern __shared__ int found[];
#pragma unroll 1
  for (int i = 0; i < steps; ++i) {
    const long long begin = clock_after(p);
    LOAD(p);
    found[i] = static_cast<int>(clock_after(p) - begin);
  }
#pragma unroll 1
  for (int i = 0; i < steps; ++i) latencies[i] = found[i];
}

// latencies[i]: of the i-th load of the ring, and what reading the clock takes.
extern "C" __global__ void chase_each(char* ring, long long warm, int steps, int* latencies) {
  char* p = ring;
#pragma unroll 1
  for (long long i = 0; i < warm; ++i) LOAD(p);
  each(p, steps, latencies);
}

// The same of a walk that LOAD goes on by itself, from `first` bytes on.
extern "C" __global__ void walk_each(char* data, long long first, int steps, int* latencies) {
  each(data + first, steps, latencies);
}

// As `chase`, in shared memory: a ring of `count` 32-bit offsets that lie `stride` bytes apart.
extern "C" __global__ void chase_shared(int count, int stride, int steps, long long* cycles, int* end) {
  extern __shared__ int memory[];
  for (int i = threadIdx.x; i < count; i += blockDim.x)
    memory[i * stride / 4] = (i + 1 == count ? 0 : (i + 1) * stride) + static_cast<int>(__cvta_generic_to_shared(memory));
  __syncthreads();
  int p = static_cast<int>(__cvta_generic_to_shared(memory));
#pragma unroll 1
  for (int part = -1; part < 2; ++part) {
    const int steps_now = part < 0 ? 4 : steps << part;
    const long long begin = clock64();
#pragma unroll 1
    for (int i = 0; i < steps_now; i += 4) {
#pragma unroll
      for (int k = 0; k < 4; ++k) asm volatile("ld.shared.u32 %0, [%0];" : "+r"(p)::"memory");
    }
    *end = p;
    if (part >= 0) cycles[part] = clock64() - begin;
  }
}
