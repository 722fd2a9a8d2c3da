"""Lower bounds of a launch's time by resource: what it would take if only that resource existed.

Each is work divided by the resource's peak rate, with the work spread evenly over the GPU, save that of the
busiest L2 slice. A launch takes at least the largest, and launch latency besides.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass

from simt.isa import Unit
from simt.result.launch import LaunchResult
from simt.result.stack import l2_lookups, pipe_name, unit_of
from simt.spec import Spec


@dataclass(frozen=True)
class Bound:
    """cycles: core cycles that the launch takes at least for this resource; share: of its cycles."""

    resource: str
    cycles: float
    share: float


def bounds(launch: LaunchResult, spec: Spec) -> tuple[Bound, ...]:
    """The bounds by resource, largest first; those below 0.1 % of the launch's time are left out."""
    e, sms = launch.engine, spec.sm.count
    core = float(spec.clock.core_mhz)
    to_core = {
        name: core / float(getattr(spec.clock, f"{name}_mhz")) for name in ("l2", "dram", "interconnect")
    }
    found = {
        "launch": float(launch.launch_latency),
        "issue": launch.warp_instructions / (sms * spec.sm.sub_cores * spec.sm.scheduler.issue_width),
        "shared memory": e["shared_wavefronts"] * max(1, spec.shared_memory.pass_interval) / sms,
        "L1": _l1_cycles(launch, spec),
        "L2": l2_lookups(launch) / spec.address_map.slices * to_core["l2"],
        "busiest L2 slice": max(launch.spread.get("l2_slice", {}).get("lookups", (0,))) * to_core["l2"],
        "DRAM bandwidth": e["dram_bus_cycles"] / spec.address_map.channels * to_core["dram"],
        "SM to L2 port": e["network_reply_packets"]
        / (sms * spec.interconnect.sm_port_sectors)
        * to_core["interconnect"],
    }
    if rate := spec.launch.dispatch_rate:
        found["CTA dispatch"] = 1000 * max(0, math.prod(launch.grid) - spec.launch.dispatch_burst) / rate
    for unit, cycles in _unit_cycles(launch, spec).items():
        found[pipe_name(unit)] = cycles
    rows = [Bound(name, cycles, cycles / launch.cycles) for name, cycles in found.items() if launch.cycles]
    return tuple(sorted((b for b in rows if b.share >= 0.001), key=lambda b: -b.cycles))


def _l1_cycles(launch: LaunchResult, spec: Spec) -> float:
    sectors = sum(n for row in launch.l1.values() for name, n in row.items() if name != "reservation_fail")
    return sectors / (spec.l1.banks * spec.sm.count)


def _unit_cycles(launch: LaunchResult, spec: Spec) -> dict[Unit, float]:
    """Cycles in which units are busy, if all do equally much. Tensor cores by shape and type of products."""
    from simt._engine import tensor_work

    found: dict[Unit, float] = defaultdict(float)
    for opcode, n in zip(launch.pc.get("opcode", ()), launch.pc.get("issued", ()), strict=True):
        unit = _executed_by(unit_of(opcode, launch.sm_version), spec)
        one = getattr(spec.sm.units, unit.name.lower(), None)
        if one is None or not one.count:
            continue
        work = tensor_work(opcode, spec.sm.half_rate_fp32_accumulation) if unit is Unit.Tensor else 0.0
        relative = work or 1.0  # the interval of the unit is that of a step of HMMA.884
        found[unit] += n * relative * one.initiation_interval / (one.count * spec.sm.count)
    return found


def _executed_by(unit: Unit, spec: Spec) -> Unit:
    """The unit of the specification that does the work of a class of instructions."""
    if unit is Unit.Conversion:
        return Unit.Sfu if spec.sm.conversion_latency else Unit.Int
    if unit is Unit.Multiply:
        unit = Unit.Fp32 if spec.sm.multiplications_on_fp32 else Unit.Int
    if unit is Unit.Compare:
        unit = Unit.Int
    if unit in (Unit.Int, Unit.Branch) and not getattr(spec.sm.units, unit.name.lower()).count:
        return Unit.Fp32
    return unit
