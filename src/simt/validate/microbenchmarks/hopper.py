"""Asynchronous copies (compute capability 8.0); wgmma, bulk copies and clusters (9.0)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from simt.spec import Spec
from simt.validate.device import Device
from simt.validate.microbenchmark import WITHIN_3_PERCENT, microbenchmark

STEPS = 32
# For each type of A and B: the name for both, columns of K in 32 bytes, operands after the descriptors.
TYPES = {
    "f16": ("f16.f16", 16, "p, 1, 1, 0, 0"),
    "bf16": ("bf16.bf16", 16, "p, 1, 1, 0, 0"),
    "tf32": ("tf32.tf32", 8, "p, 1, 1"),
    "e4m3": ("e4m3.e4m3", 32, "p, 1, 1"),
    "s8": ("s8.s8", 32, "p"),
}


def _wgmma(device: Device, type_: str, n: int) -> float:
    """Multiply-adds of an SM per cycle, by wgmma of m64 with n columns."""
    operands, k, tail = TYPES[type_]
    whole, count = type_ == "s8", n // 2
    vector = ", ".join(f"%{i}" for i in range(count))
    name = f"wgmma.mma_async.sync.aligned.m64n{n}k{k}.{'s32' if whole else 'f32'}.{operands}"
    text = f"{{ .reg .pred p; setp.eq.u32 p, 0, 0; {name} {{{vector}}}, %{count}, %{count + 1}, {tail}; }}"
    outputs = ", ".join(f'"+{"r" if whole else "f"}"(d[{i}])' for i in range(count))
    kernel = device.kernel(
        "wgmma.cu",
        "wgmma",
        {
            "TYPE": "int" if whole else "float",
            "COUNT": count,
            "STEPS": STEPS,
            "MULTIPLY(d,a,b)": f'asm volatile("{text}" : {outputs} : "l"(a), "l"(b))',
        },
    )
    cycles, sink = device.zeros(2, np.int64), device.zeros(128, np.int32 if whole else np.float32)
    kernel(1, 128, cycles, sink, shared=32768)
    once, twice = device.numpy(cycles)
    return 64.0 * n * k * STEPS / float(twice - once)


def _rate(share: float) -> Callable[[Spec], float]:
    """The interval is for 16 x 8 x 16 multiply-adds of FP16 by one unit; other types in proportion."""

    def expected(spec: Spec) -> float:
        tensor = spec.sm.units.tensor
        return share * tensor.count * 2048.0 / tensor.initiation_interval

    return expected


def _of_tensor(share: float) -> Callable[[Callable[[Device], float]], Callable[[Device], float]]:
    return microbenchmark(
        "hopper",
        "sm.units.tensor.initiation_interval: multiply-adds of an SM",
        "FMA/cycle",
        expected=_rate(share),
        tolerance=WITHIN_3_PERCENT,
        sm_version=90,
    )


@_of_tensor(1)
def wgmma_f16(device: Device) -> float:
    """wgmma m64n256k16 of FP16: multiply-adds of an SM per cycle."""
    return _wgmma(device, "f16", 256)


@_of_tensor(1)
def wgmma_f16_n64(device: Device) -> float:
    """wgmma m64n64k16 of FP16: multiply-adds of an SM per cycle."""
    return _wgmma(device, "f16", 64)


@_of_tensor(1)
def wgmma_bf16(device: Device) -> float:
    """wgmma m64n256k16 of BF16: multiply-adds of an SM per cycle."""
    return _wgmma(device, "bf16", 256)


@_of_tensor(0.5)
def wgmma_tf32(device: Device) -> float:
    """wgmma m64n256k8 of TF32: multiply-adds of an SM per cycle."""
    return _wgmma(device, "tf32", 256)


@_of_tensor(2)
def wgmma_fp8(device: Device) -> float:
    """wgmma m64n256k32 of E4M3: multiply-adds of an SM per cycle."""
    return _wgmma(device, "e4m3", 256)


@_of_tensor(2)
def wgmma_int8(device: Device) -> float:
    """wgmma m64n256k32 of 8-bit integers: multiply-adds of an SM per cycle."""
    return _wgmma(device, "s8", 256)


def _copied(device: Device, threads: int, each: int) -> float:
    """Cycles per round of cp.async."""
    data, cycles = device.zeros(4 * threads * each, np.uint32), device.zeros(2, np.int64)
    kernel = device.kernel("copies.cu", "copy_async")
    kernel(1, threads, data, np.int32(each), np.int32(STEPS), cycles, shared=16 * threads)
    once, twice = device.numpy(cycles)
    return float(twice - once) / STEPS


@microbenchmark(
    "hopper", "cp.async of 16 bytes that hits the L2, and the wait for it", "cycle", sm_version=80
)
def async_copy_latency(device: Device) -> float:
    """Cycles from cp.async to the end of the wait for it: the L2's latency and the issue of three more."""
    return _copied(device, 1, 1)


