"""The GPU as a whole: clock, SMs and their capacity, launches."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from simt.spec import Spec
from simt.validate.device import Device
from simt.validate.microbenchmark import WITHIN_3_PERCENT, microbenchmark

REGISTERS = 128  # per thread, where registers are to be the limit
# Cycles that an empty CTA of one warp adds to the time between the starts of two CTAs: fetch, issue and
# completion of its one instruction.
EMPTY_CTA = 3


def _most_at_once(device: Device, grid: int, block: int, shared: int = 0, name: str = "residency") -> int:
    """The most CTAs of a grid that one SM held at once."""
    # A CTA must still be resident when the last one of its SM starts: an H100 starts all in 4,800 cycles.
    wait = 6000 if device.simulated else 30000
    kernel = device.kernel("residency.cu", name, {"WAIT": wait, "REGISTERS": REGISTERS})
    sm = device.zeros(max(grid, 2 * REGISTERS), np.uint32)
    begin, end = device.zeros(grid, np.int64), device.zeros(grid, np.int64)
    kernel(grid, block, sm, begin, end, shared=shared)
    sms = device.numpy(sm)[:grid]
    first = sms == sms[0]
    begins, ends = np.sort(device.numpy(begin)[first]), np.sort(device.numpy(end)[first])
    at_begin = np.arange(1, len(begins) + 1) - np.searchsorted(ends, begins, "right")
    return int(at_begin.max())


@microbenchmark(
    "system", "clock.core_mhz: under load", "MHz", expected=lambda s: s.clock.core_mhz, tolerance=0.001
)
def core_clock(device: Device) -> float:
    """Clock of the SMs under load: cycles divided by nanoseconds of the GPU's timer."""
    kernel, times = device.kernel("residency.cu", "clocks"), device.zeros(5, np.uint64)
    kernel(1, 32, np.int32(4096 if device.simulated else 1 << 20), times)
    begin, timer, end, timer_end, _ = device.numpy(times).astype(np.int64)
    return float(1000.0 * (end - begin) / (timer_end - timer))


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
    return float(_most_at_once(device, 40 * device.sms, 32))


@microbenchmark("system", "sm.max_warps", "warp", expected=lambda s: float(s.sm.max_warps))
def warps_per_sm(device: Device) -> float:
    """Warps that an SM holds at once, in CTAs of 128 threads."""
    return 4.0 * _most_at_once(device, 20 * device.sms, 128)


