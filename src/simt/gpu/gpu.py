"""GPU: a simulated GPU that runs programs."""

from __future__ import annotations

import hashlib
import math
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from simt import _engine
from simt.control.launch import LaunchControl, method_of
from simt.cuda import PtxModule, compile_cuda, link, load
from simt.cuda.device_runtime import with_device_runtime
from simt.errors import (
    ControlError,
    DeadlockError,
    Interrupted,
    LaunchError,
    LimitReached,
    PlanError,
    ProgramFault,
    PtxError,
    ResultError,
    SimulationError,
)
from simt.host_threads import host_threads
from simt.isa import table_for
from simt.names import function_name
from simt.policy import Policy
from simt.policy import overrides as policy_overrides
from simt.result import LaunchResult, Machine, Provenance, Result
from simt.run.interruption import Limits, deferred_stop
from simt.run.progress import Progress, Reporter
from simt.run.session import Session, to_resume
from simt.run.slices import NO_MEMORY, new_engine, run_slices
from simt.spec import Spec, load_spec
from simt.version import __version__

from .creation import ArrayCreation
from .exclusive import Exclusive
from .memory import Memory, whole
from .module import Module
from .queued import QueuedLaunch, queued_launch
from .stream import Event, Stream
from .texturing import Texturing

if TYPE_CHECKING:
    from simt.control import Controller
    from simt.sampling import Plan

    from .arguments import Arguments
    from .module import Launcher
    from .recording import Recording

OLDEST_ARCH = 50  # NVRTC 12 compiles for nothing older
MAX_DEVICE_MEMORY = 1 << 40


# What the engine calls launches that cannot be made.
_REFUSED = ("invalid launch", "too much shared memory", "out of memory")


