"""Describes in two or three sentences where the time goes.

Each launch belongs to one class, given by the first rule that holds; rules go from limits of the whole chip
to limits of one warp. Shares are relative to the time after the launch latency. A resource counts as the
limit from 60 % of its peak: above that, its queues grow long, and perfectly even use is out of reach.
"""

from __future__ import annotations

import math
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from simt.formatting import format_energy, format_time
from simt.result.counters import ALL_KINDS, LOOKUP_OUTCOMES
from simt.result.elapsed import covered, shares
from simt.result.launch import LaunchResult
from simt.result.sampling_summary import sampling_sentences

if TYPE_CHECKING:
    from simt.power import ProgramEnergy
    from simt.result.result import Result

SATURATED = 0.6
DRAM_PENDING, DRAM_BUSY = 0.8, 0.3  # DRAM nearly always has work, but moves data in less than SATURATED
ISSUE_SATURATED = 0.7
MOSTLY_IDLE = 0.5
DOMINANT_STALL = 0.4
MIXED = 0.1  # of a launch's instructions

# Class of a launch whose warps mostly wait for this reason, and what they wait for.
_LATENCY = {
    "long_scoreboard": ("memory latency", "data from global or local memory"),
    "short_scoreboard": ("shared-memory latency", "shared memory or special functions"),
    "wait": ("arithmetic latency", "results of arithmetic instructions"),
    "barrier": ("barriers", "other warps at a CTA barrier"),
    "membar": ("memory barriers", "a memory barrier"),
    "no_instruction": ("instruction fetch", "instructions to be fetched"),
    "async_copy": ("asynchronous-copy latency", "asynchronous copies into shared memory"),
    "sleeping": ("sleep", "the end of their sleep"),
    "imc_miss": ("constant operands", "constant operands that were not in their cache"),
    "drain": ("stores at exit", "their last stores"),
    "warpgroup_arrive": ("warp-group products", "multiplications of their warp group, or its other warps"),
    "lg_throttle": ("memory pipeline", "room in the pipeline of global and local memory"),
    "mio_throttle": ("shared-memory pipeline", "room in the pipeline of shared memory"),
    "math_pipe_throttle": ("arithmetic units", "a free arithmetic unit"),
}


@dataclass(frozen=True)
class Bottleneck:
    """What limits a launch: a short name, and a clause with figures that completes `KERNEL: ...`."""

    kind: str
    text: str


def is_measured(launch: LaunchResult) -> bool:
    """Whether the launch's own time was simulated, and its SMs' cycles are its own."""
    active = launch.engine["sm_active_cycles"]
    return bool(launch.cycles) and active == active and not _mixed(launch)