def _whole_warps(spec: Spec) -> float:
    """Registers in whole warps, limited by the warps that the SM can hold."""
    each = REGISTERS * spec.sm.warp_size
    fit = min(spec.sm.register_file.registers // each, spec.sm.max_warps, spec.sm.max_ctas)
    return float(each * fit)


@microbenchmark("system", "sm.register_file.registers: in whole warps", "register", expected=_whole_warps)
def registers_per_sm(device: Device) -> float:
    """Registers of an SM: those of the resident CTAs of one warp with 128 registers per thread."""
    return float(32 * REGISTERS * _most_at_once(device, 40 * device.sms, 32, name="with_registers"))


def _largest(least: int, most: int, fits: Callable[[int], bool]) -> int:
    while least < most:
        middle = (least + most + 1) // 2
        least, most = (middle, most) if fits(middle) else (least, middle - 1)
    return least


def _shared_of_each(device: Device, ctas: int) -> int:
    """The most shared memory, in bytes and multiples of 256, with which an SM holds `ctas` CTAs at once."""
    most = device.shared_bytes_per_cta // 256
    # Close to what the device reports; a bisection over all sizes would find the same.
    guess = device.shared_bytes_per_sm // ctas // 256
    at_least = max(0, guess - 16)

    def fits(units: int) -> bool:
        return _most_at_once(device, (ctas + 1) * device.sms, 32, shared=256 * units) >= ctas

    if not fits(at_least):
        at_least = 0
    return 256 * _largest(at_least, min(most, guess + 16), fits)


def _reserved(device: Device) -> int:
    return _shared_of_each(device, 4) - 2 * _shared_of_each(device, 8)


@microbenchmark("system", "shared_memory.bytes", "byte", expected=lambda s: float(s.shared_memory.bytes))
def shared_bytes_per_sm(device: Device) -> float:
    """Shared memory of an SM: the maximum for each of four CTAs, and the part reserved for them."""
    return 4.0 * (_shared_of_each(device, 4) + _reserved(device))


@microbenchmark(
    "system",
    "shared_memory.reserved_per_cta",
    "byte",
    expected=lambda s: float(s.shared_memory.reserved_per_cta),
)
def shared_reserved_per_cta(device: Device) -> float:
    """Shared memory that the system reserves per CTA: what eight CTAs have less than four."""
    return float(_reserved(device))


def _turnover(device: Device, threads: int) -> float:
    """Cycles from the start of an empty CTA to that of the next one, with one CTA per SM."""
    count = 16 if device.simulated else 256  # CTAs per SM, enough to time launches of a real GPU
    kernel, shared = device.kernel("residency.cu", "nothing"), device.shared_bytes_per_cta // 2 + 1024
    _, some, more = (kernel(n * device.sms, threads, shared=shared) for n in (1, count, 2 * count))
    return (more - some) / count


@microbenchmark(
    "system",
    "launch.dispatch_latency",
    "cycle",
    expected=lambda s: float(s.launch.dispatch_latency),
    tolerance=WITHIN_3_PERCENT,
)
def dispatch_latency(device: Device) -> float:
    """Cycles from the end of a CTA of one warp to the beginning of the next one, with one CTA per SM."""
    return _turnover(device, 32) - EMPTY_CTA


@microbenchmark(
    "system",
    "launch.warp_start_interval",
    "cycle",
    expected=lambda s: float(s.launch.warp_start_interval),
    tolerance=WITHIN_3_PERCENT,
)
def warp_start_interval(device: Device) -> float:
    """Cycles from the start of a CTA's warp to that of its next one, as empty CTAs of 1 and 32 warps tell."""
    return (_turnover(device, 1024) - _turnover(device, 32)) / 31


def _starts(spec: Spec) -> float:
    """Each place of an SM is filled again after the dispatch latency, one place per SM and cycle."""
    places, launch = min(spec.sm.max_ctas, spec.sm.max_warps), spec.launch
    reuse = launch.dispatch_latency + EMPTY_CTA
    most = launch.dispatch_rate / 1000 if launch.dispatch_rate else math.inf
    return min(spec.sm.count * min(1.0, places / reuse), most)


@microbenchmark(
    "system", "CTAs that start in a cycle", "CTA/cycle", expected=_starts, tolerance=WITHIN_3_PERCENT
)
def dispatch_rate(device: Device) -> float:
    """CTAs of one warp that the GPU starts and ends per cycle."""
    kernel, grid = device.kernel("residency.cu", "nothing"), (64 if device.simulated else 1024) * device.sms
    times = [kernel(size, 32) for size in (grid, grid, 2 * grid)]  # the first launch loads the instructions
    return grid / (times[2] - times[1])


@microbenchmark(
    "system",
    "launch.kernel_latency",
    "cycle",
    expected=lambda s: (
        s.launch.kernel_latency + s.launch.overhead * s.clock.core_mhz / 1000 + s.launch.cta_latency
    ),
    tolerance=WITHIN_3_PERCENT,
)
def launch_latency(device: Device) -> float:
    """Core cycles from the end of an empty kernel to the beginning of the next one in its stream."""
    # Loads the instructions into the caches of all SMs; each launch runs on the next SM.
    device.kernel("residency.cu", "nothing")(device.sms, 32)
    return device.period("residency.cu", "nothing", 16) - EMPTY_CTA - 1


@microbenchmark("system", "a copy from the host of four bytes", "us")
def copy_latency(device: Device) -> float:
    """Microseconds that a copy of four bytes from the host takes. On real GPUs only."""
    return min(device.copied(4) for _ in range(9)) / 1e3


@microbenchmark("system", "bytes a second from the host's pageable memory", "GB/s")
def host_copy_bandwidth(device: Device) -> float:
    """Gigabytes per second of a large copy from the host's pageable memory. On real GPUs only."""
    size = 32 << 20
    once, twice = (min(device.copied(n) for _ in range(3)) for n in (size, 2 * size))
    return size / (twice - once)