class GPU(ArrayCreation, Texturing):
    """A simulated GPU: compile a program, give it arrays, launch it, see values and cycles.

    gpu: name of a specification (`simt gpus` lists them), path of a TOML file, or a specification.
    functional: only values, no timing: about a thousand times as fast.
    set, threads, timeline, window, progress, policies, controller: as of `simt.simulate`. What a controller
        leaves out is executed all the same: values are those of a full simulation.
    plan: only its launches are timed, or those with the given ids (from 1); the others are executed
        without timing. `result().sampling` then has totals of all launches that a Plan stands for.
    memory: bytes of device memory, by default the specification's; host memory is used for what is touched.
    max_cycles: LimitReached is raised after about so many core cycles of timed launches.
    output: where `save` puts the Result. Timed launches are written there as they finish, so that they are
        kept whatever happens next: `Result.load` reads them.
    resume: go on where the run with this output stopped: launches that had finished are executed without
        timing, and their counters taken over; the later ones begin with empty caches.
    fmad: products and sums that do not say how they round become one fma where nvcc makes one of them;
        `compile` and `load` take it, too.
    """

    def __init__(
        self,
        gpu: str | os.PathLike[str] | Spec = "h100",
        *,
        functional: bool = False,
        set: Mapping[str, Any] | None = None,
        threads: int = 1,
        timeline: int | None = None,
        window: int | None = None,
        memory: int | None = None,
        progress: Callable[[Progress], None] | bool | None = None,
        policies: Mapping[str, Policy] | None = None,
        controller: Controller | None = None,
        plan: Plan | Collection[int] | None = None,
        max_cycles: int | None = None,
        output: str | os.PathLike[str] | None = None,
        resume: bool = False,
        fmad: bool = True,
    ) -> None:
        threads = host_threads(threads)
        own = dict(policies or {})
        self._overrides = {**(set or {}), **policy_overrides(own)}
        self.spec = load_spec(gpu, self._overrides)
        memory = self.spec.dram.capacity_gib << 30 if memory is None else whole("memory", memory)
        if not 1 <= memory <= MAX_DEVICE_MEMORY:
            raise LaunchError(f"memory is {memory} bytes, expected 1 to {MAX_DEVICE_MEMORY}")
        self._overrides |= {f"policy.{key}": f"{p.name} {p.identity}" for key, p in own.items()}
        self.functional = functional
        self.fmad = fmad
        self.threads = threads
        self._timeline = timeline
        self._digest = hashlib.sha256()
        self._reporter = Reporter(progress)
        self._limits = Limits(max_cycles)
        self._controller = controller
        self._plan = None if isinstance(plan, Collection) else plan
        self._timed = _timed(plan)
        self.memory = Memory(self, memory)
        """Raw device memory, by address."""
        self.exclusive = Exclusive(self.memory.native.free)
        """Held by whoever uses the GPU: `with gpu.exclusive:` keeps other threads out."""
        self._of_thread = threading.local()
        self.native_spec = native = self.spec.native({key: p.address for key, p in own.items()})
        self._machine = Machine.from_spec(native)
        self._new_engine = partial(
            new_engine, native, threads=threads, window=window or 0, timeline_interval=timeline or 0
        )
        self._engine: Any = None if functional else self._new_engine()
        self.program = sys.argv[0] if sys.argv[0].endswith(".py") else "executed program"
        """What runs on it, for its Result."""
        target = None if output is None else Path(output)
        self._session = Session(
            self._machine, self._provenance(), output=target, before=to_resume(target, resume)
        )
        self._cycles_before = 0
        self.printed = ""
        """What kernels have printed, as far as it was not written to standard output."""
        self.instructions = 0
        """Warp instructions executed without timing."""
        self.thread_instructions = 0
        """Thread instructions executed without timing: those of active lanes."""
        self._pending: dict[int, QueuedLaunch] = {}
        self._next_id = 1
        self._streams = 0
        self._recording: Recording | None = None

    # --- programs ---------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The name of its specification."""
        return self.spec.name

    @property
    def arch(self) -> str:
        """What programs are compiled for, such as "sm_80"."""
        version = max(self.spec.sm_version, OLDEST_ARCH)
        return f"sm_{version}a" if version == 90 else f"sm_{version}"

    def compile(self, source: str, **options: Any) -> Module:
        """Compiles CUDA C++ with NVRTC and loads it. Options: those of `simt.cuda.compile_cuda`.

        Raises CompileError with NVRTC's log, PtxError where it uses what cannot be executed.
        """
        return Module(self, compile_cuda(source, arch=self.arch, **{"fmad": self.fmad, **options}))

    def load(self, program: str | os.PathLike[str] | PtxModule, **options: Any) -> Module:
        """Loads a `.cu` or `.ptx` file, a program or library that nvcc compiled, or their text.

        A file with several PTX modules that hold kernels is refused; `simt.cuda.load` gives them one by one.
        """
        if isinstance(program, PtxModule):
            return Module(self, program)
        every = load(program, self.arch, **{"fmad": self.fmad, **options})
        # One without kernels may have templates, which are compiled when they are asked for.
        modules = [m for m in every if m.kernels] if len(every) > 1 else every
        if len(modules) != 1:
            raise PtxError(
                f"{str(program)[:200]}: {len(modules)} PTX modules with kernels, expected one; "
                "choose one of simt.cuda.load(...)"
            )
        return Module(self, modules[0])

    def link(self, programs: Sequence[str | os.PathLike[str] | PtxModule], **options: Any) -> Module:
        """Links several PTX or CUDA C++ files, texts or modules into one, as cuLink does, and loads it.

        Options: those of `simt.cuda.load`. Raises PtxError for a name that two files define, or none.
        """
        return Module(self, link(programs, self.arch, **{"fmad": self.fmad, **options}))

    def triton(self, fn: Any) -> Any:
        """A `@triton.jit` function as a kernel: `gpu.triton(fn)[grid](arguments, num_warps=4, BLOCK=128)`."""
        from .triton_kernel import TritonFunction

        return TritonFunction(self, fn)

    def numba(self, fn: Any, signature: Any = None, **options: Any) -> Any:
        """A Python function as Numba compiles it for CUDA: `gpu.numba(fn)[grid, block](arguments)`.

        signature: Numba types of the arguments, or text such as "void(float32[:], int64)"; None: those of
            each launch's arguments. Options: those of `simt.cuda.numba_cuda.compile_numba`; those that a
            `@cuda.jit` gives hold, too.
        """
        from .numba_kernel import NumbaFunction

        return NumbaFunction(self, fn, signature, options)

    def load_native(self, ptx: PtxModule) -> Any:
        with self.exclusive:
            return _engine.functional.load(with_device_runtime(ptx.text), ptx.name, self.memory.native)

    # --- memory -----------------------------------------------------------------------------------------

    def write(self, address: int, values: npt.NDArray[Any]) -> None:
        """Copies a host array without gaps to a device address."""
        with self.exclusive:
            self.memory.native.write(address, values.tobytes())
            self.copied_from_host(address, values.nbytes)

    def peek(self, address: int, nbytes: int) -> bytes:
        """What lies in device memory now; launches that are queued have not run."""
        return bytes(self.memory.native.read(address, nbytes))

    def copied_from_host(self, address: int, nbytes: int) -> None:
        """Tells the timing model of a copy."""
        if self._engine is not None:
            self._engine.copy_from_host(address, nbytes)

    # --- launches ---------------------------------------------------------------------------------------

    def stream(self) -> Stream:
        """A new stream: its launches run one after the other, and beside those of other streams."""
        with self.exclusive:
            self._streams += 1
            return Stream(self, self._streams)

    def event(self) -> Event:
        """An event that stands behind nothing until it is recorded."""
        return Event(self)

    @property
    def entered_streams(self) -> list[Stream]:
        """Those whose `with` blocks this thread is in, the innermost last."""
        here: list[Stream] = self._of_thread.__dict__.setdefault("streams", [])
        return here

    @property
    def queued(self) -> tuple[int, ...]:
        """Ids of the launches that are not finished."""
        return tuple(self._pending)

    @property
    def last_cycle(self) -> int:
        """When the last of the finished launches ended."""
        return max((x.end_cycle for x in self.launches), default=0)

    def launch(self, launcher: Launcher, arguments: Callable[[], Arguments]) -> LaunchResult | None:
        """Used by kernels. arguments: makes them, when the GPU is ours."""
        with self.exclusive:
            made = arguments()
            try:
                return self._launch(launcher, made)
            except BaseException:
                made.discard()
                raise

    def _launch(self, launcher: Launcher, arguments: Arguments) -> LaunchResult | None:
        kernel = launcher.kernel
        launch_id = self._next_id
        self._next_id += 1
        self._check_registers(launcher)
        self._digest.update(
            f"{kernel.module.ptx.text}\0{kernel.name}\0{launcher.grid}{launcher.block}{launcher.cluster}"
            f"{launcher.shared}{' cooperative' if launcher.cooperative else ''}".encode()
            + arguments.block
        )
        digest = self._digest.hexdigest()
        timed = not self.functional and self._is_timed(launch_id, kernel.name)
        kept = timed and self._session.kept(launch_id - 1, digest, kernel.name)
        if self._recording is None and (kept or not timed):
            self.synchronize()
            self.run_values(launcher, arguments.block, launch_id)
            arguments.copy_back()
            return self._session.take_over(launch_id - 1) if kept else None
        stream = launcher.stream or next(reversed(self.entered_streams), None)
        with self._faults(launcher):
            table, _ = table_for(self.spec.sm_version)
            source = _engine.functional.source(
                *self._what_runs(launcher, arguments.block),
                table.native,
                self.spec.sm_version,
                kernel.facts.registers,
                stream.number if stream is not None else 0,
                launch_id,
                cooperative=launcher.cooperative,
            )
        if self._recording is not None:
            try:
                with self._faults(launcher), self.exclusive.running():
                    self._recording.add(source)
            finally:
                self._print(source.printed)
            arguments.copy_back()
            return None
        control = self._control(launch_id, launcher)
        self._pending[launch_id] = queued_launch(launch_id, launcher, arguments, source, control, digest)
        after = stream.pending() if stream is not None else ()
        self._engine.launch(source, launch_id, [i for i in after if i in self._pending], control)
        del source, control  # the traceback of a fault would keep them alive
        if stream is not None:
            stream.launched(launch_id)
            if not arguments.has_host_arrays:
                return None
        self.synchronize()
        return self._session.launches[launch_id - 1]

    def run_values(self, launcher: Launcher, parameters: bytes, launch_id: int) -> None:
        """Runs a launch without timing. What watches launches (`simt.debug`) overrides this."""
        with self._faults(launcher), self.exclusive.running():
            counts = _engine.functional.run(
                *self._what_runs(launcher, parameters),
                self.threads,
                launch_id,
                self._print,
                cooperative=launcher.cooperative,
            )
        self.instructions += counts[0]
        self.thread_instructions += counts[1]

    def synchronize(self) -> None:
        """Runs what is queued. Raises ProgramFault for what a program does wrong, DeadlockError where it can
        never end, LimitReached after `max_cycles`, KeyboardInterrupt on Ctrl-C."""
        with self.exclusive:
            if self._pending:
                self._run_queued()

    def _run_queued(self) -> None:
        start, before = time.monotonic(), len(self._session.launches)
        total = before + len(self._pending)
        executed = self._engine.progress()["warp_instructions"]
        with (
            self.exclusive.running(),
            self._reporter.showing() as report,
            deferred_stop() as stop_requested,
            self._faults(),
        ):

            def after_slice() -> None:
                self._collect()
                report(self._progress(start, before, total, executed))

            try:
                why = run_slices(
                    self._engine,
                    is_over=lambda _: not self._pending,
                    after_slice=after_slice,
                    limits=self._limits,
                    cycles_before=self._cycles_before,
                    stop_requested=stop_requested,
                )
            except _engine.DeadlockError as error:
                self._abandon()
                raise DeadlockError(str(error), self.result("deadlock")) from error
            except MemoryError as error:
                self._abandon()
                raise SimulationError(NO_MEMORY, self.result("failed")) from error
            except (ControlError, ResultError):
                self._abandon()
                raise
        if not self._pending:
            return
        self._abandon()
        if why == "max_cycles":
            raise LimitReached(self._limits.text(why), self.result(why))
        raise Interrupted(self.result("interrupted"), stop_requested())

    @property
    def launches(self) -> list[LaunchResult]:
        """Timed launches that are finished, in the order of launch."""
        finished = dict(self._session.launches)  # another thread may be adding to it
        return [finished[index] for index in sorted(finished)]

    def result(self, status: str = "complete") -> Result:
        """All timed launches so far as a Result: tables, report, JSON, Parquet."""
        if status == "complete":
            self.synchronize()
        found = self._session.result(
            status,
            why=f"{status} reached" if status == "max_cycles" else "",
            input_hash=self._digest.hexdigest(),
        )
        found = replace(found, provenance=replace(found.provenance, input=self.program))
        if status != "complete" or not found.launches or (self._controller is None and self._plan is None):
            return found
        from simt.control.accuracy import with_accuracy

        return with_accuracy(found, self._plan)

    def save(self, result: Result | None = None) -> None:
        """Saves a Result of this GPU, by default of all launches so far, in `output`. Raises ResultError."""
        self._session.save(self.result() if result is None else result)

    @contextmanager
    def trace(self, path: str | os.PathLike[str]) -> Iterator[None]:
        """Records the launches made inside as a trace instead of timing them: a `.simt` store, or for any
        other name a directory with version 5 text and a `kernelslist.g`. Values are computed as always.

        The trace appears when the block ends; after an exception there is none.
        """
        from .recording import Recording

        with self.exclusive:
            if self._recording is not None:
                raise LaunchError("a trace is being recorded already")
            self.synchronize()
        with Recording(Path(path), self.spec.sm.warp_size) as recording:
            self._recording = recording
            try:
                yield
                with self.exclusive:
                    self._recording = None
                    recording.finish()
            finally:
                self._recording = None

    # --- inside -----------------------------------------------------------------------------------------

    def _provenance(self) -> Provenance:
        return Provenance(
            input=self.program,
            input_hash=self._digest.hexdigest(),
            gpu=self.spec.name,
            spec_hash=self.spec.hash,
            overrides=self._overrides,
            version=__version__,
            method=method_of(self._controller, self._plan),
            kernels=None,
            max_cycles=self._limits.max_cycles,
            timeline=self._timeline,
            resumed_after=0,
            threads=self.threads,
            wall_seconds=0.0,
            created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        )

    def _progress(self, start: float, before: int, total: int, executed: int) -> Progress:
        """start: when these launches began; before: launches finished then; total: with those queued;
        executed: instructions before."""
        p = self._engine.progress()
        done = len(self._session.launches)
        under_way = p["ctas_done"] / max(1, p["ctas_total"]) if p["running"] else 0
        return Progress(
            phase="simulating",
            fraction=min(1.0, (done - before + under_way) / (total - before)),
            seconds=time.monotonic() - start,
            launches_done=done,
            launches_total=total,
            cycle=p["cycle"],
            warp_instructions=p["warp_instructions"] - executed,
            running=tuple(self._pending[i].facts.name for i in p["running"] if i in self._pending),
        )

    def _what_runs(self, launcher: Launcher, parameters: bytes) -> tuple[Any, ...]:
        """What the engine takes of a launch, timed or not."""
        kernel = launcher.kernel
        return (
            kernel.module.native,
            kernel.facts.index,
            launcher.grid,
            launcher.block,
            launcher.cluster,
            launcher.shared,
            parameters,
            self.machine_facts(),
        )

    def machine_facts(self) -> dict[str, int]:
        spec = self.spec
        return {
            "sm_version": spec.sm_version,
            "sm_count": spec.sm.count,
            "core_khz": round(spec.clock.core_mhz * 1000),
            "warps_per_sm": spec.sm.max_warps * spec.sm.warp_size // 32,
            "threads_per_cta": min(1024, spec.sm.max_warps * spec.sm.warp_size),
            "shared_bytes_per_cta": spec.shared_memory.bytes - spec.shared_memory.reserved_per_cta,
            "resident_ctas": spec.sm.count * spec.sm.max_ctas,
        }

    def _print(self, text: bytes) -> None:
        if not text:
            return
        decoded = text.decode("utf-8", "replace")
        sys.stdout.write(decoded)
        self.printed += decoded

    def _collect(self) -> None:
        refused: list[LaunchError] = []
        for raw in self._engine.finished():
            pending = self._pending.pop(raw["id"])
            raw["pc"] = pending.origins.added_to(raw["pc"])
            try:
                self._session.add(raw, pending.facts, pending.control, pending.digest)
            finally:
                self._print(pending.source.printed)
                try:
                    pending.copy_back()
                except LaunchError as error:
                    refused.append(error)
        if refused:
            raise refused.pop(0)

    def _is_timed(self, launch_id: int, name: str) -> bool:
        if self._timed is None:
            return True
        wanted = self._timed.get(launch_id)
        if wanted is None:
            return False
        if wanted and function_name(wanted) != function_name(name):
            raise PlanError(
                f"plan: launch {launch_id - 1} (counted from 0) is {wanted!r}, the program launches "
                f"{name!r}: are they of the same run?"
            )
        return True

    def _control(self, launch_id: int, launcher: Launcher) -> LaunchControl | None:
        if self._controller is None:
            return None
        return LaunchControl(
            self._controller,
            index=launch_id - 1,
            id=launch_id,
            name=launcher.kernel.name,
            grid=launcher.grid,
            block=launcher.block,
            sm_count=self._machine.sm_count,
            l2_lines=self.spec.l2_lines,
            dram_bytes_per_cycle=self.spec.dram_bytes_per_cycle,
            threads=self.threads,
        )

    def _check_registers(self, launcher: Launcher) -> None:
        """Refuses a block that needs more registers than an SM has, where their number is sure."""
        kernel, file = launcher.kernel, self.spec.sm.register_file
        warps = -(-math.prod(launcher.block) // self.spec.sm.warp_size)
        unit = max(1, file.allocation_unit)
        needed = warps * (-(-kernel.facts.registers * self.spec.sm.warp_size // unit) * unit)
        if kernel.facts.registers_from == "ptxas" and needed > file.registers:
            raise LaunchError(
                f"kernel `{kernel.name}`: a block of {math.prod(launcher.block)} threads needs {needed:,} "
                f"registers ({kernel.facts.registers} a thread); an SM of this GPU has {file.registers:,}",
                "too many registers",
            )

    @contextmanager
    def _faults(self, launcher: Launcher | None = None) -> Iterator[None]:
        """Turns what the engine says of a program's fault into ours, and drops what is queued if the program
        ran under timing. launcher: what runs, where it is not one of those queued."""
        queued = launcher is None
        try:
            yield
        except _engine.functional.ProgramFault as error:
            native = error
            traceback.clear_frames(native.__traceback__)  # they would keep the launch alive
        except ValueError as error:
            if queued:
                self._abandon()
            raise LaunchError(str(error)) from error
        else:
            return
        if not native.instruction and native.kind in _REFUSED:
            raise LaunchError(str(native), native.kind) from None
        ptx = None if launcher is None else launcher.kernel.module.ptx
        if launcher is None and native.launch in self._pending:
            ptx = self._pending[native.launch].ptx
        text = ptx.source_text(native.source_file, native.source_line).strip() if ptx is not None else ""
        if queued:
            self._abandon()
        native.__traceback__ = None  # it leads here: the GPU would live as long as the cycle
        raise ProgramFault.from_native(native, text) from None

    def _abandon(self) -> None:
        """After a fault: what is queued is dropped, and the GPU begins anew with its memory as it is."""
        if not self._pending:
            return
        for _, pending in sorted(self._pending.items()):
            self._print(pending.source.printed)
            pending.discard()
        self._pending.clear()
        self._cycles_before += self._engine.cycle
        self._session.new_engine(self._engine.cycle)
        self._engine = self._new_engine()

    def __repr__(self) -> str:
        how = "functional" if self.functional else f"{len(self.launches)} launches timed"
        return f"GPU({self.spec.name!r}, {how})"


def _timed(plan: Plan | Collection[int] | None) -> dict[int, str] | None:
    """Launches to be timed, and their kernels' names as far as they are known; None: all of them."""
    if plan is None:
        return None
    if isinstance(plan, Collection):
        return {int(number): "" for number in plan}
    # Positions count from 0, the ids of launches from 1.
    return {number + 1: name for number, name in plan.launches.select("position", "name").iter_rows()}
