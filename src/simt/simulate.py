"""Input x Spec -> Result."""

from __future__ import annotations

import hashlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from types import FrameType
from typing import TYPE_CHECKING, Any

from simt.control.clock import ProjectedClock
from simt.errors import DeadlockError, Interrupted, PlanError, ResultError, SimtError, SimulationError
from simt.policy import Policy
from simt.policy import overrides as policy_overrides
from simt.progress import Progress, progress_bar
from simt.result import LaunchResult, Machine, Provenance, Result
from simt.selection import Selection, canonical, select
from simt.version import __version__

if TYPE_CHECKING:
    from simt.control import Controller
    from simt.control.launch import LaunchControl
    from simt.sampling import Plan
    from simt.spec import Spec
    from simt.trace import Kernel, Trace

# Core cycles per call of the engine while nothing is known of its speed; then as many as take about
# SLICE_SECONDS, so that progress moves and Ctrl-C works.
FIRST_SLICE, LARGEST_SLICE = 1_000, 100_000_000
SLICE_SECONDS = 0.2
LOOK_AHEAD = 4
UNFINISHED = "unfinished"


def simulate(
    path: str | os.PathLike[str],
    gpu: str | os.PathLike[str] = "qv100",
    *,
    set: Mapping[str, Any] | Iterable[str] | None = None,
    kernels: Selection = None,
    threads: int = 1,
    max_cycles: int | None = None,
    timeline: int | None = None,
    window: int | None = None,
    progress: Callable[[Progress], None] | bool | None = None,
    resume: Result | None = None,
    policies: Mapping[str, Policy] | None = None,
    controller: Controller | None = None,
    plan: Plan | None = None,
    verify: float = 0.0,
    seed: int = 0,
) -> Result:
    """Simulates the launches of a trace on a GPU and returns their counters.

    path: a `kernelslist.g`, a directory with one, a kernel trace, or a `.simt` store.
    gpu: name of a specification (`simt gpus` lists them) or path of a TOML file.
    set: values that override the specification, by their path in it: `{"sm.count": 40}` or
        `["sm.count=40"]`.
    kernels: which launches to simulate, such as `"3-7,12"`, `"*gemm*"` or `"/conv\\d/"` (see docs/cli.md);
        all copies to the GPU are still made.
    threads: host threads. Has no influence on any counter.
    max_cycles: stop after about so many core cycles; the launches finished by then are in the Result.
    timeline: interval of the timeline in core cycles; None for no timeline.
    window: cycles that SMs simulate on their own between meetings; None for as many as is exact. No
        influence on any counter.
    progress: True for a progress bar on the terminal, or a function that is called a few times a second.
    resume: a Result of the same input and specification; the launches that it holds are taken over, not
        simulated.
    policies: Python functions in place of built-in policies: scheduler, l1_replacement, l2_replacement,
        slice_hash (see simt.policy).
    controller: decides during each launch how much of it is simulated (see simt.control); None: all.
    plan: only its launches are simulated; `Result.sampling` then has totals of all launches that it stands
        for, and how wrong they may be. Its launches are the trace's kernels, counted from 0, or all that the
        trace has, in order.
    verify: share of the launches cut short by the controller, chosen at random by `seed`, that are simulated
        in full, too: `Result.sampling` has the errors seen.

    Raises SimtError on bad input, SimulationError when the simulation cannot go on (DeadlockError when the
    simulated machine hangs), and Interrupted (a KeyboardInterrupt) on Ctrl-C; the last two carry the Result
    of the launches finished before.
    """
    from simt import _engine
    from simt.control.launch import method_of
    from simt.spec import load_spec
    from simt.trace import open_trace

    for name, value in (("threads", threads), ("max_cycles", max_cycles), ("timeline", timeline)):
        if value is not None and value < 1:
            raise SimtError(f"{name} is {value}, expected 1 or more")
    if verify and controller is None:
        raise SimtError("verify is about a controller's projections, and there is no controller")
    own = dict(policies or {})
    overrides = {**override_texts(set), **policy_overrides(own)}
    spec = load_spec(gpu, overrides)
    # What a policy does is part of what the Result was computed from.
    overrides |= {f"policy.{key}": f"{policy.name} {policy.identity}" for key, policy in own.items()}
    trace = open_trace(path)
    every = trace.kernels
    chosen = select(every, kernels)
    if plan is not None:
        chosen = _planned(plan, every, chosen)
    native_spec = spec.native({key: policy.address for key, policy in own.items()})
    with reporting(progress) as report:
        _read([every[index] for index in chosen], report)
        provenance = Provenance(
            input=os.fspath(path),
            input_hash=_input_hash(trace, chosen),
            gpu=spec.name,
            spec_hash=spec.hash,
            overrides=overrides,
            version=__version__,
            method=method_of(controller, plan),
            kernels=canonical(kernels),
            max_cycles=max_cycles,
            timeline=timeline,
            resumed_after=0,
            threads=threads,
            wall_seconds=0.0,
            created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        )
        machine = Machine.from_spec(native_spec)
        run = _Run(machine, spec, provenance, trace, chosen, resume, controller)
        engine = _engine.Gpu(
            native_spec, threads=threads, window=window or 0, timeline_interval=timeline or 0
        )
        one_by_one = native_spec["launch"]["max_concurrent_kernels"] == 1 or run.streams <= 1
        ahead = LOOK_AHEAD if one_by_one else None
        with deferred_interrupt() as interrupted:
            try:
                run.simulate(engine, ahead, max_cycles, report, interrupted)
            except _engine.DeadlockError as error:
                run.collect(engine)
                raise DeadlockError(str(error), run.result("deadlock")) from error
            except (SimtError, ValueError) as error:  # a damaged trace, a launch that no SM can hold
                run.collect(engine)
                raise SimulationError(str(error), run.result("failed")) from error
            if run.pending and interrupted():
                raise Interrupted(run.result("interrupted"))
    result = run.result("max_cycles")
    if controller is None and plan is None:
        return result
    from simt.control.accuracy import choose, verification, with_accuracy

    verified = None
    if verify and (wanted := choose(result, verify, seed)):
        full = simulate(
            path,
            gpu,
            set=set,
            kernels=wanted,
            threads=threads,
            window=window,
            progress=progress,
            policies=policies,
        )
        verified = verification(result, full, verify, seed)
    return with_accuracy(result, plan, verified)


