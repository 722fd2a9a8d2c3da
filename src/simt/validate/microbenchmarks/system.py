"""The GPU as a whole: SMs, what they hold, launches."""

from __future__ import annotations

import numpy as np

from simt.validate.device import Device
from simt.validate.microbenchmark import WITHIN_3_PERCENT, microbenchmark


def _most_at_once(device: Device, grid: int, block: int, shared: int = 0) -> int:
    """The most CTAs of a grid that one SM held at once."""
    kernel = device.kernel("residency.cu", "residency")
    sm, begin, end = device.zeros(grid, np.uint32), device.zeros(grid, np.int64), device.zeros(grid, np.int64)
    kernel(grid, block, sm, begin, end, shared=shared)
    first = device.numpy(sm) == device.numpy(sm)[0]
    begins, ends = np.sort(device.numpy(begin)[first]), np.sort(device.numpy(end)[first])
    at_begin = np.arange(1, len(begins) + 1) - np.searchsorted(ends, begins, "right")
    return int(at_begin.max())


@microbenchmark("system", "sm.count", "SM", expected=lambda s: float(s.sm.count))
def sm_count(device: Device) -> float:
    """SMs that the CTAs of a large grid run on."""
    grid = 4 * max(device.sms, 64)
    kernel = device.kernel("residency.cu", "residency", {"WAIT": 2000})
    sm, begin, end = device.zeros(grid, np.uint32), device.zeros(grid, np.int64), device.zeros(grid, np.int64)
    kernel(grid, 32, sm, begin, end)
    return float(len(np.unique(device.numpy(sm))))


@microbenchmark("system", "sm.max_ctas", "CTA", expected=lambda s: float(min(s.sm.max_ctas, s.sm.max_warps)))
def ctas_per_sm(device: Device) -> float:
    """CTAs of one warp that an SM holds at once."""
    return float(_most_at_once(device, 80 * device.sms, 32))


@microbenchmark("system", "sm.max_warps", "warp", expected=lambda s: float(s.sm.max_warps))
def warps_per_sm(device: Device) -> float:
    """Warps that an SM holds at once, in CTAs of 256 threads."""
    return 8.0 * _most_at_once(device, 20 * device.sms, 256)


@microbenchmark(
    "system", "shared_memory.bytes", "byte", expected=lambda s: float(s.shared_memory.bytes), tolerance=0.1
)
def shared_bytes_per_sm(device: Device) -> float:
    """Shared memory of an SM: what CTAs of 7 KiB take that it holds at once."""
    size = 7 * 1024
    return float(size * _most_at_once(device, 40 * device.sms, 32, shared=size))


@microbenchmark(
    "system",
    "launch.kernel_latency",
    "cycle",
    expected=lambda s: float(s.launch.kernel_latency),
    tolerance=WITHIN_3_PERCENT,
)
def launch_latency(device: Device) -> float:
    """Core cycles from one launch of an empty kernel to the next in a stream."""
    return device.period("residency.cu", "nothing", 16)
