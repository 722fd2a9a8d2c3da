"""The rate of products by the type of their accumulators."""

from __future__ import annotations

from pathlib import Path

import pytest

import simt
from simt.trace.writer import Warp
from support.tiny import warp_of, write_kernel

COUNT = 200


def cycles(folder: Path, opcode: str, halved: bool) -> int:
    def body(warp: Warp) -> None:
        for k in range(COUNT):
            warp.op(opcode, 8 + 4 * (k % 8), ())

    write_kernel(folder, [[warp_of(body)]], sm=120)
    changes = {"sm.count": 1, "sm.half_rate_fp32_accumulation": halved}
    return simt.simulate(folder, gpu="rtx5090", set=changes).launches[0].cycles


@pytest.mark.parametrize(
    ("opcode", "interval"),
    [
        ("HMMA.16816.F32", 32),
        ("HMMA.16816.F16", 16),
        ("QMMA.16832.F32.E4M3.E4M3", 32),
        ("QMMA.16832.F16.E4M3.E4M3", 16),
        ("IMMA.16832.S8.S8", 16),
        ("OMMA.SF.16864.F32.E2M1.E2M1.E8", 16),
    ],
)
def test_only_small_floats_in_fp32_take_the_whole_interval(
    tmp_path: Path, opcode: str, interval: int
) -> None:
    once, twice = cycles(tmp_path / "a", opcode, False), cycles(tmp_path / "b", opcode, True)
    assert abs((once - twice) - COUNT * (32 - interval)) <= COUNT
