"""Programs store blocks that overlap by half."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton
import triton.language as tl

import simt
from check.suite import integers, zeros


@triton.jit
def shift(x, y, BLOCK: tl.constexpr, FAULT: tl.constexpr):
    step: tl.constexpr = BLOCK // 2 if FAULT else BLOCK
    at = tl.program_id(0) * step + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at) + tl.program_id(0))  # fault: race-global


def run(gpu: simt.GPU, fault: bool) -> list[tuple[Any, Any]]:
    x, y = integers(256), zeros(256)
    gpu.triton(shift)[4](x, y, BLOCK=64, FAULT=fault, num_warps=1)
    return [(y, x + np.repeat(np.arange(4), 64))]
