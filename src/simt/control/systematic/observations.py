"""What has been observed of a launch: its windows, what was left out after each, and what follows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from simt.control.controller import LaunchView
from simt.control.systematic import courses
from simt.control.systematic.beginning import share_of_cold_beginning, swings
from simt.control.systematic.courses import Course
from simt.control.systematic.dram import elasticity_of_time, elasticity_shown, use_of_dram
from simt.control.systematic.phases import is_other_phase, other_work, traffic_not_seen
from simt.control.systematic.plan import Agreement
from simt.control.systematic.rates import Rates
from simt.control.systematic.settling import Samples, samples_between, settled
from simt.control.systematic.shares import Shares, divide
from simt.control.systematic.spread import half_width
from simt.control.systematic.windows import Bools, Floats, Gap, Ints, Measure, SkippedCtas, Window
from simt.spec.checks import SECTOR_BYTES

_LINE_BYTES = 128  # of the L2

# Counters of time, and of traffic to DRAM.
_OF_TIME = ("cycles", "sm_active_cycles", "active_warp_cycles")
_OF_DRAM = ("dram_reads", "dram_writes", "dram_bus_cycles")


class Observations:
    """Of one launch.

    wave: CTAs of a wave. windows: those that are over; the first one is cold. gaps: what was left out after
    each window but the cold one.
    """

    def __init__(self, launch: LaunchView) -> None:
        self.wave = max(1, launch.ctas_per_sm * launch.sm_count)
        self.windows: list[Window] = []
        self.gaps: list[Gap] = []
        self._launch = launch
        self._elasticity = 0.0  # of the time of a window, as the windows show it

    def add(self, window: Window) -> None:
        self.windows.append(window)
        if len(self.windows) > 1:
            self.gaps.append([])
            self._elasticity = 0.0
            rates = self.cycles
            steady = self.steady(np.arange(len(self.gaps)))
            self._elasticity = elasticity_shown(rates.by_window, rates.sectors, steady, self.last_use)

    # --- windows -----------------------------------------------------------------------------------------

    @property
    def done(self) -> int:
        """Number of windows without the cold one."""
        return len(self.windows) - 1

    @property
    def measure(self) -> Measure:
        """Of work: threads of the input are those of the engine, also where its warps are not."""
        by_warps = all(left.warp_instructions for gap in self.gaps for left in gap)
        return "warp_instructions" if by_warps else "thread_instructions"

    @property
    def sampled(self) -> list[Window]:
        """The windows from which rates come: all but the cold one, with which the first one is one window if
        they swing."""
        cold, first, *later = self.windows
        rates = self.sums("cycles", self.windows) / self.sums(self.measure, self.windows)
        if later and swings(rates[0], rates[1], float(rates[2:].mean())):
            first = Window(cold.begin, first.end)
        return [first, *later]

    @property
    def samples(self) -> Samples:
        """The sampled windows; those that follow each other without a gap together."""
        return samples_between([bool(gap) for gap in self.gaps[:-1]])

    @property
    def counted(self) -> Ints:
        """The sampled windows that are no part of the warm-up."""
        return settled(self.cycles, self.samples)

    @property
    def alike(self) -> int:
        """Number of windows that count, without the first if the launch goes over from it into others."""
        done = len(self.counted)
        return done - 1 if done > 1 and self.course(0).known else done

    def agreement(self, last: int) -> Agreement:
        """Of so many last windows, the cold one included."""
        windows = self.windows[-last:]
        rates = self.rates("cycles", windows, "warp_instructions")
        even = rates.at(np.arange(len(windows)), np.full(len(windows), rates.sectors.mean()))
        return Agreement(float(np.ptp(even)), float(rates.by_window[0]))

    # --- rates -------------------------------------------------------------------------------------------

    def sums(self, name: str, windows: Sequence[Window]) -> Floats:
        """The increase of a counter, or of the cycles, by window."""
        return np.array([window[name] for window in windows], np.float64)

    def rates(self, name: str, windows: Sequence[Window], measure: Measure | None = None) -> Rates:
        """Of a counter against instructions.

        What a window exchanges with DRAM changes its time as far as DRAM sets the pace.
        """
        work = self.sums(measure or self.measure, windows)
        sectors = np.array([window.dram_sectors for window in windows], np.float64)
        elasticity = np.zeros(len(windows))
        if name in _OF_TIME:
            use = [self._use(window.dram_sectors, window) for window in windows]
            elasticity = elasticity_of_time(np.array(use), self.last_use, self._elasticity)
        elif name in _OF_DRAM:
            elasticity = np.ones(len(windows))
        return Rates(self.sums(name, windows) / work, sectors / work, elasticity)

    @property
    def cycles(self) -> Rates:
        """Of the sampled windows."""
        return self.rates("cycles", self.sampled)

    def half_width(self, rates: Rates, counted: Ints, steady: Bools, confidence: float) -> float:
        """Half width of the interval of one of these rates, in the windows that count."""
        return half_width(rates.of(counted), steady, self.wave, confidence, lost=self._elasticity > 0)

    def relative_half_width(self, left_out: float, confidence: float) -> float:
        """Half width of the interval of the cycles if this share of the launch is left out, relative to
        them, without the allowance."""
        rates = self.rates("cycles", self.sampled, "warp_instructions")
        counted = self.counted
        half = self.half_width(rates, counted, self.steady(counted), confidence) / math.sqrt(self.alike)
        return left_out * half / float(rates.by_window.mean())

    # --- DRAM and the L2 ---------------------------------------------------------------------------------

    @property
    def last_use(self) -> float:
        """Of DRAM's peak, in the last window."""
        return self.use(self._last_sectors)

    @property
    def l2_turnover(self) -> float:
        """Share of the L2 that a wave replaces."""
        lines = self._last_sectors * self.wave * SECTOR_BYTES / _LINE_BYTES
        return min(1.0, lines / self._launch.l2_lines) if self._launch.l2_lines else 0.0

    def use(self, sectors: float) -> float:
        """Of DRAM's peak, if a CTA exchanges these sectors more or less than in the last window."""
        return self._use(abs(sectors) * self.wave, self.windows[-1])

    def _use(self, sectors: float, window: Window) -> float:
        return use_of_dram(sectors, window["cycles"], self._launch.dram_bytes_per_cycle)

    @property
    def _last_sectors(self) -> float:
        """What a CTA of the last window exchanged with DRAM."""
        return self.windows[-1].dram_sectors / self.wave

    # --- gaps --------------------------------------------------------------------------------------------

    def course(self, gap: int) -> Course:
        """How what was left out after this window goes over into the next one.

        The first of these that says anything: the traffic to DRAM, where that sets the pace; the work of the
        CTAs; the decay of a cold beginning; the traffic anywhere.
        """
        left = self.gaps[gap]
        work = self.work(left)
        ctas = np.array([x.ctas for x in left], np.float64)
        sectors = np.array([x.dram_sectors for x in left], np.float64) / np.maximum(1, work)
        if gap + 1 == len(self.gaps) or not left:
            return courses.as_before(sectors)
        rates = self.rates("cycles", self.sampled[gap : gap + 2])
        each = float(work.sum() / ctas.sum())
        by_traffic = courses.by_traffic(sectors, rates, lambda difference: self.use(difference * each))
        if by_traffic is not None and (rates.elasticity > self._elasticity).any():
            return by_traffic
        measure = self.measure
        before = self.gaps[gap - 1][-1] if gap and self.gaps[gap - 1] else left[0]
        after = self.gaps[gap + 1][0] if self.gaps[gap + 1] else left[-1]
        by_work = courses.by_work(
            work / ctas, before.work_per_cta(measure), after.work_per_cta(measure), sectors
        )
        if by_work is not None:
            return by_work
        share = self._share_of_cold_beginning(float(ctas.sum()) / self.wave) if gap == 0 else None
        if share is not None:
            return courses.after_cold_beginning(share, sectors)
        return by_traffic or courses.in_equal_parts(sectors)

    def _share_of_cold_beginning(self, waves: float) -> float | None:
        rates = self.rates("cycles", self.windows[:3])
        cold, first, later = rates.at(np.arange(3), np.full(3, rates.sectors[2])).tolist()
        return share_of_cold_beginning(cold, first, later, waves)

    def steady(self, windows: Ints) -> Bools:
        """Of each pair of successive ones of these windows, whether the launch does not go over from the one
        into the other."""
        known = np.array([self.course(i).known for i in range(len(self.gaps) - 1)], np.bool_)
        return np.array([not known[a:b].any() for a, b in pairwise(windows)], np.bool_)

    def work(self, gap: Gap) -> Floats:
        """Instructions of its steps."""
        measure = self.measure
        return np.array([x.work(measure) for x in gap], np.float64)

    def shares(self) -> Shares:
        """What was left out, by the windows that it is as."""
        gaps = [(self.work(gap), self.course(i)) for i, gap in enumerate(self.gaps)]
        return divide(gaps, self.samples, self.counted.tolist())

    # --- changes of phase --------------------------------------------------------------------------------

    def other_work(self, left: SkippedCtas) -> float:
        """How much more or less CTAs left out after the last window execute than those left out before it."""
        measure, earlier = self.measure, self._last_before
        before = earlier.work_per_cta(measure) if earlier is not None else None
        return other_work(left.work_per_cta(measure), before)

    def traffic_not_seen(self, left: SkippedCtas) -> float:
        """Sectors of what a CTA left out after the last window exchanges with DRAM that neither that window
        nor the CTAs left out before it did, unless the window tells how long it takes."""
        seen, earlier = [self._last_sectors], self._last_before
        if earlier is not None:
            seen.append(earlier.sectors_per_cta)
        rates = self.rates("cycles", self.windows[-1:], "warp_instructions")
        return traffic_not_seen(left.sectors_per_cta, seen, float(rates.elasticity[0]))

    def phase_changed(self) -> bool:
        """Whether the CTAs left out last are of another phase than the last window."""
        last = self.gaps[-1][-1]
        return is_other_phase(self.other_work(last), self.use(self.traffic_not_seen(last)))

    @property
    def _last_before(self) -> SkippedCtas | None:
        """What was left out last before the last window."""
        return next((gap[-1] for gap in reversed(self.gaps[:-1]) if gap), None)
