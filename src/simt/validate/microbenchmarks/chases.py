"""Pointer chases, which many groups use."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from simt.errors import SimtError
from simt.validate.device import Device

THROUGH = {"ca": '"ld.global.ca"', "cg": "PAST_L1"}
STEPS = 64


def _load(cached: str) -> dict[str, str | int]:
    return {"LOAD(p)": f'asm volatile({THROUGH[cached]} ".u64 %0, [%0];" : "+l"(p)::"memory")'}


def ring_of(device: Device, size: int, stride: int, jump: int = 1) -> tuple[Any, int]:
    """A ring of pointers in device memory, and their number.

    size, stride: bytes of the ring, and between two pointers. jump: distance of each step of the walk, in
    pointers.
    """
    count = max(1, size // stride)
    ring = device.zeros(max(1, size // 8 + 1), np.uint64)
    link = device.kernel("chase.cu", "link")
    link(min(64, -(-count // 128)), 128, ring, np.int64(count), np.int64(stride), np.int64(jump))
    return ring, count


def chase_latency(
    device: Device,
    size: int,
    stride: int,
    cached: str = "ca",
    steps: int = STEPS,
    warm: int | None = None,
    block: int = 1,
    jump: int = 1,
    shared: int = 0,
) -> float:
    """Cycles per load of a walk along a ring of pointers.

    size, stride, jump: see `ring_of`. cached: "ca" looks up the L1 and the L2, "cg" only the L2. warm: loads
    before the clock is read; None: two rounds. block: threads of the CTA, of which one walks. shared: shared
    memory of the CTA, bytes.
    """
    ring, count = ring_of(device, size, stride, jump)
    cycles = device.zeros(2, np.int64)
    kernel = device.kernel("chase.cu", "chase", _load(cached))
    kernel(
        1, block, ring, np.int64(2 * count if warm is None else warm), np.int64(steps), cycles, shared=shared
    )
    once, twice = device.numpy(cycles)
    device.free(ring)
    return float(twice - once) / steps


def large_chase_latency(device: Device, size: int, stride: int, steps: int = 4096) -> float:
    """Cycles per load, through all caches, after 1024 threads of the SM have walked along the ring twice.

    size, stride: see `ring_of`. The result is the mean of 2 * steps loads, because in an L2 with two parts,
    single lines are near or far by chance.
    """
    ring, count = ring_of(device, size, stride)
    cycles = device.zeros(2, np.int64)
    kernel = device.kernel("chase.cu", "chase_after_all", _load("ca"))
    kernel(1, 1024, ring, np.int64(count), np.int64(stride), np.int64(steps), cycles)
    latency = float(device.numpy(cycles)[1]) / (2 * steps)
    device.free(ring)
    return latency


def each_latency(
    device: Device, ring: Any, steps: int, cached: str = "cg", warm: int = 0
) -> npt.NDArray[np.float64]:
    """Cycles of each load of a walk along a ring, after `warm` loads: (steps,)."""
    kernel = device.kernel("chase.cu", "chase_each", _load(cached))
    # Reading the clock takes some cycles; a ring of one pointer, which is in the L1, shows how many.
    one, _ = ring_of(device, 8, 8)
    found = device.zeros(64, np.int32)
    device.kernel("chase.cu", "chase_each", _load("ca"))(
        1, 1, one, np.int64(8), np.int32(64), found, shared=256
    )
    extra = float(np.median(device.numpy(found))) - chase_latency(device, 8, 8)
    latencies = device.zeros(steps, np.int32)
    kernel(1, 1, ring, np.int64(warm), np.int32(steps), latencies, shared=4 * steps)
    return np.asarray(device.numpy(latencies), np.float64) - extra


def largest_that_hits(
    device: Device,
    least: int,
    most: int,
    stride: int,
    cached: str,
    latency: float,
    block: int = 1,
    shared: int = 0,
) -> int:
    """Bytes of the largest ring whose later rounds take at most `latency` per load on average.

    Found by bisection between two sizes, in multiples of `stride`. If a cache evicts the oldest line, a ring
    that is one line too large misses in some set at every step.
    """
    low, high = least // stride, most // stride
    while low < high:
        middle = (low + high + 1) // 2
        steps = min(max(STEPS, -(-middle // 4) * 4), 1024)
        found = chase_latency(
            device, middle * stride, stride, cached, steps, warm=middle, block=block, shared=shared
        )
        if found <= latency:
            low = middle
        else:
            high = middle - 1
    return low * stride


def step_of(cycles: dict[int, float], limit: float) -> int:
    """The least argument at and above which all cycles exceed `limit`. Raises SimtError if there is none."""
    for argument in sorted(cycles):
        if all(c > limit for a, c in cycles.items() if a >= argument):
            return argument
    raise SimtError(f"no step in {cycles}")


def evict(device: Device) -> Any:
    """Fills the L2 with a copy from the host, so that it holds no earlier data and nothing to write back.

    Returns the array of the copy: as long as it lives, its memory is not allocated again.
    """
    return device.array(np.zeros(device.l2_bytes * 5 // 2, np.uint8))


def walk_latency(device: Device, data: Any, first: int, step: int, steps: int) -> npt.NDArray[np.float64]:
    """Cycles of each load of a walk over zeros, bypassing the L1: (steps,). first, step: bytes.

    Only differences are meaningful, because some cycles of arithmetic are included.
    """
    text = '"{ .reg .b64 v; " PAST_L1 ".u64 v, [%0]; add.u64 %0, %0, v; add.s64 %0, %0, %1; }"'
    load = {"LOAD(p)": f'asm volatile({text} : "+l"(p) : "n"({step}ll) : "memory")'}
    kernel = device.kernel("chase.cu", "walk_each", load)
    latencies = device.zeros(steps, np.int32)
    kernel(1, 1, data, np.int64(first), np.int32(steps), latencies, shared=4 * steps)
    return np.asarray(device.numpy(latencies), np.float64)
