"""Where a launch's time goes, as parts that add up to all of it, from its counters.

A scheduler's cycle belongs to one part: it issues, or it has no warp, or none of its warps can issue, and
then
the cycle is that of what most of them wait for. Of waiting for memory, as much is for DRAM's bandwidth as
its buses
are busy; the rest is divided by where its sectors were found, in proportion to the latencies of the levels.
Other
causes may be at work in the same cycle: `Part.waiting` says how much of
all warps' waiting they are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from simt.result.counters import READ_KINDS
from simt.result.launch import LaunchResult, Machine

if TYPE_CHECKING:
    from simt.isa import Unit

MEANINGS = {
    "launch": "launch latency: before the first CTA starts",
    "dispatch and tail": "SMs without a warp: CTAs that start and end, or too few of them",
    "few warps": "schedulers without a warp on SMs that have some",
    "issue": "instructions issue",
    "arithmetic latency": "results of fixed-latency instructions",
    "special functions": "results of special functions, or of conversions",
    "shared memory": "shared memory: its latency, and passes that other accesses take",
    "L1": "the L1: hits that are under way, and accesses before them in its pipeline",
    "L2": "the L2 and the interconnect",
    "DRAM bandwidth": "DRAM, while its buses are busy",
    "DRAM latency": "DRAM, while its buses are not busy",
    "atomics": "atomics",
    "barriers": "other warps at a CTA barrier",
    "memory barriers": "memory barriers",
    "warp-group products": "multiplications of their warp group, or its other warps",
    "instruction fetch": "instructions to be fetched",
    "constants": "constant operands that were not in their cache",
    "sleep": "the end of a sleep",
    "stores at exit": "stores to leave the SM when the warp has exited",
}
"""What each part is; `NAME pipe` is a busy execution unit."""

_BY_STATE = {
    "selected": "issue",
    "wait": "arithmetic latency",
    "lg_throttle": "L1",
    "mio_throttle": "shared memory",
    "barrier": "barriers",
    "membar": "memory barriers",
    "no_instruction": "instruction fetch",
    "imc_miss": "constants",
    "sleeping": "sleep",
    "drain": "stores at exit",
    "warpgroup_arrive": "warp-group products",
}


@dataclass(frozen=True)
class Part:
    """A part of a launch's time.

    share: of its cycles; all parts' add up to 1.
    waiting: of all its warps' waiting, which includes what other parts hide.
    """

    name: str
    share: float
    waiting: float

    @property
    def meaning(self) -> str:
        return MEANINGS.get(self.name, f"a free execution unit: {self.name}")


def stack(launch: LaunchResult) -> tuple[Part, ...]:
    """The parts of a launch's time, largest first; their shares add up to 1. Empty where nothing was
    measured: a launch that was predicted, or that shared its SMs.
    """
    from simt.result.summary import is_measured

    machine = launch.machine
    if machine is None or not launch.cycles or not is_measured(launch):
        return ()
    schedulers = machine.sm_count * machine.sub_cores
    whole = float(launch.cycles * schedulers)
    active = float(launch.engine["sm_active_cycles"] * machine.sub_cores)
    states = {state: float(sum(row)) for state, row in launch.stalls.items()}
    counted = sum(states.values())
    time = defaultdict(float, {"launch": float(launch.launch_latency * schedulers)})
    if counted > (room := max(0.0, whole - time["launch"])):  # of a launch that was cut short
        states = {state: n * room / counted for state, n in states.items()}
        counted, active = room, min(active, room)
    active = max(active, counted)
    time["few warps"] = active - counted
    time["dispatch and tail"] = max(0.0, whole - time["launch"] - active)
    for state, n in states.items():
        for name, part in _parts_of(launch, state).items():
            time[name] += n * part
    total = sum(time.values())
    waits = {s: float(n) for s, n in launch.warp_stalls.items() if s not in ("selected", "not_selected")}
    waiting: dict[str, float] = defaultdict(float)
    all_waits = sum(waits.values())
    for state, n in waits.items():
        for name, part in _parts_of(launch, state).items():
            waiting[name] += n * part / all_waits if all_waits else 0.0
    parts = [
        Part(name, time[name] / total, waiting[name])
        for name in dict.fromkeys([*time, *waiting])
        if time[name] > 0 or waiting[name] > 0
    ]
    return tuple(sorted(parts, key=lambda part: -part.share))


def _parts_of(launch: LaunchResult, state: str) -> Mapping[str, float]:
    """The parts that time in a state belongs to, with their shares, which add up to 1."""
    if state in ("long_scoreboard", "async_copy"):
        return _memory_levels(launch)
    if state == "short_scoreboard":
        return _short(launch)
    if state == "math_pipe_throttle":
        return _pipes(launch)
    return {_BY_STATE.get(state, state.replace("_", " ")): 1.0}


def _memory_levels(launch: LaunchResult) -> Mapping[str, float]:
    machine = launch.machine
    assert machine is not None

    def sectors(table: Mapping[str, Mapping[str, int]], *outcomes: str) -> float:
        return float(sum(table.get(kind, {}).get(name, 0) for kind in READ_KINDS for name in outcomes))

    near, l2, dram = machine.l1_latency or 1.0, machine.l2_latency or 1.0, machine.dram_latency or 1.0
    every = ("hit", "hit_reserved", "miss", "sector_miss")
    beyond = sectors(launch.l2, *every)  # the L1's misses, and what goes past it
    found = sectors(launch.l1, "hit") + beyond
    missed = sectors(launch.l2, "hit_reserved", "miss", "sector_miss")
    atomic = float(sum(launch.l2.get("atomic", {}).get(name, 0) for name in every))
    weights = {
        "L1": near * found,
        "L2": l2 * beyond,
        "DRAM latency": dram * missed,
        "atomics": (near + l2) * atomic,
    }
    total = sum(weights.values())
    if total <= 0:
        return {"L1": 1.0}
    body = max(1, launch.cycles - launch.launch_latency)
    busy = launch.engine["dram_bus_cycles"] / (
        machine.dram_channels * body * machine.dram_khz / machine.core_khz
    )
    busy = min(1.0, max(0.0, busy))
    found_in = {name: (1 - busy) * weight / total for name, weight in weights.items() if weight}
    return found_in | ({"DRAM bandwidth": busy} if busy else {})


def _short(launch: LaunchResult) -> Mapping[str, float]:
    """Of waiting for results of variable latency within the SM: shared memory, and special functions."""
    special = sum(n for unit, n in issued_by_unit(launch).items() if unit.name == "Sfu")
    loads = launch.engine["shared_loads"]
    if not loads + special:
        return {"shared memory": 1.0}
    return {"shared memory": loads / (loads + special), "special functions": special / (loads + special)}


def _pipes(launch: LaunchResult) -> Mapping[str, float]:
    """Of waiting for a busy execution unit, each unit's part, by the samples of its instructions."""
    found: dict[str, float] = defaultdict(float)
    if launch.pc:
        for opcode, n in zip(
            launch.pc["opcode"], launch.pc["stalled"].get("math_pipe_throttle", ()), strict=False
        ):
            if n:
                found[pipe_name(unit_of(opcode, launch.sm_version))] += n
    total = sum(found.values())
    return {name: n / total for name, n in found.items()} if total else {"execution pipe": 1.0}


