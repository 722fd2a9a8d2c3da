"""The three levels at which Photon predicts: whole launches, warps, and basic blocks.

Liu, Sun, Carlson: Photon, MICRO'23, sections 4.1 to 4.3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from simt.result import LaunchResult

from ..controller import Interval, LaunchView, Predict
from ..projection import Projection
from .analysis import LaunchAnalysis
from .basic_block_vectors import distance
from .counters import exact_totals, totals
from .cta_times import CtaTimes
from .interval_model import BlockInstruction, block_cycles, mean_by_opcode
from .stability import Cycles

Small = Literal["wave", "sms"]
Floats = npt.NDArray[np.float64]
_ALIKE = 0.08  # half width of the cycles of a launch that is like another one
_WARM = 0.01  # share of the L2's reads that miss, up to which a launch found in the caches what it reads
_FEW = 16  # executions below which the interval model is better than a block's own mean


class StabilityTest(Protocol):
    """A stability test of recurring times: see stability.py."""

    seen: int
    stable: bool

    def add(self, begin: Cycles, end: Cycles) -> None: ...

    def mean(self) -> float: ...


@dataclass(frozen=True, eq=False)
class LevelWork:
    """A launch as the levels see it: its known properties, and the work of its sampled warps."""

    view: LaunchView
    analysis: LaunchAnalysis

    @property
    def warps(self) -> int:
        return self.view.cta_count * self.view.warps_per_cta

    @property
    def instructions(self) -> float:
        """Warp instructions of the launch, estimated from the sample."""
        return self.analysis.instructions_per_warp * self.warps


@dataclass(frozen=True, eq=False)
class Done:
    """A launch that was simulated, wholly or in part, for comparison with later ones."""

    work: LevelWork
    cycles: int  # from the first dispatch to the end
    counters: Mapping[str, float]
    stands: bool  # for later ones of its kind
    half_width: float  # of the interval of its cycles, relative to them


@dataclass(eq=False)
class KernelLevel:
    """Predicts whole launches from earlier ones with similar basic-block vectors.

    distance: launches are alike if the L1 distance of their GPU basic-block vectors, from 0 to 2, is below
    this.
    small: "wave": launches that do not fill the GPU once, "sms": launches with fewer warps than SMs, are only
        alike if they have equally many warps.
    work: by what share the instructions per warp may differ; None: any.
    confirmed: how near to each other the rates of two launches of a kind must be for the second to stand for
        others, as what later ones find in the caches may differ; so the first launch of a function stands for
        none, and the first of a kind only if the L2 held what it read, or cannot hold that much. None
        (paper): every launch stands for others.
    """

    distance: float
    small: Small
    work: float | None
    confirmed: float | None
    _done: list[Done] = field(default_factory=list)
    _functions: set[str] = field(default_factory=set)

    def like(self, launch: LevelWork) -> Done | None:
        """The earlier launch with a similar vector whose number of warps is nearest."""
        found = [done for done in self._done if done.stands and self._alike(done, launch)]
        # Among equally near ones the latest: it left the caches as this launch finds them.
        return min(found, key=lambda d: (abs(d.work.warps - launch.warps), -d.work.view.index), default=None)

    def _alike(self, done: Done, launch: LevelWork) -> bool:
        view, each = launch.view, launch.analysis.instructions_per_warp
        wave = view.ctas_per_sm * view.sm_count * view.warps_per_cta
        small = wave if self.small == "wave" else view.sm_count
        return (
            (done.work.warps == launch.warps or min(done.work.warps, launch.warps) >= small)
            and (
                self.work is None or abs(done.work.analysis.instructions_per_warp - each) <= self.work * each
            )
            and distance(done.work.analysis.vector, launch.analysis.vector) < self.distance
        )

    def predict(self, launch: LevelWork, like: Done) -> Predict:
        """The duration of the similar launch, scaled by warp instructions."""
        cycles = like.cycles * launch.instructions / max(1.0, like.work.instructions)
        return Predict(
            launch_cycles=max(1.0, cycles),
            reason=f"kernel: its basic-block vector is within {self.distance:g} of that of launch "
            f"{like.work.view.index}, with {like.work.warps:,} warps against {launch.warps:,}",
        )

    def extrapolate(self, launch: LevelWork, like: Done, view: LaunchView, cycles: int) -> Projection:
        """The similar launch's counters, scaled by warp instructions. view: with what is known by now."""
        factor = launch.instructions / max(1.0, like.work.instructions)
        counters = {name: value * factor for name, value in like.counters.items()}
        counters |= exact_totals(view)
        how = f"of launch {like.work.view.index} * {factor:.4g}"
        return Projection(cycles, counters, dict.fromkeys(["cycles", *counters], how))

    @staticmethod
    def half_width(launch: LevelWork, like: Done) -> float:
        """Of the 95 % interval of the cycles, relative to them: how far launches that are alike differ, the
        interval of the similar launch, and half of what their instructions differ by.

        Launches differ by what the caches hold. Of 38 launches of ResNet-18 on qv100, 37 were within _ALIKE.
        """
        ratio = max(1.0, launch.instructions) / max(1.0, like.work.instructions)
        return _ALIKE + like.half_width + abs(math.log(ratio)) / 2

    def add(self, launch: LevelWork, result: LaunchResult) -> None:
        """Adds a launch that was not predicted as a whole; it can represent others."""
        cycles = result.end_cycle - result.start_cycle - result.launch_latency
        stands = self.confirmed is None or (
            launch.view.name in self._functions
            and (_finds_the_same(result, launch.view.l2_lines) or self._confirms(launch, cycles))
        )
        self._functions.add(launch.view.name)
        half = 0.0 if result.sampled is None else result.sampled.half_widths.get("cycles", 0.0)
        self._done.append(Done(launch, cycles, totals(result), stands, half))

    def _confirms(self, launch: LevelWork, cycles: int) -> bool:
        """Whether an earlier launch like this one took as long for the same work."""
        assert self.confirmed is not None
        rate = launch.instructions / max(1, cycles)
        return any(
            abs(done.work.instructions / max(1, done.cycles) - rate) <= self.confirmed * rate
            for done in self._done
            if self._alike(done, launch)
        )


