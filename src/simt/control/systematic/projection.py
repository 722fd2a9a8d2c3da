"""The totals of a launch, and their intervals, from its windows and gaps."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from simt.control.controller import Interval, LaunchView
from simt.control.projection import Projection, exact_from, is_peak
from simt.control.systematic.constants import CONSTANTS
from simt.control.systematic.observations import Observations
from simt.control.systematic.settling import drift
from simt.control.systematic.spread import allowance, student
from simt.spec.checks import SECTOR_BYTES

# Counters that depend on the program alone.
_OF_PROGRAM = (
    *("shared_loads", "shared_stores", "shared_wavefronts", "shared_bank_conflicts"),
    *("shared_store_bank_conflicts", "global_load_requests", "global_store_requests", "global_load_sectors"),
    *("global_store_sectors", "local_requests", "atomic_requests"),
)


class LaunchTotals:
    """Totals of counters over a launch of which CTAs were left out.

    dispatched: CTAs that were simulated. confidence, bias: the controller's.
    """

    def __init__(
        self, seen: Observations, launch: LaunchView, dispatched: int, confidence: float, bias: float
    ) -> None:
        self._seen = seen
        self._confidence = confidence
        self._windows = seen.sampled
        self._simulated = float(seen.sums(seen.measure, self._windows).sum())
        self._shares = seen.shares()
        self._left_out = float(self._shares.work.sum())
        self._spread = self._shares.spread
        self._counted = seen.counted
        self._steady = seen.steady(self._counted)
        doubts = np.array([seen.course(i).doubt for i in range(len(seen.gaps) - 1)])
        doubts *= [sum(x.work(seen.measure) for x in gap) for gap in seen.gaps[:-1]]
        self._doubts = doubts  # instructions of each gap that are uncertain
        waves = (launch.cta_count - dispatched) / seen.wave
        self._allowance = allowance(bias, waves, seen.wave, launch.cta_count)
        self._other_work = self._work_of_other_phase()
        self._unseen = self._cycles_of_unseen_traffic(launch.dram_bytes_per_cycle)
        self._cycles_added = self._shares.total(seen.rates("cycles", self._windows))

    def _work_of_other_phase(self) -> float:
        """By how many instructions CTAs left out after the last window differ from all that was seen."""
        measure = self._seen.measure
        works = [(self._seen.other_work(x), x.work(measure)) for x in self._seen.gaps[-1]]
        return sum(x * work for x, work in works if x > CONSTANTS.work_change)

    def _cycles_of_unseen_traffic(self, bytes_per_cycle: float) -> float:
        """At DRAM's peak, of traffic to it by CTAs left out after the last window that no window saw."""
        others = [(self._seen.traffic_not_seen(x), x.ctas) for x in self._seen.gaps[-1]]
        sectors = sum(x * ctas for x, ctas in others if self._seen.use(x) > CONSTANTS.traffic_change)
        return sectors * (SECTOR_BYTES / max(1.0, bytes_per_cycle))

    def by_rates(self, name: str, done: float) -> tuple[float, float]:
        """The total of a counter, by its rates in the windows next to what is left out, and its relative half
        width. done: in the simulated part."""
        rates = self._seen.rates(name, self._windows)
        added = self._shares.total(rates)
        whole = done + added
        noise = self._seen.half_width(rates, self._counted, self._steady, self._confidence)
        half = self._left_out * noise * self._spread + self._allowance * whole
        doubt = float(np.abs(rates.differences) @ self._doubts) + self._shares.scaled(rates)
        drifted = self._left_out * drift(rates, self._seen.samples)
        half += CONSTANTS.uncertain_part * (doubt + drifted)
        if name != "cycles":  # events come one by one, and perhaps none came in a window
            seen = float(self._seen.sums(name, self._windows).sum())
            deviations = student(self._confidence, CONSTANTS.prior_freedom)
            half += self._left_out / self._simulated * deviations * math.sqrt(max(seen, 1.0))
        half += CONSTANTS.uncertain_part * self._other_work * float(rates.by_window[-1])
        half += self._unseen * added / max(1.0, self._cycles_added)
        return whole, half / whole if whole else 0.0

    def by_instructions(self, done: float, instructions: int) -> tuple[float, float]:
        """The same of a counter that depends on the program alone. CTAs are simulated to their end, so that
        those simulated have all of it. done, instructions: of the simulated part."""
        grown = 1 + self._left_out / instructions
        deviations = student(self._confidence, CONSTANTS.prior_freedom)
        return done * grown, (1 - 1 / grown) * deviations * CONSTANTS.usual_spread


def project(
    seen: Observations, launch: LaunchView, now: Interval, confidence: float, bias: float
) -> Projection:
    """The launch's totals. now: the end of the simulated part."""
    of_launch = LaunchTotals(seen, launch, now.counters["ctas"], confidence, bias)
    cycles, half = of_launch.by_rates("cycles", now.end)
    totals: dict[str, float] = {}
    halves = {"cycles": half}
    projected = {"cycles": f"simulated part + {cycles - now.end:,.0f} for the CTAs left out"}
    unprojected = {}
    known: Mapping[str, float] = {
        "ctas": launch.cta_count,
        "ctas_finished": launch.cta_count,
        "warps": launch.cta_count * launch.warps_per_cta,
    }
    for name, done in now.counters.items():
        if name in known:
            totals[name], projected[name] = known[name], exact_from(launch, name)
        elif is_peak(name) or name not in seen.sampled[0].begin.counters:
            totals[name], unprojected[name] = math.nan, "a peak: what is left out may exceed it"
        elif name in _OF_PROGRAM:
            totals[name], halves[name] = of_launch.by_instructions(done, now.counters[seen.measure])
            projected[name] = "simulated part, as its instructions"
        elif not done:
            totals[name], halves[name] = 0.0, 0.0
            projected[name] = "none in the simulated part"
        else:
            totals[name], halves[name] = of_launch.by_rates(name, done)
            projected[name] = "simulated part + rates of the windows next to what is left out"
    left_out = launch.cta_count - now.counters["ctas"]
    reason = (
        f"{len(seen.sampled)} windows of a wave; {left_out:,} of {launch.cta_count:,} CTAs left out; "
        f"cycles ± {half:.2%} at {confidence:.0%} confidence"
    )
    return Projection(round(cycles), totals, projected, unprojected, {}, halves, reason)
