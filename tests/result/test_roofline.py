"""Roofs from published peaks, and points counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from simt.gpu import GPU
from simt.result import Machine
from simt.result.roofline import flops_of, point, roofs
from simt.spec import load_spec
from support.launches import MACHINE, launch


def test_roofs_are_the_published_peaks() -> None:
    found = {roof.name: roof.value for roof in roofs(Machine.from_spec(load_spec("a100").native()))}
    # NVIDIA's A100 data sheet: 19.5 and 312 TFLOP/s, 2,039 GB/s (80 GB).
    assert found["FP32"] == pytest.approx(19.5e12, rel=0.01)
    assert found["tensor cores, FP16"] == pytest.approx(312e12, rel=0.01)
    assert found["DRAM"] == pytest.approx(2039e9, rel=0.01)
    assert "tensor cores, FP16 sums" not in found


def test_geforce_has_a_roof_for_sums_in_fp16() -> None:
    found = {roof.name: roof.value for roof in roofs(Machine.from_spec(load_spec("rtx3090").native()))}
    # NVIDIA's GA102 white paper: 71 TFLOP/s with sums in FP32, 142 in FP16.
    assert found["tensor cores, FP16"] == pytest.approx(71e12, rel=0.01)
    assert found["tensor cores, FP16 sums"] == pytest.approx(142e12, rel=0.01)


def test_a_launch_by_hand() -> None:
    x = launch(ctas=4)  # 2,560 warp instructions, of them FFMAs by 8 * 2560 lanes
    assert flops_of(x) == 2 * 8 * 2560
    found = point([x, x])
    assert found is not None
    assert found.flops == 2 * flops_of(x)
    assert found.dram_bytes == 2 * 32 * (1200 + 400)
    assert found.l2_bytes == 2 * 32 * (1200 + 800)
    assert found.seconds == pytest.approx(9e-6)
    assert [roof.name for roof in roofs(MACHINE)] == ["DRAM", "L2", "FP32", "tensor cores, FP16"]


def test_an_executed_kernel_does_what_its_source_says() -> None:
    gpu = GPU("a100", code="ptx", set={"sm.count": 2})
    x = np.ones(1000, np.float32)
    source = """extern "C" __global__ void f(float* x, int n) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < n) { float v = x[i]; for (int k = 0; k < 7; ++k) v = fmaf(v, v, 2.0f); x[i] = v * 3.0f; }
    }"""
    done = gpu.compile(source).f[4, 256](x, 1000)
    assert done is not None and flops_of(done) == 1000 * (7 * 2 + 1)


@pytest.mark.parametrize(
    ("opcode", "flops"),
    [("HMMA.16816.F32", 4096), ("HMMA.884.F32.F32.STEP0", 512), ("HFMA2.MMA", 4 * 480), ("IMAD", 0)],
)
def test_operations_of_an_instruction(opcode: str, flops: int) -> None:
    x = launch()
    x.pc.update(pc=[0], opcode=[opcode], issued=[1], threads=[480])
    assert flops_of(x) == flops
