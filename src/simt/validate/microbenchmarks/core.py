"""Execution units, registers and issue of an SM."""

from __future__ import annotations

import numpy as np

from simt.spec import Spec
from simt.validate.device import Device
from simt.validate.microbenchmark import microbenchmark

LENGTH = 128


def _chain(device: Device, type_: str, step: str, dtype: type) -> float:
    """Cycles from one operation to the next that needs its result."""
    kernel = device.kernel("chain.cu", "chain", {"TYPE": type_, "STEP(x,a,b)": step, "LENGTH": LENGTH})
    values = device.array(np.ones(32, dtype))
    cycles = device.zeros(2, np.int64)
    kernel(1, 32, values, cycles, dtype(1), dtype(1))
    once, twice = device.numpy(cycles)
    return float(twice - once) / LENGTH


@microbenchmark("core", "sm.units.fp32.latency", "cycle", expected=lambda spec: _dependent(spec, "fp32"))
def fma_latency(device: Device) -> float:
    """FFMA: cycles until a dependent FFMA can issue."""
    return _chain(device, "float", "x = __fmaf_rn(x, a, b)", np.float32)


def _dependent(spec: Spec, unit: str) -> float:
    return float(getattr(spec.sm.units, unit).latency)
