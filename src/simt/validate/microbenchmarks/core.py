"""Execution units and issue of an SM."""

from __future__ import annotations

import numpy as np

from simt.spec import Spec
from simt.validate.device import Device
from simt.validate.microbenchmark import microbenchmark

LENGTH = 128  # operations of a chain
WARPS = 32  # that keep an SM's units busy
CHAINS = 8

FMA = "x = __fmaf_rn(x, a, b)"
DFMA = "x = __fma_rn(x, a, b)"
ADD = 'asm volatile("add.s32 %0, %0, %1;" : "+r"(x) : "r"(a))'
MAD = 'asm volatile("mad.lo.s32 %0, %0, %1, %2;" : "+r"(x) : "r"(a), "r"(b))'
LOGIC = 'asm volatile("lop3.b32 %0, %0, %1, %2, 0x96;" : "+r"(x) : "r"(a), "r"(b))'
SHIFT = 'asm volatile("shf.l.wrap.b32 %0, %0, %1, %2;" : "+r"(x) : "r"(a), "r"(b))'
HFMA2 = 'asm volatile("fma.rn.f16x2 %0, %0, %1, %2;" : "+r"(x) : "r"(a), "r"(b))'
RSQRT = 'asm volatile("rsqrt.approx.ftz.f32 %0, %0;" : "+f"(x))'
SHUFFLE = 'asm volatile("shfl.sync.bfly.b32 %0, %0, 1, 0x1f, 0xffffffff;" : "+r"(x))'


def chain(device: Device, type_: str, step: str, dtype: type) -> float:
    """Cycles from one operation to the next that needs its result."""
    kernel = device.kernel("chain.cu", "chain", {"TYPE": type_, "STEP(x,a,b)": step, "LENGTH": LENGTH})
    values, cycles = device.array(np.ones(32, dtype)), device.zeros(2, np.int64)
    kernel(1, 32, values, cycles, dtype(1), dtype(1))
    once, twice = device.numpy(cycles)
    return float(twice - once) / LENGTH


def throughput(device: Device, type_: str, step: str, dtype: type, warps: int = WARPS) -> float:
    """Operations of one SM in a cycle, a lane's being one."""
    times = []
    length = max(4, 512 // warps)
    for double in (0, 1):
        defines: dict[str, str | int] = {"TYPE": type_, "STEP(x,a,b)": step, "LENGTH": length}
        defines |= {"CHAINS": CHAINS, **({"DOUBLE": 1} if double else {})}
        kernel = device.kernel("throughput.cu", "throughput", defines)
        values = device.array(np.ones(32 * warps, dtype))
        begins, ends = device.zeros(warps, np.int64), device.zeros(warps, np.int64)
        kernel(1, 32 * warps, values, begins, ends, dtype(1), dtype(1))
        times.append(int(device.numpy(ends).max() - device.numpy(begins).min()))
    return warps * 32 * CHAINS * length / (times[1] - times[0])


def _latency(unit: str) -> object:
    return lambda spec: float(getattr(spec.sm.units, unit).latency)


def lanes_per_cycle(spec: Spec, unit: str) -> float:
    """What an SM's units of a kind finish a cycle, and its schedulers can issue."""
    u = getattr(spec.sm.units, unit)
    units = u.count * (1 if u.count >= spec.sm.sub_cores else 1)
    return 32.0 * min(units / u.initiation_interval, spec.sm.sub_cores)


@microbenchmark("core", "sm.units.fp32.latency", "cycle", expected=lambda s: s.sm.units.fp32.latency)
def fma_latency(device: Device) -> float:
    """FFMA: cycles until a dependent FFMA can issue."""
    return chain(device, "float", FMA, np.float32)


@microbenchmark("core", "sm.units.fp64.latency", "cycle", expected=lambda s: s.sm.units.fp64.latency)
def double_fma_latency(device: Device) -> float:
    """DFMA: cycles until a dependent DFMA can issue."""
    return chain(device, "double", DFMA, np.float64)


@microbenchmark("core", "sm.units.int.latency", "cycle", expected=lambda s: s.sm.units.int.latency)
def add_latency(device: Device) -> float:
    """IADD3: cycles until a dependent IADD3 can issue."""
    return chain(device, "int", ADD, np.int32)


@microbenchmark(
    "core", "fp32 lanes of an SM", "lane/cycle", expected=lambda s: lanes_per_cycle(s, "fp32"), tolerance=0.03
)
def fma_throughput(device: Device) -> float:
    """FFMA: lanes that an SM finishes in a cycle."""
    return throughput(device, "float", FMA, np.float32)


@microbenchmark(
    "core",
    "integer lanes of an SM",
    "lane/cycle",
    expected=lambda s: lanes_per_cycle(s, "int"),
    tolerance=0.03,
)
def add_throughput(device: Device) -> float:
    """IADD3: lanes that an SM finishes in a cycle."""
    return throughput(device, "int", ADD, np.int32)
