"""Input x Spec -> Result."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simt.errors import DeadlockError, Interrupted, PlanError, ResultError, SimtError, SimulationError
from simt.host_threads import host_threads
from simt.policy import Policy
from simt.policy import overrides as policy_overrides
from simt.result import Machine, Provenance, Result
from simt.result.journal import Saved
from simt.run.interruption import Limits, deferred_stop
from simt.run.progress import Progress, reporting
from simt.run.session import Facts, Session, to_resume
from simt.run.slices import NO_MEMORY, new_engine, run_slices
from simt.selection import Selection, canonical, select
from simt.version import __version__

if TYPE_CHECKING:
    from simt.control import Controller
    from simt.control.launch import LaunchControl
    from simt.sampling import Plan
    from simt.spec import Spec
    from simt.trace import Kernel, Trace

LOOK_AHEAD = 4


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
    timeout: float | None = None,
    progress: Callable[[Progress], None] | bool | None = None,
    output: str | os.PathLike[str] | None = None,
    resume: Result | bool = False,
    policies: Mapping[str, Policy] | None = None,
    controller: Controller | None = None,
    plan: Plan | None = None,
    verify: float = 0.0,
    seed: int = 0,
    outside: bool = False,
) -> Result:
    """Simulates the launches of a trace on a GPU and returns their counters.

    path: a `kernelslist.g`, a directory with one, a kernel trace, or a `.simt` store.
    gpu: name of a specification (`simt gpus` lists them) or path of a TOML file.
    set: values that override the specification, by their path in it: `{"sm.count": 40}` or
        `["sm.count=40"]`.
    kernels: which launches to simulate, such as `"3-7,12"`, `"*gemm*"` or `"/conv\\d/"` (see docs/cli.md);
        all copies to the GPU are still made.
    threads: host threads, at most as many as there are cores. Has no influence on any counter.
    max_cycles: stop after about so many core cycles; the launches finished by then are in the Result.
    timeout: stop after about so many seconds; likewise.
    timeline: interval of the timeline in core cycles; None for no timeline.
    window: cycles that SMs simulate on their own between meetings; None for as many as is exact. No
        influence on any counter.
    progress: True for a progress bar on the terminal (a line every 30 seconds where there is none), or a
        function that is called a few times a second.
    output: where the Result is saved, as by `Result.save`. Launches are written there as they finish, so that
        they are kept whatever happens next: `Result.load` reads them.
    resume: True: go on where the run with this output stopped; or a Result of the same input and
        specification. The launches that it holds are taken over, not simulated; caches start afresh.
    policies: Python functions in place of built-in policies: scheduler, l1_replacement, l2_replacement,
        slice_hash (see simt.policy).
    controller: decides during each launch how much of it is simulated (see simt.control); None: all.
    plan: only its launches are simulated; `Result.sampling` then has totals of all launches that it stands
        for, and how wrong they may be. Its launches are the trace's kernels, counted from 0, or all that the
        trace has, in order.
    verify: share of the launches cut short by the controller, chosen at random by `seed`, that are simulated
        in full, too: `Result.sampling` has the errors seen.
    outside: whether a launch list may name files outside its folder.

    Raises SimtError on bad input and where `output` holds an unfinished run that is not to be resumed,
    SimulationError when the simulation cannot go on (DeadlockError when the simulated machine hangs), and
    Interrupted (a KeyboardInterrupt) on Ctrl-C; the last two carry the Result of what had finished.
    """
    from simt import _engine
    from simt.control.launch import method_of
    from simt.spec import load_spec
    from simt.trace import open_trace

    threads = host_threads(threads)
    if timeline is not None and timeline < 1:
        raise SimtError(f"timeline is {timeline}, expected 1 or more")
    limits = Limits(max_cycles, timeout)
    if verify and controller is None:
        raise SimtError("verify is about a controller's projections, and there is no controller")
    target = None if output is None else Path(output)
    before = Saved(resume) if isinstance(resume, Result) else to_resume(target, resume)
    own = dict(policies or {})
    overrides = {**override_texts(set), **policy_overrides(own)}
    spec = load_spec(gpu, overrides)
    # What a policy does is part of what the Result was computed from.
    overrides |= {f"policy.{key}": f"{policy.name} {policy.identity}" for key, policy in own.items()}
    trace = open_trace(path, outside) if outside else open_trace(path)
    every = trace.kernels
    chosen = select(every, kernels)
    if plan is not None:
        chosen = _planned(plan, every, chosen)
    native_spec = spec.native({key: policy.address for key, policy in own.items()})
    with reporting(progress) as report:
        _read([every[index] for index in chosen], report, limits)
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
        session = Session(
            Machine.from_spec(native_spec), provenance, wanted=chosen, output=target, before=before
        )
        run = _Run(session, spec, trace, chosen, controller, threads)
        engine = new_engine(native_spec, threads=threads, window=window or 0, timeline_interval=timeline or 0)
        one_by_one = native_spec["launch"]["max_concurrent_kernels"] == 1 or run.streams <= 1

        def stopped(status: str, why: str = "") -> Result:
            found = session.result(status, why=why, warnings=trace.warnings)
            if found.launches or status not in ("deadlock", "failed"):
                session.save(found)
            return found

        with deferred_stop() as stop_requested:
            try:
                why = run.simulate(engine, LOOK_AHEAD if one_by_one else None, limits, report, stop_requested)
            except _engine.DeadlockError as error:
                run.collect(engine)
                raise DeadlockError(str(error), stopped("deadlock")) from error
            except ResultError:  # a finished launch could not be saved
                raise
            except (SimtError, ValueError) as error:  # a damaged trace, a launch that no SM can hold
                run.collect(engine)
                raise SimulationError(str(error), stopped("failed")) from error
            except MemoryError as error:
                raise SimulationError(NO_MEMORY, stopped("failed")) from error
            if why == "interrupted" and run.pending:
                raise Interrupted(stopped("interrupted"), stop_requested())
    result = stopped(why or "complete", f"{why} reached")
    if controller is None and plan is None:
        return result
    from simt.control.accuracy import choose, verification, with_accuracy

    verified = None
    try:
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
                outside=outside,
            )
            verified = verification(result, full, verify, seed)
    except Interrupted as stop:
        raise Interrupted(result, stop.number) from None
    result = with_accuracy(result, plan, verified)
    session.save(result)
    return result


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


def _read(kernels: list[Kernel], report: Callable[[Progress], None], limits: Limits) -> None:
    """Converts what is not in a trace store yet. Raises SimtError where the time is over before."""
    start = time.monotonic()
    for i, kernel in enumerate(kernels):
        size = max(1, kernel.path.stat().st_size)

        def advance(position: int, i: int = i, size: int = size, kernel: Kernel = kernel) -> None:
            if limits.late():
                raise SimtError(
                    f"{kernel.path}: {limits.text('timeout')} and this trace is not read yet; "
                    f"{i} of {len(kernels)} are, and are kept in the cache"
                )
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


class _Run:
    """The launches of one call of simulate that are still to come."""

    def __init__(
        self,
        session: Session,
        spec: Spec,
        trace: Trace,
        chosen: list[int],
        controller: Controller | None,
        threads: int,
    ) -> None:
        self._session = session
        self._controller = controller
        self._controls: dict[int, LaunchControl] = {}
        self._raw: list[dict[str, Any]] = []
        self._spec = spec
        self._trace = trace
        self._kernels = trace.kernels
        self._threads = threads
        self._start = time.monotonic()
        self.pending = [index for index in chosen if index not in session.launches]
        self._total = len(self.pending)
        self.streams = len({self._kernels[index].stream for index in self.pending})
        ids = [self._kernels[index].id for index in self.pending]
        # The engine calls launches by their id, as its messages do, unless the input gives two the same one.
        names = ids if len(frozenset(ids)) == len(ids) else self.pending
        self._engine_ids = dict(zip(self.pending, names, strict=True))
        self._indices = dict(zip(names, self.pending, strict=True))
        self._instructions = sum(self._kernels[index].counts["instructions"] for index in self.pending)

    def simulate(
        self,
        engine: Any,
        ahead: int | None,
        limits: Limits,
        report: Callable[[Progress], None],
        stop_requested: Callable[[], int],
    ) -> str:
        """Feeds the engine and runs it until its work is done, or something stops it: as `run_slices`.

        ahead: launches that are queued beyond the finished ones; None: all. Where launches run one after the
            other this bounds memory and changes nothing: each starts when the one before it ends, whenever
            it was queued.
        """
        feed, fed, all_fed = self._feed(engine), 0, False

        def is_over(done: bool) -> bool:
            nonlocal fed, all_fed
            while not all_fed and (ahead is None or fed < self._total - len(self.pending) + ahead):
                all_fed = next(feed, None) is None
                fed += 1
            return done and all_fed and not self.pending

        def after_slice() -> None:
            self.collect(engine)
            report(self._progress(engine))

        return run_slices(
            engine,
            is_over=is_over,
            after_slice=after_slice,
            limits=limits,
            cycles_before=0,
            stop_requested=stop_requested,
        )

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
            sm_count=self._session.machine.sm_count,
            l2_lines=self._spec.l2_lines,
            dram_bytes_per_cycle=self._spec.dram_bytes_per_cycle,
            warp_instructions=kernel.counts["instructions"],
            threads=self._threads,
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
            self._session.add(raw, facts, self._controls.pop(index, None))
            self.pending.remove(index)
