"""Runs launches of traces and programs on the timing engine."""

from __future__ import annotations

import hashlib
import itertools
import os
import time
import weakref
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from simt.errors import (
    ControlError,
    DeadlockError,
    Interrupted,
    LaunchError,
    LimitReached,
    ResultError,
    SimtError,
    SimulationError,
)
from simt.host_threads import host_threads
from simt.options import ExecutionOptions, Options
from simt.progress import Progress, reporter, unseen
from simt.result import Machine, Provenance, Result
from simt.result.journal import Saved
from simt.result.transfer import Transfer
from simt.version import __version__

from .clock import RunClock
from .facts import Facts, launch_result
from .faults import SourceText, explained
from .interruption import Limits, deferred_stop, number_of, raise_requested
from .l2 import AccessWindow, MemoryRows
from .overrides import override_texts
from .record import Record, to_resume
from .slices import NO_MEMORY, new_engine, run_slices

if TYPE_CHECKING:
    from simt import _engine
    from simt.control import Controller
    from simt.control.controller import RunningGpu
    from simt.control.launch import LaunchControl
    from simt.engine_types import RawLaunch
    from simt.result.listing import Origins
    from simt.spec import Spec


def _nothing() -> None:
    pass


@dataclass(eq=False)
class QueuedLaunch:
    """A launch for a session to run.

    facts: what is known for its row of the Result in advance.
    source: what the engine executes: instructions of a trace, or a grid of a program's kernel.
    number: identifies it to the engine, in messages and in `after`.
    after: numbers of the launches and transfers that must have ended before it starts, in addition to earlier
        ones in its stream; those no longer queued have ended.
    warp_instructions: its total, if known.
    digest: of its arguments, if the input's hash does not cover them.
    window: memory whose accesses have properties of their own in the L2.
    origins: where its instructions come from. source_text: lines of its source, for faults.
    keeps: objects to keep alive until it is done.
    ended: called when its row is in the Result. dropped: called if it will not run to its end.
    """

    facts: Facts
    source: _engine.InstructionSource
    number: int
    after: Sequence[int] = ()
    warp_instructions: int | None = None
    digest: str = ""
    window: AccessWindow | None = None
    origins: Origins | None = None
    source_text: SourceText | None = None
    keeps: object = None
    ended: Callable[[], None] = _nothing
    dropped: Callable[[], None] = _nothing


@dataclass(eq=False)
class QueuedTransfer:
    """Work in stream order other than a launch: a copy, a memset, an event, a host function.

    link: what it occupies, one transfer at a time: "host_to_device", "device_to_host", "device",
        "peer_to_device" or "device_to_peer"; "none" if it takes no time.
    traffic: bytes over the link; bytes copied within the device count twice, since they are read and written.
    stream: None if ordered only by `after`. after: as for a launch.
    touched: device memory that it leaves in the L2, if the GPU does so.
    perform: called once, when it ends, while the engine runs; it must not use the session. A native
        MemoryOperation does not need Python's lock.
    ended: called when its cycles are known. dropped: called if it will not end.
    """

    link: str = "none"
    traffic: int = 0
    stream: int | None = None
    after: Sequence[int] = ()
    touched: Sequence[MemoryRows] = ()
    perform: Callable[[], None] | None = None
    ended: Callable[[], None] = _nothing
    dropped: Callable[[], None] = _nothing
    start_cycle: int | None = None
    end_cycle: int | None = None


# Numbers of transfers are above those of launches.
_FIRST_TRANSFER = 1 << 62


@dataclass(frozen=True)
class _Work:
    """The work of one call of `Session.run`, for progress: where it begins and ends."""

    start: float
    done: int
    total: int
    executed: int
    instructions: int | None


