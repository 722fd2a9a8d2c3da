"""The L1 data cache and the way to it."""

from __future__ import annotations

import numpy as np

from simt.spec import Spec
from simt.validate.device import Device
from simt.validate.microbenchmark import WITHIN_3_PERCENT, microbenchmark
from simt.validate.microbenchmarks.chases import chase_latency, largest_that_hits

SMALL = 4096  # bytes that any L1 holds
THREADS = 1024


def _coalesced(spec: Spec) -> float | None:
    return 32.0 if spec.load_store.sectored_coalescing and not spec.l1.bypass_global else None


def _banks(spec: Spec) -> float | None:
    """Up to four: lanes 128 bytes apart are in different lines, but all at the begin of one."""
    return None if spec.l1.bypass_global else float(min(4, spec.l1.banks))


def _hit(spec: Spec) -> float | None:
    if spec.l1.bypass_global or spec.sm.register_file.model == "operand_collector":
        return None
    return float(spec.l1.latency)


def _size(spec: Spec) -> float | None:
    """What the smallest carve-out leaves that a kernel of full CTAs without shared memory gets."""
    if spec.l1.bypass_global:
        return None
    if not spec.l1.adaptive:
        return float(spec.l1.cache.bytes)
    ctas = max(1, spec.sm.max_warps * spec.sm.warp_size // THREADS)
    unit = spec.shared_memory.allocation_unit
    needed = ctas * -(-spec.shared_memory.reserved_per_cta // unit) * unit
    carved = min(option for option in spec.l1.carve_out_options if option >= needed)
    ways = spec.l1.cache.ways * spec.l1.unified_bytes // spec.l1.cache.bytes
    left = round(ways * (1 - carved / spec.l1.unified_bytes))
    return float(spec.l1.cache.sets * spec.l1.cache.line_bytes * left)


@microbenchmark("l1", "l1.latency", "cycle", expected=_hit)
def l1_latency(device: Device) -> float:
    """Cycles from a load that hits the L1 to its use."""
    return chase_latency(device, SMALL, 128)


@microbenchmark(
    "l1",
    "l1.cache, bytes without shared memory",
    "byte",
    expected=_size,
    tolerance=WITHIN_3_PERCENT,
    moves=("l1.unified_bytes", "l1.cache.ways"),
)
def l1_size(device: Device) -> float:
    """Largest ring of lines that stays in the L1."""
    limit = chase_latency(device, SMALL, 128) * 1.02
    return float(largest_that_hits(device, SMALL, 1 << 19, 128, "ca", limit, THREADS))


def _step(latencies: dict[int, float]) -> float:
    """The least distance from which on a load takes as long as at the largest."""
    most = max(latencies.values())
    return float(min(bytes_ for bytes_, cycles in latencies.items() if cycles > 0.97 * most))


@microbenchmark(
    "l1", "bytes of an L1 sector", "byte", expected=lambda s: 32.0 if s.l1.cache.sectored else None
)
def l1_sector(device: Device) -> float:
    """Bytes that a miss brings into the L1: the least distance at which every load misses."""
    count = 64 * 1024 // 128
    kernel = device.kernel("fetch.cu", "second_load")
    data = device.zeros(1 << 16, np.uint32)
    slow = {}
    for distance in (4, 8, 16, 32, 64, 96):
        cycles, sink = device.zeros(count, np.int64), device.zeros(1, np.uint32)
        kernel(1, 1, data, np.int32(distance), np.int32(count), np.int32(0), cycles, sink)
        slow[distance] = float(np.median(device.numpy(cycles)))
    return _step(slow)


@microbenchmark(
    "l1",
    "l1.cache.line_bytes",
    "byte",
    expected=lambda s: None if s.l1.bypass_global else float(s.l1.cache.line_bytes),
    tolerance=WITHIN_3_PERCENT,
)
def l1_line(device: Device) -> float:
    """Bytes of a line: the L1's size over the pointers that fit when each has a line of its own."""
    limit = chase_latency(device, SMALL, 128) * 1.02
    # An odd number of sectors: every set gets its share of the lines.
    apart = 17 * 32
    lines = largest_that_hits(device, SMALL, 1 << 21, apart, "ca", limit, THREADS) // apart
    size = largest_that_hits(device, SMALL, 1 << 19, 32, "ca", limit, THREADS)
    return size / lines


def _within(device: Device, type_: str, bytes_: int) -> float:
    """Bytes a cycle that one SM reads from its L1."""
    threads, repeats = 512, 8
    size = 8 * threads * bytes_
    kernel = device.kernel("bandwidth.cu", "within", {"TYPE": type_})
    region, cycles = device.zeros(size // 4, np.uint32), device.zeros(2, np.int64)
    sink = device.zeros(threads, np.uint32)
    kernel(1, threads, region, np.int32(size // bytes_), np.int32(repeats), cycles, sink)
    once, twice = device.numpy(cycles)
    return size * repeats / float(twice - once)


def _bandwidth(spec: Spec) -> float | None:
    return None if spec.l1.bypass_global else 32.0 * spec.l1.banks


@microbenchmark("l1", "bytes a cycle of the L1, 32-bit loads", "byte/cycle")
def l1_bandwidth_32(device: Device) -> float:
    """Bytes that an SM reads from its L1 a cycle, 32 bits a lane."""
    return _within(device, "unsigned", 4)


@microbenchmark("l1", "bytes a cycle of the L1, 64-bit loads", "byte/cycle")
def l1_bandwidth_64(device: Device) -> float:
    """Bytes that an SM reads from its L1 a cycle, 64 bits a lane."""
    return _within(device, "uint2", 8)


@microbenchmark("l1", "l1.banks, of 32 bytes a cycle", "byte/cycle", expected=_bandwidth, tolerance=0.05)
def l1_bandwidth_128(device: Device) -> float:
    """Bytes that an SM reads from its L1 a cycle, 128 bits a lane."""
    return _within(device, "uint4", 16)


def _strided(device: Device, distance: int) -> float:
    """Cycles of 16 loads of each of an SM's warps, whose lanes' words are `distance` bytes apart."""
    kernel, threads = device.kernel("fetch.cu", "strided"), 512
    cycles, sink = device.zeros(2, np.int64), device.zeros(threads, np.uint32)
    data = device.zeros(32 * 128 // 4, np.uint32)
    kernel(1, threads, data, np.int32(distance), np.int32(16), cycles, sink)
    once, twice = device.numpy(cycles)
    return float(twice - once)


@microbenchmark("l1", "load_store.sectored_coalescing", "byte", expected=_coalesced)
def coalescing(device: Device) -> float:
    """Bytes of a transaction, 32 at most: the least distance of the lanes' words at which each takes its own.

    Words further apart meet in the L1's banks, which would be taken for larger transactions.
    """
    return _step({distance: _strided(device, distance) for distance in (4, 8, 16, 32)})


@microbenchmark("l1", "l1.banks", "bank", expected=_banks, tolerance=WITHIN_3_PERCENT)
def l1_banks(device: Device) -> float:
    """Banks of the L1: how much longer a load takes when its sectors meet in one of them."""
    return _strided(device, 128) / _strided(device, 32)