def _planned(plan: Plan, kernels: list[Kernel], chosen: list[int]) -> list[int]:
    """Positions of the kernels that the plan wants. Raises PlanError where its launches are others."""
    from simt.sampling.located import located

    places = located(plan, {index: kernel.name for index, kernel in enumerate(kernels)}, "the trace")
    there = frozenset(chosen)
    for launch, name in plan.launches.select("launch", "name").iter_rows():
        if places.get(launch) not in there:
            raise PlanError(
                f"plan: launch {launch} ({name}) is not among the {len(chosen)} chosen of the trace's "
                f"{len(kernels)} kernels"
            )
    return sorted(places.values())


def override_texts(overrides: Mapping[str, Any] | Iterable[str] | None) -> dict[str, Any]:
    if overrides is None or isinstance(overrides, Mapping):
        return dict(overrides or {})
    pairs = {}
    for text in overrides:
        key, equals, value = text.partition("=")
        if not equals or not key.strip() or not value.strip():
            raise SimtError(f"override {text!r}: expected KEY=VALUE, such as sm.count=40")
        pairs[key.strip()] = value.strip()
    return pairs


def _read(kernels: list[Kernel], report: Callable[[Progress], None]) -> None:
    """Converts what is not in a trace store yet."""
    start = time.monotonic()
    for i, kernel in enumerate(kernels):
        size = max(1, kernel.path.stat().st_size)

        def advance(position: int, i: int = i, size: int = size) -> None:
            fraction = (i + min(1.0, position / size)) / len(kernels)
            report(Progress("reading", fraction, time.monotonic() - start, i, len(kernels)))

        kernel.stored(advance)


