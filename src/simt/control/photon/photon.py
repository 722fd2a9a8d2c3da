"""Photon, our variant: stability over spans of time, and times by Little's law."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from simt.parameter_checks import real

from ..controller import GO_ON, Contention, Decision, Interval, LaunchView, Predict
from ..projection import Projection
from ..trends import Trends
from .by_levels import LEVELS, ByLevels, Levels
from .l2_filling import L2Filling
from .levels import BlockLevel, Small, WarpLevel, Work
from .stability import SpanStability
from .throughput import Throughput

_WAVES_FOR_WARPS, _WAVES_FOR_BLOCKS = 3, 2
_STARVED = 1.25  # scale of block times above which some warps run while others wait
_STRAGGLERS = 0.1  # share of a block's executions that is ignored as outliers


class Photon(ByLevels):
    """Our variant of Photon: predicts the rest of a launch once its basic blocks or its warps take stable
    times, and whole launches from similar earlier ones.

    `PublishedPhoton` is the method as published; docs/control/photon.md says what differs, and why.

    levels: which of "kernel", "block" and "warp" are used: a sequence, or one text with "+" between them.
    sample: share of the warps that are followed before a launch is simulated (at least 32, and one CTA).
    delta: how near to each other the means of the two windows, and the throughputs of two quarters, must be.
    block_window, warp_window: the fewest executions of a basic block, and CTAs, that the test looks at.
    coverage: share of the instructions in stable blocks from which on blocks predict.
    dominance: share of the warps that must be of one type for warps to predict.
    distance: L1 distance of GPU basic-block vectors, from 0 to 2, below which launches are alike.
    small: "wave": launches that do not fill the GPU once, "sms" (paper): those of fewer warps than SMs, are
        only alike if they have equally many warps. Below a wave, time goes with the work of one warp.
    work: by what share the instructions per warp of alike launches may differ; None (paper): any. With them
        grow working sets, and so cache misses.
    below_wave: share of the instructions of a launch that fits the GPU at once to be executed before anything
        predicts.
    trend: nothing is predicted while active warps, DRAM's utilisation or a cache's hit rate change by more
        than this between the third and the last quarter of the time so far; nor, in launches of more than a
        wave, before a wave has ended. The Result has an interval: `delta` and this, of the part predicted.
    interval: core cycles between observations.
    residents: whether the rest of the CTAs that run when warps or blocks begin to predict is predicted, too;
        else they are simulated to their end.
    analysis: file with the analysis of an earlier simulation of the same launches, on any GPU; nothing is
        followed ahead then.
    """

    method: ClassVar[str] = "photon"
    warm = True

    def __init__(
        self,
        levels: Levels = LEVELS,
        sample: float = 0.01,
        delta: float = 0.03,
        block_window: int = 32,
        warp_window: int = 32,
        coverage: float = 0.9,
        dominance: float = 0.95,
        distance: float = 0.1,
        small: Small = "wave",
        work: float | None = 0.1,
        below_wave: float = 0.3,
        trend: float = 0.1,
        interval: int = 500,
        residents: bool = True,
        analysis: str | os.PathLike[str] | None = None,
    ) -> None:
        self.levels = levels
        self.sample = sample
        self.delta = delta
        self.block_window: int = block_window
        self.warp_window: int = warp_window
        self.coverage = coverage
        self.dominance = dominance
        self.distance = distance
        self.small = small
        self.work = work
        self.below_wave = below_wave
        self.trend = trend
        self.interval = interval
        self.residents = residents
        self.analysis = analysis

    def validate(self) -> None:
        super().validate()
        real("below_wave", self.below_wave, 0, 1)
        real("trend", self.trend, 0)

    def new_levels(self, work: Work) -> tuple[WarpLevel, BlockLevel]:
        # What is dispatched and makes room is a CTA: its time counts, not that of its warps.
        warps = WarpLevel(lambda: SpanStability(self.delta, self.warp_window), work.view.warps_per_cta)
        return warps, BlockLevel(work.analysis, lambda: SpanStability(self.delta, self.block_window))

    def begin(self, launch: LaunchView) -> Decision:
        decision = super().begin(launch)
        now = self._now
        self._l2 = L2Filling(launch, now.work.instructions)
        self._throughput = Throughput()
        self._trends = Trends(launch.dram_bytes_per_cycle)
        self._changes = ""  # what was still changing when the rates were steady
        self._left = 1.0  # share of the instructions when something first predicted
        self._scale = 1.0  # of the times of blocks
        if not (self.warps or self.blocks):
            return decision
        waves = launch.cta_count / launch.wave_size
        # Warps of later waves take the time that matters; they are worth waiting for.
        if self.warps and waves > _WAVES_FOR_WARPS:
            self.blocks = False
        # The warps of the first wave go through the code in step, those of later ones do not.
        if waves > _WAVES_FOR_BLOCKS:
            now.blocks.first_warp = launch.wave_size * launch.warps_per_cta
        return decision

    def observe(self, interval: Interval) -> Decision:
        now = self._now
        now.blocks.count(interval)
        self._trends.add(interval)
        if not now.level and self._l2.lies_ahead(interval):
            now.warps.forget()
            now.blocks.forget()
            self._throughput = Throughput()
            return GO_ON
        self.watch(interval)
        self._throughput.add(interval, len(now.work.analysis.length))
        if not self._throughput.steady(self.delta, self._rounds(interval)):
            return GO_ON
        if (
            self._one_wave
            and interval.counters["warp_instructions"] < self.below_wave * now.work.instructions
        ):
            return GO_ON
        view = now.work.view
        if interval.counters["ctas"] < min(view.cta_count, 2 * view.wave_size):  # a wave has not ended
            return GO_ON
        if not now.level:
            self._changes = self._trends.found(interval.end / 2, self.trend)
            if self._changes:
                return GO_ON
        self._scale = self._throughput.block_scale(now.work.analysis.length, self._to_come())
        first = not now.level
        decision = self.decide(interval, with_blocks=math.isfinite(self._scale))
        if not isinstance(decision, Predict) or not first:
            return decision
        done = interval.counters["warp_instructions"] / max(1.0, now.work.instructions)
        self._left = max(0.0, 1 - done)
        return replace(decision, reason=f"{decision.reason}; cycles ± {self._half_width:.1%}")

    @property
    def _half_width(self) -> float:
        return self._left * (self.delta + self.trend)

    @property
    def why_full(self) -> str:
        if self._now.level or not self._changes:
            return super().why_full
        return f"{self._changes} when the rates were steady; {super().why_full}"

    def extrapolate(self, launch: LaunchView, now: Interval, cycles: int) -> Projection:
        found = super().extrapolate(launch, now, cycles)
        if self._now.like is not None:
            return found
        return replace(found, half_widths={"cycles": self._half_width})

    @property
    def _one_wave(self) -> bool:
        view = self._now.work.view
        return view.cta_count <= view.wave_size

    def _rounds(self, interval: Interval) -> float:
        """Executions of the block with most instructions, per resident warp."""
        work, tests = self._now.work, self._now.blocks.tests
        main = tests.get(int(np.argmax(work.analysis.block_shares)))
        resident = interval.ctas_resident * work.view.warps_per_cta
        return main.seen / resident if main is not None and resident else math.inf

    def _to_come(self) -> npt.NDArray[np.bool_]:
        """Blocks of which there is more to come than a few stragglers."""
        work = self._now.work
        types = work.analysis.types
        total = types.weights @ types.counts.astype(np.float64) * work.warps
        return np.asarray(total - self._now.blocks.executed > _STRAGGLERS * total)

    def warp_cycles(self) -> float:
        work = self._now.work
        return self._throughput.cta_cycles(work.analysis.instructions_per_warp * work.view.warps_per_cta)

    def block_cycles(self, interval: Interval) -> npt.NDArray[np.float64]:
        work = self._now.work
        cycles = self._now.blocks.cycles(work.view, interval.latencies, scaled=True) * self._scale
        if interval.counters["ctas_finished"] >= work.view.wave_size / 2:
            waiting = self._throughput.waiting(work.view.warps_per_cta)
            cycles *= waiting / work.analysis.unevenness(cycles, work.view.warps_per_cta)
        return cycles

    def contention(self) -> Contention | None:
        """A warp that waits for no other takes the time of the fastest of each block."""
        now = self._now
        if not now.blocks.tests:
            return None
        shares, lengths = now.work.analysis.block_shares, now.work.analysis.length
        known = [(shares[b] / lengths[b], test) for b, test in now.blocks.known.items()]
        alone = sum(share * test.fastest() for share, test in known if isinstance(test, SpanStability))
        together = self._scale * sum(share * test.mean() for share, test in known)
        return self._throughput.contention(
            together / max(1e-9, alone), self._scale > _STARVED, self._one_wave
        )
