// Jumps among many blocks of code: what the instruction caches hold, and what a miss costs.
//
// A block is 8 instructions of 16 bytes, or 32 with LARGE: operations of which the first do not wait for each other,
// and the jump back to the loop's head, which lies before the first block. The blocks' numbers have four octal digits.
//
// Macros: LARGE: 0 or 1. PADDING: statements before the loop, which move it; they may change x. CONSTANTS: words of
// constant memory, 64 bytes apart, that are read after each walk; their cycles are then what counts.

#ifndef CONSTANTS
#define CONSTANTS 0
#endif

#define EIGHT(F, a) F(a##0) F(a##1) F(a##2) F(a##3) F(a##4) F(a##5) F(a##6) F(a##7)
#define BLOCKS_64(F, a) EIGHT(F, a##0) EIGHT(F, a##1) EIGHT(F, a##2) EIGHT(F, a##3) \
                        EIGHT(F, a##4) EIGHT(F, a##5) EIGHT(F, a##6) EIGHT(F, a##7)
#define BLOCKS(F) BLOCKS_64(F, 00) BLOCKS_64(F, 01) BLOCKS_64(F, 02) BLOCKS_64(F, 03) \
                  BLOCKS_64(F, 04) BLOCKS_64(F, 05) BLOCKS_64(F, 06) BLOCKS_64(F, 07)

// Immediates that differ keep compilers from joining blocks that are the same.
#define FMA(k, digits) " fma.rn.f32 %" #k ", %" #k ", 0f3f80" #digits ", %" #k ";"
#define SIX(digits) FMA(4, digits) FMA(5, digits) FMA(2, digits) FMA(4, digits) FMA(5, digits) FMA(2, digits)
#if LARGE
#define MORE(digits) SIX(digits) SIX(digits) SIX(digits) SIX(digits)
#else
#define MORE(digits)
#endif
#define BLOCK(digits)                                                                                      \
  "B" #digits ": xor.b32 %1, %1, 0x1" #digits ";" FMA(2, digits) " add.u32 %3, %3, 0x1" #digits ";"        \
  FMA(4, digits) FMA(5, digits) FMA(2, digits) FMA(4, digits) MORE(digits) " bra HEAD;\n"
#define TARGET(digits) "B" #digits ","

#if CONSTANTS
__constant__ int table[CONSTANTS * 16] = {0};
#endif

// cycles[0], cycles[1]: of `steps` blocks, and of twice as many; `warm` come before. Every `apart`-th of the blocks
// is a target, `count` in all, and each is followed by the one `jump` further in their ring. The first block is none:
// it follows the jump, and going on there may cost less.
extern "C" __global__ void walk_code(unsigned count, unsigned apart, unsigned jump, unsigned warm, unsigned steps,
                                     long long* cycles, float* sink) {
  unsigned at = 0, x = 1, z = 1;
  float u = 1.0f, v = 1.0f, w = 1.0f;
  long long once = 0, twice = 0;
  PADDING
#pragma unroll 1
  for (int part = -1; part < 2; ++part) {
    const unsigned walk = part < 0 ? warm : steps << part;
    long long begin = clock64();
    asm volatile(
        "{ .reg .pred p; .reg .u32 left, to; mov.u32 left, %6;\n"
        "TARGETS: .branchtargets " BLOCKS(TARGET) " END;\n"
        "HEAD: setp.eq.u32 p, left, 0; @p bra END; sub.u32 left, left, 1;\n"
        " add.u32 %0, %0, %7; setp.ge.u32 p, %0, %8; @p sub.u32 %0, %0, %8;\n"
        " mad.lo.u32 to, %0, %9, 1; brx.idx to, TARGETS;\n"
        BLOCKS(BLOCK)
        "END: }\n"
        : "+r"(at), "+r"(x), "+f"(u), "+r"(z), "+f"(v), "+f"(w)
        : "r"(walk), "r"(jump), "r"(count), "r"(apart)
        : "memory");
#if CONSTANTS
    begin = clock64();
    const unsigned long long base = __cvta_generic_to_constant(table);
    int zero = 0;
#pragma unroll 1
    for (int i = 0; i < CONSTANTS; ++i)
      asm volatile("ld.const.s32 %0, [%1];" : "=r"(zero) : "l"(base + 64 * i + zero));
    x += zero;
#endif
    once = twice;
    twice = clock64() - begin;
  }
  cycles[0] = once;
  cycles[1] = twice;
  sink[0] = u + v + w + x + z;
}
