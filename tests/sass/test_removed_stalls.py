"""Stalls that ptxas puts between instructions cannot be shortened without a report."""

from __future__ import annotations

import struct
from itertools import pairwise

import numpy as np
import pytest

import simt
from simt.cuda import compile_cuda, machine_code
from simt.sass import Control, Cubin, disassemble
from simt.sass.disassembler import is_installed
from simt.sass.program import registers

pytestmark = pytest.mark.skipif(
    not is_installed(),
    reason="nvdisasm is not installed: pip install 'simt[cuda]'",
)

SOURCE = """
extern "C" __global__ void f(int* x) {
  __shared__ int s[64];
  const int t = threadIdx.x;
  s[t] = t, s[t + 32] = -t;
  __syncthreads();
  int sum = 0;
  #pragma unroll 1
  for (int i = 0; i < 40; ++i) sum += s[(i * i + 3) & 63] ^ (i * 5);
  atomicAdd(x, 1);
  x[t] = sum;
}
"""
UNIFORM, STALL_SHIFT, STALL_MASK = 1, 41, 15


def uncovered(gpu: str, cubin: bytes) -> float:
    simulated = simt.GPU(gpu, set={"sm.count": 1})
    launch = simulated.load(cubin).f[2, 32](simulated.zeros(32, np.int32))
    return float(launch.counters["simt__uncovered_dependences.sum"])


@pytest.mark.parametrize(("gpu", "arch"), [("h100", "sm_90a"), ("a100", "sm_80"), ("qv100", "sm_75")])
@pytest.mark.filterwarnings("ignore:qv100 is sm_70")
def test_shorter_stalls_after_uniform_instructions_are_reported(gpu: str, arch: str) -> None:
    data = machine_code(compile_cuda(SOURCE, arch=arch), arch)
    cubin = Cubin.parse(data, "f.cubin")
    assert uncovered(gpu, data) == 0
    code, touched = disassemble(cubin)["f"], registers(cubin)["f"]
    start = data.index(cubin["f"].code)
    shortened = 0
    for i, (writer, reader) in enumerate(pairwise(code)):
        written = {(index, file) for index, file, _ in touched[i][0] if file == UNIFORM}
        read = {(index, file) for index, file, _ in touched[i + 1][1]}
        control: Control = writer.control
        if not written & read or control.write_barrier is not None or reader.control.waits:
            continue
        patched = bytearray(data)
        stall = control.stall - 1
        high = writer.high & ~(STALL_MASK << STALL_SHIFT) | stall << STALL_SHIFT
        struct.pack_into("<Q", patched, start + writer.address + 8, high)
        assert uncovered(gpu, bytes(patched)) > 0, f"{writer.text} and {reader.text}, {stall} cycles apart"
        shortened += 1
    assert shortened > 0
