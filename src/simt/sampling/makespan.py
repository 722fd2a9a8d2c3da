"""End-to-end time of launches in several streams: a list schedule of their estimated times."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import polars as pl

if TYPE_CHECKING:
    from simt.sampling.estimate import Sample, Total
    from simt.sampling.plan import Plan

Floats = npt.NDArray[np.float64]
TIMES = ("cycles", "duration_ns", "gpc__cycles_elapsed.max", "gpu__time_duration.sum")
"""Metrics that are a launch's time."""
_MEMORY = (
    "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "lts__t_sectors.avg.pct_of_peak_sustained_elapsed",
)
"""Shares of what all SMs have in common, over a launch's time."""
_ISSUE = "smsp__issue_active.avg.pct_of_peak_sustained_active"
_ISSUE_OF_ALL = "smsp__issue_active.avg.pct_of_peak_sustained_elapsed"
_ACTIVE, _ACTIVE_OF_SM = "sm__cycles_active.sum", "sm__cycles_active.avg"
_ELAPSED = "gpc__cycles_elapsed.max"
_WAVES, _OCCUPANCY = "launch__waves_per_multiprocessor", "sm__warps_active.avg.pct_of_peak_sustained_active"
_BESIDE = 0.1
"""How far time and memory accesses of a launch beside others, which share its caches, may be from those of it
alone."""
_SLACK = 1e-9


@dataclass(frozen=True)
class Makespan:
    """The time in which at least one launch runs, in the unit of a metric.

    total: of the schedule in which launches share the places for CTAs. low, high: of its interval.
    chain: the longest chain of launches that wait for each other. sum: of all launches' times.
    """

    total: float
    low: float
    high: float
    chain: float
    sum: float


def schedule(times: Sequence[float], before: Sequence[Sequence[int]], shares: Floats) -> float:
    """End of a list schedule: a launch begins when those before it have ended and its shares are free; of
    several, the first.

    before: positions, each below the launch's own. shares: [launches, resources] of each resource, 0 to 1.
    """
    followers: list[list[int]] = [[] for _ in times]
    left = [len(each) for each in before]
    for launch, each in enumerate(before):
        for earlier in each:
            followers[earlier].append(launch)
    ready = [launch for launch, count in enumerate(left) if not count]
    running: list[tuple[float, int]] = []
    used, now = np.zeros(shares.shape[1]), 0.0
    while ready or running:
        waiting = []
        for launch in ready:
            if (used + shares[launch] <= 1 + _SLACK).all():
                used += shares[launch]
                heapq.heappush(running, (now + times[launch], launch))
            else:
                waiting.append(launch)
        now, ended = heapq.heappop(running)
        used -= shares[ended]
        for follower in followers[ended]:
            left[follower] -= 1
            if not left[follower]:
                waiting.append(follower)
        ready = sorted(waiting)
    return now


def longest_chain(times: Sequence[float], before: Sequence[Sequence[int]]) -> list[int]:
    """The launches of the longest chain, in order."""
    ends: list[float] = []
    last: list[int | None] = []
    for time, each in zip(times, before, strict=True):
        latest = max(each, key=ends.__getitem__, default=None)
        ends.append(time + (0.0 if latest is None else ends[latest]))
        last.append(latest)
    found: list[int] = []
    at: int | None = max(range(len(ends)), key=ends.__getitem__)
    while at is not None:
        found.append(at)
        at = last[at]
    return found[::-1]


