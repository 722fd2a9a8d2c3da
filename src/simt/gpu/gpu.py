"""GPU: a simulated GPU that runs programs."""

from __future__ import annotations

import hashlib
import math
import os
import sys
import time
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from simt import _engine
from simt.control.launch import LaunchControl, method_of
from simt.cuda import PtxModule, compile_cuda, load
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
from simt.isa import table_for
from simt.names import function_name
from simt.policy import Policy
from simt.policy import overrides as policy_overrides
from simt.result import LaunchResult, Machine, Provenance, Result
from simt.run.interruption import Limits, deferred_stop
from simt.run.progress import Progress, Reporter
from simt.run.session import Facts, Session, to_resume
from simt.run.slices import NO_MEMORY, new_engine, run_slices
from simt.spec import Spec, load_spec
from simt.version import __version__

from .array import DeviceArray
from .module import Module
from .stream import Event, Stream
from .texture import Sampler, Source, Surface, Texture, make_sampler, make_surface, make_texture

if TYPE_CHECKING:
    from simt.control import Controller
    from simt.sampling import Plan

    from .arguments import Arguments
    from .module import Launcher
    from .recording import Recording

OLDEST_ARCH = 50  # NVRTC 12 compiles for nothing older
MAX_DEVICE_MEMORY = 1 << 40


