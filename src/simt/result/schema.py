"""A Result's file: its JSON Schema, and checks before it is used: types, ranges, lengths.

Types and ranges are those of the classes' fields. The limits are far beyond what simulations produce; they
keep sums and plots finite.
"""

from __future__ import annotations

from typing import Any

import msgspec

from simt.errors import ResultError
from simt.result.detail import PcRecord, same_length
from simt.result.result import SCHEMA, ResultRecord
from simt.written import json_schema, written

ENGINE = (  # required by sentences and tables
    "warp_instructions",
    "thread_instructions",
    "sm_active_cycles",
    "active_warp_cycles",
    "dram_bus_cycles",
    "dram_pending_cycles",
    "dram_reads",
    "dram_writes",
    "dram_activates",
    "shared_wavefronts",
    "shared_bank_conflicts",
)
_PLACES = frozenset({"launch_index", "launch_id", "unit", "number"})  # columns of the table itself
_SOMETIMES = (
    *(f"Result.{name}" for name in ("sampling", "transfers", "energies")),
    *(f"LaunchResult.{name}" for name in ("sampled", "pc", "timeline", "spread")),
    *(
        f"PcRecord.{name}"
        for name in ("threads", "text", "ptx", "source_file", "source_text", "reads", "writes")
    ),
    *(f"TimelineRecord.{name}" for name in ("stalls", "warp_stalls", "dram_banks", "instructions")),
    *(f"SamplingSummary.{name}" for name in ("verification", "against_full", "plan")),
    "PlanTotalsRecord.energy",
    "PlanTotalsRecord.makespan",
    "PlanTotalsRecord.overlap_unknown",
    "Energies.opcodes",
    *(f"EnergyValue.{name}" for name in ("reads", "writes")),
)
"""What is not written of every run."""


def schema() -> str:
    """The JSON Schema of a Result (simt.result/1)."""
    from simt.power import Energies

    return json_schema(
        ResultRecord,
        SCHEMA,
        "Result of a simulation by simt",
        sometimes=_SOMETIMES,
        also=(PcRecord, written(Energies)),
    )


def check(data: Any) -> None:
    """Raises ResultError if the JSON object of a Result (simt.result/1) is not one that simt can have
    written.
    """
    try:
        found: Any = msgspec.convert(data, ResultRecord)
    except (msgspec.ValidationError, RecursionError) as error:
        raise ResultError(f"broken Result: {error}") from error
    if len({x.timeline.names() for x in found.launches if x.timeline is not None}) > 1:
        raise ResultError("broken Result: the timelines of its launches have different columns")
    if problem := _problem_of_transfers(found.transfers) if found.transfers else "":
        raise ResultError(f"broken Result: {problem}")
    seen = set()
    for launch in found.launches:
        if launch.index in seen:
            raise ResultError(f"broken Result: two launches have the index {launch.index}")
        seen.add(launch.index)
        try:
            problem = _problem_of(launch, found.machine)
        except msgspec.ValidationError as error:
            problem = f"pc: {error}"
        if problem:
            raise ResultError(f"broken Result: launch {launch.id}: {problem}")


def _problem_of(launch: Any, machine: Any) -> str:
    if missing := [name for name in ENGINE if name not in launch.engine]:
        return f"engine has no {missing[0]}"
    if None in (launch.engine["warp_instructions"], launch.engine["thread_instructions"]):
        return "engine does not say how many instructions were executed"
    if launch.end_cycle < launch.start_cycle:
        return f"ends in cycle {launch.end_cycle}, before it starts in {launch.start_cycle}"
    for unit, columns in launch.spread.items():
        length = max(map(len, columns.values()), default=0)
        if not length or not same_length(length, list(columns.values())):
            return f"columns of spread {unit} have different lengths, or none"
        if _PLACES & columns.keys():
            return f"spread {unit} has a column {min(_PLACES & columns.keys())}"
    if problem := msgspec.convert(launch.pc, PcRecord).check() if launch.pc else "":
        return problem
    return launch.timeline.check(machine, len(launch.pc.get("pc", ()))) if launch.timeline else ""


def _problem_of_transfers(transfers: Any) -> str:
    columns = [transfers.stream, transfers.nbytes, transfers.start_cycle, transfers.end_cycle]
    if not same_length(len(transfers.link), columns):
        return "columns of transfers have different lengths"
    if any(a > b for a, b in zip(transfers.start_cycle, transfers.end_cycle, strict=True)):
        return "a transfer ends before it starts"
    return ""
