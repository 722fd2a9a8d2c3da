"""Input x Spec -> Result."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timezone
from types import FrameType
from typing import TYPE_CHECKING, Any

from simt.errors import DeadlockError, Interrupted, ResultError, SimtError
from simt.progress import Progress, progress_bar
from simt.result import LaunchResult, Machine, Provenance, Result
from simt.selection import Selection, canonical, select
from simt.version import __version__

if TYPE_CHECKING:
    from simt.trace import Kernel

# Core cycles per call of the engine while nothing is known of its speed; then as many as take about SLICE_SECONDS, so
# that progress moves and Ctrl-C works.
FIRST_SLICE = 1_000
SLICE_SECONDS = 0.2


def simulate(
    path: str | os.PathLike[str],
    gpu: str | os.PathLike[str] = "qv100",
    *,
    set: Mapping[str, Any] | None = None,
    kernels: Selection = None,
    threads: int = 1,
    max_cycles: int | None = None,
    timeline: int | None = None,
    window: int | None = None,
    progress: Callable[[Progress], None] | bool | None = None,
    resume: Result | None = None,
) -> Result:
    """Simulates the launches of a trace on a GPU and returns their counters.

    path: a `kernelslist.g`, a directory with one, a kernel trace, or a `.simt` store.
    gpu: name of a specification (`simt gpus` lists them) or path of a TOML file.
    set: values that override the specification, by their path in it: `{"sm.count": 40}`.
    kernels: which launches to simulate, such as `"3-7,12"`, `"*gemm*"` or `"/conv\\d/"` (see docs/cli.md); all copies
        to the GPU are still made.
    threads: host threads. Has no influence on any counter.
    max_cycles: stop after about so many core cycles; the launches finished by then are in the Result.
    timeline: interval of the timeline in core cycles; None for no timeline.
    window: cycles that SMs simulate on their own between meetings; None for as many as is exact. No influence on any
        counter.
    progress: True for a progress bar on the terminal, or a function that is called a few times a second.
    resume: a Result of the same input and specification; the launches that it holds are taken over, not simulated.

    Raises SimtError on bad input, DeadlockError when the simulated machine hangs, and Interrupted (a
    KeyboardInterrupt) on Ctrl-C; the last two carry the Result of the launches finished before.
    """
    from simt import _engine
    from simt.spec import load_spec
    from simt.trace import Copy, open_trace

    if threads < 1:
        raise SimtError(f"threads is {threads}, expected 1 or more")
    if timeline is not None and timeline < 1:
        raise SimtError(f"timeline is {timeline}, expected an interval of 1 cycle or more")
    if max_cycles is not None and max_cycles < 1:
        raise SimtError(f"max_cycles is {max_cycles}, expected 1 or more")
    overrides = dict(set or {})
    spec = load_spec(gpu, overrides)
    trace = open_trace(path)
    native_spec = spec.native()
    machine = Machine.from_spec(native_spec)
    all_kernels = [command for command in trace.commands if not isinstance(command, Copy)]
    chosen = select(all_kernels, kernels)

    provenance = Provenance(
        input=os.fspath(path),
        input_hash=trace.hash,
        gpu=machine.name,
        spec_hash=spec.hash,
        overrides=overrides,
        version=__version__,
        method="full",
        kernels=canonical(kernels),
        max_cycles=max_cycles,
        timeline=timeline,
        resumed_after=0,
        threads=threads,
        wall_seconds=0.0,
        created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
    )
    run = _Run(machine, provenance, all_kernels, chosen, resume, tuple(trace.warnings))
    engine = _engine.Gpu(native_spec, threads=threads, window=window or 0, timeline_interval=timeline or 0)
    index = 0
    wanted = frozenset(run.pending)
    for command in trace.commands:
        if isinstance(command, Copy):
            engine.copy_from_host(command.address, command.bytes)
            continue
        if index in wanted:
            engine.launch(command.source(None), index)
        index += 1
    with _reporting(progress) as report, _deferred_interrupt() as interrupted:
        try:
            run.simulate(engine, max_cycles, report, interrupted)
        except _engine.DeadlockError as error:
            run.collect(engine)
            raise DeadlockError(str(error), run.result("deadlock")) from error
    if interrupted() and run.pending:
        raise Interrupted(run.result("interrupted"))
    return run.result("max_cycles")


class _Run:
    """The launches of one call of simulate: those still to come, and those finished."""

    def __init__(
        self,
        machine: Machine,
        provenance: Provenance,
        kernels: list[Kernel],
        chosen: list[int],
        resume: Result | None,
        warnings: tuple[str, ...],
    ) -> None:
        self._machine = machine
        self._provenance = provenance
        self._kernels = kernels
        self._warnings = list(warnings)
        self._launches: dict[int, LaunchResult] = {}
        self._cycle_offset = 0
        self._wall_before = 0.0
        self._start = time.monotonic()
        if resume is not None:
            self._take_over(resume, chosen)
        self.pending = [index for index in chosen if index not in self._launches]
        self._total = len(self.pending)

    def _take_over(self, resume: Result, chosen: list[int]) -> None:
        old, new = resume.provenance, self._provenance
        for name, what in (
            ("input_hash", "another input"),
            ("spec_hash", "another GPU specification"),
            ("version", "another version of simt"),
            ("method", "another method"),
            ("timeline", "another timeline interval"),
        ):
            if getattr(old, name) != getattr(new, name):
                raise ResultError(
                    f"cannot resume: the saved Result is of {what} "
                    f"({getattr(old, name)!r}, now {getattr(new, name)!r}); start afresh in another directory"
                )
        wanted = frozenset(chosen)
        self._launches = {x.index: x for x in resume.launches if x.index in wanted}
        self._warnings = list(dict.fromkeys([*resume.warnings, *self._warnings]))
        self._wall_before = old.wall_seconds
        if self._launches and len(self._launches) < len(chosen):
            self._cycle_offset = max(x.end_cycle for x in self._launches.values())
            self._provenance = replace(new, resumed_after=len(self._launches))
            self._warnings.append(
                f"resumed after {len(self._launches)} launches: the caches hold what copies left there, not what those "
                f"launches would have left, so cycles of the later launches may differ from a run in one go"
            )
        elif self._launches:
            self._provenance = replace(new, resumed_after=old.resumed_after)

    def simulate(
        self,
        engine: Any,
        max_cycles: int | None,
        report: Callable[[Progress], None],
        interrupted: Callable[[], bool],
    ) -> None:
        """Runs the engine in slices until its work or the budget of cycles is done, or the user interrupts."""
        size, done = FIRST_SLICE, not self.pending
        while not done and not interrupted() and (max_cycles is None or engine.cycle < max_cycles):
            before = time.monotonic()
            done = engine.run(size if max_cycles is None else min(size, max_cycles - engine.cycle))
            seconds = time.monotonic() - before
            size = max(1, int(size * min(4.0, max(0.25, SLICE_SECONDS / max(seconds, 1e-6)))))
            self.collect(engine)
            report(self._progress(engine))

    def _progress(self, engine: Any) -> Progress:
        p = engine.progress()
        return Progress(
            cycle=p["cycle"],
            warp_instructions=p["warp_instructions"],
            launches_done=self._total - len(self.pending),
            launches_total=self._total,
            ctas_done=p["ctas_done"],
            ctas_total=p["ctas_total"],
            running=tuple(self._kernels[index].name for index in p["running"]),
            seconds=time.monotonic() - self._start,
        )

    def collect(self, engine: Any) -> None:
        """Takes over the launches that the engine has finished."""
        for raw in engine.finished():
            index = raw["id"]
            kernel = self._kernels[index]
            timeline = raw["timeline"]
            if timeline is not None and timeline["cycle"]:
                timeline = {**timeline, "cycle": [cycle + self._cycle_offset for cycle in timeline["cycle"]]}
            else:
                timeline = None
            self._launches[index] = LaunchResult(
                index=index,
                id=kernel.id,
                name=kernel.name,
                stream=raw["stream"],
                grid=kernel.grid,
                block=kernel.block,
                shared_bytes=kernel.shared_bytes,
                registers=kernel.registers,
                sm_version=kernel.sm_version,
                start_cycle=raw["start_cycle"] + self._cycle_offset,
                end_cycle=raw["end_cycle"] + self._cycle_offset,
                launch_latency=raw["launch_latency"],
                clock_khz=raw["clock_khz"],
                occupancy_limit_ctas=raw["occupancy_limit_ctas"],
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
                machine=self._machine,
            )
            self.pending.remove(index)

    def result(self, status: str) -> Result:
        """The launches finished so far, in the order of the input; `status` says why some are missing, if any are."""
        launches = tuple(self._launches[index] for index in sorted(self._launches))
        warnings = [*self._warnings, *(text for launch in launches for text in launch.warnings)]
        if self.pending:
            why = {"max_cycles": "max_cycles was reached", "interrupted": "interrupted", "deadlock": "deadlock"}[status]
            warnings.append(f"{why}: {len(self.pending)} of {len(self.pending) + len(launches)} launches not finished")
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
def _reporting(progress: Callable[[Progress], None] | bool | None) -> Iterator[Callable[[Progress], None]]:
    if callable(progress):
        yield progress
    elif progress:
        with progress_bar() as show:
            yield show
    else:
        yield lambda _: None


@contextmanager
def _deferred_interrupt() -> Iterator[Callable[[], bool]]:
    """Makes the first Ctrl-C set a flag, so that it cannot strike while finished launches are taken over.

    The second one interrupts at once. Python gives signals to the main thread only; elsewhere nothing changes.
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
