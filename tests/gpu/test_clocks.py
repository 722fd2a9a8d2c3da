"""Clocks read by programs: they return the cycle in which the read issues."""

from __future__ import annotations

import numpy as np
import pytest

import simt

CHAIN = """
extern "C" __global__ void chain(float* x, long long* cycles, float a) {
  float v = x[threadIdx.x];
  for (int pass = 0; pass < 2; ++pass) {
    long long begin = clock64();
#pragma unroll
    for (int i = 0; i < STEPS; ++i) v = __fmaf_rn(v, a, a);
    asm volatile("" ::"f"(v));
    cycles[pass] = clock64() - begin;
  }
  x[threadIdx.x] = v;
}
"""


def run_chain(steps: int, latency: int, **options: int) -> int:
    gpu = simt.GPU("qv100", code="ptx", set={"sm.units.fp32.latency": latency}, **options)
    cycles = np.zeros(2, np.int64)
    kernel = gpu.compile(CHAIN, defines={"STEPS": steps}).chain
    kernel[1, 32](np.ones(32, np.float32), cycles, np.float32(1))
    return int(cycles[1])


@pytest.mark.parametrize("latency", [4, 7])
def test_a_chain_takes_its_latencies(latency: int) -> None:
    assert run_chain(48, latency) - run_chain(16, latency) == 32 * latency


def test_clocks_do_not_depend_on_threads_or_windows() -> None:
    source = """
    extern "C" __global__ void f(const float* x, float* y, long long* t) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      long long begin = clock64();
      y[i] = x[i * 7 % 8192] + x[i];
      __syncthreads();
      t[i] = clock64() - begin;
    }
    """
    found = []
    for options in ({"threads": 1}, {"threads": 2}, {"window": 1}):
        gpu = simt.GPU("qv100", **options)
        t = np.zeros(8192, np.int64)
        gpu.compile(source).f[32, 256](np.ones(8192, np.float32), np.zeros(8192, np.float32), t)
        found.append(t)
    assert found[0].min() > 0
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_the_global_timer_counts_nanoseconds() -> None:
    source = """
    extern "C" __global__ void f(long long* out) {
      long long timer, later, begin = clock64();
      asm volatile("mov.u64 %0, %globaltimer;" : "=l"(timer));
      while (clock64() - begin < 20000) {}
      asm volatile("mov.u64 %0, %globaltimer;" : "=l"(later));
      out[0] = later - timer;
      out[1] = clock64() - begin;
    }
    """
    gpu = simt.GPU("qv100", set={"clock.core_mhz": 500})
    out = np.zeros(2, np.int64)
    gpu.compile(source).f[1, 1](out)
    assert out[0] == pytest.approx(2 * out[1], rel=0.02)
