"""Common to Photon as published and our variant: the preview, the order of the levels, the counters."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from simt.errors import ControlError, SimtError
from simt.parameter_checks import boolean, integer, one_of, real, refuse
from simt.result import LaunchResult

from ..controller import GO_ON, Contention, Controller, Decision, Interval, LaunchView, Predict
from ..projection import Projection
from .analysis import LaunchAnalysis, load_analyses, save_analyses
from .counters import exact_totals, extrapolate, kinds_of_work, requests_by_kind
from .levels import BlockLevel, Done, KernelLevel, LevelWork, Small, WarpLevel

LEVELS = ("kernel", "block", "warp")
Levels = str | Collection[str]
Self = TypeVar("Self", bound="ByLevels")


@dataclass(eq=False)
class UnderWay:
    """State of the launch that is being simulated."""

    work: LevelWork
    warps: WarpLevel
    blocks: BlockLevel
    like: Done | None = None  # the earlier launch that predicts all of it
    level: str = ""  # the level that is predicting
    ruled_out: str = ""  # why no level applies


class ByLevels(Controller):
    """Executes some warps of a launch functionally before simulating it, then predicts at three levels (see
    levels.py).

    A subclass defines the stability test (`new_levels`), whether a launch represents others only if what they
    find in the caches is known to be the same (`confirms`), and what is observed during a launch (`observe`).
    """

    confirms: ClassVar[bool] = False
    levels: Levels
    sample: float
    delta: float
    block_window: int | None
    warp_window: int | None
    coverage: float
    dominance: float
    distance: float
    small: Small
    work: float | None
    residents: bool
    analysis: str | os.PathLike[str] | None
    interval: int

    @classmethod
    def variant(cls, text: str) -> dict[str, Any]:
        """Levels such as `photon:block+warp`, or a preset."""
        if text in cls.presets:
            return cls.presets[text]
        _levels(text)
        return {"levels": text}

    def validate(self) -> None:
        _levels(self.levels)
        real("sample", self.sample, 0, 1, open_low=True)
        real("delta", self.delta, 0)
        for name in ("block_window", "warp_window"):
            if getattr(self, name) is not None:
                integer(name, getattr(self, name), 4)
        real("coverage", self.coverage, 0, 1, open_low=True)
        real("dominance", self.dominance, 0, 1, open_low=True)
        real("distance", self.distance, 0, 2)
        one_of("small", self.small, ("wave", "sms"))
        if self.work is not None:
            real("work", self.work, 0)
        integer("interval", self.interval, 1)
        boolean("residents", self.residents)
        if self.analysis is not None and not isinstance(self.analysis, (str, os.PathLike)):
            raise refuse("analysis", self.analysis, "a path")

    def start(self: Self) -> Self:
        super().start()
        self.levels_ = _levels(self.levels)
        self.kernels_ = KernelLevel(
            self.distance, self.small, self.work, self.delta if self.confirms else None
        )
        self.known_ = {} if self.analysis is None else load_analyses(self.analysis)
        self.analyses_: list[LaunchAnalysis] = []
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the analyses of the run's launches, to be read by `analysis` in a later run. Raises
        SimtError."""
        if not hasattr(self, "analyses_"):
            raise SimtError(f"{path}: there is no analysis to save before a run with this controller")
        save_analyses(path, self.analyses_)

    @property
    def why_full(self) -> str:
        now = self._now
        if now.level:
            return ""
        if now.ruled_out:
            return now.ruled_out
        reasons = []
        if self.blocks:
            reasons.append(f"stable basic blocks hold {now.blocks.covered:.0%} of the instructions")
        if self.warps:
            reasons.append(f"the time of its warps was not stable in {now.warps.test.seen:,}")
        elif "warp" in self.levels_:
            reasons.append(f"{now.work.analysis.types.weights[0]:.0%} of the warps are of one type")
        if self.levels_ == ("kernel",):
            reasons.append("no earlier launch is like it")
        return "; ".join(reasons)

    # --- before a launch --------------------------------------------------------------------------------

    @abstractmethod
    def new_levels(self, work: LevelWork) -> tuple[WarpLevel, BlockLevel]:
        """The objects that observe the warps and the blocks of a launch."""

    def begin(self, launch: LaunchView) -> Decision:
        analysis = self._analyse(launch)
        self.analyses_.append(analysis)
        work = LevelWork(launch, analysis)
        now = self._now = UnderWay(work, *self.new_levels(work))
        self.warps = self.blocks = False
        if not analysis.complete:
            now.ruled_out = "the sampled warps wait for others, or fail without them"
            return GO_ON
        if "kernel" in self.levels_ and (like := self.kernels_.like(work)) is not None:
            now.like, now.level = like, "kernel"
            return self.kernels_.predict(work, like)
        if launch.wave_size >= launch.cta_count and not self.residents:
            now.ruled_out = "all of its CTAs run at once"
            return GO_ON
        if "warp" in self.levels_:
            self.warps = bool(analysis.types.weights[0] >= self.dominance)
        self.blocks = "block" in self.levels_
        return GO_ON

    def _analyse(self, launch: LaunchView) -> LaunchAnalysis:
        key = (launch.index, launch.name, launch.grid, launch.block)
        if key in self.known_:
            return self.known_[key]
        if launch.code is None:
            raise ControlError(f"launch {launch.id} ({launch.name}): {self.label()} needs the launch's code")
        return LaunchAnalysis.of(key, launch.code.blocks, launch.code.preview(self.sample))

    # --- during a launch --------------------------------------------------------------------------------

    def watch(self, interval: Interval) -> None:
        """Passes the interval to the levels that do not predict yet."""
        now = self._now
        if self.warps and now.level != "warp":
            now.warps.add(interval)
        if self.blocks and not now.level:
            now.blocks.add(interval)

    def decide(self, interval: Interval, with_blocks: bool = True) -> Decision:
        """Predicts if a level has become stable: warps, if they are observed, before blocks."""
        now = self._now
        if self.warps and now.level != "warp" and now.warps.test.stable:
            now.level = "warp"
            each = self.warp_cycles()
            return Predict(
                warp_cycles=each,
                residents=self.residents,
                contention=self.contention(),
                reason=f"warp: stable after {now.warps.test.seen:,} warps, {each:,.0f} cycles each",
            )
        if with_blocks and self.blocks and not now.level and len(interval.blocks):
            covered = now.blocks.covered
            if covered >= self.coverage:
                now.level = "block"
                return Predict(
                    block_cycles=self.block_cycles(interval),
                    residents=self.residents,
                    contention=self.contention(),
                    reason=f"block: stable ones hold {covered:.1%} of the instructions",
                )
        return GO_ON

    @abstractmethod
    def warp_cycles(self) -> float:
        """Core cycles that each further warp takes, now that their time is stable."""

    @abstractmethod
    def block_cycles(self, interval: Interval) -> npt.NDArray[np.float64]:
        """Core cycles of each basic block, now that the times of most are stable."""

    def contention(self) -> Contention | None:
        """How the predicted times depend on the other warps of an SM."""
        return None

    # --- after a launch ---------------------------------------------------------------------------------

    def extrapolate(self, launch: LaunchView, now: Interval, cycles: int) -> Projection:
        work, like = self._now.work, self._now.like
        if like is not None:
            return self.kernels_.extrapolate(work, like, launch, cycles)
        assert launch.code is not None
        kinds = kinds_of_work(launch.code.instructions, launch.code.blocks)
        types = work.analysis.types
        of_warp = types.weights @ types.counts.astype(np.float64)
        of_launch: float = work.warps
        if launch.warp_instructions is not None:
            of_launch = launch.warp_instructions / max(1.0, work.analysis.instructions_per_warp)
        total = {kind: float(of_warp @ each) * of_launch for kind, each in kinds.items()}
        # If blocks were not observed, the simulated part is assumed to be like the sample.
        done = now.counters["warp_instructions"]
        executed = self._now.blocks.executed if self._now.blocks.executed.any() else of_warp
        each_one = done / max(1.0, float(executed @ kinds["instructions"]))
        simulated = {kind: float(executed @ each) * each_one for kind, each in kinds.items()}
        # Blocks count once they have ended; a request is an instruction that was issued.
        for kind, requests in requests_by_kind(now.counters).items():
            simulated[kind] = max(simulated[kind], requests)
        total = {kind: max(value, simulated[kind]) for kind, value in total.items()}
        return extrapolate(now.counters, simulated, total, cycles, now.end, exact_totals(launch))

    def end(self, launch: LaunchView, result: LaunchResult) -> None:
        if self._now.like is None and self._now.work.analysis.complete:
            self.kernels_.add(self._now.work, result)


def _levels(wanted: Levels) -> tuple[str, ...]:
    """The levels, in order. Raises ParameterError for unknown ones."""
    names = wanted.split("+") if isinstance(wanted, str) else wanted
    if not isinstance(names, Collection) or not names or any(name not in LEVELS for name in names):
        raise refuse("levels", wanted, f"some of {', '.join(LEVELS)}")
    return tuple(level for level in LEVELS if level in names)
