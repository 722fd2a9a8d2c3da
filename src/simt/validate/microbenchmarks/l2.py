"""The L2 and the way to it."""

from __future__ import annotations

import numpy as np

from simt.validate.device import Device
from simt.validate.microbenchmark import microbenchmark
from simt.validate.microbenchmarks.chases import chase_latency

SMALL = 1 << 16


def whole_bandwidth(device: Device, size: int, repeats: int) -> float:
    """Bytes a core cycle that all SMs together read from an array of `size` bytes, walk after walk."""
    elements = size // 16
    data, sink = device.zeros(4 * elements, np.uint32), device.zeros(1, np.uint32)
    kernel = device.kernel("bandwidth.cu", "whole")
    grid = 2 * device.sms
    times = [kernel(grid, 1024, data, np.int64(elements), np.int32(n), sink) for n in (repeats, 2 * repeats)]
    device.free(data)
    return size * repeats / (times[1] - times[0])


def cold_bandwidth(device: Device, size: int) -> float:
    """Bytes a core cycle that all SMs read, once, from an array of `size` bytes and one twice as large."""
    kernel, sink = device.kernel("bandwidth.cu", "whole"), device.zeros(1, np.uint32)
    # The first evicts what others have written.
    arrays = [device.zeros(bytes_ // 4, np.uint32) for bytes_ in (size, size, 2 * size)]
    grid = 2 * device.sms
    times = [kernel(grid, 1024, a, np.int64(a.nbytes // 16), np.int32(1), sink) for a in arrays]
    for array in arrays:
        device.free(array)
    return size / (times[2] - times[1])


@microbenchmark("l2", "l2.slice.line_bytes, in sectors of", "byte", expected=lambda s: 32.0)
def l2_sector(device: Device) -> float:
    """Bytes that a miss brings into the L2: the least distance at which a second load misses, too."""
    count, distances = 128, (4, 8, 16, 32, 64, 96)
    kernel = device.kernel("fetch.cu", "second_load")
    # Each distance has memory of its own: what is freed and taken again is in the L2.
    arrays = [device.zeros(count * 32 + 32, np.uint32) for _ in distances]
    times = {}
    for distance, data in zip(distances, arrays, strict=True):
        cycles, sink = device.zeros(count, np.int64), device.zeros(1, np.uint32)
        kernel(1, 1, data, np.int32(distance), np.int32(count), np.int32(1), cycles, sink)
        times[distance] = float(np.median(device.numpy(cycles)))
    limit = (min(times.values()) + max(times.values())) / 2
    return float(min(d for d in distances if times[d] > limit))


@microbenchmark("l2", "load that hits the L2, past the L1", "cycle", moves=("l2.latency",))
def l2_latency(device: Device) -> float:
    """Cycles from a load that hits the L2 to its use."""
    return chase_latency(device, SMALL, 128, "cg")


@microbenchmark("l2", "bytes a cycle of the L2", "byte/cycle")
def l2_bandwidth(device: Device) -> float:
    """Bytes a core cycle that all SMs together read from the L2."""
    return whole_bandwidth(device, min(device.l2_bytes // 4, 2 << 20), 2)
