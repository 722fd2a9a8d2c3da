"""A kernel's position under its GPU's roofs (Williams, Waterman, Patterson: "Roofline", CACM 2009).

Operations are floating-point additions, multiplications and fused multiply-adds (which count as two) by the
lanes that execute them, and those of tensor cores; bytes are the sectors that DRAM or the L2 moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from simt.isa.opcodes import energy_class, multiply_adds, opcode_rows
from simt.result.launch import LaunchResult, Machine

SECTOR = 32


@dataclass(frozen=True)
class RooflinePoint:
    """A group of launches. seconds: their running time."""

    flops: float
    dram_bytes: float
    l2_bytes: float
    seconds: float


@dataclass(frozen=True)
class Roof:
    """A limit: in operations per second, or (`bandwidth`) in bytes per second from `level`."""

    name: str
    value: float
    bandwidth: bool = False
    level: str = ""


def flops_of(launch: LaunchResult) -> float | None:
    """Floating-point operations; None if threads per instruction are unknown."""
    pc = launch.pc
    if not pc or "threads" not in pc:
        return None
    found = 0.0
    for opcode, issued, threads in zip(pc["opcode"], pc["issued"], pc["threads"], strict=True):
        per_warp, per_lane = _operations(opcode)
        found += issued * per_warp + threads * per_lane
    return found


@lru_cache(maxsize=4096)
def _operations(opcode: str) -> tuple[float, float]:
    """Of a warp's instruction whatever its lanes, and of each lane."""
    if not energy_class(opcode)[0].startswith("tensor."):
        row = opcode_rows().get(opcode.partition(".")[0])
        return 0.0, row.flops if row else 0.0
    from simt._engine import tensor_work

    work = tensor_work(opcode)  # 0 for a step of HMMA.884
    return 2 * (multiply_adds("HMMA.16816.F32") * work if work else multiply_adds(opcode)), 0.0


def point(launches: Sequence[LaunchResult]) -> RooflinePoint | None:
    """None if their operations or time are unknown."""
    every = [flops_of(x) for x in launches]
    known = [n for n in every if n is not None]
    seconds = sum(x.seconds for x in launches)
    if not known or len(known) < len(every) or not seconds > 0:
        return None
    dram = sum(x.engine["dram_reads"] + x.engine["dram_writes"] for x in launches)
    lookups = sum(x.counters["lts__t_sectors.sum"] or 0 for x in launches)
    if dram != dram or lookups != lookups:  # values that a controller could not project
        return None
    return RooflinePoint(sum(known), SECTOR * dram, SECTOR * lookups, seconds)


def roofs(machine: Machine) -> list[Roof]:
    """The roofs that the specification gives."""
    hertz = 1000 * machine.core_khz
    fp32_sums, fp16_sums = machine.tensor_flops_per_cycle, machine.tensor_fp16_sums_flops_per_cycle
    found = [
        Roof("DRAM", machine.dram_bytes_per_cycle * hertz, True, "dram"),
        Roof("L2", machine.l2_slices * SECTOR * 1000 * machine.l2_khz, True, "l2"),
        Roof("FP32", machine.fp32_flops_per_cycle * hertz),
        Roof("tensor cores, FP16", fp32_sums * hertz),
        Roof("tensor cores, FP16 sums", fp16_sums * hertz if fp16_sums > fp32_sums else 0),
    ]
    return [roof for roof in found if roof.value > 0]
