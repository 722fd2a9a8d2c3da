"""Device memory."""

from __future__ import annotations

import numpy as np

from simt.spec import Spec
from simt.validate.device import Device
from simt.validate.microbenchmark import WITHIN_3_PERCENT, microbenchmark
from simt.validate.microbenchmarks.chases import chase_latency
from simt.validate.microbenchmarks.l2 import cold_bandwidth


@microbenchmark("memory", "load from device memory", "cycle", moves=("dram.latency",))
def memory_latency(device: Device) -> float:
    """Cycles from a load that misses everywhere to its use."""
    # Twice as many lines as the L2 holds, so that what made the ring has evicted its begin; 35 lines further
    # is another row, and a number of lines without a common divisor makes it one ring.
    lines = 2 * device.l2_bytes // 128 | 1
    lines += 2 if lines % 5 == 0 or lines % 7 == 0 else 0
    return chase_latency(device, 128 * lines, 128, "cg", warm=4, jump=35)


def _peak(spec: Spec) -> float:
    """Bytes a core cycle of the data buses."""
    d = spec.dram
    return (
        spec.address_map.channels
        * d.bus_bytes
        * d.data_command_ratio
        * spec.clock.dram_mhz
        / spec.clock.core_mhz
    )


@microbenchmark(
    "memory", "bytes a cycle of device memory", "byte/cycle", expected=_peak, tolerance=WITHIN_3_PERCENT
)
def memory_bandwidth(device: Device) -> float:
    """Bytes a core cycle that all SMs together read from device memory."""
    return cold_bandwidth(device, 2 * device.l2_bytes)


def _moved(device: Device, name: str, share: int) -> float:
    """Bytes a core cycle that a kernel of bandwidth.cu moves; share: arrays that it goes over."""
    size = 2 * device.l2_bytes
    kernel = device.kernel("bandwidth.cu", name)
    sets = [[device.zeros(b // 4, np.uint32) for _ in range(share)] for b in (size, size, 2 * size)]
    extra = [np.uint32(1)] if name == "fill" else []
    times = [kernel(2 * device.sms, 1024, *s, np.int64(s[0].nbytes // 16), *extra) for s in sets]
    for arrays in sets:
        for array in arrays:
            device.free(array)
    return share * size / (times[2] - times[1])


@microbenchmark("memory", "bytes a cycle of device memory, read and written", "byte/cycle")
def copy_bandwidth(device: Device) -> float:
    """Bytes a core cycle, read and written, of a copy in device memory."""
    return _moved(device, "copy", 2)


@microbenchmark("memory", "bytes a cycle of device memory, written", "byte/cycle")
def fill_bandwidth(device: Device) -> float:
    """Bytes a core cycle that all SMs together write to device memory."""
    return _moved(device, "fill", 1)
