"""Atomic operations."""

from __future__ import annotations

import numpy as np

from simt.validate.device import Device
from simt.validate.microbenchmark import microbenchmark


@microbenchmark("atomics", "atomic addition in device memory, with its result", "cycle")
def atomic_latency(device: Device) -> float:
    """Cycles from an atomic addition that hits in the near L2 to the use of its result."""
    steps, cycles, end = 32, device.zeros(2, np.int64), device.zeros(1, np.uint32)
    kernel, found = device.kernel("atomics.cu", "atomic_chain"), []
    # On words so far apart that, in an L2 with two parts, some are in the near one.
    for counters in [device.zeros(5000, np.uint32) for _ in range(8)]:
        kernel(1, 1, counters, np.int32(steps), cycles, end)
        once, twice = device.numpy(cycles)
        found.append(float(twice - once) / steps)
    return min(found)


@microbenchmark("atomics", "atomic addition in shared memory, with its result", "cycle")
def shared_atomic_latency(device: Device) -> float:
    """Cycles from an atomic addition in shared memory to the use of its result."""
    steps, cycles, end = 32, device.zeros(2, np.int64), device.zeros(32, np.uint32)
    device.kernel("atomics.cu", "atomic_chain_shared")(1, 32, np.int32(steps), cycles, end)
    once, twice = device.numpy(cycles)
    return float(twice - once) / steps


def _stream(device: Device, target: str) -> float:
    """Additions of the whole GPU per core cycle."""
    grid, block, count = 2 * device.sms, 256, 8
    counters = device.zeros(grid * block, np.uint32)
    kernel = device.kernel("atomics.cu", "atomic_stream", {"TARGET(i)": target})
    # The first launch loads instructions and counters into the caches.
    times = [kernel(grid, block, counters, np.int32(n)) for n in (count, count, 3 * count)]
    return 2.0 * grid * block * count / (times[2] - times[1])


@microbenchmark("atomics", "atomic additions a cycle, each thread its own word", "operation/cycle")
def atomic_throughput(device: Device) -> float:
    """Atomic additions of the GPU per cycle, neighbouring threads in neighbouring words."""
    return _stream(device, "i")


@microbenchmark("atomics", "atomic additions a cycle, one word for each warp", "operation/cycle")
def atomic_throughput_conflict(device: Device) -> float:
    """Atomic additions of the GPU per cycle, all threads of a warp in one word."""
    return _stream(device, "i / 32 * 8")
