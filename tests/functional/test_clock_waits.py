"""Loops that only wait for a clock: without timing their turns are skipped, and nobody can tell."""

from __future__ import annotations

import time

import numpy as np
import polars as pl
import polars.selectors as cs
import pytest
from polars.testing import assert_frame_equal

import simt

# Each turn has one more instruction. What it computes is needed by nobody, or by the next turn, and then all
# turns are executed.
OTHERS = {
    "ptx": ("add.u32 %0, %1, %1;", "and.b32 %0, %1, %1;"),
    "sass": ("xor.b32 %0, %1, 5;", "xor.b32 %0, %0, 5;"),
}
HEAD = """
__device__ __forceinline__ void use(int& k) { asm volatile(OTHER : "+r"(k) : "r"(threadIdx.x)); }
#define other() use(k)
#define now() (other(), clock64())
#define now32() (other(), (unsigned)clock())
extern "C" __global__ void f(long long* out, int n) {
  int k = 0, i = blockIdx.x * blockDim.x + threadIdx.x;
  long long r = 0;
  LOOP
  out[i] += r;
}
"""
LOOPS = {
    "64 bits": "long long s = now(), t; do { t = now(); } while (t - s < n); r = t;",
    "32 bits": "int s = clock(), t = 0; while (t < n) t = (int)now32() - s; r = t;",
    "extended": "clock_t s = clock(), t = 0; while (t < n) other(), t = clock() - s; r = t;",
    "unsigned": "unsigned s = now32(); while (now32() - s < (unsigned)n) {} r = clock();",
    "lanes": "long long s = now(); while (now() - s < n + 37 * (i % 32)) {} r = now();",
    "warps": "long long s = now(); if (threadIdx.x >= 32) while (now() - s < n) {} r = now();",
    "two ends": "long long s = now(), t; do { t = now(); if (t > s + 5000) break; }"
    " while (t - s < n); r = t;",
    "left in the middle": "for (int b = 1; b < 40; ++b) { unsigned s = clock(), t = 0, d;"
    " do { d = now32() - s; if (d > b) break; t = d; } while (d < 2 * b); r = 31 * r + t; }",
    "one predicate": "for (int b = 1; b < 40; ++b) { unsigned s = clock(), d; asm volatile("
    ' "{ .reg .pred p; .reg .u32 t; again: " OTHER " mov.u32 t, %%clock; sub.u32 %2, t, %3;'
    " setp.lt.u32 p, %2, %4; @!p bra end; setp.lt.u32 p, %2, %5; @p bra again; end: }"
    '" : "+r"(k), "+r"(i), "=r"(d) : "r"(s), "r"(b), "r"(2 * b)); r = 31 * r + d; }',
    "chosen": "unsigned s = now32(), d; do { unsigned t = now32();"
    " d = t > s ? t - s : t + (0xffffffffu - s); } while (d < n); r = d;",
    "wraps": "unsigned s = now32() - 0xfffff000u, t; do { t = now32() - s; }"
    " while (t > 0x40000000u); r = t;",
    "wraps, signed": "int s = (int)now32() - 0x7ffff000, t; do { t = (int)now32() - s; }"
    " while (t > 0); r = t;",
    "counts": "long long s = now(); while (now() - s < n) ++r;",
    "any multiple": "while (now() & 1023) {} r = now();",
    "equal": "unsigned s = now32(); while (now32() != s + 300) {} r = clock();",
    "stores": "long long s = now(); while (now() - s < n) out[i] += 1; r = now();",
    "two clocks": "long long s = now(); while (now() - s < n && clock() > 0) {} r = now();",
    "timer": 'long long s, t; asm volatile("mov.u64 %0, %globaltimer;" : "=l"(s));'
    ' do { other(); asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t)); } while (t - s < n); r = t;',
}  # fmt: skip


FOLLOWED = ["64 bits", "32 bits", "extended", "unsigned", "lanes", "two ends", "chosen", "timer"]


def run(
    loop: str, n: int, code: str, executes: bool = False, gpu: str = "qv100", grid: int = 2, block: int = 96
) -> tuple[np.ndarray, pl.DataFrame]:
    """What the threads have stored, and what has been counted of them."""
    device = simt.GPU(gpu, functional=True, code=code)
    other = OTHERS[code][executes]
    kernel = device.compile(HEAD.replace("LOOP", loop), defines={"OTHER": f'"{other}"'}).f
    out = np.zeros(grid * block, np.int64)
    with device.profiled() as executed:
        kernel[grid, block](out, np.int32(n))
    return out, executed.profile().launches


@pytest.mark.parametrize(
    ("code", "gpu"), [("ptx", "qv100"), *(("sass", gpu) for gpu in ("rtx2060", "a100", "h100", "b200"))]
)
@pytest.mark.parametrize("loop", LOOPS)
def test_values_and_counts_are_those_of_each_turn_executed(loop: str, code: str, gpu: str) -> None:
    skipped, executed = (run(LOOPS[loop], 70_000, code, executes, gpu) for executes in (False, True))
    np.testing.assert_array_equal(skipped[0], executed[0])
    counters = cs.exclude("^simt__block_vector_.*$")  # they identify the code
    assert_frame_equal(skipped[1].select(counters), executed[1].select(counters))


@pytest.mark.parametrize(
    ("code", "gpu"), [("ptx", "qv100"), *(("sass", gpu) for gpu in ("rtx2060", "a100", "h100", "b200"))]
)
@pytest.mark.parametrize("loop", FOLLOWED)
def test_a_long_wait_takes_no_time(loop: str, code: str, gpu: str) -> None:
    text = LOOPS[loop].replace("5000", "2000000000")
    begin = time.process_time()
    run(text, 1_500_000_000, code, gpu=gpu, grid=1, block=64)  # half a minute if each turn is executed
    assert time.process_time() - begin < 10
