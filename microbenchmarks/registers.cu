// Which registers share a bank: three operands of one bank take three reads, one after the other.
//
// Twelve values stay in registers throughout. Each section multiplies and adds three of them, in turn, over and
// over, and is timed; enough warps run that no latency shows. Which register a value has is up to the compiler, but
// the same in all sections.
//
// Macros: SECTIONS(F): F(j, k) for each pair of values whose operations with value 0 are timed. STEPS: of a section.

#define FMA(a, b, c) " fma.rn.f32 x" #a ", x" #b ", x" #c ", x" #a ";"
#define ROUND(j, k) FMA(0, j, k) FMA(j, k, 0) FMA(k, 0, j)
#define SECTION(j, k)                                             \
  " bar.sync 0; mov.u64 begin, %%clock64; mov.u32 left, %2;\n"    \
  "L" #j "_" #k ": " ROUND(j, k) ROUND(j, k) ROUND(j, k) ROUND(j, k) \
  " sub.u32 left, left, 1; setp.ne.u32 p, left, 0; @p bra L" #j "_" #k ";\n" \
  " bar.sync 0; mov.u64 end, %%clock64; sub.u64 end, end, begin; st.global.u64 [to], end; add.u64 to, to, 8;\n"

#define LOAD(i) " ld.global.f32 x" #i ", [%0+4*" #i "];"
#define STORE(i) " st.global.f32 [%0+4*" #i "], x" #i ";"
#define ALL(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11)

// cycles[i]: of section i. values: what the registers begin with.
extern "C" __global__ void sections(float* values, long long* cycles) {
  asm volatile(
      "{ .reg .f32 x<12>; .reg .u64 begin, end, to; .reg .u32 left; .reg .pred p; mov.u64 to, %1;\n" ALL(LOAD) "\n"
      SECTIONS(SECTION)
      ALL(STORE) " }\n"
      :
      : "l"(values), "l"(cycles), "n"(STEPS)
      : "memory");
}