def _input_hash(trace: Trace, chosen: list[int]) -> str:
    """SHA-256 over the copies and the chosen launches, in order."""
    from simt.trace import Copy

    digest, index, wanted = hashlib.sha256(), 0, frozenset(chosen)
    for command in trace.commands:
        if isinstance(command, Copy):
            digest.update(f"copy {command.address} {command.bytes}\n".encode())
            continue
        if index in wanted:
            digest.update(f"kernel {command.digest}\n".encode())
        index += 1
    return digest.hexdigest()


@dataclass(frozen=True)
class Facts:
    """What the engine does not know of a launch."""

    index: int
    id: int
    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    registers: int
    sm_version: int


def launch_result(raw: dict[str, Any], facts: Facts, machine: Machine, cycle_offset: int = 0) -> LaunchResult:
    """A finished launch, from what the engine gives. cycle_offset: added to its cycles."""
    timeline = raw["timeline"]
    if timeline is not None and timeline["cycle"]:
        timeline = {**timeline, "cycle": [cycle + cycle_offset for cycle in timeline["cycle"]]}
    else:
        timeline = None
    return LaunchResult(
        **asdict(facts),
        stream=raw["stream"],
        start_cycle=raw["start_cycle"] + cycle_offset,
        end_cycle=raw["end_cycle"] + cycle_offset,
        launch_latency=raw["launch_latency"],
        clock_khz=raw["clock_khz"],
        occupancy_limit_ctas=raw["occupancy_limit_ctas"],
        occupancy_limited_by=raw["occupancy_limited_by"],
        l1_bytes=raw["l1_bytes"],
        shared_carve_out_bytes=raw["shared_carve_out_bytes"],
        engine=raw["counters"],
        l1=raw["l1"],
        l2=raw["l2"],
        stalls=raw["stalls"],
        warp_stalls=raw["warp_stalls"],
        pc=raw["pc"],
        timeline=timeline,
        warnings=tuple(raw["warnings"]),
        machine=machine,
    )


class _Slice:
    """How many cycles to run per call of the engine: as many as take about SLICE_SECONDS."""

    def __init__(self) -> None:
        self._cycles = FIRST_SLICE

    def run(self, engine: Any, most: int) -> bool:
        """Runs the engine; whether all its work is done."""
        before, asked = time.monotonic(), min(self._cycles, most)
        end = engine.cycle + asked
        done: bool = engine.run(asked)
        if engine.cycle < end:  # it has paused: a short time says nothing of its speed
            return done
        seconds = time.monotonic() - before
        growth = min(4.0, max(0.25, SLICE_SECONDS / max(seconds, 1e-6)))
        self._cycles = min(LARGEST_SLICE, max(1, int(self._cycles * growth)))
        return done


def run_slices(
    engine: Any,
    collect: Callable[[], int],
    is_done: Callable[[], bool],
    report: Callable[[Progress], None],
    interrupted: Callable[[], bool],
    total: int,
) -> None:
    """Runs what is queued until `is_done` or Ctrl-C; `collect` takes finished launches and tells how many are
    left of `total`."""
    size, start = _Slice(), time.monotonic()
    while not interrupted() and not is_done():
        size.run(engine, LARGEST_SLICE)
        left = collect()
        p = engine.progress()
        ctas = max(1, p["ctas_total"])
        done = total - left + (p["ctas_done"] / ctas if p["running"] else 0)
        report(
            Progress(
                phase="simulating",
                fraction=min(1.0, done / total),
                seconds=time.monotonic() - start,
                launches_done=total - left,
                launches_total=total,
                cycle=p["cycle"],
                warp_instructions=p["warp_instructions"],
            )
        )


