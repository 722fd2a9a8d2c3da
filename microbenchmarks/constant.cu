// Loads of constant memory, each from the address that the one before gave, and constant operands.
//
// Macros: STEPS: loads between two readings of the clock. SUMS: additions to an address before each load.
// COUNT: constant operands that are read in turn, APART words from one to the next. TURNS: in an iteration of the loop.

#ifndef STEPS
#define STEPS 64
#endif
#ifndef SUMS
#define SUMS 1
#endif
#ifndef COUNT
#define COUNT 1
#endif
#ifndef TURNS
#define TURNS 1
#endif
#ifndef APART
#define APART 1
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

// The last CTA alone: cycles[0], cycles[1]: of a walk over `count` words that are `stride` bytes apart, and of
// another one over the next twice as many.
extern "C" __global__ void constant_first(int count, int stride, long long* cycles, int* end) {
  unsigned long long base = __cvta_generic_to_constant(table);
  if (blockIdx.x + 1 != gridDim.x) return;
  int at = 0, next = 0;
#pragma unroll 1
  for (int part = 0; part < 2; ++part) {
    const int steps = count << part;
    const long long begin = clock64();
#pragma unroll 1
    for (int i = 0; i < steps; ++i) {
      int zero;
      asm volatile("ld.const.s32 %0, [%1];" : "=r"(zero) : "l"(base + next + at));
      at += zero;
      next += stride;
    }
    *end = at;
    cycles[part] = clock64() - begin;
  }
}

struct Parameters {
  float value[960];
};

// cycles[0], cycles[1]: of `rounds` times TURNS over the operands, each of an operation that needs the result of the one
// before, and of twice as many, after two.
extern "C" __global__ void constant_operands(const Parameters parameters, int rounds, long long* cycles, float* values) {
  // None of what is read between the clocks is a parameter, but the operands.
  long long spent = 0, once = 0;
  float* const result = values + threadIdx.x;
  const float factor = *result;
  const int most = rounds + threadIdx.x;
  float x = factor;
#pragma unroll 1
  for (int part = -1; part < 2; ++part) {
    const int limit = part < 0 ? 2 : most << part;
    const long long begin = clock64();
#pragma unroll 1
    for (int i = 0; i < limit; ++i) {
#pragma unroll
      for (int k = 0; k < TURNS * COUNT; ++k) x = __fmaf_rn(x, factor, parameters.value[k % COUNT * APART]);
    }
    *result = x;
    once = spent;
    spent = clock64() - begin;
  }
  cycles[0] = once;
  cycles[1] = spent;
}
