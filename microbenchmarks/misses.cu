// A load that hits the L1 behind loads that miss it: it comes late as soon as one of them cannot even wait for its
// data, because something of which the L1 has so many is used up.
//
// CTA 0 measures. The others, if there are any, keep device memory busy, so that nothing comes back meanwhile.

#include "clock.cuh"

#define LOADS 4

__device__ __forceinline__ unsigned load_if(bool active, const char* p) {
  unsigned v = 0;
  asm volatile("{\n .reg .pred p;\n setp.ne.u32 p, %2, 0;\n @p ld.global.ca.u32 %0, [%1];\n}"
               : "+r"(v)
               : "l"(p), "r"(static_cast<unsigned>(active))
               : "memory");
  return v;
}

// cycles: from the first miss to the hit's data. The misses are those of `lanes` lanes of every load, each `apart`
// bytes from the one before; 0: all of one place. flood: 32 bytes for each thread
// of the other CTAs and round.
extern "C" __global__ void behind_misses(const char* data, int misses, int lanes, long long apart, int delay,
                                         const char* flood, int rounds, long long* cycles, unsigned* sink) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  unsigned v[LOADS];
  if (blockIdx.x > 0) {
    unsigned sum = 0;
#pragma unroll 4
    for (int r = 0; r < rounds; ++r) {
      asm volatile("ld.global.cg.u32 %0, [%1];"
                   : "=r"(v[0])
                   : "l"(flood + ((r * (gridDim.x - 1ll) + blockIdx.x - 1) * blockDim.x + threadIdx.x) * 32));
      sum ^= v[0];
    }
    if (sum == 0x12345678u) sink[0] = sum;
    return;
  }
  unsigned hot = 0;
  long long begin = 0;
#pragma unroll 1
  for (int pass = 0; pass < 2; ++pass) {  // the first, all hits, brings the instructions
    hot = load_if(true, data);
    begin = clock_after(hot);
    while (pass > 0 && clock64() - begin < delay) {
    }
    __syncthreads();
    begin = clock_after(hot);
#pragma unroll
    for (int j = 0; j < LOADS; ++j) {
      v[j] = 0;
      const int i = (j * warps + warp) * lanes + lane;
      if (i - lane < misses) v[j] = load_if(lane < lanes && i < misses, pass > 0 ? data + 128 * 65 + i * apart : data);
    }
    __syncthreads();
    hot += load_if(warp == 0, data);
    begin = clock_after(hot) - begin;
  }
  if (threadIdx.x == 0) cycles[0] = begin;
#pragma unroll
  for (int j = 1; j < LOADS; ++j) v[0] ^= v[j];
  sink[threadIdx.x] = v[0] + hot;
}
