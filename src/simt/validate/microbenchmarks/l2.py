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
    kernel, sink, times = device.kernel("bandwidth.cu", "whole"), device.zeros(1, np.uint32), []
    for bytes_ in (size, 2 * size):
        data = device.zeros(bytes_ // 4, np.uint32)
        times.append(kernel(2 * device.sms, 1024, data, np.int64(bytes_ // 16), np.int32(1), sink))
        device.free(data)
    return size / (times[1] - times[0])


@microbenchmark("l2", "load that hits the L2, past the L1", "cycle")
def l2_latency(device: Device) -> float:
    """Cycles from a load that hits the L2 to its use."""
    return chase_latency(device, SMALL, 128, "cg")


@microbenchmark("l2", "bytes a cycle of the L2", "byte/cycle")
def l2_bandwidth(device: Device) -> float:
    """Bytes a core cycle that all SMs together read from the L2."""
    return whole_bandwidth(device, min(device.l2_bytes // 4, 2 << 20), 2)
