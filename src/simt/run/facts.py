"""A finished launch, from what the engine says of it and what it does not know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from simt.result import LaunchResult, Machine, timeline
from simt.result.launch import PackedCounts

if TYPE_CHECKING:
    from simt.engine_types import RawLaunch
    from simt.power import Energies
    from simt.result.listing import Origins


@dataclass(frozen=True)
class Facts:
    """What the engine does not know about a launch."""

    index: int
    id: int
    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    registers: int
    sm_version: int
    annotation: str = ""


def launch_result(
    raw: RawLaunch,
    facts: Facts,
    machine: Machine,
    cycle_offset: int = 0,
    energies: Energies | None = None,
    origins: Origins | None = None,
) -> LaunchResult:
    """A finished launch, from the engine's record. cycle_offset: added to its cycles. origins: where its
    instructions come from."""
    known = {
        **vars(facts),
        "stream": raw["stream"],
        "start_cycle": raw["start_cycle"] + cycle_offset,
        "end_cycle": raw["end_cycle"] + cycle_offset,
        "launch_latency": raw["launch_latency"],
        "clock_khz": raw["clock_khz"],
        "occupancy_limit_ctas": raw["occupancy_limit_ctas"],
        "occupancy_limited_by": raw["occupancy_limited_by"],
        "l1_bytes": raw["l1_bytes"],
        "shared_carve_out_bytes": raw["shared_carve_out_bytes"],
        "warnings": tuple(raw["warnings"]),
        "sampled": None,
        "timeline": timeline.from_engine(raw["timeline"], cycle_offset),
        "machine": machine,
        "energies": energies,
    }
    return LaunchResult.of_packed(PackedCounts(raw["numbers"], raw["code"], origins), known)
