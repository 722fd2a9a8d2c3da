"""Principal Kernel Projection: stop a launch when its instructions per cycle have settled."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np

from simt.control.controller import AS_PUBLISHED, GO_ON, Controller, Decision, Interval, LaunchView, Stop
from simt.control.l2_filling import L2Filling
from simt.control.projection import By, Projection, project, projectable, total_instructions
from simt.control.trends import Trends
from simt.control.waves import Waves, too_few
from simt.parameter_checks import boolean, integer, one_of, real

Signal = Literal["instantaneous", "cumulative"]
Metric = Literal["cov", "std"]
Unit = Literal["warp", "thread"]
Rate = Literal["window", "settled", "waves", "auto"]


class PKP(Controller):
    """Principal Kernel Projection (Baddouh et al., "Principal Kernel Analysis", MICRO'21, section 3.2).

    Stops a launch when its instructions per cycle (IPC) varied by less than `threshold` over the last
    `window` cycles and at least one wave of CTAs has finished. The rest is projected from that window.

    metric: `cov`: the coefficient of variation, in percent; `std`: the standard deviation, in instructions
        per cycle of the whole GPU. Both are of a sample (n - 1).
    threshold: the metric must be below it.
    signal: `instantaneous`: IPC of each interval, as in the paper; `cumulative`: IPC since the first
        dispatch, as in its artifact. The latter varies less and less whatever the launch does.
    window, interval: core cycles; a window has at least two intervals. Longer intervals vary less.
    waves: waves of CTAs that must have finished.
    below_wave: for launches with less than a wave of CTAs. `ignore`: no CTA needs to have finished (paper); a
        number: this share of the CTAs (artifact: 0.3).
    latched: True: each condition needs to have held at some time (artifact); False: both must hold at once.
    unit: `warp` or `thread` instructions.
    projection: see `simt.control.projection.cycles_left`.
    rate: the cycles whose rates are used for the rest. `window`: the last `window` cycles; `settled`: all
        except the first `window` cycles, in which the launch starts up; `waves`: the waves of CTAs that have
        finished, without the first one, or `window` before there are any; `auto`: `settled` for launches with
        less than a wave of CTAs, otherwise `waves`. CTAs that began together run through their loops in step,
        so that the IPC oscillates with a period that may not fit the window.
    tail: additional time at the end, when too few CTAs are left to fill the GPU, in residence times of a CTA.
        0.5 if a CTA takes as long alone as among others; 0 if a shared resource is the limit.

    trend: ours: nothing is decided while active warps, DRAM's utilisation or a cache's hit rate change by
        more than this between the halves of the stretch that stands for the rest; nor while the L2 is about
        to become full of modified lines; nor in launches of fewer than eight waves of CTAs. The Result has a
        95 % interval. None: as published.
    error: with `trend`, the largest relative half width of the interval with which a launch is stopped, see
        Waves; at least two waves have finished then.

    A launch is never stopped if no CTA has finished and its number of instructions is neither known nor
    estimated by a functional preview: there would be nothing to project from.
    """

    method: ClassVar[str] = "pkp"
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "paper": {
            "signal": "instantaneous",
            "metric": "std",
            "threshold": 0.25,
            "unit": "thread",
            "projection": "ctas",
            "rate": "window",
            "tail": 0.0,
            "trend": None,
        },
        "artifact": {
            "threshold": 0.25,
            "tail": 0.0,
            "below_wave": 0.3,
            "latched": True,
            "unit": "thread",
            "projection": "artifact",
            "rate": "window",
            "trend": None,
        },
    }

    def __init__(
        self,
        threshold: float = 1.0,
        signal: Signal = "cumulative",
        metric: Metric = "cov",
        window: int = 3000,
        interval: int = 500,
        waves: float = 1.0,
        below_wave: Literal["ignore"] | float = "ignore",
        latched: bool = False,
        unit: Unit = "warp",
        projection: By = "work",
        tail: float = 0.25,
        rate: Rate = "auto",
        trend: float | None = 0.1,
        error: float = 0.08,
    ) -> None:
        self.threshold = threshold
        self.signal = signal
        self.metric = metric
        self.window = window
        self.interval = interval
        self.waves = waves
        self.below_wave = below_wave
        self.latched = latched
        self.unit = unit
        self.projection = projection
        self.tail = tail
        self.rate = rate
        self.trend = trend
        self.error = error

    def validate(self) -> None:
        real("threshold", self.threshold, 0)
        one_of("signal", self.signal, ("instantaneous", "cumulative"))
        one_of("metric", self.metric, ("cov", "std"))
        integer("interval", self.interval, 1)
        integer("window", self.window, 2 * self.interval)
        real("waves", self.waves, 0)
        if self.below_wave != "ignore":
            real("below_wave", self.below_wave, 0, 1)
        boolean("latched", self.latched)
        one_of("unit", self.unit, ("warp", "thread"))
        one_of("projection", self.projection, ("work", "ctas", "artifact"))
        real("tail", self.tail, 0)
        one_of("rate", self.rate, ("window", "settled", "waves", "auto"))
        if self.trend is not None:
            real("trend", self.trend, 0)
        real("error", self.error, 0)

    def begin(self, launch: LaunchView) -> Decision:
        self._launch = launch
        if self.trend is not None or (launch.warp_instructions is None and not launch.counted):
            _ = launch.previewed  # before the launch changes the memory
        self._signal: deque[float] = deque(maxlen=self.window // self.interval)
        # Counters at the start of the window and at the end of each of its intervals.
        self._seen: deque[Interval] = deque(maxlen=self.window // self.interval + 1)
        self._under_way: Interval | None = None  # last of the first window
        self._settled = self._enough = False
        self._least, self._finished = math.inf, 0
        self._trends = Trends(launch.dram_bytes_per_cycle)
        self._waves = Waves(launch, launch.previewed if self.trend is not None else None)
        self._few = too_few(launch) if self.trend is not None else ""
        self._l2 = L2Filling(launch)
        self._changes = ""  # what was still changing when everything else allowed a decision
        return GO_ON

    def observe(self, interval: Interval) -> Decision:
        if self._few:
            return GO_ON
        self._seen.append(interval)
        self._trends.add(interval)
        self._waves.add(interval)
        if (
            self.trend is not None
            and projectable(self._launch, interval)
            and self._l2.lies_ahead(interval, total_instructions(self._launch, interval.counters))
        ):
            self._waves.forget()
        if self._under_way is None and interval.end >= self.window:
            self._under_way = interval
        counters = interval.difference if self.signal == "instantaneous" else interval.counters
        cycles = interval.end - (interval.begin if self.signal == "instantaneous" else 0)
        self._signal.append(counters[f"{self.unit}_instructions"] / cycles)
        spread = self.spread()
        settled, enough = spread < self.threshold, self._finished_enough(interval)
        self._least, self._finished = min(self._least, spread), interval.counters["ctas_finished"]
        self._settled, self._enough = self._settled or settled, self._enough or enough
        if self.latched:
            settled, enough = self._settled, self._enough
        if not (settled and enough and projectable(self._launch, interval, self.projection)):
            return GO_ON
        if interval.counters["ctas_finished"] == self._launch.cta_count or not self._past_changes(interval):
            return GO_ON
        what = "coefficient of variation" if self.metric == "cov" else "standard deviation"
        self._why = (
            f"{what} of the {self.signal} IPC over {self.window:,} cycles: {spread:.3g}"
            f"{' %' if self.metric == 'cov' else ''}, below {self.threshold:g} "
            f"{'once before' if spread >= self.threshold else 'now'}; "
            f"{interval.counters['ctas_finished']:,} of {self._launch.cta_count:,} CTAs finished"
            f"{f'; {AS_PUBLISHED}' if self.trend is None else ''}"
        )
        return Stop(self._why)

    @property
    def why_full(self) -> str:
        if self._few:
            return self._few
        if self._least == math.inf:
            return f"never stable: the launch is shorter than the window of {self.window:,} cycles"
        if self._changes:
            return f"never stable: {self._changes}"
        percent = " %" if self.metric == "cov" else ""
        found = f"the {self.signal} IPC varied by {self._least:.3g}{percent} at least"
        if self._least >= self.threshold:
            return f"never stable: {found}, threshold {self.threshold:g}"
        return f"too few CTAs finished while the IPC was stable ({found}; {self._finished:,} finished in all)"

    def spread(self) -> float:
        """Spread of the signal over the window, in the unit of the threshold; infinite until the window is
        full, and if nothing was executed.
        """
        if len(self._signal) < self.window // self.interval:
            return math.inf
        deviation, mean = float(np.std(self._signal, ddof=1)), float(np.mean(self._signal))
        if mean == 0:
            return math.inf
        return deviation if self.metric == "std" else 100 * deviation / mean

    def _finished_enough(self, interval: Interval) -> bool:
        launch, finished = self._launch, interval.counters["ctas_finished"]
        wave = launch.ctas_per_sm * launch.sm_count
        if launch.cta_count >= wave:
            return finished >= self.waves * wave
        return self.below_wave == "ignore" or finished >= self.below_wave * launch.cta_count

    def _past_changes(self, interval: Interval) -> bool:
        if self.trend is None:
            return True
        instructions = total_instructions(self._launch, interval.counters)
        self._changes = self._waves.undecided(instructions, self.error) or self._trends.found(
            self._waves.begin, self.trend
        )
        return not self._changes

    @property
    def _below_wave(self) -> bool:
        return self._launch.cta_count < self._launch.ctas_per_sm * self._launch.sm_count

    def project(self, launch: LaunchView, now: Interval) -> Projection:
        found = project(launch, now, *self._representative(now), self.projection, self.tail)
        if self.trend is None:
            return found
        half = self._waves.half_width(total_instructions(launch, now.counters))
        reason = f"{self._why}; cycles ± {half:.1%}"
        return replace(found, half_widths={"cycles": half}, reason=reason)

    def _representative(self, now: Interval) -> tuple[Mapping[str, int], int]:
        """Counts in the stretch whose rates the rest has, and its core cycles."""
        if self._waves.seen and (self.rate == "waves" or (self.rate == "auto" and not self._below_wave)):
            return self._waves.window()
        first: Interval | None = self._seen[0]
        if self.rate == "settled" or (self.rate == "auto" and self._below_wave):
            first = self._under_way
        # The window begins with the launch, or no work is left.
        if len(self._seen) <= self.window // self.interval or first is None or first.end >= now.end:
            return now.counters, now.end
        return {name: n - first.counters[name] for name, n in now.counters.items()}, now.end - first.end