@microbenchmark(
    "hopper",
    "bytes a cycle of an SM's cp.async, past the L1",
    "byte/cycle",
    expected=lambda s: 32.0 * max(1, s.l1.bypass_sectors_per_cycle),
    tolerance=WITHIN_3_PERCENT,
    sm_version=80,
)
def async_copy_bandwidth(device: Device) -> float:
    """Bytes that an SM copies by cp.async from the L2 per cycle."""
    threads, each = 256, 32
    return 16.0 * threads * each / (_copied(device, threads, 2 * each) - _copied(device, threads, each))


def _bulk(device: Device, bytes_: int, each: int) -> float:
    """Cycles per round of bulk copies."""
    data, cycles = device.zeros(bytes_ * each // 4, np.uint32), device.zeros(2, np.int64)
    kernel = device.kernel("copies.cu", "copy_bulk")
    kernel(1, 1, data, np.int32(bytes_), np.int32(each), np.int32(8), cycles, shared=bytes_)
    once, twice = device.numpy(cycles)
    return float(twice - once) / 8


@microbenchmark(
    "hopper", "bulk copy of 16 bytes that hits the L2, and the wait for it", "cycle", sm_version=90
)
def bulk_copy_latency(device: Device) -> float:
    """Cycles from cp.async.bulk to the end of the wait at its mbarrier."""
    return _bulk(device, 16, 1)


@microbenchmark("hopper", "bytes a cycle of an SM's bulk copies", "byte/cycle", sm_version=90)
def bulk_copy_bandwidth(device: Device) -> float:
    """Bytes that an SM copies by cp.async.bulk from the L2 per cycle."""
    bytes_ = 4096
    return 4.0 * bytes_ / (_bulk(device, bytes_, 8) - _bulk(device, bytes_, 4))


@microbenchmark("hopper", "load of another CTA's shared memory", "cycle", sm_version=90)
def cluster_latency(device: Device) -> float:
    """Cycles from a load of the shared memory of another CTA in the cluster to its use.

    The engine gives such a load the latency of the SM's own shared memory (docs/model/load-store.md).
    """
    steps, cycles, end = 64, device.zeros(2, np.int64), device.zeros(1, np.uint32)
    device.kernel("copies.cu", "chase_cluster")(2, 32, np.int32(steps), cycles, end, cluster=2)
    once, twice = device.numpy(cycles)
    return float(twice - once) / steps


@microbenchmark("hopper", "bytes a cycle of another CTA's shared memory", "byte/cycle", sm_version=90)
def cluster_bandwidth(device: Device) -> float:
    """Bytes per cycle that a CTA reads from the shared memory of another CTA in its cluster.

    The engine times them as loads of the SM's own shared memory (docs/model/load-store.md).
    """
    threads, loads = 512, 32
    cycles, sink = device.zeros(2, np.int64), device.zeros(threads, np.uint32)
    kernel = device.kernel("copies.cu", "within_cluster")
    kernel(2, threads, np.int32(loads), cycles, sink, shared=16 * threads, cluster=2)
    once, twice = device.numpy(cycles)
    return 16.0 * threads * loads / float(twice - once)
