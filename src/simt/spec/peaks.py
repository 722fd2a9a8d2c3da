"""Peak rates of a GPU, as data sheets give them."""

from __future__ import annotations

from dataclasses import dataclass

from simt.spec.checks import SECTOR_BYTES
from simt.spec.models import Spec

_VOLTA = range(70, 75)


@dataclass(frozen=True)
class Peaks:
    """What a GPU does at most, at the clocks of its specification.

    fp32_tflops: FP32 multiply-adds, each two operations.
    tensor_tflops: dense FP16 products accumulated in FP32; 0 before Volta.
    l2_bytes: size of the L2. l2_gbs: what its slices read, 10^9 bytes per second.
    memory_gbs: the same of device memory. memory_bus_bits: width of its bus.
    memory_mhz: its clock with two transfers a cycle, as the driver gives it.
    """

    fp32_tflops: float
    tensor_tflops: float
    l2_bytes: int
    l2_gbs: float
    memory_gbs: float
    memory_bus_bits: int
    memory_mhz: float


def tensor_step(spec: Spec) -> int:
    """Multiply-adds of a tensor core in each `sm.units.tensor.initiation_interval`: on Volta a step of
    HMMA.884, else FP16 m16n8k16."""
    return 256 if spec.sm_version in _VOLTA else 2048


def peaks(spec: Spec) -> Peaks:
    """The peak rates that follow from a specification's values."""
    sm, dram, slices = spec.sm, spec.dram, spec.address_map.slices
    cycles = 2 * sm.count * spec.clock.core_mhz * 1e-6  # TFLOPS of a multiply-add per cycle and SM
    lanes = sm.units.fp32.count * sm.warp_size / sm.units.fp32.initiation_interval
    tensor = sm.units.tensor.count * tensor_step(spec) / sm.units.tensor.initiation_interval
    if spec.sm_version < 70:
        tensor = 0.0
    bus_bytes = spec.address_map.channels * dram.bus_bytes
    return Peaks(
        fp32_tflops=lanes * cycles,
        tensor_tflops=tensor * cycles,
        l2_bytes=spec.l2.slice.bytes * slices,
        l2_gbs=slices * SECTOR_BYTES * spec.clock.l2_mhz / 1e3,
        memory_gbs=bus_bytes * dram.data_command_ratio * spec.clock.dram_mhz / 1e3,
        memory_bus_bits=8 * bus_bytes,
        memory_mhz=spec.clock.dram_mhz * dram.data_command_ratio / 2,
    )
