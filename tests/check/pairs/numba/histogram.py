"""Bins in global memory are counted without atomics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import cuda

import simt
from check.suite import integers, zeros


def kernel(fault: bool) -> Callable[..., None]:
    def count(x, bins):  # type: ignore[no-untyped-def]
        i = cuda.grid(1)
        if fault:
            bins[x[i]] += 1  # fault: race-global
        else:
            cuda.atomic.add(bins, x[i], 1)

    return count


def run(gpu: simt.GPU, fault: bool) -> list[tuple[Any, Any]]:
    x, bins = integers(128, 0, 8), zeros(8)
    gpu.numba(kernel(fault), lineinfo=True)[2, 64](x, bins)
    return [(bins, np.bincount(x, minlength=8))]
