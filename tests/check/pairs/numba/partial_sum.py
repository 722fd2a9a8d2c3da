"""Elements of shared memory that no thread has set are compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import cuda, int32

import simt
from check.suite import integers, zeros


def kernel(fault: bool) -> Callable[..., None]:
    def largest(x, out):  # type: ignore[no-untyped-def]
        s = cuda.shared.array(64, int32)
        t = cuda.threadIdx.x
        if t < x.size:
            s[t] = x[t]
        elif not fault:
            s[t] = -1000
        cuda.syncthreads()
        if t == 0:
            best = -1000
            for i in range(64):
                if s[i] > best:  # fault: uninitialised-shared
                    best = s[i]  # other: uninitialised-shared
            out[0] = best  # also: uninitialised-shared

    return largest


def run(gpu: simt.GPU, fault: bool) -> list[tuple[Any, Any]]:
    x, out = integers(50), zeros(1)
    gpu.numba(kernel(fault), lineinfo=True)[1, 64](x, out)
    return [(out, np.array([x.max()]))]
