"""What a controller would have decided in a run that was simulated in full, without another simulation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from simt.control.controller import Controller, GoOn, Interval, LaunchView, Predict, Skip, Stop
from simt.errors import ControlError, ResultError
from simt.result import LaunchResult, Result
from simt.result.sampled import Sampled

if TYPE_CHECKING:
    import polars as pl

_COUNTS = ("warp_instructions", "thread_instructions", "ctas", "ctas_finished", "finished_instructions")
_CACHES = ("l1_accesses", "l1_hits", "l2_accesses", "l2_hits")
_DRAM = ("dram_reads", "dram_writes", "dram_bus_cycles", "dram_pending_cycles")


@dataclass(frozen=True)
class WhatIfOutcome:
    """The outcome for one launch.

    decision: `full`, `stop` or `skip`; reason: the controller's.
    stop_cycle: core cycles from the first dispatch to the stop, or to the end if there is none.
    simulated_cycles, projected_cycles, true_cycles: of the whole launch, including launch latency.
    error: (projected - true) / true of the cycles.
    speedup: warp instructions of the launch / those simulated: simulation time is proportional to
    instructions.
    errors: the same for every other counter of the timeline; NaN where the true value is 0.
    """

    index: int
    id: int
    name: str
    decision: str
    reason: str
    stop_cycle: int
    simulated_cycles: int
    projected_cycles: int
    true_cycles: int
    simulated_instructions: int
    instructions: int
    errors: dict[str, float]

    @property
    def error(self) -> float:
        return (self.projected_cycles - self.true_cycles) / self.true_cycles if self.true_cycles else 0.0

    @property
    def speedup(self) -> float:
        done = self.simulated_instructions
        return self.instructions / done if done else math.inf if self.instructions else 1.0


@dataclass(frozen=True)
class WhatIf:
    """Outcomes of all launches, in order, and in total."""

    controller: str
    settings: dict[str, Any]
    outcomes: tuple[WhatIfOutcome, ...]

    @property
    def error(self) -> float:
        """Error of the sum of all launches' cycles: (projected - true) / true."""
        true = sum(x.true_cycles for x in self.outcomes)
        return (sum(x.projected_cycles for x in self.outcomes) - true) / true if true else 0.0

    @property
    def mean_error(self) -> float:
        """Mean of |error| over launches."""
        return sum(abs(x.error) for x in self.outcomes) / len(self.outcomes)

    @property
    def worst_error(self) -> float:
        """Largest |error| of a launch."""
        return max(abs(x.error) for x in self.outcomes)

    @property
    def speedup(self) -> float:
        """Warp instructions of all launches, divided by those simulated."""
        done = sum(x.simulated_instructions for x in self.outcomes)
        every = sum(x.instructions for x in self.outcomes)
        return every / done if done else math.inf if every else 1.0

    @property
    def stopped(self) -> int:
        """Launches not simulated in full."""
        return sum(x.decision != "full" for x in self.outcomes)

    def to_polars(self) -> pl.DataFrame:
        """One row per launch."""
        import polars as pl

        rows = [
            {**{k: v for k, v in asdict(x).items() if k != "errors"}, "error": x.error, "speedup": x.speedup}
            | {f"error.{k}": v for k, v in x.errors.items()}
            for x in self.outcomes
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    def to_json(self) -> dict[str, Any]:
        """Plain values; an infinite speedup is null."""

        def plain(value: float) -> float | None:
            return value if math.isfinite(value) else None

        return {
            "controller": self.controller,
            "settings": self.settings,
            "error": self.error,
            "mean_error": self.mean_error,
            "worst_error": self.worst_error,
            "speedup": plain(self.speedup),
            "stopped": self.stopped,
            "launches": [
                {
                    **asdict(x),
                    "errors": {k: plain(v) for k, v in x.errors.items()},
                    "error": x.error,
                    "speedup": plain(x.speedup),
                }
                for x in self.outcomes
            ],
        }


def what_if(result: Result, controller: Controller, *, instructions_known: bool = True) -> WhatIf:
    """Replays the timelines of a finished run to a controller, as if they were being simulated.

    result: simulated in full with a timeline, whose interval divides the controller's.
    controller: not changed.
    instructions_known: whether launches' instructions are assumed to be known in advance, as for a trace.

    A launch's intervals begin with its first dispatch, the timeline's at multiples of its own interval. Each
    is assumed to begin with the timeline's next one, so stops can be up to one interval of the timeline later
    than in a real run. Skipped CTAs are those of the section of the timeline in which that many end.

    Raises ResultError for a Result without timelines or one that is itself sampled, ControlError for a
    controller that needs data that a timeline does not contain, or that predicts.
    """
    if controller.warps or controller.blocks or controller.awaited_cta is not None:
        raise ControlError(
            f"{controller.label()}: needs finished warps, basic blocks or observations at the dispatch of a "
            f"CTA, which a timeline does not contain. Simulate with it"
        )
    copy = deepcopy(controller).start()
    outcomes = tuple(_launch(launch, result, copy, instructions_known) for launch in result.launches)
    if not outcomes:
        raise ResultError("the Result has no launches")
    return WhatIf(controller.label(), controller.get_params(deep=False), outcomes)


def sweep(result: Result, controllers: Sequence[Controller]) -> list[WhatIf]:
    """`what_if` for each of several controllers, such as one for each threshold."""
    return [what_if(result, controller) for controller in controllers]


def _launch(launch: LaunchResult, result: Result, shared: Controller, known: bool) -> WhatIfOutcome:
    if launch.sampled is not None and launch.sampled.decision != "full":
        raise ResultError(
            f"launch {launch.id} is sampled itself ({launch.sampled.method}); simulate it in full"
        )
    view = LaunchView(
        index=launch.index,
        id=launch.id,
        name=launch.name,
        grid=launch.grid,
        block=launch.block,
        warps_per_cta=launch.engine["warps"] // max(1, launch.engine["ctas"]),
        ctas_per_sm=launch.occupancy_limit_ctas,
        sm_count=result.machine.sm_count,
        warp_instructions=launch.warp_instructions if known else None,
        thread_instructions=launch.thread_instructions if known else None,
    )
    truth = _sums(launch)
    counters, index, stop, reason = dict.fromkeys(truth, 0), 0, None, ""
    end = 0  # observed cycles since the first dispatch
    skipping = skipped = 0
    now = Interval(0, 0, 0, counters, counters)
    controller = shared.for_launch(view)
    controller.study(view, list(_intervals(launch, controller.interval)))
    decision = controller.begin(view)
    stretches = _intervals(launch, controller.interval)
    while not isinstance(decision, Stop):
        if isinstance(decision, Predict):
            raise ControlError(
                f"{controller.label()}: predicts; what would follow is not in a timeline. Simulate"
            )
        if isinstance(decision, Skip):
            skipping, skipped, reason = decision.ctas, skipped + decision.ctas, decision.reason
        found = next(stretches, None)
        if found is None:
            break
        cycles, difference = found.end - found.begin, found.difference
        if skipping > 0:
            skipping -= difference["ctas_finished"]
            decision = GoOn()
            continue
        counters = {name: n + difference[name] for name, n in counters.items()}
        now = Interval(index, end, end + cycles, counters, difference)
        index, end = index + 1, end + cycles
        if counters["ctas_finished"] + skipped < view.cta_count:  # otherwise nothing is left to decide
            decision = controller.observe(now)
    if isinstance(decision, Stop):
        stop, reason = end, decision.reason
    partial = stop is not None or skipped > 0
    projection = controller.project(view, now) if partial else None
    body = launch.cycles - launch.launch_latency
    outcome = WhatIfOutcome(
        index=launch.index,
        id=launch.id,
        name=launch.name,
        decision="stop" if stop is not None else "skip" if skipped else "full",
        reason=reason,
        stop_cycle=body if stop is None else stop,
        simulated_cycles=launch.launch_latency + end if partial else launch.cycles,
        projected_cycles=launch.cycles if projection is None else launch.launch_latency + projection.cycles,
        true_cycles=launch.cycles,
        simulated_instructions=counters["warp_instructions"] if partial else launch.warp_instructions,
        instructions=launch.warp_instructions,
        errors={}
        if projection is None
        else {
            name: (value - truth[name]) / truth[name] if truth[name] else math.nan
            for name, value in projection.counters.items()
            if name in truth
        },
    )
    sampled = Sampled(
        method=controller.label(),
        decision="stop" if stop is not None else "skip" if skipped else "full",
        reason=reason,
        at_cycle=stop,
        cycles=outcome.simulated_cycles,
        ctas=counters["ctas_finished"],
        warp_instructions=outcome.simulated_instructions,
        thread_instructions=counters["thread_instructions"],
        total_ctas=view.cta_count,
    )
    controller.end(view, replace(launch, sampled=sampled))
    return outcome


def _columns(launch: LaunchResult) -> dict[str, list[int]]:
    t = launch.timeline
    assert t is not None
    found = {name: t[name] for name in (*_COUNTS, *_CACHES)}
    found["active_warp_cycles"] = t["active_warps"]
    found |= {name: [sum(row) for row in t[name]] for name in _DRAM}
    return found


def _sums(launch: LaunchResult) -> dict[str, int]:
    """Every counter of the timeline, over the whole launch."""
    missing = launch.timeline is None or not all(name in launch.timeline for name in _COUNTS)
    if missing:
        raise ResultError(
            f"launch {launch.id} has no timeline with CTAs: simulate it in full with `--timeline 500`, "
            f"by this version of simt"
        )
    return {name: sum(column) for name, column in _columns(launch).items()}


def _intervals(launch: LaunchResult, interval: int) -> Iterator[Interval]:
    """The timeline as a controller would observe it, in steps of its interval from the first dispatch."""
    t = launch.timeline
    assert t is not None
    step = t["interval"]
    if interval % step:
        raise ResultError(
            f"the timeline's interval is {step} cycles, the controller's {interval}: one must divide the "
            f"other; simulate with `--timeline {math.gcd(step, interval)}`, or set the controller's "
            f"interval"
        )
    columns, start = _columns(launch), launch.start_cycle + launch.launch_latency
    counters = difference = dict.fromkeys(columns, 0)
    index, begin = 0, 0
    for i, cycle in enumerate(t["cycle"]):
        if cycle <= start:
            continue
        difference = {name: n + columns[name][i] for name, n in difference.items()}
        end = min(cycle, launch.end_cycle) - start
        # What the dispatch cuts off the first step is made up for by the next one.
        if end - begin >= interval or i + 1 == len(t["cycle"]):
            counters = {name: n + difference[name] for name, n in counters.items()}
            yield Interval(index, begin, max(end, begin + 1), counters, difference)
            index, begin, difference = index + 1, end, dict.fromkeys(columns, 0)
