"""Rows of equal launches: the first one of each kernel and grid stands for those after it.

    simt validate programs --gpu qv100 --use judging --suite cutlass-wmma \\
        --sample validation.equal_launches:EqualLaunches
"""

from __future__ import annotations

from dataclasses import replace

from simt.control import Interval, LaunchView, Predict, Projection, ScaleModel
from simt.control.controller import Decision
from simt.control.scale_model import counters_of
from simt.result import LaunchResult

DIFFERENCE = 0.01
"""Relative half width for what launches differ by that begin with empty caches, on other SMs than the first:
the seven of wmma-2560x16x2560 differ by 0.7 % at most."""


class EqualLaunches(ScaleModel):
    """The first launch of a kernel and grid is estimated on a scale model, or simulated whole where that is
    refused. Launches after it take as long. Nothing that is left out is executed, so memory does not have the
    results: for programs that launch one kernel with the same arguments again, with empty caches
    (`launch.cold_caches`), and whose launches do not depend on data.
    """

    method = "equal-launches"

    def start(self) -> EqualLaunches:
        self.first_: dict[object, LaunchResult] = {}
        super().start()
        return self

    def begin(self, launch: LaunchView) -> Decision:
        self._first = self.first_.get(_key(launch))
        if self._first is not None:
            cycles = self._first.cycles - self._first.launch_latency
            return Predict(launch_cycles=cycles, executes=False)
        decision = super().begin(launch)
        return replace(decision, executes=False) if isinstance(decision, Predict) else decision

    def extrapolate(self, launch: LaunchView, now: Interval, cycles: int) -> Projection:
        first = self._first
        if first is None:
            return super().extrapolate(launch, now, cycles)
        counters = counters_of(first)
        halves = dict.fromkeys(("cycles", *counters), DIFFERENCE)
        if first.sampled:
            halves |= {name: half + DIFFERENCE for name, half in first.sampled.half_widths.items()}
        how = f"as launch {first.id}"
        return Projection(
            cycles, counters, dict.fromkeys(halves, how), half_widths=halves, reason=how, part=first
        )

    def end(self, launch: LaunchView, result: LaunchResult) -> None:
        self.first_.setdefault(_key(launch), result)


def _key(launch: LaunchView) -> object:
    return launch.name, launch.grid, launch.block
