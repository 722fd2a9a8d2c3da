"""Pointer chases, which many groups use."""

from __future__ import annotations

import numpy as np

from simt.validate.device import Device

THROUGH = {"ca": "ld.global.ca.u64", "cg": "ld.global.cg.u64"}
STEPS = 64


def chase_latency(
    device: Device,
    size: int,
    stride: int,
    cached: str = "ca",
    steps: int = STEPS,
    warm: int | None = None,
    block: int = 1,
    jump: int = 1,
) -> float:
    """Cycles of a load in a ring of pointers.

    size, stride: bytes of the ring and between two pointers. cached: "ca" looks up the L1 and the L2, "cg"
    the L2 alone. warm: loads before the clock is read; None: two walks. block: threads of the CTA,
    of which one walks. jump: pointers from one to the next in the walk.
    """
    count = max(1, size // stride)
    load = f'asm volatile("{THROUGH[cached]} %0, [%0];" : "+l"(p)::"memory")'
    ring = device.zeros(max(1, size // 8 + 1), np.uint64)
    cycles, end = device.zeros(2, np.int64), device.zeros(1, np.uint64)
    link = device.kernel("chase.cu", "link")
    link(min(64, -(-count // 128)), 128, ring, np.int64(count), np.int64(stride), np.int64(jump))
    kernel = device.kernel("chase.cu", "chase", {"LOAD(p)": load})
    kernel(1, block, ring, np.int64(2 * count if warm is None else warm), np.int64(steps), cycles, end)
    once, twice = device.numpy(cycles)
    device.free(ring)
    return float(twice - once) / steps


def largest_that_hits(
    device: Device, least: int, most: int, stride: int, cached: str, latency: float, block: int = 1
) -> int:
    """The largest ring, a multiple of `stride`, whose later walks take at most `latency` a load on average.

    Found by bisection between two sizes. Where a cache evicts the oldest line, one line too many misses in
    some set at every step.
    """
    low, high = least // stride, most // stride
    while low < high:
        middle = (low + high + 1) // 2
        steps = max(STEPS, middle // 4 * 4)
        if chase_latency(device, middle * stride, stride, cached, steps, block=block) <= latency:
            low = middle
        else:
            high = middle - 1
    return low * stride
