"""Distances between dependent instructions on GPUs with warps of 64 lanes: as in their specifications."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from simt.spec import load_spec
from simt.trace.writer import Warp
from support.tiny import GLOBAL, distance

LANES = range(32)
Append = Callable[[Warp, int], None]


def arithmetic(opcode: str) -> Append:
    return lambda w, i: w.op(opcode, 8, (8, 2, 8))


def load(opcode: str, address: Callable[[int], int], stride: int = 4) -> Append:
    return lambda w, i: w.memory(opcode, [address(i) + stride * lane for lane in LANES], 4, 8, (8,))


@pytest.mark.parametrize("gpu", ["r9nano", "mi100"])
@pytest.mark.parametrize(
    ("opcode", "unit"),
    [("FFMA", "fp32"), ("IADD3", "fp32"), ("DFMA", "fp64"), ("MUFU.RCP", "sfu"), ("UIADD3", "uniform")],
)
def test_arithmetic(gpu: str, opcode: str, unit: str, tmp_path: Path) -> None:
    expected = getattr(load_spec(gpu).sm.units, unit)
    assert distance(tmp_path, arithmetic(opcode), gpu) == max(expected.latency, expected.initiation_interval)


def test_a_simd_takes_a_vector_instruction_every_four_cycles(tmp_path: Path) -> None:
    independent = lambda w, i: w.op("FFMA", 16 + i % 32, (2, 3))  # noqa: E731
    assert distance(tmp_path, independent, "r9nano") == 4


@pytest.mark.slow
@pytest.mark.parametrize("gpu", ["r9nano", "mi100"])
def test_memory(gpu: str, tmp_path: Path) -> None:
    """From a load to the use of its value: about 64 cycles, 114 (L1), 190 (L2) and 350 (DRAM)."""
    assert distance(tmp_path, load("LDS", lambda i: 0), gpu) == 64
    assert distance(tmp_path, load("LDG.E.SYS", lambda i: GLOBAL), gpu) == pytest.approx(114, abs=1.01)
    # A cycle through 32 KB: twice the L1.
    around = load("LDG.E.SYS", lambda i: GLOBAL + 64 * (i % 512), 0)
    assert distance(tmp_path, around, gpu, counts=(1100, 1500)) == pytest.approx(190, abs=3)
    far = load("LDG.E.SYS", lambda i: GLOBAL + i * (3 << 20), 0)
    assert distance(tmp_path, far, gpu, counts=(100, 200)) == pytest.approx(350, abs=6)
