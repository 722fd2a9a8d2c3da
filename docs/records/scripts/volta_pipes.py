"""Rates of pipes that kernels of one SM see: constants beside special functions, two opcodes in turn, loads.

    python docs/records/scripts/volta_pipes.py [GPU ...]

By default qv100 and rtx2080ti. Published for a TU102 (connollydavid/tu102, by the SM's clock, 8 warps): FFMA
and LOP3 3.58 a cycle and SM, FADD and LOP3 3.61, IMAD and LOP3 3.71, POPC and LDG 0.676; loads 62.4 B.
"""

import sys
from string import Template

import numpy as np

from simt.gpu import GPU

SAMPLES = """
struct Sample { float x, y, z, w; };
__constant__ Sample table[1024];
extern "C" __global__ void samples(int n, const float* at, float* sums, long long* cycles) {
  int thread = blockIdx.x * blockDim.x + threadIdx.x;
  float x = at[thread], y = at[thread + 1024], z = at[thread + 2048], re = 0, im = 0;
  __syncthreads();
  long long begin = clock64();
  for (int k = 0; k < n; k += 2) {
    float a = 6.2831853f * (table[k].x * x + table[k].y * y + table[k].z * z);
    re += table[k].w * __cosf(a);
    im += table[k].w * __sinf(a);
    a = 6.2831853f * (table[k + 1].x * x + table[k + 1].y * y + table[k + 1].z * z);
    re += table[k + 1].w * __cosf(a);
    im += table[k + 1].w * __sinf(a);
  }
  __syncthreads();
  cycles[blockIdx.x] = clock64() - begin;
  sums[thread] = re + im;
}
"""
TURNS = Template("""
extern "C" __global__ void turns(int n, $A a, $B b, long long* cycles, $A* first, $B* second) {
  $A x[4], p = a;
  $B y[4], q = b;
  for (int i = 0; i < 4; ++i) x[i] = a + ($A)(threadIdx.x + 5 * i), y[i] = b + ($B)(threadIdx.x + 9 * i);
  __syncthreads();
  long long begin = clock64();
#pragma unroll 1
  for (int k = 0; k < n; ++k)
#pragma unroll
    for (int i = 0; i < 64; ++i) {
      asm volatile("$OF_A" : "+$a"(x[i % 4]) : "$a"(p), "$a"(a));
      asm volatile("$OF_B" : "+$b"(y[i % 4]) : "$b"(q), "$b"(b));
    }
  __syncthreads();
  *cycles = clock64() - begin;
  first[threadIdx.x] = x[0] + x[1] + x[2] + x[3];
  second[threadIdx.x] = y[0] + y[1] + y[2] + y[3];
}
""")
LOADS = """
extern "C" __global__ void loads(int n, const float* from, long long* cycles, float* sums) {
  unsigned bits[4];
  float sum[4] = {};
  for (int i = 0; i < 4; ++i) bits[i] = threadIdx.x + 5 * i | 1;
  __syncthreads();
  long long begin = clock64();
#pragma unroll 1
  for (int k = 0; k < n; ++k)
#pragma unroll
    for (int i = 0; i < 64; ++i) {
      if (COUNT) asm volatile("popc.b32 %0, %0;" : "+r"(bits[i % 4]));
      sum[i % 4] += from[(threadIdx.x + (k * 5 + i) * blockDim.x) & 2047];
    }
  __syncthreads();
  *cycles = clock64() - begin;
  sums[threadIdx.x] = sum[0] + sum[1] + sum[2] + sum[3] + bits[0] + bits[1] + bits[2] + bits[3];
}
"""
FMA, ADD, MAD = "fma.rn.f32 %0, %0, %1, %2;", "add.f32 %0, %0, %1;", "mad.lo.s32 %0, %0, %1, %2;"
LOP3 = "lop3.b32 %0, %0, %1, %2, 0xE8;"
WARPS = 8


def more(kernel, grid, low, high, *arguments, cycles) -> int:  # type: ignore[no-untyped-def]
    """Cycles that `high` iterations take beyond `low`, when code and data are in the caches."""
    found = []
    for n in (high, low, high):
        kernel[grid, 32 * WARPS](np.int32(n), *arguments)
        found.append(int(cycles.numpy().max()))
    return found[2] - found[1]


def show(name: str) -> None:
    gpu = GPU(name, set={"sm.count": 1}, code="sass")
    sums = gpu.zeros(4096, np.float32)
    kernel = gpu.compile(SAMPLES, name="samples.cu")["samples"]
    for ctas in (1, 2, 4):
        cycles = gpu.zeros(ctas, np.int64)
        taken = more(kernel, ctas, 512, 1024, gpu.zeros(4096, np.float32), sums, cycles, cycles=cycles)
        each = taken / 512 / (2 * ctas)
        print(f"{name}: {8 * ctas} warps: {each:.1f} cycles of a sub-core for a warp and sample")
    cycles = gpu.zeros(1, np.int64)
    for title, types, letters, opcodes in (
        ("FFMA and LOP3", ("float", "unsigned"), "fr", (FMA, LOP3)),
        ("FADD and LOP3", ("float", "unsigned"), "fr", (ADD, LOP3)),
        ("IMAD and LOP3", ("int", "unsigned"), "rr", (MAD, LOP3)),
    ):
        names = {"A": types[0], "B": types[1], "a": letters[0], "b": letters[1]}
        text = TURNS.substitute(names, OF_A=opcodes[0], OF_B=opcodes[1])
        first = np.float32(1) if types[0] == "float" else np.int32(1)
        kernel = gpu.compile(text, name="turns.cu")["turns"]
        taken = more(kernel, 1, 8, 40, first, np.uint32(3), cycles, sums, sums, cycles=cycles)
        print(f"{name}: {title}: {WARPS * 32 * 128 / taken:.2f} instructions a cycle and SM")
    for count in (1, 0):
        kernel = gpu.compile(LOADS, name="loads.cu", defines={"COUNT": count})["loads"]
        taken = more(kernel, 1, 8, 24, gpu.zeros(2048, np.float32), cycles, sums, cycles=cycles)
        rate = WARPS * 16 * 64 / taken
        print(
            f"{name}: "
            + (f"POPC and LDG: {2 * rate:.3f} a cycle" if count else f"LDG: {128 * rate:.1f} B a cycle")
        )


if __name__ == "__main__":
    for each in sys.argv[1:] or ["qv100", "rtx2080ti"]:
        show(each)
