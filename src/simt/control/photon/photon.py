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
from ..l2_filling import L2Filling
from ..projection import Projection
from ..trends import Trends
from ..waves import Waves, too_few
from .by_levels import LEVELS, ByLevels, Levels
from .levels import BlockLevel, LevelWork, Small, WarpLevel
from .stability import SpanStability
from .throughput import Throughput

_STARVED = 1.25  # scale of block times above which some warps run while others wait
_STRAGGLERS = 0.1  # share of a block's executions that is ignored as outliers


class Photon(ByLevels):
    """Our variant of Photon: predicts the rest of a launch once its basic blocks or its warps take stable
    times, and whole launches from similar earlier ones.

    `PublishedPhoton` is the method as published; docs/control/photon.md says what differs, and why.

    levels: which of "kernel", "block" and "warp" are used: a sequence, or one text with "+" between them.
    sample: share of the warps that are followed before a launch is simulated (at least 32, and one CTA).
    delta: how near to each other the means of the two windows, the throughputs of two quarters, and the rates
        of two launches that are alike must be.
    block_window, warp_window: the fewest executions of a basic block, and CTAs, that the test looks at.
    coverage: share of the instructions in stable blocks from which on blocks predict.
    dominance: share of the warps that must be of one type for warps to predict.
    distance: L1 distance of GPU basic-block vectors, from 0 to 2, below which launches are alike.
    small: "wave": launches that do not fill the GPU once, "sms" (paper): those of fewer warps than SMs, are
        only alike if they have equally many warps. Below a wave, time goes with the work of one warp.
    work: by what share the instructions per warp of alike launches may differ; None (paper): any. With them
        grow working sets, and so cache misses.
    trend: nothing is predicted while active warps, DRAM's utilisation or a cache's hit rate change by more
        than this between the third and the last quarter of the time so far.
    error: largest relative half width of the cycles' 95 % interval with which blocks and warps predict, see
        Waves; at least two waves have ended then, and the launch has at least eight. The Result has the
        interval, which is wider if the prediction and the rate of the waves disagree.
    interval: core cycles between observations.
    residents: whether the rest of the CTAs that run when warps or blocks begin to predict is predicted, too;
        else they are simulated to their end.
    analysis: file with the analysis of an earlier simulation of the same launches, on any GPU; nothing is
        followed ahead then, except where CTAs differ.
    """

    method: ClassVar[str] = "photon"
    confirms = True

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
        trend: float = 0.1,
        error: float = 0.08,
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
        self.trend = trend
        self.error = error
        self.interval = interval
        self.residents = residents
        self.analysis = analysis

    def validate(self) -> None:
        super().validate()
        real("trend", self.trend, 0)
        real("error", self.error, 0)

    def new_levels(self, work: LevelWork) -> tuple[WarpLevel, BlockLevel]:
        # What is dispatched and makes room is a CTA: its time counts, not that of its warps.
        warps = WarpLevel(lambda: SpanStability(self.delta, self.warp_window), work.view.warps_per_cta)
        return warps, BlockLevel(work.analysis, lambda: SpanStability(self.delta, self.block_window))

    def begin(self, launch: LaunchView) -> Decision:
        decision = super().begin(launch)
        self._why = decision.reason if isinstance(decision, Predict) else ""  # it predicted
        now = self._now
        self._l2 = L2Filling(launch)
        self._throughput = Throughput()
        self._trends = Trends(launch.dram_bytes_per_cycle)
        self._changes = ""  # what was still changing when the rates were steady
        self._scale = 1.0  # of the times of blocks
        self._waves = Waves(launch, None)
        if not (self.warps or self.blocks):
            return decision
        if few := too_few(launch):
            now.ruled_out, self.warps, self.blocks = few, False, False
            return decision
        previewed = now.work.analysis.previewed(launch.warps_per_cta)
        self._waves = Waves(launch, previewed if previewed.even else launch.previewed)
        self._barriers = self._waits_at_barriers()
        # Warps of later waves take the time that matters; they are worth waiting for.
        if self.warps:
            self.blocks = False
        # The warps of the first wave go through the code in step, those of later ones do not.
        now.blocks.first_warp = launch.wave_size * launch.warps_per_cta
        return decision

    def observe(self, interval: Interval) -> Decision:
        now = self._now
        if now.ruled_out:
            return GO_ON
        now.blocks.count(interval)
        self._trends.add(interval)
        if not now.level:
            self._waves.add(interval)
            if self._l2.lies_ahead(interval, now.work.instructions):
                for observed in (now.warps, now.blocks, self._waves):
                    observed.forget()
                self._throughput = Throughput()
                return GO_ON
        self.watch(interval)
        self._throughput.add(interval, len(now.work.analysis.length))
        if not self._throughput.steady(self.delta, self._rounds(interval)):
            return GO_ON
        if not now.level and not self._seen_enough(interval):
            return GO_ON
        each = np.full(len(now.work.analysis.length), math.nan)
        for block, test in now.blocks.known.items():
            each[block] = test.mean()
        to_come = self._to_come() & np.isfinite(each)
        self._scale = self._throughput.block_scale(now.work.analysis.length, each, to_come)
        first = not now.level
        decision = self.decide(interval, with_blocks=math.isfinite(self._scale))
        if isinstance(decision, Predict) and first:
            self._why = decision.reason
        return decision

    def _seen_enough(self, interval: Interval) -> bool:
        """Whether what has been simulated shows what the rest is like."""
        self._changes = self._waves.undecided(self._now.work.instructions, self.error) or self._trends.found(
            interval.end / 2, self.trend
        )
        return not self._changes

    @property
    def why_full(self) -> str:
        if self._now.level or not self._changes:
            return super().why_full
        return f"{self._changes} when the rates were steady; {super().why_full}"

    def extrapolate(self, launch: LaunchView, now: Interval, cycles: int) -> Projection:
        found = super().extrapolate(launch, now, cycles)
        work, like = self._now.work, self._now.like
        if like is not None:
            half = self.kernels_.half_width(work, like)
        else:
            instructions = launch.warp_instructions or work.instructions
            half = self._waves.half_width(instructions)
            half += abs(1 - self._waves.cycles(instructions) / max(1, cycles))
        reason = f"{self._why}; cycles ± {half:.1%}"
        return replace(found, half_widths={"cycles": half}, reason=reason)

    def _rounds(self, interval: Interval) -> float:
        """Executions of the block with most instructions, per resident warp."""
        work, tests = self._now.work, self._now.blocks.tests
        main = tests.get(int(np.argmax(work.analysis.block_shares)))
        resident = interval.ctas_resident * work.view.warps_per_cta
        return main.seen / resident if main is not None and resident else math.inf

    def _waits_at_barriers(self) -> bool:
        """Whether the sampled warps execute barriers of their CTA, at which a basic block ends."""
        work = self._now.work
        code = work.view.code
        assert code is not None
        instructions, blocks = code.instructions, code.blocks
        executed = work.analysis.types.counts.any(axis=0)
        last = (blocks.first + blocks.length - 1)[executed]
        return any(instructions[i]["operation"].name == "Barrier" for i in last.tolist())

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
            factor = waiting / work.analysis.unevenness(cycles, work.view.warps_per_cta)
            # Where no warp waits for another, unequal ones do not make the longest one faster.
            cycles *= factor if self._barriers else max(1.0, factor)
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
        return self._throughput.contention(together / max(1e-9, alone), self._scale > _STARVED)