class Order:
    """What each launch of a plan's population waits for, and what it needs of the GPU.

    measured: the plan's launches with their values, in the plan's order.
    """

    def __init__(self, plan: Plan, order: pl.DataFrame, measured: pl.DataFrame) -> None:
        self._plan = plan
        self.launches = order
        self._measured = measured
        self.before = _before(order)
        index = {int(s): i for i, s in enumerate(plan.strata["stratum"])}
        self.strata = np.array([index[int(s)] for s in order["stratum"]], np.int64)
        self._of_plan = np.array([index[int(s)] for s in plan.launches["stratum"]], np.int64)
        place = {launch: i for i, launch in enumerate(order["launch"])}
        self._seen = np.array([place[launch] for launch in plan.launches["launch"]], np.int64)
        self._overlaps = len(longest_chain([1.0] * len(order), self.before)) < len(order)
        self._ctas = order["ctas"].cast(pl.Float64).fill_null(math.nan).to_numpy()

    def makespan(
        self, sample: Sample, y: Floats, kind: str, whole: Total, row: dict[str, float], quantile: float
    ) -> Makespan:
        """Of one metric. y: its values of the plan's launches. whole, row: its total. quantile: of its
        interval, in standard deviations."""
        if not self._overlaps:
            return Makespan(row["total"], row["low"], row["high"], row["total"], row["total"])
        times, own, strata = self._times(sample, y, kind, whole)
        chain = np.array(longest_chain(times.tolist(), self.before))
        # The error of a stratum's mean, as far as the chain is of it, and what each launch differs from it.
        part = np.bincount(self.strata[chain], times[chain], len(strata))
        every = np.bincount(self.strata, times, len(strata))
        part = np.divide(part, every, out=np.zeros_like(part), where=every > 0)
        spread = math.sqrt(float((part**2 * strata).sum() + own[chain].sum()))
        length = float(times[chain].sum())
        low = max((1 - _BESIDE) * length - quantile * spread, 0.0, *self._busiest(y, quantile))
        listed = times.tolist()
        end = schedule(listed, self.before, self._shares())
        high = (1 + _BESIDE) * end + quantile * math.sqrt(float(strata.sum() + own.sum()))
        high = min(max(high, length), row["high"])
        low = min(low, high)
        total = schedule(listed, self.before, self._places())
        return Makespan(min(max(total, low), high), low, high, length, row["total"])

    def _times(self, sample: Sample, y: Floats, kind: str, whole: Total) -> tuple[Floats, Floats, Floats]:
        """Each launch's time and its variance beside its stratum's; the variance of each stratum's total."""
        times, variances, strata = sample.each(kind, self.strata, self.launches["time_ns"].to_numpy())
        seen, known = self._seen[np.isfinite(y)], y[np.isfinite(y)]
        rest = np.ones(len(times), bool)
        rest[seen] = False
        guessed = float(times[rest].sum())
        # All together they are the total, where this is more than what was measured.
        scale = (whole.value - float(known.sum())) / guessed if guessed else 1.0
        if scale > 0:
            times[rest] *= scale
        times[seen], variances[seen] = known, 0.0
        total = float(strata.sum())
        wider = whole.variance / total if total else 1.0
        return times, variances * wider, strata * wider

    def _busiest(self, y: Floats, quantile: float) -> list[float]:
        """How long each resource is in use for all launches, at least."""
        from simt.sampling.estimate import Sample

        found = []
        for name in (_ISSUE_OF_ALL, *_MEMORY):
            busy = self._column(name) / 100 * y
            if np.isfinite(busy).any():
                _, total = Sample(self._plan, busy).best()
                least = total.value - quantile * math.sqrt(total.variance)
                found.append(least * (1 - _BESIDE if name in _MEMORY else 1))
        return found

    def _shares(self) -> Floats:
        """Of SMs, of issue slots of an SM, of DRAM and L2: all of it where it is not known."""
        columns = [self._of_sms(), *(self._most(self._column(name) / 100) for name in (_ISSUE, *_MEMORY))]
        return _limited(columns)

    def _of_sms(self) -> Floats:
        """SMs that a launch has CTAs on, if each is on one of its own."""
        active, of_sm = self._column(_ACTIVE), self._column(_ACTIVE_OF_SM)
        counts = active[of_sm > 0] / of_sm[of_sm > 0]
        return self._ctas / max(1, round(counts.max())) if len(counts) else np.full(len(self._ctas), math.nan)

    def _places(self) -> Floats:
        """Of the places for CTAs, on average over a launch's time, in which SMs are idle at first. Of those
        for warps, where the grid is too small to show how many CTAs fit."""
        waves = self._most(self._column(_WAVES) / self._ctas[self._seen]) * self._ctas
        held = waves / np.maximum(np.ceil(waves), 1)
        occupancy = self._most(self._column(_OCCUPANCY) / 100)
        busy = self._most(self._column(_ACTIVE_OF_SM) / self._column(_ELAPSED))
        busy = np.where(np.isfinite(busy), busy, 1.0)
        # SMs without a CTA of a small grid are idle as well.
        held = np.where(waves < 1, waves, held * busy)
        return _limited([np.where(np.isfinite(waves), held, occupancy * busy)])

    def _most(self, values: Floats) -> Floats:
        """Each launch's: the largest of its stratum's measured launches, NaN if there are none."""
        found = np.full(len(self._plan.strata), -math.inf)
        known = np.isfinite(values)
        np.maximum.at(found, self._of_plan[known], values[known])
        found[np.isinf(found)] = math.nan
        return found[self.strata]

    def _column(self, name: str) -> Floats:
        if name not in self._measured.columns:
            return np.full(len(self._measured), math.nan)
        values: Floats = self._measured[name].cast(pl.Float64).fill_null(math.nan).to_numpy()
        return values


def _limited(columns: Sequence[Floats]) -> Floats:
    found = np.stack(columns, axis=1)
    return np.clip(np.where(np.isfinite(found), found, 1.0), 0.0, 1.0)


def _before(order: pl.DataFrame) -> list[list[int]]:
    """Positions of what each launch waits for: the one before it in its stream, and those of others."""
    place = {launch: i for i, launch in enumerate(order["launch"])}
    last: dict[int, int] = {}
    found = []
    for i, (stream, after) in enumerate(zip(order["stream"], order["after"].to_list(), strict=True)):
        each = {place[launch] for launch in after}
        if stream in last:
            each.add(last[stream])
        last[stream] = i
        found.append(sorted(each))
    return found
