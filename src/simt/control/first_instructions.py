"""First-N-instructions, which can stop in the middle of a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from simt.control.controller import GO_ON, Controller, Decision, Interval, LaunchView, Stop
from simt.control.projection import Projection, project
from simt.errors import ControlError
from simt.parameter_checks import integer, one_of, real
from simt.result import LaunchResult


class FirstInstructions(Controller):
    """Simulates from the first launch until N instructions have executed, and stops there, in the middle of a
    kernel if need be.

    The baseline of PKA (MICRO'21, section 5.1), with N of 10^9 thread instructions. The instructions per
    cycle (IPC) of the whole simulated part, including launches before the cut, stand for everything after it:
    the rest of the cut launch and every later one take (instructions) / (IPC) cycles. Instructions come from
    a trace's header, or from functionally executed CTAs of a program.

    instructions: N, over all launches together.
    unit: what N counts, `thread` or `warp` instructions.
    interval: core cycles; the cut comes at the end of the interval in which the N-th instruction executes.

    `simt.sampling.FirstN` is the same method as a choice of launches from a profile.
    """

    method: ClassVar[str] = "first-n"

    def __init__(self, instructions: float = 1e9, unit: str = "thread", interval: int = 500) -> None:
        self.instructions = instructions
        self.unit = unit
        self.interval = interval

    def validate(self) -> None:
        real("instructions", self.instructions, 0, open_low=True)
        one_of("unit", self.unit, ("thread", "warp"))
        integer("interval", self.interval, 1)

    def start(self) -> FirstInstructions:
        # Of the earlier launches: cycles from first dispatch to end, and counts.
        self.counters_: dict[str, int] = {"cycles": 0}
        return super().start()

    @classmethod
    def variant(cls, text: str) -> dict[str, Any]:
        """`first-n:1e6` is N = 10^6."""
        return {"instructions": float(text)}

    def begin(self, launch: LaunchView) -> Decision:
        self._observed: Interval | None = None
        if launch.warp_instructions is None and not launch.counted:
            _ = launch.previewed  # before the launch changes the memory
        before = self.counters_.get(f"{self.unit}_instructions", 0)
        return Stop(self._reason(before)) if before >= self.instructions else GO_ON

    def observe(self, interval: Interval) -> Decision:
        self._observed = interval
        name = f"{self.unit}_instructions"
        executed = self.counters_.get(name, 0) + interval.counters[name]
        return Stop(self._reason(executed)) if executed >= self.instructions else GO_ON

    def _reason(self, executed: int) -> str:
        return f"{executed:,} {self.unit} instructions executed, of {self.instructions:,.0f} to simulate"

    def project(self, launch: LaunchView, now: Interval) -> Projection:
        cycles = self.counters_["cycles"] + now.end
        names = (self.counters_.keys() | now.counters.keys()) - {"cycles"}
        prefix = {name: self.counters_.get(name, 0) + now.counters.get(name, 0) for name in sorted(names)}
        if now.end == 0 and launch.warp_instructions is None and launch.previewed is None:
            raise ControlError(
                f"launch {launch.id} ({launch.name}) comes after the first {self.instructions:,.0f} "
                f"{self.unit} instructions, and its own number of instructions is unknown"
            )
        at = Interval(now.index, now.begin, now.end, {**dict.fromkeys(prefix, 0), **now.counters}, {})
        return project(launch, at, prefix, cycles)

    def end(self, launch: LaunchView, result: LaunchResult) -> None:
        """Adds a launch that was simulated whole to the prefix; the cut one ends it."""
        cut = result.sampled is not None and result.sampled.decision != "full"
        if cut:
            now = self._observed
            if now is not None:
                self._add(now.counters, now.end)
            return
        whole = dict(result.engine)
        for level in ("l1", "l2"):
            table = getattr(result, level)
            whole |= {f"{level}.{kind}.{out}": n for kind, row in table.items() for out, n in row.items()}
        whole |= {f"stalls.{reason}": sum(row) for reason, row in result.stalls.items()}
        whole |= {f"warp_stalls.{reason}": n for reason, n in result.warp_stalls.items()}
        self._add(whole, result.cycles - result.launch_latency)

    def _add(self, counters: Mapping[str, int], cycles: int) -> None:
        for name, n in {**counters, "cycles": cycles}.items():
            self.counters_[name] = self.counters_.get(name, 0) + n