def _finds_the_same(result: LaunchResult, l2_lines: int) -> bool:
    """Whether another launch that reads the same will find as much of it in the L2 as this one did.

    It will if this one missed next to nothing. So it will if this one read more than the L2 holds: under LRU,
    the lines that the next one needs first are evicted first. l2_lines: capacity of the L2; 0: unknown.
    """
    reads = [of for kind, of in result.l2.items() if kind.endswith("_read")]
    missed = sum(of["miss"] for of in reads)
    found = sum(of["hit"] + of["hit_reserved"] for of in reads)
    without = missed + sum(of["sector_miss"] for of in reads)
    return without <= _WARM * (found + without) or 0 < l2_lines <= missed


class WarpLevel:
    """Observes the times of warps, or of whole CTAs.

    new_test: makes a stability test. warps_per_cta: of the CTAs to be observed; None: observe single warps.
    """

    def __init__(self, new_test: Callable[[], StabilityTest], warps_per_cta: int | None = None) -> None:
        self._new_test = new_test
        self._warps_per_cta = warps_per_cta
        self.forget()

    def forget(self) -> None:
        """Begins anew."""
        self.test = self._new_test()
        self._ctas = None if self._warps_per_cta is None else CtaTimes(self._warps_per_cta)

    def add(self, interval: Interval) -> None:
        if self._ctas is not None:
            begin, end = self._ctas.add(interval.warps)
        else:
            begin, end = _cycles(interval.warps, "begin"), _cycles(interval.warps, "end")
        if len(begin):
            self.test.add(begin, end)


class BlockLevel:
    """Observes the times of each basic block.

    analysis: of the launch. new_test: makes a stability test. first_warp: warps before it are ignored.
        executed: executions of each block in the simulated part. tests: by block.
    """

    def __init__(self, analysis: LaunchAnalysis, new_test: Callable[[], StabilityTest]) -> None:
        self._analysis = analysis
        self._new_test = new_test
        self.first_warp = 0
        self.executed: npt.NDArray[np.int64] = np.zeros(len(analysis.length), np.int64)
        self.tests: dict[int, StabilityTest] = {}

    def forget(self) -> None:
        """Restarts the tests; the counts of executions are kept."""
        self.tests = {}

    def count(self, interval: Interval) -> None:
        self.executed = self.executed + np.bincount(interval.blocks["block"], minlength=len(self.executed))

    def add(self, interval: Interval) -> None:
        events = interval.blocks
        if self.first_warp:
            events = events[events["warp"] >= self.first_warp]
        blocks = events["block"]
        order = np.argsort(blocks, kind="stable")
        begin, end = _cycles(events, "begin")[order], _cycles(events, "end")[order]
        numbers, starts = np.unique(blocks[order], return_index=True)
        if len(numbers) == 0:
            return
        for number, first, last in zip(numbers.tolist(), starts, [*starts[1:], len(order)], strict=True):
            if number not in self.tests:
                self.tests[number] = self._new_test()
            self.tests[number].add(begin[first:last], end[first:last])

    @property
    def covered(self) -> float:
        """Share of the instructions that are in stable blocks."""
        shares = self._analysis.block_shares
        return float(sum(shares[b] for b, test in self.tests.items() if test.stable))

    @property
    def known(self) -> dict[int, StabilityTest]:
        """Blocks with enough executions for a mean of their own."""
        return {b: test for b, test in self.tests.items() if test.seen >= _FEW}

    def cycles(self, view: LaunchView, latencies: Floats, scaled: bool) -> Floats:
        """Cycles of each block: the mean of its last executions, or the interval model's if there were too
        few.

        latencies: by static instruction, see Interval. scaled: whether the model is scaled to the blocks
            whose times are known: it ignores the other warps, which issue in between.
        """
        assert view.code is not None
        blocks = view.code.blocks
        instructions = [BlockInstruction.of(i) for i in view.code.instructions]
        latency = mean_by_opcode(instructions, latencies)
        cycles = np.array(
            [
                block_cycles(instructions[first : first + length], latency)
                for first, length in zip(blocks.first.tolist(), blocks.length.tolist(), strict=True)
            ]
        )
        known = {b: test.mean() for b, test in self.known.items()}
        if scaled and known:
            weights = {b: self.tests[b].seen for b in known}
            modelled = sum(weights[b] * cycles[b] for b in known)
            cycles *= sum(weights[b] * known[b] for b in known) / max(1.0, modelled)
        for b, mean in known.items():
            cycles[b] = mean
        return cycles


def _cycles(events: npt.NDArray[np.void], name: str) -> Cycles:
    values: Cycles = events[name].astype(np.int64)
    return values
