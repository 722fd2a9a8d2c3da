"""Projection: a launch's totals from the part of it that was simulated."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from simt.control.controller import Interval, LaunchView
from simt.errors import ControlError
from simt.result.launch import CacheTable, LaunchResult
from simt.result.sampled import Sampled

By = Literal["work", "ctas", "artifact"]
# A maximum, minimum or peak of the whole launch: the simulated part does not bound it.
_PEAK = re.compile(r"(^|[._])(max|min|peak)([._]|$)")
INSTRUCTIONS = ("warp_instructions", "finished_instructions", "thread_instructions")
_HOW = {
    "work": "instructions left at the rate of the window",
    "ctas": "unfinished CTAs at the rate since the first dispatch",
    "artifact": "cycles * CTAs / (finished CTAs + 1)",
}
_BY_RATE = "simulated part + rate in the window * cycles left"
_PER_CTA = "mean of finished or previewed CTAs * CTAs of the launch"
_INSTRUCTIONS = {"work": _PER_CTA, "ctas": _BY_RATE, "artifact": _BY_RATE}


@dataclass(frozen=True)
class Projection:
    """Totals of a launch.

    cycles: core cycles from the first dispatch to the end; never below those simulated.
    counters: totals by name, as in Interval.counters; NaN where there is no projection.
    projected, unprojected, rates, half_widths: see `Sampled`.
    reason: explanation for users, in place of those of the decisions; may be empty.
    part: the result of a part of the launch that was simulated apart; tables by scheduler and by instruction
        are scaled from it, and what was simulated in detail is what was of it.
    """

    cycles: int
    counters: Mapping[str, float]
    projected: Mapping[str, str] = field(default_factory=dict)
    unprojected: Mapping[str, str] = field(default_factory=dict)
    rates: Mapping[str, float] = field(default_factory=dict)
    half_widths: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""
    part: LaunchResult | None = None


def projectable(launch: LaunchView, now: Interval, by: By = "work") -> bool:
    """Whether the work that is left is known, or will be after a Stop: from the launch's instructions, or
    from those of a finished or functionally executed CTA. With `ctas`, only finished CTAs count."""
    if by == "ctas":
        return now.counters.get("ctas_finished", 0) > 0
    known = launch.counted or launch.warp_instructions is not None
    return known or now.counters.get("ctas_finished", 0) > 0 or launch.previewed is not None


def total_instructions(launch: LaunchView, counters: Mapping[str, int]) -> float:
    """Warp instructions of the whole launch: exact if known; otherwise the number of CTAs times the mean of
    those that were executed functionally before the launch or, if there are none, of the finished ones. The
    former are spread over the grid, the latter are its first ones. Needs `projectable`."""
    if launch.warp_instructions is not None:
        return float(launch.warp_instructions)
    if launch.previewed is not None:
        return launch.previewed.mean * launch.cta_count
    return counters["finished_instructions"] / counters["ctas_finished"] * launch.cta_count


def cycles_left(
    launch: LaunchView, now: Interval, window: Mapping[str, int], cycles: int, by: By = "work"
) -> float:
    """Core cycles that the rest of the launch takes.

    by `work`: instructions left / instructions per cycle of the window. Resident CTAs count by the share that
    they have not executed: (N - F - f R) CTAs / CTAs retired per cycle, with f R and the rate measured in
    instructions, which is smoother than counting CTAs that end in bursts.
    by `ctas`: unfinished CTAs / CTAs finished per cycle since the first dispatch: the linear projection of
    PKA (Baddouh et al., MICRO'21, section 3.2). Resident CTAs count in full, a bias of about half a wave.
    by `artifact`: cycles * N / (F + 1), as in PKA's published scripts.
    """
    t, n, f = now.end, launch.cta_count, now.counters["ctas_finished"]
    if by == "artifact":
        return max(0.0, t * n / (f + 1) - t)
    if by == "ctas":
        return (n - f) * t / f if f else math.nan
    left = max(0.0, total_instructions(launch, now.counters) - now.counters["warp_instructions"])
    if window["warp_instructions"] > 0:
        return left * cycles / window["warp_instructions"]
    done = now.counters["warp_instructions"]
    return left * t / done if done else math.nan


def project(
    launch: LaunchView,
    now: Interval,
    window: Mapping[str, int],
    cycles: int,
    by: By = "work",
    tail: float = 0.0,
) -> Projection:
    """Totals from the counts until `now` and the rates in a stretch of time that represents the rest.

    window: counts in that stretch. cycles: its length in core cycles.
    by: see `cycles_left`.
    tail: residence times of a CTA that are added to the cycles of a launch of a wave or more, whose last CTAs
        leave the GPU increasingly empty; counters do not grow in it. A CTA stays for (resident CTAs) / (CTAs
        retired per cycle), by Little's law.

    Every additive counter continues to grow at its rate in the stretch; CTAs, warps and, if known,
    instructions of the whole launch are exact. Raises ControlError if the work that is left is unknown, or if
    nothing was executed.
    """
    left = cycles_left(launch, now, window, cycles, by) if projectable(launch, now, by) else math.nan
    if not math.isfinite(left) or cycles <= 0:
        executed = now.counters["warp_instructions"] > 0 or window["warp_instructions"] > 0
        why = (
            "no CTA has finished and its instructions are not known in advance, so the rest is unknown"
            if executed
            else "nothing was executed by then, so the duration of the rest is unknown"
        )
        raise ControlError(
            f"launch {launch.id} ({launch.name}) stopped at cycle {now.end} after its first dispatch: {why}"
        )
    exact: dict[str, float] = {
        "ctas": launch.cta_count,
        "warps": launch.cta_count * launch.warps_per_cta,
        "ctas_finished": launch.cta_count,
    }
    done = now.counters["warp_instructions"]
    if by == "work" or launch.warp_instructions is not None:
        total = max(total_instructions(launch, now.counters), done)
    else:
        total = done + window["warp_instructions"] / cycles * left
    exact |= {"warp_instructions": total, "finished_instructions": total}
    if launch.thread_instructions is not None:
        exact["thread_instructions"] = launch.thread_instructions
    known = {"ctas", "warps", "ctas_finished"}
    if launch.warp_instructions is not None:
        known |= {"warp_instructions", "finished_instructions"}
    if launch.thread_instructions is not None:
        known.add("thread_instructions")
    counters: dict[str, float] = {}
    extra = 0.0
    if tail and launch.cta_count >= launch.ctas_per_sm * launch.sm_count and window["warp_instructions"]:
        retired = window["warp_instructions"] / cycles / (total / launch.cta_count)
        extra = tail * now.ctas_resident / retired
    how = f"{left:,.0f} more cycles ({_HOW[by]})" + (f", and {extra:,.0f} for the tail" if extra else "")
    projected, unprojected = {"cycles": how}, {}
    for name, value in now.counters.items():
        if name in exact:
            counters[name] = exact[name]
            projected[name] = exact_from(launch, name) if name in known else _INSTRUCTIONS[by]
        elif is_peak(name):
            counters[name] = math.nan
            unprojected[name] = "a peak: the rest of the launch may or may not exceed it"
        elif name in window:
            counters[name] = value + window[name] / cycles * left
            projected[name] = _BY_RATE
        else:
            counters[name] = math.nan
            unprojected[name] = "not counted in the interval that represents the rest"
    rates = {name: value / cycles for name, value in window.items() if value}
    return Projection(now.end + round(left + extra), counters, projected, unprojected, rates)


def by_instructions(launch: LaunchView, now: Interval, cycles: int) -> Projection:
    """Totals of a launch whose end is known: counters grow in proportion to instructions.

    They are NaN if the launch's instructions are unknown.
    """
    done = now.counters["warp_instructions"]
    known = done > 0 and projectable(launch, now)
    factor = total_instructions(launch, now.counters) / done if known else math.nan
    exact = {"ctas": launch.cta_count, "ctas_finished": launch.cta_count}
    exact |= {"warps": launch.cta_count * launch.warps_per_cta}
    counters: dict[str, float] = {}
    projected, unprojected = {"cycles": "predicted"}, {}
    for name, value in now.counters.items():
        if name in exact:
            counters[name] = exact[name]
            projected[name] = exact_from(launch, name)
        elif is_peak(name) or not math.isfinite(factor):
            counters[name] = math.nan
            unprojected[name] = "a peak, or nothing was simulated that it could be extrapolated from"
        else:
            counters[name] = value * factor
            projected[name] = f"simulated part * {factor:.4g}, as its instructions"
    return Projection(cycles, counters, projected, unprojected)


def is_peak(name: str) -> bool:
    """Whether a counter is a maximum, minimum or peak."""
    return _PEAK.search(name) is not None


def exact_from(launch: LaunchView, name: str) -> str:
    """The origin of an exact total, as text."""
    return f"exact: {launch.known_from if name in INSTRUCTIONS else 'known of the launch'}"


def with_known(projection: Projection, launch: LaunchView) -> Projection:
    """The projection with the launch's instructions, if known, in place of those that it reports as
    extrapolated or missing."""
    known: dict[str, float] = {}
    for name, value in zip(
        INSTRUCTIONS,
        (launch.warp_instructions, launch.warp_instructions, launch.thread_instructions),
        strict=True,
    ):
        if value is not None and (name in projection.projected or name in projection.unprojected):
            known[name] = value
    return replace(
        projection,
        counters={**projection.counters, **known},
        projected={**projection.projected, **{name: exact_from(launch, name) for name in known}},
        unprojected={name: why for name, why in projection.unprojected.items() if name not in known},
    )


def apply(
    result: LaunchResult, launch: LaunchView, now: Interval, projection: Projection, sampled: Sampled
) -> LaunchResult:
    """The launch with projected totals in place of the simulated ones.

    result: what the engine counted until `now`. sampled: the decision; the projection's notes on counters are
        added.

    Tables by scheduler and by instruction keep their proportions and are scaled to their totals. A timeline
    covers the simulated part.
    """
    totals = projection.counters
    unprojected = dict(projection.unprojected)

    def total(name: str, value: float) -> float:
        if name in totals:
            return _whole(totals[name])
        unprojected.setdefault(name, "not counted at the intervals of the controller")
        return math.nan

    def table(level: str, found: CacheTable) -> CacheTable:
        return {
            kind: {outcome: total(f"{level}.{kind}.{outcome}", n) for outcome, n in row.items()}  # type: ignore[misc]
            for kind, row in found.items()
        }

    growth = projection.cycles / now.end if now.end else 1.0
    simulated = result if projection.part is None else projection.part
    if simulated.sampled is not None:
        names = ("cycles", "ctas", "warp_instructions", "thread_instructions")
        sampled = replace(sampled, **{name: getattr(simulated.sampled, name) for name in names})
    done = simulated.engine.get("warp_instructions", 0)
    executions = totals.get("warp_instructions", math.nan) / done if done else 1.0
    if projection.part is not None:
        growth = executions

    def grown(name: str, row: list[int]) -> list[int]:
        whole = sum(row)
        factor = totals[name] / whole if whole and name in totals else growth
        factor = factor if math.isfinite(factor) else growth
        return [round(n * factor) for n in row]

    engine = {name: total(name, value) for name, value in result.engine.items()}
    warp_stalls = {reason: total(f"warp_stalls.{reason}", n) for reason, n in result.warp_stalls.items()}
    pc = simulated.pc
    if pc and math.isfinite(executions):
        stalled = {reason: [round(n * growth) for n in row] for reason, row in pc["stalled"].items()}
        grew = {name: [round(n * executions) for n in pc[name]] for name in ("issued", "threads")}
        pc = {**pc, **grew, "stalled": stalled}
    return replace(
        result,
        end_cycle=result.start_cycle + result.launch_latency + projection.cycles,
        engine=engine,  # type: ignore[arg-type]
        l1=table("l1", result.l1),
        l2=table("l2", result.l2),
        stalls={reason: grown(f"stalls.{reason}", row) for reason, row in simulated.stalls.items()},
        warp_stalls=warp_stalls,  # type: ignore[arg-type]
        pc=pc,
        sampled=replace(
            sampled,
            projected=dict(projection.projected),
            unprojected=unprojected,
            rates=dict(projection.rates),
            half_widths=dict(projection.half_widths),
            reason=projection.reason or sampled.reason,
        ),
    )


def _whole(value: float) -> float:
    return round(value) if math.isfinite(value) else value
