// Which CTAs run where and when: SMs, and what an SM holds at once.
//
// Every CTA stays for WAIT cycles and writes down its SM and the cycles between which it ran.

#ifndef WAIT
#define WAIT 20000
#endif

extern "C" __global__ void residency(unsigned* sm, long long* begin, long long* end) {
  if (threadIdx.x == 0) {
    const long long start = clock64();
    unsigned here;
    asm volatile("mov.u32 %0, %smid;" : "=r"(here));
    while (clock64() - start < WAIT) __nanosleep(100);
    sm[blockIdx.x] = here;
    begin[blockIdx.x] = start;
    end[blockIdx.x] = clock64();
  }
}

// The same with many live registers.
extern "C" __global__ void residency_registers(unsigned* sm, long long* begin, long long* end, const float* in, float* out) {
  float x[96];
#pragma unroll
  for (int i = 0; i < 96; ++i) x[i] = in[i * 32 + threadIdx.x % 32];
  const long long start = clock64();
  unsigned here;
  asm volatile("mov.u32 %0, %smid;" : "=r"(here));
  while (clock64() - start < WAIT) __nanosleep(100);
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 96; ++i) sum = fmaf(sum, x[i], x[i]);
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
  if (threadIdx.x == 0) {
    sm[blockIdx.x] = here;
    begin[blockIdx.x] = start;
    end[blockIdx.x] = clock64();
  }
}

extern "C" __global__ void nothing() {}

// Cycles of SM 0 between the end of a CTA and the begin of the next one in its place (one CTA an SM).
extern "C" __global__ void turns(unsigned* sm, long long* begin, long long* end) {
  const long long start = clock64();
  unsigned here;
  asm volatile("mov.u32 %0, %smid;" : "=r"(here));
  sm[blockIdx.x] = here;
  begin[blockIdx.x] = start;
  end[blockIdx.x] = clock64();
}