class GPU:
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
        if threads < 1:
            raise LaunchError(f"threads is {threads}, expected 1 or more")
        own = dict(policies or {})
        self._overrides = {**(set or {}), **policy_overrides(own)}
        self.spec = load_spec(gpu, self._overrides)
        memory = self.spec.dram.capacity_gib << 30 if memory is None else memory
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
        self.memory = _engine.functional.DeviceMemory(memory)
        native = self.spec.native({key: p.address for key, p in own.items()})
        self._machine = Machine.from_spec(native)
        self._new_engine = partial(
            new_engine, native, threads=threads, window=window or 0, timeline_interval=timeline or 0
        )
        self._engine = self._new_engine()
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
        self._pending: dict[int, _Pending] = {}
        self._next_id = 1
        self._streams = 0
        self._recording: Recording | None = None

    # --- programs ---------------------------------------------------------------------------------------

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
        modules = [m for m in load(program, self.arch, **{"fmad": self.fmad, **options}) if m.kernels]
        if len(modules) != 1:
            raise PtxError(
                f"{str(program)[:200]}: {len(modules)} PTX modules with kernels, expected one; "
                "choose one of simt.cuda.load(...)"
            )
        return Module(self, modules[0])

    def triton(self, fn: Any) -> Any:
        """A `@triton.jit` function as a kernel: `gpu.triton(fn)[grid](arguments, num_warps=4, BLOCK=128)`."""
        from .foreign import TritonFunction

        return TritonFunction(self, fn)

    def numba(self, fn: Any) -> Any:
        """A Python function as Numba compiles it for CUDA: `gpu.numba(fn)[grid, block](arguments)`."""
        from .foreign import NumbaFunction

        return NumbaFunction(self, fn)

    def load_native(self, ptx: PtxModule) -> Any:
        return _engine.functional.load(ptx.text, ptx.name, self.memory)

    # --- memory -----------------------------------------------------------------------------------------

    def empty(self, shape: int | Sequence[int], dtype: npt.DTypeLike = np.float32) -> DeviceArray:
        """A new array; it holds zeros. Raises LaunchError where the device's memory is full."""
        sizes = (shape,) if isinstance(shape, int) else tuple(int(n) for n in shape)
        array = DeviceArray(self, 0, sizes, dtype, owner=False)
        address = self.memory.allocate(max(1, array.nbytes), f"array {sizes} of {array.dtype}")
        if not address:
            raise LaunchError(
                f"no room for {array.nbytes:,} bytes: "
                f"{self.memory.used:,} of {self.memory.capacity:,} are in use"
            )
        return DeviceArray(self, address, sizes, dtype)

    zeros = empty

    def array(self, values: npt.ArrayLike, dtype: npt.DTypeLike | None = None) -> DeviceArray:
        """A copy of host values in device memory."""
        host = np.asarray(values, dtype)
        device = self.empty(host.shape, host.dtype)
        if host.nbytes:
            self.write(device.address, np.ascontiguousarray(host))
        return device

    # --- textures ---------------------------------------------------------------------------------------

    def texture(
        self,
        source: Source | Sequence[Source],
        *,
        kind: str | None = None,
        channels: int = 1,
        width: int | None = None,
        filter: str = "point",
        address: str | Sequence[str] = "clamp",
        normalized: bool = False,
        read: str = "element",
        border: Sequence[float] = (0, 0, 0, 0),
        srgb: bool = False,
        level_filter: str = "point",
        level_bias: float = 0,
        level_range: tuple[float, float] = (0, 1000),
    ) -> Texture:
        """A texture over an array; an argument for kernels that take a `cudaTextureObject_t`.

        source: an array of the device, whose memory is read, or of the host, which is copied; elements of 8,
            16 or 32-bit integers, float16 or float32, in the order (z or layer, y, x, channel). A list of
            arrays: the levels of a mipmap, each half the size of the one before.
        kind: "1d", "2d", "3d" (by default, by the array's dimensions), "linear" (memory for `tex1Dfetch`),
            "1d_layered", "2d_layered", "cubemap" (6 faces: +x, -x, +y, -y, +z, -z), "cubemap_layered".
        channels: 1, 2 or 4 components of a texel, the array's last dimension if more than 1.
        width: texels of a row that count, where rows are padded.
        filter: "point" or "linear". address: "clamp", "border", "wrap" or "mirror", one or one for each of
            x, y, z; the last two need normalized coordinates. border: what "border" returns.
        normalized: coordinates go from 0 to 1, else from 0 to the number of texels.
        read: "element", or "normalized": integers of 8 or 16 bits as numbers from 0 or -1 to 1.
        srgb: colours of 8 bits are made linear. level_filter, level_bias, level_range: of mipmaps.

        Raises LaunchError for what does not fit together. docs/functional/textures.md gives the arithmetic.
        """
        return make_texture(
            self,
            source,
            kind=kind,
            channels=channels,
            width=width,
            filter=filter,
            address=address,
            normalized=normalized,
            read=read,
            border=border,
            srgb=srgb,
            level_filter=level_filter,
            level_bias=level_bias,
            level_range=level_range,
        )

    def surface(self, source: Source, *, kind: str | None = None, channels: int = 1) -> Surface:
        """A surface over an array; an argument for kernels that take a `cudaSurfaceObject_t`. What kernels
        write is read back with `.numpy()`, or in the array if it was one of the device.

        source, kind, channels: as of `texture`. Raises LaunchError for what does not fit together.
        """
        return make_surface(self, source, kind=kind, channels=channels)

    def sampler(
        self,
        *,
        filter: str = "point",
        address: str | Sequence[str] = "clamp",
        unnormalized: bool = False,
        border: Sequence[float] = (0, 0, 0, 0),
        level_filter: str = "point",
        level_bias: float = 0,
        level_range: tuple[float, float] = (0, 1000),
    ) -> Sampler:
        """A sampler for a `.samplerref` variable of PTX. unnormalized: coordinates are texels, whatever the
        texture says. The rest: as of `texture`, as are the errors."""
        return make_sampler(
            self,
            filter=filter,
            address=address,
            unnormalized=unnormalized,
            border=border,
            level_filter=level_filter,
            level_bias=level_bias,
            level_range=level_range,
        )

    def write(self, address: int, values: npt.NDArray[Any]) -> None:
        self.memory.write(address, values.tobytes())
        if not self.functional:
            self._engine.copy_from_host(address, values.nbytes)

    def free(self, address: int) -> None:
        self.synchronize()
        self.memory.free(address)

    # --- launches ---------------------------------------------------------------------------------------

    def stream(self) -> Stream:
        """A new stream: its launches run one after the other, and beside those of other streams."""
        self._streams += 1
        return Stream(self, self._streams)

    def event(self) -> Event:
        return Event(self)

    def launch(self, launcher: Launcher, arguments: Arguments) -> LaunchResult | None:
        """Used by kernels."""
        try:
            return self._launch(launcher, arguments)
        except BaseException:
            arguments.discard()
            raise

    def _launch(self, launcher: Launcher, arguments: Arguments) -> LaunchResult | None:
        kernel = launcher.kernel
        launch_id = self._next_id
        self._next_id += 1
        self._check_registers(launcher)
        self._digest.update(
            f"{kernel.module.ptx.text}\0{kernel.name}\0{launcher.grid}{launcher.block}{launcher.cluster}"
            f"{launcher.shared}".encode()
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
        stream = launcher.stream
        with self._faults(launcher):
            table, _ = table_for(self.spec.sm_version)
            source = _engine.functional.source(
                *self._what_runs(launcher, arguments.block),
                table.native,
                self.spec.sm_version,
                kernel.facts.registers,
                stream.number if stream is not None else 0,
                launch_id,
            )
        if self._recording is not None:
            try:
                with self._faults(launcher):
                    self._recording.add(source)
            finally:
                self._print(source.printed)
            arguments.copy_back()
            return None
        control = self._control(launch_id, launcher)
        self._pending[launch_id] = _Pending(launcher, arguments, source, control, digest)
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
        with self._faults(launcher):
            counts = _engine.functional.run(
                *self._what_runs(launcher, parameters), self.threads, launch_id, self._print
            )
        self.instructions += counts[0]
        self.thread_instructions += counts[1]

    def synchronize(self) -> None:
        """Runs what is queued. Raises ProgramFault for what a program does wrong, DeadlockError where it can
        never end, LimitReached after `max_cycles`, KeyboardInterrupt on Ctrl-C."""
        if not self._pending:
            return
        start, before = time.monotonic(), len(self._session.launches)
        total = before + len(self._pending)
        executed = self._engine.progress()["warp_instructions"]
        with self._reporter.showing() as report, deferred_stop() as stop_requested, self._faults():

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
        return [self._session.launches[index] for index in sorted(self._session.launches)]

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

        if self._recording is not None:
            raise LaunchError("a trace is being recorded already")
        self.synchronize()
        with Recording(Path(path), self.spec.sm.warp_size) as recording:
            self._recording = recording
            try:
                yield
                self.synchronize()
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
            running=tuple(self._pending[i].launcher.kernel.name for i in p["running"] if i in self._pending),
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
        finished = self._engine.finished()
        for raw in finished:
            pending = self._pending.pop(raw["id"])
            launcher = pending.launcher
            facts = Facts(
                index=raw["id"] - 1,
                id=raw["id"],
                name=launcher.kernel.name,
                grid=launcher.grid,
                block=launcher.block,
                shared_bytes=launcher.kernel.facts.shared_bytes + launcher.shared,
                registers=launcher.kernel.facts.registers,
                sm_version=self.spec.sm_version,
            )
            raw["pc"] = launcher.kernel.module.origins.added_to(raw["pc"])
            try:
                self._session.add(raw, facts, pending.control, pending.digest)
            finally:
                self._print(pending.source.printed)
                pending.arguments.copy_back()

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
            fault = ProgramFault(
                f"kernel `{kernel.name}`: a block of {math.prod(launcher.block)} threads needs {needed:,} "
                f"registers ({kernel.facts.registers} a thread); an SM of this GPU has {file.registers:,}"
            )
            fault.kind, fault.kernel = "too many registers", kernel.name
            raise fault

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
        if launcher is None and native.launch in self._pending:
            launcher = self._pending[native.launch].launcher
        text = ""
        if launcher is not None:
            text = launcher.kernel.module.ptx.source_text(native.source_file, native.source_line).strip()
        if queued:
            self._abandon()
        raise ProgramFault.from_native(native, text) from None

    def _abandon(self) -> None:
        """After a fault: what is queued is dropped, and the GPU begins anew with its memory as it is."""
        if not self._pending:
            return
        for _, pending in sorted(self._pending.items()):
            self._print(pending.source.printed)
            pending.arguments.discard()
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


class _Pending:
    """A launch that is queued: what must live until it is done."""

    def __init__(
        self,
        launcher: Launcher,
        arguments: Arguments,
        source: Any,
        control: LaunchControl | None,
        digest: str,
    ) -> None:
        self.control = control
        self.digest = digest
        self.launcher = launcher
        self.arguments = arguments
        self.source = source
