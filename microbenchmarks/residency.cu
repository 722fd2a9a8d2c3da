// Which CTAs run where and when: SMs, what an SM holds at once, how CTAs follow each other.
//
// Every CTA of `residency` stays for WAIT cycles and writes down its SM and the cycles between which it ran.
//
// Macros: WAIT: cycles. REGISTERS: of a thread, for `with_registers`.

#include "clock.cuh"
#include "past_l1.cuh"

#ifndef WAIT
#define WAIT 20000
#endif
#ifndef REGISTERS
#define REGISTERS 128
#endif

__device__ __forceinline__ void stay(long long start, unsigned* sm, long long* begin, long long* end) {
  if (threadIdx.x == 0) {
    unsigned here = 0;
    // Waiting for memory leaves the SM to the others.
    while (clock_after(here) - start < WAIT) asm volatile(PAST_L1 ".u32 %0, [%1];" : "+r"(here) : "l"(sm) : "memory");
    asm volatile("mov.u32 %0, %smid;" : "=r"(here));
    sm[blockIdx.x] = here;
    begin[blockIdx.x] = start;
    end[blockIdx.x] = clock64();
  }
}

extern "C" __global__ void residency(unsigned* sm, long long* begin, long long* end) {
  stay(clock64(), sm, begin, end);
}

// With more values alive than it has registers, so that it has all that it may have.
extern "C" __global__ void __maxnreg__(REGISTERS) with_registers(unsigned* sm, long long* begin, long long* end) {
  const long long start = clock64();
  unsigned x[REGISTERS + 8];
#pragma unroll
  for (int i = 0; i < REGISTERS + 8; ++i) x[i] = sm[i];
  stay(start, sm, begin, end);
  if (begin == nullptr) {
#pragma unroll
    for (int i = 0; i < REGISTERS + 8; ++i) sm[i] = x[i] * x[(i + 1) % (REGISTERS + 8)];
  }
}

// For the time from one launch or CTA to the next.
extern "C" __global__ void nothing() {}

// steps: additions, each of which needs the one before. times: of clock and timer at the begin, and at the end.
extern "C" __global__ void clocks(int steps, unsigned long long* times) {
  float x = threadIdx.x + 1.0f;
  unsigned long long timer;
  const long long begin = clock64();
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(timer)::"memory");
  times[0] = begin;
  times[1] = timer;
#pragma unroll 1
  for (int i = 0; i < steps; ++i) {
#pragma unroll
    for (int k = 0; k < 4; ++k) asm volatile("rsqrt.approx.ftz.f32 %0, %0;" : "+f"(x)::"memory");
  }
  times[4] = static_cast<unsigned long long>(x);
  const long long end = clock64();
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(timer)::"memory");
  times[2] = end;
  times[3] = timer;
}
