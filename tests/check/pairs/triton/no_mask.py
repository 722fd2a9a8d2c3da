"""The last program stores behind the end of an array."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton
import triton.language as tl

import simt
from check.suite import integers


@triton.jit
def double(x, y, n, BLOCK: tl.constexpr, FAULT: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n)
    if FAULT:
        tl.store(y + at, 2 * v)  # fault: out-of-bounds
    else:
        tl.store(y + at, 2 * v, mask=at < n)


def run(gpu: simt.GPU, fault: bool) -> list[tuple[Any, Any]]:
    x, y = integers(100), gpu.zeros(100, np.int32)
    gpu.triton(double)[2](x, y, 100, BLOCK=64, FAULT=fault, num_warps=1)
    return [(y, 2 * x)]
