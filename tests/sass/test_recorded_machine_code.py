"""Traces of executed machine code keep its control bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simt
from simt.sass.disassembler import is_installed
from simt.trace import open_trace

pytestmark = pytest.mark.skipif(
    not is_installed(),
    reason="nvdisasm is not installed: pip install 'simt[cuda]'",
)

SOURCE = """
extern "C" __global__ void bodies(const float4* position, float4* force, int n) {
  __shared__ float4 tile[64];
  const int i = blockIdx.x * 64 + threadIdx.x;
  const float4 own = position[i];
  float x = 0, y = 0, z = 0;
  for (int first = 0; first < n; first += 64) {
    tile[threadIdx.x] = position[first + threadIdx.x];
    __syncthreads();
    for (int j = 0; j < 64; ++j) {
      const float4 other = tile[j];
      const float dx = other.x - own.x, dy = other.y - own.y, dz = other.z - own.z;
      const float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-3f);
      const float s = other.w * inverse * inverse * inverse;
      x += dx * s, y += dy * s, z += dz * s;
    }
    __syncthreads();
  }
  force[i] = make_float4(x, y, z, own.w);
}
"""
OPTIONS = {"l2.copies_fill": False, "sm.count": 2}
N = 256


def recorded(gpu_name: str, path: Path) -> Any:
    """The launch as executed; `path` receives its trace."""
    gpu = simt.GPU(gpu_name, set=OPTIONS, code="sass")
    kernel = gpu.compile(SOURCE).bodies[N // 64, 64]
    source, out = gpu.array(np.random.default_rng(1).random(4 * N, np.float32)), gpu.empty(4 * N)
    timed = kernel(source, out, N)
    with gpu.trace(path):
        kernel(source, out, N)
    return timed


@pytest.mark.parametrize(
    "gpu", ["a100", *(pytest.param(x, marks=pytest.mark.slow) for x in ("qv100", "rtx3070", "h100"))]
)
def test_a_replay_takes_the_same_cycles(gpu: str, tmp_path: Path) -> None:
    timed = recorded(gpu, tmp_path / "trace.simt")
    replayed = simt.simulate(tmp_path / "trace.simt", gpu, set=OPTIONS).launches[0]
    assert replayed.warp_instructions == timed.warp_instructions
    assert replayed.cycles == timed.cycles
    # While the next instruction of an executed warp is not known, its line is looked up again.
    lookups = "simt__instruction_cache_hits.sum"
    counted = {name: value for name, value in replayed.counters.items() if name != lookups}
    assert counted == {name: value for name, value in timed.counters.items() if name != lookups}


@pytest.mark.slow
def test_text_has_no_control_bits(tmp_path: Path) -> None:
    timed = recorded("a100", tmp_path / "text")
    assert open_trace(tmp_path / "text").kernels[0].sm_version == 80
    replayed = simt.simulate(tmp_path / "text", "a100", set=OPTIONS).launches[0]
    assert replayed.warp_instructions == timed.warp_instructions
    assert replayed.cycles == pytest.approx(timed.cycles, rel=0.2)


@pytest.mark.parametrize("name", ["trace.simt", "trace"])
def test_a_trace_has_the_copies_that_fill_the_l2(name: str, tmp_path: Path) -> None:
    def run(gpu: simt.GPU) -> None:
        kernel = gpu.compile(SOURCE).bodies[N // 64, 64]
        kernel(gpu.array(np.random.default_rng(1).random(4 * N, np.float32)), gpu.empty(4 * N), N)

    gpu = simt.GPU("a100", set={"sm.count": 2}, code="ptx")
    run(gpu)
    recorder = simt.GPU("a100", set={"sm.count": 2}, code="ptx")
    with recorder.trace(tmp_path / name):
        run(recorder)
    read = "dram__sectors_read.sum"
    timed = gpu.launches[0]
    replayed = simt.simulate(tmp_path / name, "a100", set={"sm.count": 2}).launches[0]
    assert replayed.counters[read] == timed.counters[read]
    # Text has no widths of registers.
    assert replayed.cycles == pytest.approx(timed.cycles, rel=0 if name.endswith(".simt") else 0.02)
