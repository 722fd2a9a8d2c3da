"""GPU(tensor_arithmetic=...): with and without timing, in checkpoints, and on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import simt
from simt.cli import app
from simt.errors import LaunchError
from simt.options import TensorArithmetic

# 1 plus eight products of 2^-26.
PTX = """.version 8.0
.target sm_75
.address_size 64
.visible .entry one_sum(.param .u64 out) {
  .reg .b64 %out; .reg .b32 %lane, %small, %one, %d<4>;
  ld.param.b64 %out, [out];
  mov.u32 %lane, %tid.x;
  mad.wide.u32 %out, %lane, 4, %out;
  mov.b32 %small, 0x08000800;
  mov.b32 %one, 0x3f800000;
  mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%d0, %d1, %d2, %d3}, {%small, %small}, {%small},
    {%one, %one, %one, %one};
  st.global.b32 [%out], %d0;
  ret;
}
"""
SUMS: dict[TensorArithmetic, float] = {"hardware": 1.0, "exact": 1 + 2.0**-23}


def one_sum(gpu: simt.GPU) -> np.ndarray:
    out = np.zeros(32, np.float32)
    gpu.load(PTX).one_sum[1, 32](out)
    return out


@pytest.mark.parametrize("functional", [True, False])
@pytest.mark.parametrize("how", SUMS)
def test_arithmetic_does_not_depend_on_timing(how: TensorArithmetic, functional: bool) -> None:
    gpu = simt.GPU("a100", functional=functional, tensor_arithmetic=how)
    assert (one_sum(gpu) == SUMS[how]).all()


def test_hardware_is_the_default() -> None:
    assert (one_sum(simt.GPU("rtx2060", functional=True)) == SUMS["hardware"]).all()


def test_anything_else_is_refused() -> None:
    wrong: Any = "precise"
    with pytest.raises(LaunchError, match="tensor_arithmetic is 'precise', expected 'hardware' or 'exact'"):
        simt.GPU("a100", tensor_arithmetic=wrong)


def test_checkpoints_keep_it(tmp_path: Path) -> None:
    gpu = simt.GPU("a100", functional=True, tensor_arithmetic="exact")
    gpu.checkpoint(tmp_path / "state")
    kept = simt.GPU.from_checkpoint(tmp_path / "state", functional=True)
    assert kept.tensor_arithmetic == "exact" and (one_sum(kept) == SUMS["exact"]).all()
    other = simt.GPU.from_checkpoint(tmp_path / "state", functional=True, tensor_arithmetic="hardware")
    assert (one_sum(other) == SUMS["hardware"]).all()


def test_the_command_line(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        f"import numpy as np\ndef main(gpu):\n    out = np.zeros(32, np.float32)\n"
        f"    gpu.load({PTX!r}).one_sum[1, 32](out)\n    print(float(out[0]))\n"
    )
    for how, value in SUMS.items():
        done = CliRunner().invoke(
            app, ["run", str(program), "--gpu", "a100", "--functional", "--tensor-arithmetic", how]
        )
        assert (done.exit_code, done.output.strip()) == (0, str(value))
