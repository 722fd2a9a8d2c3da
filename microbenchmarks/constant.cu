// Loads of constant memory, each from the address that the one before gave.
//
// Macros: STEPS: loads between two readings of the clock. SUMS: additions to an address before each load.

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
