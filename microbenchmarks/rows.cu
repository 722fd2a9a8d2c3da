// Rows of device memory: how much longer a load takes that has to open one. A second load of the same line, right after
// it, finds the row open and is as far away: differences of the two are what opening took.

#include "clock.cuh"
#include "past_l1.cuh"

__device__ __forceinline__ unsigned load(const char* p) {
  unsigned v;
  asm volatile(PAST_L1 ".u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}

// Cycles of a load of one sector of the line at p, less those of another of its sectors.
__device__ __forceinline__ int opening(const char* p, unsigned& sum) {
  const long long begin = clock_after(sum);
  sum += load(p + 32 + (sum & 0));
  const long long between = clock_after(sum);
  sum += load(p + 64 + (sum & 0));
  return static_cast<int>(2 * between - begin - clock_after(sum));
}

// differences[i]: of line i of data, after a load of its first sector and then one, at once, of 32 lines of `others`
// that lie in other rows, in as many banks. step: bytes from one line to the next, of both.
extern "C" __global__ void reopened(const char* data, const char* others, long long step, int lines, int* differences) {
  unsigned sum = 0;
#pragma unroll 1
  for (int i = 0; i < lines; ++i, data += step, others += 32 * step) {
    if (threadIdx.x == 0) sum += load(data + (sum & 0));
    clock_after(sum);
    sum += load(others + threadIdx.x * step + (sum & 0));
    clock_after(sum);
    if (threadIdx.x == 0) differences[i] = opening(data, sum);
  }
}

// differences[i]: of the line in the middle of window i, of `lines` lines, after loads, at once, of a part of the others
// in it: of each 32 in a row one, another one each time. Before them, of the line itself in each fourth window, to see how
// often its row stays open.
extern "C" __global__ void beside_others(const char* data, int lines, int windows, int* differences) {
  unsigned sum = 0;
#pragma unroll 1
  for (int i = 0; i < windows; ++i, data += lines * 128ll) {
    // Up to 2,047 cycles, so that refreshes come at any time of a window.
    for (const long long end = clock64() + (i * 0x9e3779b1u >> 21); clock64() < end;) {
    }
    if (i % 4 == 3 && threadIdx.x == 0) sum += load(data + lines / 2 * 128ll + (sum & 0));
    clock_after(sum);
    for (int line = 32 * threadIdx.x; line < lines; line += 32 * blockDim.x) {
      const int chosen = line + ((line / 32 + i) * 0x9e3779b1u >> 27);
      if (chosen != lines / 2) sum += load(data + chosen * 128ll);
    }
    clock_after(sum);
    __syncthreads();
    if (threadIdx.x == 0) differences[i] = opening(data + lines / 2 * 128ll, sum);
    __syncthreads();
  }
}