class _Run:
    """The launches of one call of simulate: those still to come, and those finished."""

    def __init__(
        self,
        machine: Machine,
        spec: Spec,
        provenance: Provenance,
        trace: Trace,
        chosen: list[int],
        resume: Result | None,
        controller: Controller | None,
    ) -> None:
        self._controller = controller
        self._controls: dict[int, LaunchControl] = {}
        self._clock = ProjectedClock()
        self._raw: list[dict[str, Any]] = []
        self._machine = machine
        self._spec = spec
        self._provenance = provenance
        self._trace = trace
        self._kernels = trace.kernels
        self._warnings: list[str] = []
        self._launches: dict[int, LaunchResult] = {}
        self._cycle_offset = 0
        self._wall_before = 0.0
        self._start = time.monotonic()
        if resume is not None:
            self._take_over(resume, chosen)
        self.pending = [index for index in chosen if index not in self._launches]
        self._total = len(self.pending)
        self.streams = len({self._kernels[index].stream for index in self.pending})
        ids = [self._kernels[index].id for index in self.pending]
        # The engine calls launches by their id, as its messages do, unless the input gives two the same one.
        names = ids if len(frozenset(ids)) == len(ids) else self.pending
        self._engine_ids = dict(zip(self.pending, names, strict=True))
        self._indices = dict(zip(names, self.pending, strict=True))
        self._instructions = sum(self._kernels[index].counts["instructions"] for index in self.pending)

    def _take_over(self, resume: Result, chosen: list[int]) -> None:
        old, new = resume.provenance, self._provenance
        for name, what in (
            ("kernels", "another selection of kernels"),
            ("input_hash", "another input"),
            ("spec_hash", "another GPU specification"),
            ("version", "another version of simt"),
            ("method", "another method"),
            ("timeline", "another timeline interval"),
        ):
            if getattr(old, name) != getattr(new, name):
                raise ResultError(
                    f"cannot resume: the saved Result is of {what} "
                    f"({getattr(old, name)!r}, now {getattr(new, name)!r}); start afresh in another place"
                )
        self._launches = {x.index: x for x in resume.launches}
        self._warnings = [text for text in resume.warnings if not text.startswith(UNFINISHED)]
        self._wall_before = old.wall_seconds
        if self._launches and len(self._launches) < len(chosen):
            self._cycle_offset = max(x.end_cycle for x in self._launches.values())
            self._provenance = replace(new, resumed_after=len(self._launches))
            self._warnings.append(
                f"resumed after {len(self._launches)} launches: the caches hold what copies left there, "
                f"not what those "
                f"launches would have left, so cycles of the later launches may differ from a run in one go"
            )
        elif self._launches:
            self._provenance = replace(new, resumed_after=old.resumed_after)

    def simulate(
        self,
        engine: Any,
        ahead: int | None,
        max_cycles: int | None,
        report: Callable[[Progress], None],
        interrupted: Callable[[], bool],
    ) -> None:
        """Feeds the engine and runs it in slices until its work or the budget of cycles is done, or Ctrl-C.

        ahead: launches that are queued beyond the finished ones; None: all. Where launches run one after the
            other this bounds memory and changes nothing: each starts when the one before it ends, whenever
            it was queued.
        """
        feed, fed, all_fed = self._feed(engine), 0, False
        size, done = _Slice(), False
        while not interrupted() and (max_cycles is None or engine.cycle < max_cycles):
            while not all_fed and (ahead is None or fed < self._total - len(self.pending) + ahead):
                all_fed = next(feed, None) is None
                fed += 1
            if done and all_fed and not self.pending:
                break
            done = size.run(engine, LARGEST_SLICE if max_cycles is None else max_cycles - engine.cycle)
            self.collect(engine)
            report(self._progress(engine))

    def _feed(self, engine: Any) -> Iterator[int]:
        """Queues copies and launches in order; stops after each launch."""
        from simt.trace import Copy

        wanted, index = frozenset(self.pending), 0
        for command in self._trace.commands:
            if isinstance(command, Copy):
                engine.copy_from_host(command.address, command.bytes)
                continue
            if index in wanted:
                number, control = self._engine_ids[index], self._control(index)
                engine.launch(command.source(), number, controller=control)
                yield index
            index += 1

    def _progress(self, engine: Any) -> Progress:
        p = engine.progress()
        return Progress(
            phase="simulating",
            fraction=min(1.0, p["warp_instructions"] / max(1, self._instructions)),
            seconds=time.monotonic() - self._start,
            launches_done=self._total - len(self.pending),
            launches_total=self._total,
            cycle=p["cycle"],
            warp_instructions=p["warp_instructions"],
            running=tuple(self._kernels[self._indices[i]].name for i in p["running"]),
        )

    def _control(self, index: int) -> LaunchControl | None:
        if self._controller is None:
            return None
        from simt.control.launch import LaunchControl

        kernel = self._kernels[index]
        self._controls[index] = LaunchControl(
            self._controller,
            index=index,
            id=kernel.id,
            name=kernel.name,
            grid=kernel.grid,
            block=kernel.block,
            sm_count=self._machine.sm_count,
            l2_lines=self._spec.l2_lines,
            dram_bytes_per_cycle=self._spec.dram_bytes_per_cycle,
            warp_instructions=kernel.counts["instructions"],
            threads=self._provenance.threads,
        )
        return self._controls[index]

    def collect(self, engine: Any) -> None:
        """Takes over the launches that the engine has finished."""
        self._raw += engine.finished()
        while self._raw:
            raw = self._raw.pop(0)
            index = self._indices[raw["id"]]
            kernel = self._kernels[index]
            facts = Facts(
                index=index,
                id=kernel.id,
                name=kernel.name,
                grid=kernel.grid,
                block=kernel.block,
                shared_bytes=kernel.shared_bytes,
                registers=kernel.registers,
                sm_version=kernel.sm_version,
            )
            offset = self._cycle_offset + self._clock.offset(raw["start_cycle"])
            launch = launch_result(raw, facts, self._machine, offset)
            if (control := self._controls.pop(index, None)) is not None:
                launch = control.finish(raw, launch)
                released = raw["sampled"]["released_cycle"]
                self._clock.ended(released, launch.end_cycle - self._cycle_offset)
            self._launches[index] = launch
            self.pending.remove(index)

    def result(self, status: str) -> Result:
        """The launches finished so far, in the order of the input; `status` says why some may be missing."""
        launches = tuple(self._launches[index] for index in sorted(self._launches))
        warnings = [
            *self._warnings,
            *self._trace.warnings,
            *(w for launch in launches for w in launch.warnings),
        ]
        if self.pending:
            why = "max_cycles reached" if status == "max_cycles" else status
            count = f"{len(self.pending)} of {len(self.pending) + len(launches)}"
            warnings.append(f"{UNFINISHED}: {count} launches, {why}")
        wall = self._wall_before + time.monotonic() - self._start
        return Result(
            launches=launches,
            machine=self._machine,
            provenance=replace(self._provenance, wall_seconds=round(wall, 3)),
            warnings=tuple(dict.fromkeys(warnings)),
            status=status if self.pending else "complete",
            unfinished=tuple(self.pending),
        )


@contextmanager
def reporting(progress: Callable[[Progress], None] | bool | None) -> Iterator[Callable[[Progress], None]]:
    if callable(progress):
        yield progress
    elif progress:
        with progress_bar() as show:
            yield show
    else:
        yield lambda _: None


@contextmanager
def deferred_interrupt() -> Iterator[Callable[[], bool]]:
    """Makes the first Ctrl-C set a flag, so that it cannot strike while finished launches are taken over.

    The second one interrupts at once. Python gives signals to the main thread only; elsewhere nothing
    changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    requested = False
    before = signal.getsignal(signal.SIGINT)

    def request(number: int, frame: FrameType | None) -> None:
        nonlocal requested
        requested = True
        signal.signal(signal.SIGINT, before)

    if before is not signal.default_int_handler:
        yield lambda: False
        return
    signal.signal(signal.SIGINT, request)
    try:
        yield lambda: requested
    finally:
        signal.signal(signal.SIGINT, before)