def bottleneck(launch: LaunchResult) -> Bottleneck:
    """The first rule that holds for the launch."""
    m = launch.machine
    if m is None or launch.cycles == 0:
        return Bottleneck("unknown", "nothing was measured")
    e = launch.engine
    if e["sm_active_cycles"] != e["sm_active_cycles"]:
        return Bottleneck("unknown", "its time was predicted, and nothing of it was simulated")
    body = launch.cycles - launch.launch_latency
    if 2 * launch.launch_latency >= launch.cycles:
        return Bottleneck(
            "launch latency",
            f"{launch.launch_latency:,} of its {launch.cycles:,} cycles pass before its first CTA starts",
        )

    dram_time = m.dram_channels * body * m.dram_khz / m.core_khz
    dram_busy, dram_pending = e["dram_bus_cycles"] / dram_time, e["dram_pending_cycles"] / dram_time
    if dram_busy >= SATURATED:
        return Bottleneck("DRAM bandwidth", f"the DRAM bus moves data in {dram_busy:.0%} of the time")
    if dram_pending >= DRAM_PENDING and dram_busy >= DRAM_BUSY:
        sectors = e["dram_reads"] + e["dram_writes"]
        return Bottleneck(
            "DRAM efficiency",
            f"DRAM has requests waiting in {dram_pending:.0%} of the time but moves data in only "
            f"{dram_busy:.0%}; "
            f"a row is opened every {sectors / max(1, e['dram_activates']):.1f} sectors",
        )

    lookups = sum(
        launch.l2.get(kind, {}).get(outcome, 0) for kind in ALL_KINDS for outcome in LOOKUP_OUTCOMES
    )
    l2_busy = lookups / (m.l2_slices * body * m.l2_khz / m.core_khz)
    if l2_busy >= SATURATED:
        return Bottleneck("L2 bandwidth", f"the L2 slices serve a sector in {l2_busy:.0%} of the time")
    busiest = max(launch.spread.get("l2_slice", {}).get("lookups", (0,))) / (body * m.l2_khz / m.core_khz)
    if busiest >= SATURATED:
        return Bottleneck(
            "one L2 slice",
            f"one of {m.l2_slices} L2 slices serves a sector in {busiest:.0%} of the time, all of them in "
            f"{l2_busy:.0%}: few addresses get most of the accesses, such as atomics on one word",
        )

    if _mixed(launch):
        return Bottleneck(
            "unknown (shared SMs)",
            "other launches shared its SMs, whose cycles are counted for the launch that came last to each",
        )
    sms = e["sm_active_cycles"] / body
    if sms < MOSTLY_IDLE * m.sm_count:
        ctas, fit = math.prod(launch.grid), m.sm_count * launch.occupancy_limit_ctas
        return Bottleneck(
            "idle SMs",
            f"{sms:.1f} of {m.sm_count} SMs have work on average; its grid has {ctas:,} "
            f"CTA{'s' * (ctas != 1)}"
            + (f", and {fit:,} fit at once" if launch.occupancy_limited_by != "grid" else ""),
        )

    active = max(1, e["sm_active_cycles"])
    shared_busy = e["shared_wavefronts"] / active
    if shared_busy >= ISSUE_SATURATED:
        conflicts = e["shared_bank_conflicts"] / max(1, e["shared_wavefronts"])
        return Bottleneck(
            "shared-memory bandwidth",
            f"shared memory is in use in {shared_busy:.0%} of the time, {conflicts:.0%} of it for bank "
            f"conflicts",
        )
    # A scheduler may issue two instructions in a cycle; counts of a launch cut short are projected.
    issued = e["warp_instructions"] / m.issue_width
    if launch.sampled is None:
        issued = sum(launch.stalls.get("selected", ()))
    issue = issued / (active * m.sub_cores)
    if issue >= ISSUE_SATURATED:
        return Bottleneck("issue rate", f"the schedulers issue in {issue:.0%} of their cycles")
    return _latency(launch, issue)


def _mixed(launch: LaunchResult) -> bool:
    """Whether its schedulers' cycles are those of other launches, too, or counted for others: they have not
    issued what it executed."""
    if launch.sampled is not None or "selected" not in launch.stalls or launch.machine is None:
        return False
    issued, n = sum(launch.stalls["selected"]), launch.warp_instructions
    return issued * launch.machine.issue_width < (1 - MIXED) * n or issued > (1 + MIXED) * n


def _latency(launch: LaunchResult, issue: float) -> Bottleneck:
    """The limit of a launch that saturates nothing: its schedulers' most frequent wait."""
    idle = {reason: sum(row) for reason, row in launch.stalls.items() if reason != "selected"}
    lost = sum(idle.values())
    if not lost:
        return Bottleneck("nothing", "no scheduler cycle is lost")
    reason = max(idle, key=lambda r: idle[r])
    share = idle[reason] / lost
    assert launch.machine is not None
    warps = launch.engine["active_warp_cycles"] / launch.engine["sm_active_cycles"] / launch.machine.sub_cores
    kind, awaited = _LATENCY.get(reason, (reason.replace("_", " "), reason.replace("_", " ")))
    if reason == "math_pipe_throttle" and share >= DOMINANT_STALL:
        opcode = _hottest_opcode(launch, reason)
        if opcode and "MMA" in opcode:
            kind, awaited = "tensor cores", f"a free tensor core (mostly {opcode})"
        elif opcode:
            awaited += f" (mostly {opcode})"
    text = (
        f"the schedulers issue in {issue:.0%} of their cycles; in {share:.0%} of the others warps wait "
        f"for {awaited}, "
        f"with {warps:.1f} warps per scheduler"
    )
    if reason == "long_scoreboard":
        rates = []
        for level, name in (("L1", "l1tex__t_sector_hit_rate.pct"), ("L2", "lts__t_sector_hit_rate.pct")):
            rate = launch.counters[name]
            if rate is not None:
                rates.append(f"{rate:.0f}% hits in the {level}")
        text += f" and {' and '.join(rates)}" if rates else ""
    return Bottleneck(kind, text)


def _hottest_opcode(launch: LaunchResult, reason: str) -> str | None:
    counts: dict[str, int] = defaultdict(int)
    if launch.pc:
        for opcode, n in zip(launch.pc["opcode"], launch.pc["stalled"].get(reason, ()), strict=False):
            counts[opcode] += n
    return max(counts, key=lambda o: counts[o]) if counts else None


