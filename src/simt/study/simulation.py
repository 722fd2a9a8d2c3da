"""Simulates points: what runs on the workers."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from simt.errors import SimtError, StudyError
from simt.result import Result
from simt.result.columns import compact, expanded
from simt.study.inputs import identity
from simt.study.space import PointWork, controller_of

if TYPE_CHECKING:
    from simt.sampling import Plan

DONE, FAILED = "done", "failed"


@dataclass(frozen=True)
class PointOutcome:
    """What came of a point, or of a piece of one.

    status: "done" or "failed"; then `error` says why.
    values: columns of the table: cycles, energy, counters. result: the Result as JSON, of a piece or if kept.
    wall_seconds, host, finished: how long it took, where, and when it ended.
    """

    status: str
    error: str | None = None
    values: Mapping[str, float | None] = field(default_factory=dict)
    result: bytes | None = field(default=None, repr=False)
    wall_seconds: float = 0.0
    host: str = ""
    finished: str = ""


def failed(error: str) -> PointOutcome:
    """The outcome of a point whose process did not return one."""
    return PointOutcome(FAILED, error, finished=_now())


def run_batch(
    simulate: Callable[[Any], PointOutcome], works: Sequence[Any], installation: str
) -> list[PointOutcome]:
    """One task: simulates several points, one after the other. An exception ends a point, not the batch.

    installation: the `identity` of simt that the study counts on.

    Raises StudyError where simt is another one here.
    """
    if identity() != installation:
        raise StudyError(
            f"{platform.node()}: simt is another version or build than where the study was started; its "
            "results would not be comparable. Install the same on all workers "
            f"(here: {Path(__file__).parents[1]})"
        )
    return [_timed(simulate, work) for work in works]


def _timed(simulate: Callable[[Any], PointOutcome], work: Any) -> PointOutcome:
    start = time.monotonic()
    try:
        outcome = simulate(work)
    except SimtError as error:
        outcome = PointOutcome(FAILED, str(error))
    except MemoryError:
        outcome = PointOutcome(FAILED, "the memory of the worker does not suffice")
    except (Exception, SystemExit) as error:  # of the program
        outcome = PointOutcome(FAILED, f"{type(error).__name__}: {error}")
    seconds = time.monotonic() - start
    return replace(outcome, wall_seconds=seconds, host=platform.node(), finished=_now())


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def simulate_work(work: PointWork) -> PointOutcome:
    """Simulates a point, or a piece of one. Raises whatever the simulation raises."""
    from simt.spec import load_spec

    spec = load_spec(work.gpu, work.overrides)
    if spec.hash != work.spec_hash:
        raise StudyError(
            f"{work.gpu}: the file has changed since the study was started, or is another one here"
        )
    plan: Plan | list[int] | None = None
    if work.piece is not None:
        plan = list(work.piece)
    elif work.plan is not None:
        from simt.sampling import Plan  # takes a second, for plans only

        plan = Plan.from_json(work.plan)
    controller = None if work.sample is None else controller_of(work.sample)[0]
    options: dict[str, Any] = {
        **work.options,
        "controller": controller,
    }
    if work.trace:
        from simt.simulate import simulate

        result = simulate(work.input, spec, kernels=work.kernels, plan=plan, progress=None, **options)
    else:
        result = _executed(work, spec, plan, options)
    if result.status != "complete":
        raise StudyError(f"stopped: {result.status} after {len(result.launches):,} launches")
    if not result.launches:
        raise StudyError("no kernel was launched")
    kept = encoded(result) if work.keep or work.piece is not None else None
    return PointOutcome(DONE, values=measured(result), result=kept)


def _executed(work: PointWork, spec: Any, plan: Any, options: Mapping[str, Any]) -> Result:
    from simt.gpu import GPU
    from simt.program import find_program, run_program

    program = find_program(Path(work.input))
    assert program is not None
    gpu = GPU(spec, plan=plan, **options)
    driver = None if work.driver is None else Path(work.driver)
    run_program(program, gpu, driver, work.size, seed=work.seed)
    gpu.synchronize()
    return gpu.result()


def measured(result: Result) -> dict[str, float | None]:
    """The columns of a Result: of a plan's launches, the estimated totals of the whole program."""
    totals, sampling = result.totals, result.sampling or {}
    plan = sampling.get("plan") or {}
    counters: dict[str, float | None] = {**totals.counters}
    counters |= {name: value for name, value in plan.get("totals", {}).items() if name in counters}
    cycles = plan.get("cycles", totals.cycles)
    return {
        "launches": plan.get("population", totals.launches),
        "cycles": cycles,
        "error_bound": plan.get("combined_error"),
        "seconds": cycles / (1000 * totals.clock_khz) if totals.clock_khz else None,
        "joules": counters.get("simt__energy.sum"),
        "launch_latency": totals.launch_latency,
        **counters,
    }


def joined(parts: Sequence[bytes], plan: str | None) -> Result:
    """One Result of the pieces of a point: its launches one after the other.

    plan: the JSON of the point's plan, whose totals it then has.
    """
    results = [Result.from_json(expanded(msgspec.json.decode(part))) for part in parts]
    launches, now = [], 0
    for launch in sorted((x for result in results for x in result.launches), key=lambda x: x.index):
        launches.append(replace(launch, start_cycle=now, end_cycle=now + launch.cycles))
        now += launch.cycles
    first = results[0]
    whole = replace(
        first,
        launches=tuple(launches),
        warnings=tuple(dict.fromkeys(text for result in results for text in result.warnings)),
        sampling=None,
    )
    if plan is None:
        return whole
    from simt.control.accuracy import with_accuracy
    from simt.sampling import Plan

    return with_accuracy(whole, Plan.from_json(plan))


def encoded(result: Result) -> bytes:
    """A Result as the file of a folder with results."""
    return msgspec.json.encode(compact(result.around([x.to_json(derived=False) for x in result.launches])))