def pipe_name(unit: Unit) -> str:
    return f"{unit.name.lower()} pipe"


def issued_by_unit(launch: LaunchResult) -> dict[Unit, int]:
    """Warp instructions by the unit that executes them."""
    found: dict[Unit, int] = defaultdict(int)
    if launch.pc:
        for opcode, n in zip(launch.pc["opcode"], launch.pc["issued"], strict=True):
            found[unit_of(opcode, launch.sm_version)] += n
    return found


@cache
def unit_of(opcode: str, sm_version: int) -> Unit:
    """The execution unit of an opcode."""
    from simt.isa import table_for

    table, _ = table_for(sm_version)
    return table.native.find(opcode.partition(".")[0])[0]


def l2_lookups(launch: LaunchResult) -> int:
    """Sectors that the L2's slices looked up."""
    from simt.result.counters import ALL_KINDS, LOOKUP_OUTCOMES

    return sum(launch.l2.get(kind, {}).get(outcome, 0) for kind in ALL_KINDS for outcome in LOOKUP_OUTCOMES)


def times(launch: LaunchResult) -> dict[str, float]:
    """Seconds of each part."""
    return {part.name: part.share * launch.seconds for part in stack(launch)}


def machine_text(machine: Machine) -> str:
    """A GPU as comparisons name it."""
    return f"{machine.name} at {machine.core_khz / 1000:,.0f} MHz"
