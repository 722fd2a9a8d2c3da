"""Photon as published (Liu, Sun, Carlson: Photon, MICRO'23), and as in its artifact."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from simt.parameter_checks import one_of

from ..controller import AS_PUBLISHED, Decision, Interval, LaunchView, Predict
from .by_levels import LEVELS, ByLevels, Levels
from .levels import BlockLevel, LevelWork, Small, WarpLevel
from .stability import Stability, StabilityRule

_WINDOWS = {"paper": (2048, 1024), "artifact": (4096, 1024)}  # of blocks, of warps


class PublishedPhoton(ByLevels):
    """Photon as its authors published it: predicts the rest of a launch once its basic blocks or its warps
    take stable times, and whole launches from similar earlier ones.

    `Photon` is our variant of it; docs/control/photon.md says what differs. This one states no interval, and
    predicts launches of any size: those of few waves may be tens of percent off.

    levels: which of "kernel", "block" and "warp" are used: a sequence, or one text with "+" between them.
    fidelity: the stability test: "paper" as published, or "artifact" as in the code published with it.
    sample: share of the warps that are followed before a launch is simulated (at least 32, and one CTA).
    delta: how near to 1 the slope must be, and how near to each other the means of the two windows.
    block_window, warp_window: executions of a basic block, and warps, that the test looks at: with "paper" n,
        2048 and 1024; with "artifact" the length of the long window, 4096 and 1024.
    coverage: share of the instructions in stable blocks from which on blocks predict.
    dominance: share of the warps that must be of one type for warps to predict.
    distance: L1 distance of GPU basic-block vectors, from 0 to 2, below which launches are alike.
    small: "sms": launches of fewer warps than SMs, "wave": those that do not fill the GPU once, are only
        alike if they have equally many warps.
    work: by what share the instructions per warp of alike launches may differ; None: any.
    interval: core cycles between observations.
    residents: whether the rest of the CTAs that run when warps or blocks begin to predict is predicted, too,
        as in the artifact; else they are simulated to their end, as in the paper.
    analysis: file with the analysis of an earlier simulation of the same launches, on any GPU; nothing is
        followed ahead then.
    """

    method: ClassVar[str] = "photon-published"
    presets: ClassVar[dict[str, dict[str, Any]]] = {"artifact": {"fidelity": "artifact"}}

    def __init__(
        self,
        levels: Levels = LEVELS,
        fidelity: Literal["paper", "artifact"] = "paper",
        sample: float = 0.01,
        delta: float = 0.03,
        block_window: int | None = None,
        warp_window: int | None = None,
        coverage: float = 0.95,
        dominance: float = 0.95,
        distance: float = 0.1,
        small: Small = "sms",
        work: float | None = None,
        interval: int = 500,
        residents: bool = True,
        analysis: str | os.PathLike[str] | None = None,
    ) -> None:
        self.levels = levels
        self.fidelity = fidelity
        self.sample = sample
        self.delta = delta
        self.block_window = block_window
        self.warp_window = warp_window
        self.coverage = coverage
        self.dominance = dominance
        self.distance = distance
        self.small = small
        self.work = work
        self.interval = interval
        self.residents = residents
        self.analysis = analysis

    def validate(self) -> None:
        super().validate()
        one_of("fidelity", self.fidelity, tuple(_WINDOWS))

    def new_levels(self, work: LevelWork) -> tuple[WarpLevel, BlockLevel]:
        of_blocks, of_warps = _WINDOWS[self.fidelity]
        rule = StabilityRule.published if self.fidelity == "paper" else StabilityRule.artifact

        def test(window: int) -> Callable[[], Stability]:
            return lambda: Stability(rule(window, self.delta))

        warps = WarpLevel(test(self.warp_window or of_warps))
        return warps, BlockLevel(work.analysis, test(self.block_window or of_blocks))

    def begin(self, launch: LaunchView) -> Decision:
        return _noted(super().begin(launch))

    def observe(self, interval: Interval) -> Decision:
        self._now.blocks.count(interval)
        self.watch(interval)
        return _noted(self.decide(interval))

    def warp_cycles(self) -> float:
        return self._now.warps.test.mean()

    def block_cycles(self, interval: Interval) -> npt.NDArray[np.float64]:
        return self._now.blocks.cycles(self._now.work.view, interval.latencies, scaled=False)


def _noted(decision: Decision) -> Decision:
    """The decision, with a note for users that nothing says how far it is off."""
    if isinstance(decision, Predict):
        return replace(decision, reason=f"{decision.reason}; {AS_PUBLISHED}")
    return decision
