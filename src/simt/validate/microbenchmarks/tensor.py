"""Tensor cores."""

from __future__ import annotations

import numpy as np

from simt.validate.device import Device
from simt.validate.microbenchmark import microbenchmark

STEPS = 64


def _mma(device: Device, chains: int, warps: int) -> float:
    """Cycles of a step in which each warp multiplies `chains` independent tiles."""
    kernel = device.kernel("tensor.cu", "multiply", {"CHAINS": chains, "STEPS": STEPS})
    cycles, sink = device.zeros(2, np.int64), device.zeros(32 * warps, np.float32)
    kernel(1, 32 * warps, cycles, sink)
    once, twice = device.numpy(cycles)
    return float(twice - once) / STEPS


@microbenchmark(
    "tensor",
    "dependent HMMA m16n8k16, accumulator to accumulator",
    "cycle",
    sm_version=80,
    moves=("sm.units.tensor.latency",),
)
def mma_latency(device: Device) -> float:
    """Cycles from an FP16 m16n8k16 multiplication to one that needs its accumulator."""
    return _mma(device, 1, 1)


@microbenchmark(
    "tensor",
    "FP16 multiply-adds a cycle of an SM's tensor cores",
    "FMA/cycle",
    sm_version=80,
    moves=("sm.units.tensor.initiation_interval",),
)
def mma_throughput(device: Device) -> float:
    """FP16 multiply-adds that an SM completes per cycle, by mma.sync m16n8k16."""
    warps, chains = 8, 4
    return warps * chains * 16 * 8 * 16 / _mma(device, chains, warps)
