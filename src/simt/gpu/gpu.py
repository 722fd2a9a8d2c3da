"""GPU: a simulated GPU that runs programs."""

from __future__ import annotations

import hashlib
import os
import re
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from simt import _engine
from simt.errors import CheckpointError, LaunchError
from simt.isa import table_for
from simt.options import Code, GpuOptions, TensorArithmetic, documented, keywords_of
from simt.pages import notebook
from simt.result import LaunchResult, Result
from simt.run.interruption import raise_requested
from simt.run.planned import Timed
from simt.run.session import QueuedTransfer, Session
from simt.spec import Spec
from simt.trace.commands import Copy

from .creation import ArrayCreation
from .exclusive import Exclusive
from .memory import Memory, reserve, whole
from .output import Output
from .programs import Programs
from .queued import queued_launch
from .stream import Event, Stream
from .texturing import Texturing

if TYPE_CHECKING:
    from typing_extensions import Self

    from simt.check.checking import Checking
    from simt.check.findings import Finding
    from simt.checkpoint.gpu import InterruptedLaunch, Saving
    from simt.checkpoint.point import CheckpointPoint
    from simt.engine_types import MachineFacts
    from simt.profile.executed import Executed
    from simt.result.launch import MaybeNone
    from simt.spec.native import NativeSpec

    from .arguments import LaunchArguments
    from .module import Kernel, Launcher
    from .recording import TraceRecording

_AT_ONCE, _IN_TURNS = 256, 4096  # CTAs followed together; the latter where they may wait for earlier ones

_LOOKED_AT = 16
"""CTAs that show whether a launch leaves values."""
_UNTIL_ASKED = 20_000
"""Warp instructions of a checked launch after which its warps are asked whether they repeat themselves."""
_OF_TENSOR_MEMORY = re.compile(r"(@\S+ )?(UTC|LDTM|STTM)")


