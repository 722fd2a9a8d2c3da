// Which sectors share a slice of the L2: a load takes longer where others keep the slice busy; and which lines share
// a set: so many that one of them is not there any more.

#include "clock.cuh"
#include "past_l1.cuh"

#define BUSY_LOADS 32  // of the busy sector itself, until the others are all there

__device__ __forceinline__ unsigned load(const void* p) {
  unsigned v;
  asm volatile(PAST_L1 ".u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}

// CTA 0 measures; the others load the first sector of what it measures, until it is done.
//
// latencies[i]: of a load, past the L1, `i * step` bytes behind `first` bytes from the begin of data, all of which is
// in the L2; at the end, of loads of the busy sector, which came first.
extern "C" __global__ void beside(const char* data, long long first, int steps, int step, unsigned* stop,
                                  int* latencies) {
  unsigned sum = 0;
  data += first;
  if (blockIdx.x > 0) {
    do {
#pragma unroll 8
      for (int k = 0; k < 64; ++k) sum += load(data + threadIdx.x % 8 * 4);
    } while (load(stop) == 0);
    if (sum == 0x12345678u) latencies[0] = sum;
    return;
  }
  extern __shared__ int found[];
  for (int i = threadIdx.x; i < steps; i += blockDim.x) sum += load(data + static_cast<long long>(i) * step);
  clock_after(sum);
  __syncthreads();
  if (threadIdx.x < 32) {
#pragma unroll 1
    for (int i = -BUSY_LOADS; i < steps; ++i) {
      const char* p = data + (i < 0 ? 0 : static_cast<long long>(i) * step);
      const long long begin = clock_after(sum);
      sum += load(p + (sum & 0));
      found[i < 0 ? steps - 1 - i : i] = static_cast<int>(clock_after(sum) - begin);
    }
    if (threadIdx.x == 0) *reinterpret_cast<volatile unsigned*>(stop) = 1;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < steps + BUSY_LOADS; i += blockDim.x) latencies[i] = found[i];
}

// latency[0]: of a load of the first line after one of it and loads of others, of which `mask` has a bit each.
extern "C" __global__ void displaced(const char* data, const unsigned* mask, int words, int* latency) {
  extern __shared__ unsigned wanted[];  // so that nothing else goes through the L2 meanwhile
  for (int i = threadIdx.x; i < words; i += blockDim.x) wanted[i] = mask[i];
  __syncthreads();
  unsigned sum = 0;
  if (threadIdx.x == 0) sum += load(data);
  clock_after(sum);
  __syncthreads();
  for (int i = threadIdx.x; i < words; i += blockDim.x)
    for (unsigned rest = wanted[i]; rest != 0; rest &= rest - 1)
      sum += load(data + (32ll * i + __ffs(rest) - 1) * 128);
  clock_after(sum);
  __syncthreads();
  if (threadIdx.x > 0) return;
  const long long begin = clock_after(sum);
  sum += load(data + (sum & 0));
  latency[0] = static_cast<int>(clock_after(sum) - begin);
}
