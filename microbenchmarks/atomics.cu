// Atomic operations: latency of one after the other, and how many the GPU does in a cycle.
//
// Macros: TARGET(i): which of the counters thread i adds to.

#ifndef TARGET
#define TARGET(i) 0
#endif

// One thread; each addition's address depends on what the one before returned (always 0).
extern "C" __global__ void atomic_chain(unsigned* counters, int steps, long long* cycles, unsigned* end) {
  unsigned at = 0;
#pragma unroll 1
  for (int part = -1; part < 2; ++part) {
    const int count = part < 0 ? 2 : steps << part;
    const long long begin = clock64();
#pragma unroll 1
    for (int i = 0; i < count; ++i) at = atomicAdd(counters + at, 0u);
    *end = at;
    if (part >= 0) cycles[part] = clock64() - begin;
  }
}

extern "C" __global__ void atomic_chain_shared(int steps, long long* cycles, unsigned* end) {
  __shared__ unsigned counters[32];
  counters[threadIdx.x] = 0;
  __syncthreads();
  unsigned at = 0;
#pragma unroll 1
  for (int part = -1; part < 2; ++part) {
    const int count = part < 0 ? 2 : steps << part;
    const long long begin = clock64();
#pragma unroll 1
    for (int i = 0; i < count; ++i) at = atomicAdd(counters + at, 0u);
    *end = at;
    if (part >= 0) cycles[part] = clock64() - begin;
  }
}

// Every thread adds `count` times, without waiting for results.
extern "C" __global__ void atomic_stream(unsigned* counters, int count) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned* target = counters + TARGET(i);
#pragma unroll 1
  for (int k = 0; k < count; ++k) asm volatile("red.global.add.u32 [%0], 1;" ::"l"(target) : "memory");
}
