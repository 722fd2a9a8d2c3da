// Loads of constant memory, each from the address that the one before gave.
//
// Macros: STEPS: loads between two readings of the clock. SUMS: additions to an address before each load.

#ifndef STEPS
#define STEPS 64
#endif
#ifndef SUMS
#define SUMS 1
#endif

__constant__ int ring[64] = {0};

extern "C" __global__ void constant_chain(long long* cycles, int* end) {
  int at = 0;
#pragma unroll 1
  for (int part = -1; part < 2; ++part) {
    const int steps = part < 0 ? 4 : STEPS << part;
    const long long begin = clock64();
#pragma unroll 1
    for (int i = 0; i < steps; i += 4) {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        unsigned long long address;
        asm volatile("mad.wide.s32 %0, %1, 4, %2;" : "=l"(address) : "r"(at), "l"(__cvta_generic_to_constant(ring)));
#pragma unroll
        for (int n = 1; n < SUMS; ++n)
          asm volatile("mad.wide.s32 %0, %1, 4, %2;" : "=l"(address) : "r"(at), "l"(address));
        asm volatile("ld.const.s32 %0, [%1];" : "=r"(at) : "l"(address));
      }
    }
    *end = at;
    if (part >= 0) cycles[part] = clock64() - begin;
  }
}

// Zeros, as much constant memory as a program can have, almost: the rest is for others' use.
__constant__ int table[15360] = {0};

// cycles[0], cycles[1]: of a walk over `count` words that are `stride` bytes apart, and of two, after two.
extern "C" __global__ void constant_walk(int count, int stride, long long* cycles, int* end) {
  unsigned long long base = __cvta_generic_to_constant(table);
  int at = 0;
#pragma unroll 1
  for (int part = -1; part < 2; ++part) {
    const int steps = part < 0 ? 2 * count : count << part;
    const long long begin = clock64();
    int next = 0;
#pragma unroll 1
    for (int i = 0; i < steps; ++i) {
      int zero;
      asm volatile("ld.const.s32 %0, [%1];" : "=r"(zero) : "l"(base + next + at));
      at += zero;
      next = next + stride == count * stride ? 0 : next + stride;
    }
    *end = at;
    if (part >= 0) cycles[part] = clock64() - begin;
  }
}
