"""Shared memory of an SM."""

from __future__ import annotations

import numpy as np

from simt.spec import Spec
from simt.validate.device import Device
from simt.validate.microbenchmark import WITHIN_3_PERCENT, microbenchmark

THREADS = 1024


def _within(device: Device, type_: str, stride: int, threads: int = THREADS, loads: int = 128) -> float:
    """Cycles per load of a warp, with all of the SM's warps busy."""
    kernel = device.kernel("bandwidth.cu", "within_shared", {"TYPE": type_})
    cycles, sink = device.zeros(2, np.int64), device.zeros(threads, np.uint32)
    kernel(1, threads, np.int32(stride), np.int32(loads), cycles, sink, shared=32 * max(stride, 16))
    once, twice = device.numpy(cycles)
    return float(twice - once) / (loads * threads // 32)


@microbenchmark("shared", "shared_memory.latency", "cycle", expected=lambda s: float(s.shared_memory.latency))
def shared_latency(device: Device) -> float:
    """Cycles from a shared-memory load to its use."""
    steps, cycles, end = 64, device.zeros(2, np.int64), device.zeros(1, np.int32)
    kernel = device.kernel("chase.cu", "chase_shared")
    kernel(1, 1, np.int32(64), np.int32(64), np.int32(steps), cycles, end, shared=64 * 64)
    once, twice = device.numpy(cycles)
    return float(twice - once) / steps


@microbenchmark("shared", "shared_memory.banks", "bank", expected=lambda s: float(s.shared_memory.banks))
def shared_banks(device: Device) -> float:
    """Banks: the smallest stride in words at which all lanes of a warp use one bank."""
    times = {words: _within(device, "unsigned", 4 * words) for words in (1, 2, 4, 8, 16, 32, 64)}
    most = max(times.values())
    return float(min(words for words, time in times.items() if time > 0.97 * most))


def _narrow(spec: Spec) -> float:
    """A load every `access_interval` cycles (docs/model/load-store.md)."""
    return 4.0 * spec.shared_memory.banks / spec.shared_memory.access_interval


def _wide(spec: Spec) -> float | None:
    return 128.0 if spec.shared_memory.wide_accesses_take_wavefronts else None


@microbenchmark(
    "shared",
    "bytes a cycle of shared memory, 32-bit loads",
    "byte/cycle",
    expected=_narrow,
    tolerance=WITHIN_3_PERCENT,
)
def shared_bandwidth_32(device: Device) -> float:
    """Bytes of an SM's shared memory per cycle, 32 bits per lane."""
    return 32 * 4 / _within(device, "unsigned", 4)


@microbenchmark(
    "shared",
    "bytes a cycle of shared memory, 64-bit loads",
    "byte/cycle",
    expected=_wide,
    tolerance=WITHIN_3_PERCENT,
)
def shared_bandwidth_64(device: Device) -> float:
    """Bytes of an SM's shared memory per cycle, 64 bits per lane."""
    return 32 * 8 / _within(device, "uint2", 8)


@microbenchmark(
    "shared",
    "bytes a cycle of shared memory, 128-bit loads",
    "byte/cycle",
    expected=_wide,
    tolerance=WITHIN_3_PERCENT,
)
def shared_bandwidth_128(device: Device) -> float:
    """Bytes of an SM's shared memory per cycle, 128 bits per lane."""
    return 32 * 16 / _within(device, "uint4", 16)


@microbenchmark(
    "shared",
    "cycles of a load in which all lanes meet in one bank",
    "cycle",
    expected=lambda s: 32.0,
    tolerance=WITHIN_3_PERCENT,
)
def shared_conflict(device: Device) -> float:
    """Cycles for which a load occupies the banks if all its lanes use one."""
    return _within(device, "unsigned", 128)
