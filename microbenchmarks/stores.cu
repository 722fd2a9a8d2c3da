// What a cache does with stores: whether a load finds afterwards what was stored, and how fast stores leave.

#include "clock.cuh"
#include "past_l1.cuh"

// latencies[i]: of a load (0: through the L1, 1: past it), `distance` bytes behind the begin of line i, right after a
// store of `bytes` (a multiple of 4) at its begin, before which it was loaded (`before`) or not.
extern "C" __global__ void store_then_load(char* data, int lines, int bytes, int before, int past,
                                           int distance, int* latencies) {
#pragma unroll 1
  for (int i = 0; i < lines; ++i) {
    char* p = data + i * 128ll;
    unsigned v = 0;
    if (before) {
      asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
      clock_after(v);
    }
    if (threadIdx.x < bytes / 4) asm volatile("st.global.u32 [%0], %1;" ::"l"(p + 4 * threadIdx.x), "r"(v) : "memory");
    // Until the store has certainly arrived.
    const long long stored = clock64();
    while (clock64() - stored < 1500) {
    }
    const long long begin = clock_after(v);
    p += distance;
    if (past)
      asm volatile(PAST_L1 ".u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    else
      asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    const long long end = clock_after(v);
    if (threadIdx.x == 0) latencies[i] = static_cast<int>(end - begin);
  }
}

// cycles[0], cycles[1]: of `stores` stores of a line by each warp to one and the same place, and of twice as many.
extern "C" __global__ void store_stream(unsigned* data, int stores, long long* cycles) {
#pragma unroll 1
  for (int part = -1; part < 2; ++part) {
    const int count = part < 0 ? 8 : stores << part;
    __syncthreads();
    const long long begin = clock64();
#pragma unroll 8
    for (int i = 0; i < count; ++i)
      asm volatile("st.global.u32 [%0], %1;" ::"l"(data + threadIdx.x), "r"(i) : "memory");
    __threadfence();
    __syncthreads();
    if (part >= 0 && threadIdx.x == 0) cycles[part] = clock64() - begin;
  }
}

// cycles[0], cycles[1]: of `stores` stores, and of twice as many, whose lanes are `distance` bytes apart. Each store of
// each warp has 2 KB of its own: an L2 slice that writes parts of sectors slowly is not what limits them.
extern "C" __global__ void store_strided(char* data, int distance, int stores, long long* cycles) {
  char* p = data + (threadIdx.x / 32) * stores * 4096L + (threadIdx.x % 32) * distance;
#pragma unroll 1
  for (int part = -1; part < 2; ++part) {
    const int count = part < 0 ? 8 : stores << part;
    __syncthreads();
    const long long begin = clock64();
#pragma unroll 8
    for (int i = 0; i < count; ++i)
      asm volatile("st.global.u32 [%0], %1;" ::"l"(p + i * 2048L), "r"(i) : "memory");
    __threadfence();
    __syncthreads();
    if (part >= 0 && threadIdx.x == 0) cycles[part] = clock64() - begin;
  }
}

// Every warp stores to one and the same sector, over and over.
extern "C" __global__ void store_sector(unsigned* data, int stores) {
#pragma unroll 8
  for (int i = 0; i < stores; ++i)
    asm volatile("st.global.u32 [%0], %1;" ::"l"(data + threadIdx.x % 8), "r"(i) : "memory");
}
