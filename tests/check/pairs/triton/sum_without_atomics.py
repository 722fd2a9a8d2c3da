"""Programs add to one number by loading and storing it."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

import simt
from check.suite import integers, zeros


@triton.jit
def total(x, out, BLOCK: tl.constexpr, FAULT: tl.constexpr):
    own = tl.sum(tl.load(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)))
    if FAULT:
        before = tl.load(out)  # other: race-global
        tl.store(out, before + own)  # fault: race-global
    else:
        tl.atomic_add(out, own)


def run(gpu: simt.GPU, fault: bool) -> list[tuple[Any, Any]]:
    x, out = integers(256), zeros(1)
    gpu.triton(total)[4](x, out, BLOCK=64, FAULT=fault, num_warps=1)
    return [(out, [x.sum()])]