class Session:
    """Launches on one simulated GPU: each becomes a row of the Result.

    Contains what all runs share: specification and policies, provenance, control by a sampling method,
    limits, progress and interruption. What has finished is in its `record`.
    gpu: its specification. options: of the run.

    `begin` declares the input; then launches are queued and run. Raises SimtError for invalid options, and
    ResultError if `output` holds an unfinished run and is not being resumed.
    """

    def __init__(self, gpu: str | os.PathLike[str] | Spec, options: Options) -> None:
        from simt.spec import load_spec, outside_policies

        self._options = options
        self.threads = host_threads(options.threads)
        self.limits = Limits(options.max_cycles, options.timeout)
        controller, resume = options.controller, options.resume
        if isinstance(controller, str):
            from simt.control.registry import make

            controller = make(controller)
        self.controller = None if controller is None else controller.start()
        self.plan = None if isinstance(options.plan, Collection) else options.plan
        self._output = None if options.output is None else Path(options.output)
        self._before = Saved(resume) if isinstance(resume, Result) else to_resume(self._output, resume)
        self._overrides = {**override_texts(options.set), **_policy_overrides(options)}
        self.spec = load_spec(gpu, self._overrides)
        if options.clock is not None:
            from simt.power import at_clock

            clocks = at_clock(self.spec, options.clock)
            self._overrides |= override_texts(clocks)
            self.spec = load_spec(self.spec, clocks)
        # With the hash of its source, as the specification has it.
        self._overrides |= outside_policies(self.spec)
        self.native_spec = self.spec.native()
        self.machine = Machine.from_spec(self.native_spec)
        self._energies = None
        if options.power:
            from simt.power import energies_of

            self._energies = energies_of(options.power, self.machine.name)
        self.reporter = reporter(options.progress)
        self._queued: dict[int, QueuedLaunch] = {}
        self._transfers: dict[int, QueuedTransfer] = {}
        self._transfer_numbers = itertools.count(_FIRST_TRANSFER)
        self._controls: dict[int, LaunchControl] = {}
        self._raw: deque[RawLaunch] = deque()
        self._cycles_before = 0
        self._notes: dict[str, None] = {}
        self._persisting = 0
        """Bytes of the L2 that are set aside."""
        self._joined: _engine.functional.DeviceMemory | None = None
        """The GPU's memory, if it shares an address space with other devices."""
        self._left = ""
        """What the launches did that the last run left unfinished."""
        self._paused: _Work | None = None
        """That of a run that has paused, which the next one goes on with."""
        self._engine: _engine.Gpu | None = None
        self.watch: Callable[[], None] = _nothing
        """Called again and again while launches run; what it raises stops them."""

    def begin(
        self,
        input: str,
        input_hash: str,
        *,
        wanted: Iterable[int] | None = None,
        kernels: str | None = None,
        timed: bool = True,
        warnings: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        """input, input_hash: for provenance; they can be set later if not yet known.
        wanted: positions of the launches to run; None if not known in advance.
        kernels: the selection they come from. timed: False if nothing will be queued.
        warnings: returns those of the input, for the Result.

        Raises ResultError if the run to resume is a different one, SpecError if the host does not have enough
        memory for a GPU with this specification.
        """
        self.input, self.input_hash, options = input, input_hash, self._options
        self._warnings = warnings
        provenance = Provenance(
            input=input,
            input_hash=input_hash,
            gpu=self.spec.name,
            spec_hash=self.spec.hash,
            overrides=self._overrides,
            version=__version__,
            method=_method_of(self.controller, options),
            kernels=kernels,
            max_cycles=self.limits.max_cycles,
            timeline=options.timeline,
            resumed_after=0,
            threads=self.threads,
            wall_seconds=0.0,
            created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
            code=_code_of(options),
        )
        self.record = Record(
            self.machine,
            provenance,
            wanted=wanted,
            output=self._output,
            before=self._before,
            energies=self._energies,
            special_opcodes=self.spec.special_opcodes,
        )
        self._clock = RunClock(self.record.first_cycle)
        self._timed = timed
        if timed:
            self._running_engine()

    # --- launches ---------------------------------------------------------------------------------------

    @property
    def queued(self) -> tuple[int, ...]:
        """Numbers of the unfinished launches."""
        return tuple(self._queued)

    @property
    def busy(self) -> bool:
        """Whether there are unfinished launches or transfers."""
        return bool(self._queued or self._transfers)

    @property
    def numbers(self) -> list[int]:
        """Numbers of the unfinished launches and transfers."""
        return [*self._queued, *self._transfers]

    def finished(self, numbers: Iterable[int]) -> bool:
        """Whether the launches and transfers of these numbers have ended."""
        return not self._unfinished(numbers)

    def copy_from_host(self, address: int, nbytes: int) -> None:
        """Informs the timing model of a copy to the device, in order with launches."""
        if self._timed:
            self._running_engine().copy_from_host(address, nbytes)

    def set_persisting_l2(self, nbytes: int) -> None:
        """Sets aside a part of the L2 for persisting accesses, in order with launches."""
        if self._timed:
            self._persisting = nbytes
            self._running_engine().set_aside(nbytes)

    def reset_persisting_l2(self) -> None:
        """Ends the persistence of the lines that are in the L2, in order with launches."""
        if self._timed:
            self._running_engine().reset_persisting()

    def join(self, memory: _engine.functional.DeviceMemory) -> None:
        """The GPU's memory shares an address space with that of other devices, which kernels reach over the
        link to them. Before the first launch."""
        if self._timed:
            self._joined = memory
            self._running_engine().set_peers(memory)

    def follow(self, source: _engine.InstructionSource, first: int) -> None:
        """Puts what the CTAs from `first` on of a launch that is left out access into the L2, in order with
        launches."""
        if self._timed:
            self._running_engine().follow(source, first)

    def execute(self, source: _engine.InstructionSource, first: int, end: int) -> tuple[int, int]:
        """Executes CTAs [first, end) of a launch that is left out, now, and puts what they access into the
        L2. Nothing may be queued. Returns warp and thread instructions."""
        engine = self._running_engine()
        engine.run(1)  # copies that are to be in the L2 before
        return engine.execute(source, first, end)

    def leave_out(self, source: _engine.InstructionSource) -> None:
        """A launch is neither simulated nor executed: the L2 holds what it works on. Nothing may be
        queued."""
        engine = self._running_engine()
        engine.run(1)  # copies that are to be in the L2 before
        engine.leave_out(source)

    @property
    def planned(self) -> bool:
        """Whether a plan or a selection leaves launches out."""
        return self._options.plan is not None or bool(self._options.region)

    @property
    def timed(self) -> bool:
        """Whether launches can be queued."""
        return self._timed

    def l2_contents(self) -> tuple[int, list[bytes]]:
        """Launches begun, and the lines of each L2 slice, in the engine's form."""
        return self._running_engine().l2_contents()

    def restore_l2(self, launches: int, slices: list[bytes]) -> None:
        """Before the first launch: the L2 holds these. Raises ValueError if they do not fit."""
        self._running_engine().restore_l2(launches, slices)

    def queue(self, launch: QueuedLaunch) -> None:
        """Queues a launch; `run` runs it."""
        control = self._control(launch)
        after = self._unfinished(launch.after)
        if launch.window is not None:
            self._note_window(launch.window)
        self._running_engine().launch(
            launch.source, launch.number, after=after, controller=control, window=launch.window
        )
        self._queued[launch.number] = launch
        if control is not None:
            self._controls[launch.number] = control

    def _note_window(self, window: AccessWindow) -> None:
        """Warns once of a window that has no effect."""
        if not self.spec.l2.persisting_kib:
            note = f"access windows have no effect on {self.spec.name}, whose l2.persisting_kib is 0"
        elif window.hit == "persisting" and not self._persisting:
            note = (
                "persisting accesses of an access window have no effect: nothing of the L2 is set aside "
                "(cudaLimitPersistingL2CacheSize, GPU.set_persisting_l2)"
            )
        else:
            return
        self.note(note)

    def note(self, warning: str) -> None:
        """Adds a warning to the Result, once."""
        self._notes[warning] = None

    def queue_transfer(self, transfer: QueuedTransfer) -> int:
        """Queues a transfer. Returns its number, for `after` and `run`."""
        number = next(self._transfer_numbers)
        self._running_engine().transfer(
            number,
            stream=transfer.stream,
            after=self._unfinished(transfer.after),
            link=transfer.link,
            traffic=transfer.traffic,
            touched=transfer.touched,
            perform=transfer.perform,
        )
        self._transfers[number] = transfer
        return number

    def run(
        self,
        coming: Iterator[QueuedLaunch] | None = None,
        *,
        until: Collection[int] | None = None,
        launches: int | None = None,
        instructions: int | None = None,
        ahead: int | None = None,
        most: int | None = None,
        seconds: float | None = None,
    ) -> None:
        """Runs all queued work, and the launches from `coming`.

        coming: yields further launches, and reports copies between them. launches: how many.
        until: numbers of launches and transfers: runs only until they have ended, and leaves the rest queued.
            What is queued next starts no earlier than they ended: the host has waited for them.
        instructions: warp instructions of all of them, if known; used for progress.
        ahead: how many launches to queue at a time; None: all.
        most: core cycles, and seconds: of the host, after which it pauses; the rest stays queued. None: it
            does not.

        Raises ProgramFault for errors of the program, DeadlockError, LimitReached, Interrupted,
        SimulationError if the host runs out of memory, ResultError if a finished launch cannot be saved. What
        had finished by then is in the Result; queued work is dropped, and the engine restarts.
        """
        from simt import _engine

        self._left = ""
        before = len(self.record.launches)
        total = before + (len(self._queued) if launches is None else launches)
        work = (
            _Work(
                start=time.monotonic(),
                done=before,
                total=total,
                executed=self._running_engine().progress()["warp_instructions"],
                instructions=instructions,
            )
            if self._paused is None
            else replace(self._paused, total=total)
        )
        self._paused = None
        exhausted = coming is None

        def is_done() -> bool:
            return exhausted and not (self.busy if until is None else self._unfinished(until))

        def is_over() -> bool:
            nonlocal exhausted
            while not exhausted and (ahead is None or len(self._queued) < ahead):
                launch = next(coming, None) if coming is not None else None
                if launch is None:
                    exhausted = True
                else:
                    self.queue(launch)
            return is_done()

        def after_slice() -> None:
            self._collect()
            self.watch()
            if report is not unseen:
                report(self._progress(work))

        with self.reporter.showing() as report, deferred_stop() as stop_requested, explained():
            try:
                # Do not give the engine a name here: a fault's traceback would keep it and its memory alive.
                why = run_slices(
                    self._running_engine(),
                    until=self._unfinished(until or ()),
                    is_over=is_over,
                    after_slice=after_slice,
                    limits=self.limits,
                    cycles_before=self._cycles_before,
                    stop_requested=stop_requested,
                    most=most,
                    seconds=seconds,
                )
            except _engine.DeadlockError as error:
                self._abandon()
                raise DeadlockError(str(error), self.result("deadlock")) from error
            except _engine.PolicyFault as error:
                self._abandon()
                raise SimulationError(f"policy: {error}", self.result("failed")) from None
            except MemoryError as error:
                self._abandon(collect=False)
                raise SimulationError(NO_MEMORY, self.result("failed")) from error
            except KeyboardInterrupt as stop:  # while CTAs were executed without timing; the second signal
                self._abandon()
                raise Interrupted(self.result("interrupted"), number_of(stop)) from None
            except LaunchError:  # a finished launch's values cannot be copied back; the others can continue
                raise
            except ResultError:
                self._abandon(collect=False)
                raise
            except (SimtError, ValueError):
                self._abandon()
                raise
            except _engine.functional.ProgramFault as error:
                error.source_text = self._source_line(error)
                self._abandon()
                raise
            if not why:
                if not is_done():
                    self._paused = work
                return
            if self.busy:
                self._left = self._running_engine().describe_work()
                self._abandon()
            self._stop(why, stop_requested())

    def require_time(self) -> None:
        """Before and while a launch is executed without timing: raises LimitReached after `timeout`, Stopped
        if a signal's exception was lost, and what `watch` raises."""
        raise_requested()
        self.watch()
        if self.limits.late():
            self._stop("timeout", 0)

    def _stop(self, why: str, number: int) -> NoReturn:
        """Raises Interrupted or LimitReached. why: status of the Result. number: of the signal."""
        if why == "interrupted":
            raise Interrupted(self.result(why), number)
        raise LimitReached(self.limits.text(why) + self._left, self.result(why))

    def drop(self) -> None:
        """Drops all queued work: what had finished is in the Result."""
        if self.busy:
            self._abandon()

    def result(self, status: str = "complete") -> Result:
        """The launches finished so far as a Result. status: why some may be missing."""
        return self.record.result(
            status,
            why=(f"{status} reached" if status in ("max_cycles", "timeout") else status) + self._left,
            warnings=[*self._warnings(), *self._notes],
            input=self.input,
            input_hash=self.input_hash,
        )

    # --- inside -----------------------------------------------------------------------------------------

    def _running_engine(self) -> _engine.Gpu:
        """The engine; a new one initially, and after a run was stopped."""
        if self._engine is None:
            self._engine = new_engine(
                self.native_spec,
                threads=self.threads,
                window=self._options.window or 0,
                timeline_interval=self._options.timeline or 0,
            )
            if self._persisting:
                self._engine.set_aside(self._persisting)
            if self._joined is not None:
                self._engine.set_peers(self._joined)
        return self._engine

    def _unfinished(self, numbers: Iterable[int]) -> list[int]:
        return [number for number in numbers if number in self._queued or number in self._transfers]

    def _control(self, launch: QueuedLaunch) -> LaunchControl | None:
        if self.controller is None:
            return None
        from simt.control.launch import LaunchControl

        facts = launch.facts
        return LaunchControl(
            self.controller,
            index=facts.index,
            id=facts.id,
            name=facts.name,
            grid=facts.grid,
            block=facts.block,
            sm_count=self.machine.sm_count,
            l2_lines=self.spec.l2_lines,
            dram_bytes_per_cycle=self.spec.dram_bytes_per_cycle,
            warp_instructions=launch.warp_instructions,
            threads=self.threads,
            gpu=self._gpu_of(launch),
        )

    def _gpu_of(self, launch: QueuedLaunch) -> Callable[[], RunningGpu | None]:
        """What a launch's controller may look at when it begins, unless something else concerns the GPU."""
        this, number = weakref.ref(self), launch.number  # the engine keeps what is returned
        simple = launch.window is None and not self._persisting and self._joined is None

        def found() -> RunningGpu | None:
            from simt.control.controller import RunningGpu

            session = this()
            if session is None or not simple or session._running_engine().progress()["running"] != [number]:
                return None
            return RunningGpu(session.spec, session._running_engine(), session.require_time)

        return found

    def _collect(self) -> None:
        """Takes over the launches and transfers that the engine has finished. Raises the first LaunchError of
        those that could not copy values back, when all are taken over."""
        refused: list[LaunchError] = []
        self._raw += self._running_engine().finished()
        while self._raw:
            raw = self._raw.popleft()
            launch = self._queued.pop(raw["id"])
            try:
                self._add(raw, launch)
            finally:
                try:
                    launch.ended()
                except LaunchError as error:
                    refused.append(error)
        for number, start, end in self._running_engine().finished_transfers():
            transfer = self._transfers.pop(number)
            transfer.start_cycle, transfer.end_cycle = self._clock.cycle(start), self._clock.cycle(end)
            if transfer.link != "none":
                self.record.add_transfer(
                    Transfer(
                        transfer.link,
                        transfer.stream,
                        transfer.traffic,
                        transfer.start_cycle,
                        transfer.end_cycle,
                    )
                )
            transfer.ended()
        if refused:
            raise refused.pop(0)

    def _add(self, raw: RawLaunch, queued: QueuedLaunch) -> None:
        control = self._controls.pop(queued.number, None)
        offset = self._clock.cycle(raw["start_cycle"]) - raw["start_cycle"]
        launch = launch_result(raw, queued.facts, self.machine, offset, self._energies, queued.origins)
        if control is not None:
            launch = control.finish(raw, launch)
            assert raw["sampled"] is not None  # a launch under a controller
            self._clock.ended(raw["sampled"]["released_cycle"], launch.end_cycle)
        self.record.add(launch, queued.digest)

    def _abandon(self, collect: bool = True) -> None:
        """Drops queued work and the engine. collect: first takes over what the engine had finished."""
        if collect:
            with suppress(ControlError, LaunchError):  # the run is already being stopped for another reason
                self._collect()
        for _, launch in sorted(self._queued.items()):
            launch.dropped()
        for transfer in self._transfers.values():
            transfer.dropped()
        self._queued.clear()
        self._transfers.clear()
        self._controls.clear()
        self._raw.clear()
        self._paused = None
        self._cycles_before += self._running_engine().cycle
        self._clock.new_engine(self._running_engine().cycle)
        self._engine = None

    def _source_line(self, fault: _engine.functional.ProgramFault) -> str:
        launch = self._queued.get(fault.launch)
        if launch is None or launch.source_text is None:
            return ""
        return launch.source_text(fault.source_file, fault.source_line)

    def _progress(self, work: _Work) -> Progress:
        p = self._running_engine().progress()
        done, executed = len(self.record.launches), p["warp_instructions"] - work.executed
        if work.instructions is not None:
            fraction = executed / max(1, work.instructions)
        else:
            under_way = p["ctas_done"] / max(1, p["ctas_total"]) if p["running"] else 0
            fraction = (done - work.done + under_way) / max(1, work.total - work.done)
        return Progress(
            phase="simulating",
            fraction=min(1.0, fraction),
            seconds=time.monotonic() - work.start,
            launches_done=done,
            launches_total=work.total,
            cycle=p["cycle"],
            warp_instructions=executed,
            running=tuple(self._queued[i].facts.name for i in p["running"] if i in self._queued),
        )


def _code_of(options: Options) -> str:
    if not isinstance(options, ExecutionOptions):
        return "trace"
    return "PTX" if options.code == "ptx" else "machine code"


def _policy_overrides(options: Options) -> dict[str, Any]:
    if not options.policies:
        return {}
    from simt.policy import overrides  # which imports numpy

    return overrides(options.policies)


def _method_of(controller: Controller | None, options: Options) -> str:
    """The method's text in a Result's provenance."""
    parts, plan = options.region, options.plan
    if isinstance(plan, Collection):
        digest = hashlib.sha256(repr(sorted(plan)).encode()).hexdigest()[:12]
        parts.append(f"launches({len(plan)} chosen, {digest})")
    elif plan is not None:
        digest = hashlib.sha256(plan.to_json().encode()).hexdigest()[:12]
        parts.append(f"plan({plan.method}, {len(plan)} of {plan.population} launches, {digest})")
    if controller is not None:
        # A user's class may store a parameter under another name.
        values = (f"{name}={getattr(controller, name, '?')}" for name in sorted(controller.parameters()))
        parts.append(f"{controller.label()}({', '.join(values)})")
    return " + ".join(parts) or "full"