class GPU(Programs, ArrayCreation, Texturing):
    """A simulated GPU: compile a program, pass it arrays, launch it, and get values and cycles.

    {options}

    What is not timed is executed: values are those of a full simulation, whatever a controller or a plan
    leaves out, and the L2 and the instruction caches then hold what it accessed. Launches count from 1.
    """

    __doc__ = documented(__doc__, GpuOptions)

    @keywords_of(GpuOptions)
    def __init__(self, options: GpuOptions) -> None:
        self._session = Session(options.gpu, options)
        self.spec = self._session.spec
        memory = self.spec.dram.capacity_gib << 30 if options.memory is None else options.memory
        self.functional = bool(options.untimed)
        self.exact_bounds, self.fmad = options.exact_bounds or bool(options.check), options.fmad
        self.code: Code = options.code
        self.tensor_arithmetic: TensorArithmetic = options.tensor_arithmetic
        self.threads = self._session.threads
        self._timed = Timed(options.plan, options.launches, options.capture_range)
        ways = {
            "exact tensor arithmetic": self.tensor_arithmetic == "exact",
            "machine code": self.code == "sass",
        }
        self._digest = hashlib.sha256(", ".join(way for way, taken in ways.items() if taken).encode())
        self.memory = Memory(self, reserve(self._device_memory, memory, self.spec.name))
        """Raw device memory, by address."""
        self.exclusive = Exclusive(self.memory.native.free)
        """Held while the GPU is in use: `with gpu.exclusive:` keeps other threads out."""
        self.checking: Checking | None = None
        """What checks its launches, if that was asked for."""
        self.follows_streams = True
        """Whether the order of launches in different streams is known."""
        if options.check:
            from simt.check import checks_of
            from simt.check.checking import Checking

            self.checking = Checking(self, checks_of(options.check))
        self._of_thread = threading.local()
        program = sys.argv[0] if sys.argv[0].endswith(".py") else "executed program"
        self._session.begin(
            program, self._digest.hexdigest(), timed=not self.functional, warnings=self._timed.warnings
        )
        self._output = Output()
        self.instructions = 0
        """Warp instructions executed without timing."""
        self.thread_instructions = 0
        """Thread instructions executed without timing: those of active lanes."""
        self._next_id = 1
        self._streams = 0
        self.objects: dict[str, Any] = {}
        """The objects that the checkpoint it was made from keeps, by name."""
        self.attached: dict[type, Any] = {}
        """What other parts of simt keep with it, by type."""
        self._recording: TraceRecording | None = None
        self._profiling: Executed | None = None
        self._ahead: tuple[Saving, CheckpointPoint] | None = None
        self.interrupted: InterruptedLaunch | None = None
        """The launch that the checkpoint it was made from interrupted, until it is continued."""

    @property
    def name(self) -> str:
        """The name of its specification."""
        return self.spec.name

    @property
    def program(self) -> str:
        """The name of the program, for the Result."""
        return self._session.input

    @program.setter
    def program(self, name: str) -> None:
        self._session.input = name

    @property
    def printed(self) -> str:
        """Text printed by kernels that was not written to standard output."""
        return self._output.text

    @property
    def session(self) -> Session:
        """What runs its timed launches."""
        return self._session

    @property
    def native_spec(self) -> NativeSpec:
        """Its specification in the engine's form."""
        return self._session.native_spec

    # --- memory -----------------------------------------------------------------------------------------

    def write(self, address: int, values: npt.NDArray[Any]) -> None:
        """Copies a contiguous host array to a device address."""
        with self.exclusive:
            try:
                self.memory.native.write(address, values.tobytes())
            except IndexError as error:
                raise LaunchError(
                    f"{values.nbytes:,} bytes at {address:#x} cannot be written: {error}"
                ) from None
            self.copied_from_host(address, values.nbytes)

    def peek(self, address: int, nbytes: int) -> bytes:
        """The current contents of device memory; queued launches have not run. Raises LaunchError where they
        are not known, as they come from unbacked memory."""
        try:
            return bytes(self.memory.native.read(address, nbytes))
        except IndexError as error:
            raise LaunchError(f"{nbytes:,} bytes at {address:#x} cannot be read: {error}") from None

    def copied_from_host(self, address: int, nbytes: int) -> None:
        """Informs the timing model of a copy, and a trace that is being recorded."""
        self._session.copy_from_host(address, nbytes)
        if self._recording is not None:
            self._recording.add_copy(Copy(address, nbytes))

    def set_persisting_l2(self, nbytes: int) -> None:
        """Sets aside a part of the L2, in bytes, for persisting accesses of later launches
        (`cudaLimitPersistingL2CacheSize`): lines that they bring are evicted after all others, up to this
        size. It is rounded up to whole ways; 0: none.

        Raises LaunchError if the GPU cannot set aside as much.
        """
        nbytes, most = whole("nbytes", nbytes), self.spec.most_persisting_l2
        if nbytes > most:
            raise LaunchError(
                f"nbytes is {nbytes:,}, expected at most {most:,} on {self.name} (l2.persisting_kib)"
            )
        with self.exclusive:
            self._session.set_persisting_l2(nbytes)

    def reset_persisting_l2(self) -> None:
        """Ends the persistence of lines in the L2, for later launches (`cudaCtxResetPersistingL2Cache`)."""
        with self.exclusive:
            self._session.reset_persisting_l2()

    @contextmanager
    def range(self, name: str) -> Iterator[None]:
        """A range of the program: `capture_range` chooses the launches within it. Ranges may be nested."""
        self.open_range(name)
        try:
            yield
        finally:
            self.close_range(name)

    def open_range(self, name: str) -> None:
        """Opens a range of this name for the launches that follow."""
        with self.exclusive:
            self._timed.open(name)

    def close_range(self, name: str) -> None:
        """Closes the range of this name that was opened last; without one, nothing changes."""
        with self.exclusive:
            self._timed.close(name)

    @property
    def untimed_warnings(self) -> list[str]:
        """What `launches` and `capture_range` chose, and matched none of the launches so far."""
        return self._timed.warnings()

    # --- launches ---------------------------------------------------------------------------------------

    def stream(self) -> Stream:
        """A new stream: its launches run in order, concurrently with those of other streams."""
        with self.exclusive:
            self._streams += 1
            if self.checking is not None:
                self.checking.order.streams += 1
            return Stream(self, self._streams)

    def event(self) -> Event:
        """A new event, not yet recorded."""
        return Event(self)

    @property
    def entered_streams(self) -> list[Stream]:
        """The streams whose `with` blocks this thread is in, innermost last."""
        here: list[Stream] = self._of_thread.__dict__.setdefault("streams", [])
        return here

    @contextmanager
    def annotate(self, text: str) -> Iterator[None]:
        """Names the work of the launches made inside the block (by this thread), as an NVTX range does: the
        text is their `annotation` in the Result. The innermost one counts.
        """
        before, self._of_thread.annotation = self.annotation, text
        try:
            yield
        finally:
            self._of_thread.annotation = before

    @property
    def annotation(self) -> str:
        """The text of the innermost `annotate` block that this thread is in."""
        return str(getattr(self._of_thread, "annotation", ""))

    @property
    def queued(self) -> tuple[int, ...]:
        """Ids of unfinished launches; where their order is followed, of those that nothing has waited for."""
        return self._session.queued if self.following is None else self.following.order.live

    @property
    def following(self) -> Checking | Executed | None:
        """What is told of the order of work that is not timed."""
        return self.checking if self._profiling is None else self._profiling

    @property
    def last_launch(self) -> int:
        """The number of the last launch; they count from 1."""
        return self._next_id - 1

    @property
    def last_cycle(self) -> int:
        """Cycle in which the last finished launch ended."""
        return self._session.record.last_cycle

    def mark(self, stream: Stream | None, after: Collection[int]) -> QueuedTransfer | None:
        """Used by events: a point after the queued work of a stream, and after these launches. None if
        nothing is queued, because the point has then been reached.
        """
        if not self._session.busy:
            return None
        point = QueuedTransfer(stream=stream.number if stream is not None else None, after=tuple(after))
        self._session.queue_transfer(point)
        return point

    def transfer(self, transfer: QueuedTransfer) -> int:
        """Queues work in stream order other than a launch. Returns its number, for `synchronize`."""
        with self.exclusive:
            return self._session.queue_transfer(transfer)

    def launch(self, launcher: Launcher, arguments: Callable[[], LaunchArguments]) -> LaunchResult | None:
        """Used by kernels. arguments: makes the arguments, once the GPU is held."""
        with self.exclusive:
            made = arguments()
            try:
                return self._launch(launcher, made)
            except BaseException:
                made.discard()
                raise

    def _launch(self, launcher: Launcher, arguments: LaunchArguments) -> LaunchResult | None:
        kernel = launcher.kernel
        launch_id = self._next_id
        if self._ahead is not None or self.interrupted is not None:
            launcher = self._at_checkpoint(launcher, arguments)
        self._next_id += 1
        if launcher.refusal:
            self._refuse(launcher)
        if self.functional and self._recording is None:
            if self.following is not None:
                self.follow_order(self.following, launcher, launch_id)
            self.run_values(launcher, arguments.block, launch_id)
            if self.checking is not None and (launcher.stream is None or arguments.has_host_arrays):
                self.checking.order.waited([launch_id])
            if self._profiling is not None and (self._stream(launcher) is None or arguments.has_host_arrays):
                self._profiling.order.waited()
            arguments.copy_back()
            return None
        self._digest.update(
            kernel.module.digest
            + f"\0{kernel.name}\0{launcher.grid}{launcher.block}{launcher.cluster}"
            f"{launcher.shared}{' cooperative' if launcher.cooperative else ''}".encode()
            + arguments.block
        )
        digest = self._session.input_hash = self._digest.hexdigest()
        timed = not self.functional and self._timed.includes(launch_id, kernel.name)
        kept = timed and self._session.record.kept(launch_id - 1, digest, kernel.name)
        if self._recording is None and (kept or not timed):
            self.synchronize()
            self.run_values(launcher, arguments.block, launch_id)
            arguments.copy_back()
            return self._session.record.take_over(launch_id - 1) if kept else None
        if self._session.plan is not None and self._session.plan.order is not None:
            self.synchronize()  # its time alone: which launches overlap follows from the order
        stream = self._stream(launcher)
        with kernel.module.explained:
            number = stream.number if stream is not None else 0
            source = self._source(launcher, arguments.block, launch_id, number)
        if self._recording is not None:
            try:
                with kernel.module.explained, self.exclusive.running:
                    self._recording.add(source)
            finally:
                self._output.write(source.printed)
            arguments.copy_back()
            return None
        after = stream.pending() if stream is not None else ()
        window = launcher.window or (stream.window if stream is not None else None)
        self._session.queue(
            queued_launch(
                launch_id, launcher, arguments, source, after, digest, self._output, self.annotation, window
            )
        )
        del source  # the traceback of a fault would keep it alive
        if stream is not None:
            stream.launched(launch_id)
            if not arguments.has_host_arrays:
                return None
        self.synchronize()
        return self._session.record.launches[launch_id - 1]

    def _stream(self, launcher: Launcher) -> Stream | None:
        """That of a launch."""
        return launcher.stream or next(reversed(self.entered_streams), None)

    def follow_order(self, following: Checking | Executed, launcher: Launcher, launch_id: int) -> None:
        """Tells what a launch comes after."""
        if not self.follows_streams:
            return
        stream = self._stream(launcher)
        after = () if stream is None else stream.pending()
        following.submitted(launch_id, 0 if stream is None else stream.number, after)
        following.launches(launch_id)
        if stream is not None:
            stream.launched(launch_id)

    def run_values(
        self,
        launcher: Launcher,
        parameters: bytes,
        launch_id: int,
        memory: _engine.functional.DeviceMemory | None = None,
        until: tuple[int, int, int] | None = None,
    ) -> bytes:
        """Runs a launch without timing. Overridden to observe launches (`simt.debug`).

        memory: a copy of its memory that is used instead.
        until: how many CTAs to finish, how many of the next to begin, and the instructions that each warp of
            these executes; None: the whole launch. Returns the state of those that have begun.
        """
        self._session.require_time()
        warms = self._session.planned and self._session.timed
        if memory is None and until is None and (warms or self._profiling is not None):
            self._run_followed(launcher, parameters, launch_id)
            return b""
        if self.checking is not None and memory is None and until is None:
            self._run_checked(self.checking, launcher, parameters, launch_id)
            return b""
        with launcher.kernel.module.explained, self.exclusive.running:
            warp_instructions, thread_instructions, state = launcher.native.run(
                parameters,
                launch_id,
                self.threads,
                self._output.write,
                memory,
                until,
                self._session.require_time,
            )
        self.instructions += warp_instructions
        self.thread_instructions += thread_instructions
        return state

    def _run_checked(self, checking: Checking, launcher: Launcher, parameters: bytes, launch_id: int) -> None:
        """Runs a launch whose accesses are checked; one that only repeats itself is a deadlock."""
        kernel = launcher.kernel
        if _uses_tensor_memory(kernel):
            raise LaunchError(
                f"kernel `{kernel.name}`: its module has tcgen05 instructions, and `check` does not follow "
                "tensor memory; check a build for sm_90 or older"
            )
        with checking.launch(launcher) as checker, launcher.kernel.module.explained, self.exclusive.running:
            running = launcher.native.begin(
                parameters, launch_id, 1, self._output.write, self._session.require_time, checker
            )
            try:
                while not running.advance(_UNTIL_ASKED):
                    if running.repeats():
                        running.report_endless_wait()
            finally:
                warp_instructions, thread_instructions = running.instructions
                self.instructions += warp_instructions
                self.thread_instructions += thread_instructions

    def _run_followed(self, launcher: Launcher, parameters: bytes, launch_id: int) -> None:
        """Runs a launch without timing, part by part, and follows its accesses: for a profile, or into the
        L2, where the launches that are timed find them."""
        source = self._source(launcher, parameters, launch_id, poll=self._session.require_time)
        kernel, profiling = launcher.kernel, self._profiling
        code = kernel.module.image, kernel.facts.index
        launched = None if profiling is None else profiling.begin(*code, source)
        try:
            with launcher.kernel.module.explained, self.exclusive.running:
                if launched is None and not launcher.cooperative and _leaves_nothing(source):
                    self._session.leave_out(source)
                    return
                for first, end in _parts(source, launcher.cooperative):
                    if launched is not None:
                        launched.execute(first, end, self.threads)
                    else:
                        warp, thread = self._session.execute(source, first, end)
                        self.instructions += warp
                        self.thread_instructions += thread
        finally:
            self._output.write(source.printed)
        if profiling is not None and launched is not None:
            self.instructions += launched.warp_instructions
            self.thread_instructions += launched.thread_instructions
            from simt.profile.executed import LaunchFacts

            facts = LaunchFacts(
                launch_id,
                kernel.name,
                launcher.grid,
                launcher.block,
                kernel.facts.registers,
                kernel.facts.shared_bytes + launcher.shared,
                self.annotation,
            )
            profiling.end(*code, facts, launched)

    def _source(
        self,
        launcher: Launcher,
        parameters: bytes,
        launch_id: int,
        stream: int = 0,
        poll: Callable[[], None] = raise_requested,
    ) -> _engine.functional.ExecutedSource:
        """What the engine executes. poll: called while it does so without timing."""
        table, _ = table_for(self.spec.sm_version)
        return launcher.native.source(
            parameters,
            launch_id,
            table.native,
            self.spec.sm_version,
            launcher.kernel.facts.registers,
            stream,
            self._recording is not None and self._recording.plain,
            poll,
        )

    def synchronize(self, until: Collection[int] | None = None) -> None:
        """Runs everything that is queued. until: only until the launches and transfers of these numbers have
        ended.

        Raises ProgramFault for errors of a program, DeadlockError for a deadlock, LimitReached after
        `max_cycles`, KeyboardInterrupt on Ctrl-C.
        """
        with self.exclusive:
            if self.following is not None:  # what is timed waits for everything
                self.following.order.waited(None if self.checking is None else until)
            if self._session.busy:
                with self.exclusive.running:
                    self._session.run(until=until)

    @property
    def launches(self) -> Sequence[LaunchResult]:
        """The finished timed launches, in launch order."""
        return self._session.record.launches.in_order()

    def findings(self) -> list[Finding]:
        """What the checker has found so far in launches, and in the use of memory; what is still allocated by
        hand counts as leaked. Empty unless the GPU was made with `check`."""
        self.synchronize()
        return [] if self.checking is None else self.checking.findings()

    def result(self, status: str = "complete") -> Result:
        """All timed launches so far as a Result: tables, report, JSON, Parquet."""
        if status == "complete":
            self.synchronize()
        found, sampled = self._session.result(status), self._session.controller or self._session.plan
        if status != "complete" or not found.launches or sampled is None:
            return found
        from simt.control.accuracy import with_accuracy

        return with_accuracy(found, self._session.plan)

    def save(self, result: Result | None = None) -> None:
        """Saves a Result of this GPU, by default of all launches so far, in `output`. Raises ResultError."""
        self._session.record.save(self.result() if result is None else result)

    @contextmanager
    def trace(
        self,
        path: str | os.PathLike[str],
        *,
        converged: bool = False,
        plain: bool = False,
        combined: bool = False,
        opcode: Callable[[str], str] | None = None,
    ) -> Iterator[None]:
        """Records the launches made inside the block as a trace instead of timing them: a `.simt` store or,
        for any other name, a directory with version 5 text and a `kernelslist.g`. Values are computed as
        usual.

        converged: leaves out so many instructions of a part of a warp's lanes that the rest would have been
            enough, had the threads of a CTA that execute the same been in the same warps: a trace of what no
            GPU does, whose time is that without divergence. Instructions that access memory, and barriers,
            are kept.
        plain: divisions, roots and special functions of PTX are each one instruction, a product: what they
            cost. Machine code is as it is.
        combined: atomics to one word by several lanes of a warp are those of one lane.
        opcode: gives each opcode's name in the trace, such as `LDG.E` in place of `ATOMG.E.ADD.STRONG.GPU`,
            to time instructions as others that have the same operands.

        The trace appears when the block ends; after an exception there is none.
        """
        from .recording import TraceRecording

        with self.exclusive:
            if self._recording is not None:
                raise LaunchError("a trace is being recorded already")
            self.synchronize()
        with TraceRecording(
            Path(path),
            self.spec.sm.warp_size,
            converged=converged,
            plain=plain,
            combined=combined,
            opcode=opcode,
        ) as recording:
            self._recording = recording
            try:
                yield
                with self.exclusive:
                    self._recording = None
                    recording.finish()
            finally:
                self._recording = None

    @contextmanager
    def profiled(self) -> Iterator[Executed]:
        """Profiles the launches made inside the block as they are executed, without timing: `profile()` of
        what it yields has a row for each, from which samplers choose (docs/sampling/executed.md).

        Raises LaunchError unless the GPU is functional.
        """
        from simt.profile.executed import Executed

        if not self.functional:
            raise LaunchError("only launches that are not timed are profiled: simt.GPU(functional=True)")
        self._profiling = found = Executed(self.spec)
        try:
            yield found
        finally:
            self._profiling = None
            found.source = self.program

    # --- checkpoints ------------------------------------------------------------------------------------

    def checkpoint(
        self,
        path: str | os.PathLike[str],
        objects: Mapping[str, Any] | None = None,
        *,
        warm: bool = False,
    ) -> None:
        """Runs all queued work and saves memory, and these objects, in a new directory.

        objects: arrays, modules, textures, surfaces, samplers and streams, by the names under which
            `from_checkpoint` restores them. Everything else stays allocated, without a name.
        warm: also keep what the L2 holds after the launches that were timed; by default, a resumed GPU
            begins with an empty one.

        Raises CheckpointError if `path` exists or cannot be written, an object cannot be kept, or no launch
        was timed for `warm`; then nothing is left at `path`. docs/checkpoints.md lists what is kept.
        """
        from simt.checkpoint.gpu import Saving

        self._require_continued()
        with Saving(self, path, objects or {}, warm) as saving:
            saving.finish()

    @contextmanager
    def checkpoint_at(
        self,
        path: str | os.PathLike[str],
        objects: Mapping[str, Any] | None = None,
        *,
        launch: int,
        cta: int = 0,
        instruction: int = 0,
        ctas: int | None = None,
        warm: bool = False,
    ) -> Iterator[None]:
        """Makes a checkpoint at the beginning of a launch, or within it, when it is made inside the block;
        the launch then continues, and the program with it.

        launch: its id, from 1. cta: the CTAs before it (from 0) have ended at the point. instruction: how
            many each warp of the following CTAs has executed. ctas: the number of these; None for as many as
            the GPU holds at once. That part of the launch is executed without timing.
        path, objects, warm: as for `checkpoint`.

        Raises CheckpointError as `checkpoint` does, or if the launch is over, has no such point, or is not
        made inside the block.
        """
        from simt.checkpoint.gpu import Saving
        from simt.checkpoint.point import CheckpointPoint

        self._require_continued()
        point = CheckpointPoint(launch, cta, instruction, ctas)
        if launch < self._next_id or self._ahead is not None or self._recording is not None:
            why = (
                f"{self._next_id - 1:,} launches have been made"
                if launch < self._next_id
                else "another checkpoint, or a trace, is being made"
            )
            raise CheckpointError(f"no checkpoint can be made at launch {launch:,}: {why}")
        with Saving(self, path, objects or {}, warm) as saving:
            self._ahead = saving, point
            try:
                yield
                if self._ahead is not None:
                    raise CheckpointError(
                        f"{path}: the block ended after {self._next_id - 1:,} launches, before launch "
                        f"{launch:,}"
                    )
            finally:
                self._ahead = None

    @classmethod
    def from_checkpoint(
        cls,
        path: str | os.PathLike[str],
        gpu: str | os.PathLike[str] | Spec | None = None,
        *,
        warm: bool = True,
        **options: Any,
    ) -> Self:
        """A GPU with the memory and objects of a checkpoint; `objects` holds the latter, by name. If the
        checkpoint is within a launch, `continue_launch` continues it.

        gpu: None for the specification that the checkpoint was made with.
        warm: False for an empty L2, although the checkpoint keeps what it held.
        options: as for `GPU`. Memory is as large as it was, or, with `gpu`, as its specification says.

        Raises CheckpointError if the checkpoint is damaged or of another version, if memory is too small, or
        if what it keeps of the L2 does not fit this GPU's.
        """
        from simt.checkpoint.gpu import restore

        return restore(cls, path, gpu, warm, options)

    def continue_launch(self) -> LaunchResult | MaybeNone:
        """Continues the launch that the checkpoint interrupted, as calling the kernel does: where it is
        timed, the result is that of the remaining part.

        Raises CheckpointError if there is no such launch, or it is of another program.
        """
        if (found := self.interrupted) is None:
            raise CheckpointError("there is no launch to continue: the checkpoint is between launches")
        self.interrupted = None
        with self.annotate(found.annotation):
            try:
                return self.launch(found.launcher, lambda: found)
            except LaunchError as error:
                raise CheckpointError(f"the interrupted launch cannot be continued: {error}") from error

    def _at_checkpoint(self, launcher: Launcher, arguments: LaunchArguments) -> Launcher:
        """Makes the checkpoint that lies ahead if its launch begins. Returns what is left to launch."""
        self._require_continued()
        if self._ahead is None or self._ahead[1].launch != self._next_id:
            return launcher
        saving, point = self._ahead
        if not point.is_inside:
            saving.finish()
        else:
            stream = launcher.stream or next(reversed(self.entered_streams), None)
            launcher = saving.finish_within(point, replace(launcher, stream=stream), arguments.block)
        self._ahead = None
        return launcher

    def _require_continued(self) -> None:
        if self.interrupted is not None:
            name = self.interrupted.launcher.kernel.name
            raise CheckpointError(
                f"launch {self._next_id:,}, `{name}`, was interrupted by the checkpoint: call "
                "continue_launch() first"
            )

    @property
    def position(self) -> tuple[int, int, str]:
        """What has come before: number of launches, number of streams, digest of the timed launches."""
        return self.last_launch, self._streams, self._digest.hexdigest()

    @position.setter
    def position(self, position: tuple[int, int, str]) -> None:
        launches, self._streams, digest = position
        self._next_id = launches + 1
        self._digest = hashlib.sha256(digest.encode())

    # --- inside -----------------------------------------------------------------------------------------

    def _device_memory(self, capacity: int) -> _engine.functional.DeviceMemory:
        return _engine.functional.DeviceMemory(capacity, exact_bounds=self.exact_bounds)

    @cached_property
    def machine_facts(self) -> MachineFacts:
        """The engine's description of the executing machine."""
        spec = self.spec
        return {
            "sm_version": spec.sm_version,
            "exact_tensor_arithmetic": int(self.tensor_arithmetic == "exact"),
            "sm_count": spec.sm.count,
            "core_khz": round(spec.clock.core_mhz * 1000),
            "warps_per_sm": spec.sm.max_warps * spec.sm.warp_size // 32,
            "threads_per_cta": min(1024, spec.sm.max_warps * spec.sm.warp_size),
            "shared_bytes_per_cta": spec.shared_memory.bytes - spec.shared_memory.reserved_per_cta,
            "resident_ctas": spec.sm.count * spec.sm.max_ctas,
        }

    def _refuse(self, launcher: Launcher) -> None:
        """A launch that does not fit on an SM begins."""
        raise LaunchError(launcher.refusal, "too many registers")

    def _repr_html_(self) -> str:
        spec = self.spec
        rows = [
            ["SMs", f"{spec.sm.count}"],
            ["core clock", f"{float(spec.clock.core_mhz):,.0f} MHz"],
            ["device memory", f"{spec.dram.capacity_gib} GiB"],
            ["compute capability", f"{spec.sm_version // 10}.{spec.sm_version % 10}"],
            ["launches", "functional" if self.functional else f"{len(self.launches):,} timed"],
        ]
        return notebook(f"GPU {self.name}: {spec.description}", [(["", ""], rows, (0,))])

    def __repr__(self) -> str:
        how = "functional" if self.functional else f"{len(self.launches)} launches timed"
        return f"GPU({self.spec.name!r}, {how})"


