"""Programs add to a row under a lock, whose atomics are relaxed."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton
import triton.language as tl

import simt
from check.suite import integers, zeros


@triton.jit
def add(x, lock, out, BLOCK: tl.constexpr, FAULT: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    own = tl.load(x + tl.program_id(0) * BLOCK + lanes)
    if FAULT:
        while tl.atomic_cas(lock, 0, 1, sem="relaxed") == 1:
            pass
    else:
        while tl.atomic_cas(lock, 0, 1, sem="acquire") == 1:
            pass
    row = tl.load(out + lanes)  # other: race-global
    tl.store(out + lanes, row + own)  # fault: race-global
    tl.debug_barrier()
    if FAULT:
        tl.atomic_xchg(lock, 0, sem="relaxed")
    else:
        tl.atomic_xchg(lock, 0, sem="release")


def run(gpu: simt.GPU, fault: bool) -> list[tuple[Any, Any]]:
    x, out = integers((4, 64)), zeros(64)
    gpu.triton(add)[4](x, gpu.zeros(1, np.int32), out, BLOCK=64, FAULT=fault, num_warps=2)
    return [(out, x.sum(0))]