def sentences(result: Result) -> list[str]:
    """Two or three sentences that say where the time goes and, for a sampled Result, how much was simulated
    and
    how wrong it may be; none for a Result without launches.
    """
    limits = _limits(result)
    if not limits:
        return []
    energy = [] if result.energies is None else [_energy(result)]
    return [*limits, *energy, *sampling_sentences(result)]


def _energy(result: Result) -> str:
    found = result.energy
    low, high = found.interval
    parts = sorted(found.components.items(), key=lambda row: -row[1])[:3]
    shares = ", ".join(f"{name} {joules / found.joules:.0%}" for name, joules in parts)
    projected = found.projected
    whole = (
        ""
        if projected is None
        else (
            f" All launches of the program: {format_energy(projected.joules)} "
            f"± {100 * projected.relative:.2f} % by the choice of launches."
        )
    )
    missing = f" Not known, and left out: {', '.join(found.missing)}." if found.missing else ""
    return (
        f"Energy {format_energy(found.joules)} ({format_energy(low)} to {format_energy(high)}, by the "
        f"uncertainties of {found.energies.name}'s energies), {found.watts:,.0f} W on average: "
        f"{shares}.{whole}{missing}{_above_the_limit(found)}"
    )


def _above_the_limit(found: ProgramEnergy) -> str:
    from simt.power import at_limit

    if found.watts <= found.energies.reference["tdp_w"].value:
        return ""
    at = at_limit(found)
    return (
        f" That is above the {at.limit:g} W of {found.energies.name}'s board, which lowers its clock when "
        f"this lasts: to about {at.core_mhz:,.0f} MHz, where it takes {format_time(at.seconds)} "
        f"({at.seconds / found.seconds:.2f} times as long)."
    )


def _limits(result: Result) -> list[str]:
    intervals: list[tuple[int, int]] = []
    limit_of: list[str] = []
    longest_of: dict[str, LaunchResult] = {}
    for launch in result.launches:  # once: many launches are read from a file
        if not launch.cycles:
            continue
        kind = sys.intern(bottleneck(launch).kind)
        intervals.append(launch.interval)
        limit_of.append(kind)
        if kind not in longest_of or launch.cycles > longest_of[kind].cycles:
            longest_of[kind] = launch
    if not intervals:
        return []
    cycles: dict[str, float] = defaultdict(float)
    for kind, own in zip(limit_of, shares(intervals), strict=True):
        cycles[kind] += own
    count, total = Counter(limit_of), covered(intervals)
    kinds = sorted(count, key=lambda k: -cycles[k])

    def share(kind: str) -> str:
        n = f"{count[kind]:,} launch{'es' * (count[kind] != 1)}"
        return f"{cycles[kind] / total:.0%} in {n} bound by {kind}"

    lines = []
    if len(intervals) > 1 and len(kinds) == 1:
        lines.append(f"All {len(intervals):,} launches ({total:,} cycles) are bound by {kinds[0]}.")
    elif len(intervals) > 1:
        listed = ", ".join(share(kind) for kind in kinds[:3])
        rest = len(kinds) - 3
        more = f" and the rest by {rest} other limit{'s' * (rest != 1)}" if rest > 0 else ""
        lines.append(f"Of {total:,} cycles, {listed}{more}.")
    longest = longest_of[kinds[0]]
    limit = bottleneck(longest)
    lines.append(
        f"{result.labels(60)[longest.name]} (launch {longest.id}) is bound by {limit.kind}: {limit.text}."
    )
    hottest = _hottest_instruction(longest)
    if hottest and limit.kind != "launch latency":
        lines.append(hottest)
    elif len(intervals) == 1 and longest.launch_latency:
        lines.append(f"Launch latency is {longest.launch_latency / longest.cycles:.0%} of its time.")
    return lines


def _hottest_instruction(launch: LaunchResult) -> str | None:
    if not launch.pc or not launch.pc["pc"]:
        return None
    waits = {r: row for r, row in launch.pc["stalled"].items() if r not in ("selected", "not_selected")}
    per_pc = [sum(column) for column in zip(*waits.values(), strict=True)] if waits else []
    total = sum(per_pc)
    if not total:
        return None
    i = max(range(len(per_pc)), key=lambda k: per_pc[k])
    reason = max(waits, key=lambda r: waits[r][i])
    line = launch.pc["source_line"][i]
    place = f"{launch.pc['opcode'][i]} at {launch.pc['pc'][i]:#x}" + (f" (line {line})" if line else "")
    return f"Its warps wait longest at {place}: {per_pc[i] / total:.0%} of their waiting, mostly {reason}."
