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

// For the time from one launch to the next.
extern "C" __global__ void nothing() {}