def _uses_tensor_memory(kernel: Kernel) -> bool:
    """Whether its module's PTX has tcgen05 instructions, or its machine code what ptxas makes of them."""
    native = kernel.module.native
    if not native.is_machine_code:
        return "tcgen05." in kernel.module.ptx.text
    return any(_OF_TENSOR_MEMORY.match(text) for text in native.order(kernel.name))


def _leaves_nothing(source: _engine.InstructionSource) -> bool:
    """Whether a launch that is not timed need not be executed: by its code, its arguments, and what some of
    its CTAs store, it leaves no values. What these access and decide is checked as always."""
    count = source.cta_count
    if count <= _LOOKED_AT or source.order_matters or source.cluster_size > 1 or not source.leaves_no_values:
        return False
    some = source.some_ctas([i * count // _LOOKED_AT for i in range(_LOOKED_AT)])
    return not _engine.PartFootprint(some, []).leaves_values


def _parts(source: _engine.InstructionSource, cooperative: bool) -> Iterator[tuple[int, int]]:
    """The CTAs of a launch in ranges of whole clusters, in order."""
    ctas, together = source.cta_count, source.cluster_size
    wanted = ctas if cooperative else _IN_TURNS if source.order_matters else _AT_ONCE
    step = max(together, wanted // together * together)
    for first in range(0, ctas, step):
        yield first, min(first + step, ctas)
