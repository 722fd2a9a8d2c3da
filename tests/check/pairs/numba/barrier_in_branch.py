"""A barrier that only some threads reach."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import cuda, int32

import simt
from check.suite import integers, zeros


def kernel(fault: bool) -> Callable[..., None]:
    def reverse(x, y):  # type: ignore[no-untyped-def]
        s = cuda.shared.array(64, int32)
        t = cuda.threadIdx.x
        s[t] = x[t]
        if not fault:
            cuda.syncthreads()
        if t < 40:
            if fault:
                cuda.syncthreads()  # fault: barrier-divergent
            y[t] = s[39 - t]  # also: race-shared

    return reverse


def run(gpu: simt.GPU, fault: bool) -> list[tuple[Any, Any]]:
    x, y = integers(64), zeros(40)
    gpu.numba(kernel(fault), lineinfo=True)[1, 64](x, y)
    return [(y, x[39::-1])]
