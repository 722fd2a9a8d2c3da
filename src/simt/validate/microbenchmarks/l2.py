"""The L2 and the way to it."""

from __future__ import annotations

import numpy as np

from simt.spec import Spec
from simt.validate.device import Device
from simt.validate.microbenchmark import microbenchmark
from simt.validate.microbenchmarks.chases import chase_latency, evict, step_of

SMALL = 1 << 16


def l2_hit(spec: Spec) -> float:
    """Core cycles of a load past the L1 that hits the L2: the look-up's delay, the wires, and the cycles that
    issue, the address queue, two crossbars with their ports and the way to the registers take."""
    c = spec.clock
    here = 15 if spec.sm.register_file.model == "operand_collector" else 13
    wires = 2 * spec.interconnect.latency * c.core_mhz / c.interconnect_mhz
    return spec.l2.latency * c.core_mhz / c.l2_mhz + wires + here


def whole_bandwidth(device: Device, size: int, repeats: int) -> float:
    """Bytes a core cycle that all SMs together read from an array of `size` bytes, walk after walk."""
    elements = size // 16
    data, sink = device.zeros(4 * elements, np.uint32), device.zeros(1, np.uint32)
    kernel = device.kernel("bandwidth.cu", "whole")
    grid = 2 * device.sms
    walks = (1, repeats, 5 * repeats)  # the first brings the array into the L2
    times = [kernel(grid, 1024, data, np.int64(elements), np.int32(n), sink) for n in walks]
    device.free(data)
    return 4 * size * repeats / (times[2] - times[1])


def cold_bandwidth(device: Device, size: int) -> float:
    """Bytes a core cycle that all SMs read, once, from an array of `size` bytes and one twice as large."""
    kernel, sink = device.kernel("bandwidth.cu", "whole"), device.zeros(1, np.uint32)
    held = evict(device)
    arrays = [device.zeros(bytes_ // 4, np.uint32) for bytes_ in (size, 2 * size)]
    times = [kernel(2 * device.sms, 1024, a, np.int64(a.nbytes // 16), np.int32(1), sink) for a in arrays]
    for array in [*arrays, held]:
        device.free(array)
    return size / (times[1] - times[0])


@microbenchmark("l2", "l2.slice.line_bytes, in sectors of", "byte", expected=lambda s: 32.0)
def l2_sector(device: Device) -> float:
    """Bytes that a miss brings into the L2: the least distance at which a second load misses, too."""
    count, distances = 128, (4, 8, 16, 32, 64, 96)
    kernel = device.kernel("fetch.cu", "second_load")
    held = evict(device)
    # Each distance has memory of its own.
    arrays = [device.zeros(count * 32 + 32, np.uint32) for _ in distances]
    times = {}
    for distance, data in zip(distances, arrays, strict=True):
        cycles, sink = device.zeros(count, np.int64), device.zeros(1, np.uint32)
        kernel(1, 1, data, np.int32(distance), np.int32(count), np.int32(1), cycles, sink)
        times[distance] = float(np.median(device.numpy(cycles)))
    device.free(held)
    return float(step_of(times, (min(times.values()) + max(times.values())) / 2))


@microbenchmark(
    "l2",
    "l2.latency: load past the L1",
    "cycle",
    expected=l2_hit,
    tolerance=0.01,
    moves=("l2.latency",),
)
def l2_latency(device: Device) -> float:
    """Cycles from a load that hits the L2 to its use."""
    return chase_latency(device, SMALL, 128, "cg")


@microbenchmark("l2", "bytes a cycle of the L2", "byte/cycle")
def l2_bandwidth(device: Device) -> float:
    """Bytes a core cycle that all SMs together read from the L2."""
    return whole_bandwidth(device, min(device.l2_bytes // 4, 2 << 20), 2)
