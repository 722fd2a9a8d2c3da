// What a miss brings along, and how a warp's accesses are coalesced.

#include "clock.cuh"
#include "past_l1.cuh"

// cycles[i]: of a load `distance` bytes beyond the begin of line i, right after a load of that begin. bypass:
// past the L1.
extern "C" __global__ void second_load(const char* data, int distance, int lines, int bypass, long long* cycles,
                                       unsigned* sink) {
  unsigned sum = 0;
#pragma unroll 1
  for (int i = 0; i < lines; ++i) {
    const char* p = data + i * 128;
    unsigned v;
    if (bypass)
      asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    else
      asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    sum += v;
    sink[0] = sum;  // waits for it
    const long long begin = clock64();
    p += distance + (v & 0);
    if (bypass)
      asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    else
      asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    sum += v;
    sink[0] = sum;
    cycles[i] = clock64() - begin;
  }
}

// cycles[0], cycles[1]: of `loads` loads, and of twice as many, whose lanes are `distance` bytes apart.
extern "C" __global__ void strided(const char* data, int distance, int loads, long long* cycles, unsigned* sink) {
  const char* p = data + (threadIdx.x % 32) * distance;
  unsigned sum = 0;
#pragma unroll 1
  for (int part = -1; part < 2; ++part) {
    const int count = part < 0 ? 1 : loads << part;
    __syncthreads();
    const long long begin = clock64();
#pragma unroll 8
    for (int i = 0; i < count; ++i) {
      unsigned v;
      asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
      sum ^= v;
    }
    sink[threadIdx.x] = sum;
    __syncthreads();
    if (part >= 0 && threadIdx.x == 0) cycles[part] = clock64() - begin;
  }
}

// latencies[i]: until all of the first `sectors` sectors of a line are there, loaded at once past the L1; lines i.
extern "C" __global__ void whole_line(const char* data, int sectors, int lines, int* latencies) {
  const char* p = data + (threadIdx.x % sectors) * 32;
#pragma unroll 1
  for (int i = 0; i < lines; ++i, p += 128) {
    unsigned v;
    const long long begin = clock_after(p);
    asm volatile(PAST_L1 ".u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    const int found = static_cast<int>(clock_after(v) - begin);
    if (threadIdx.x == 0) latencies[i] = found;
  }
}

// Every warp loads one and the same sector, past its L1, over and over. loads: a multiple of 8.
extern "C" __global__ void same_sector(const unsigned* data, int loads, unsigned* sink) {
  unsigned sum = 0;
#pragma unroll 1
  for (int i = 0; i < loads; i += 8) {
    unsigned v[8];  // all under way at once
#pragma unroll
    for (int k = 0; k < 8; ++k)
      asm volatile(PAST_L1 ".u32 %0, [%1];" : "=r"(v[k]) : "l"(data + threadIdx.x % 8) : "memory");
#pragma unroll
    for (int k = 0; k < 8; ++k) sum ^= v[k];
  }
  if (sum == 0x12345678u) sink[0] = sum;
}
