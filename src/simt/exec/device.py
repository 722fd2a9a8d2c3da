"""One device of a program: executes the requests of the program's CUDA library."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from simt import _engine
from simt.cuda import Image, PtxModule, link
from simt.cuda.fatbin import ELF_MAGIC, FATBIN_MAGIC, images_in
from simt.cuda.ptx_module import arch_number
from simt.errors import (
    CompileError,
    DeadlockError,
    DynamicParallelismError,
    ImageError,
    LaunchError,
    ProgramFault,
    SimtError,
    ToolkitError,
)
from simt.gpu.arguments import LaunchArguments
from simt.gpu.module import Kernel, Launcher, Module
from simt.names import printable
from simt.options import GpuOptions
from simt.result import Result
from simt.run.l2 import PROPERTIES, AccessWindow, MemoryRows, Use
from simt.run.overrides import override_texts
from simt.run.planned import PROFILER_RANGE
from simt.run.session import QueuedTransfer
from simt.spec import Spec, load_spec

from . import codes
from .attributes import device_attributes, device_uuid
from .checkpoints import Steps
from .gpus import CheckpointedGpu, PausedLaunch, ProgramGpu
from .objects import Objects, ptx_of
from .requests import (
    AllocateRequest,
    AnsweredLaunchRequest,
    Arena,
    CallRequest,
    CloseRangeRequest,
    CopyRequest,
    DeviceFacts,
    ElapsedRequest,
    FillRequest,
    ForgetRequest,
    FreeRequest,
    KernelRecord,
    LaunchConfiguration,
    LaunchMode,
    LaunchRequest,
    LoadedModule,
    LoadRequest,
    NoteRequest,
    OccupancyRequest,
    OpenRangeRequest,
    OpenRequest,
    ParameterPlace,
    Queried,
    QueryRequest,
    QueryResult,
    ReachRequest,
    RecordRequest,
    Refusal,
    RefuseTablesRequest,
    RegistersRequest,
    ReleaseRequest,
    ResetPersistingRequest,
    ResetRequest,
    RunAheadRequest,
    SetAsideRequest,
    ShareRequest,
    StackRequest,
    StreamRequest,
    SynchronizeRequest,
    UnloadRequest,
    VariableRecord,
    WaitRequest,
    WaitResult,
    WindowRecord,
)
from .streams import ProgramStream, Streams
from .untimed import HostCall, Untimed

if TYPE_CHECKING:
    from simt.check.findings import Finding
    from simt.engine_types import LoadedKernel
    from simt.profile.executed import Executed

HOST_BYTES = 64 << 30
"""Address space for the program's pinned and registered memory, in addition to device memory."""
STACK_BYTES = 16 << 10
"""Stack per thread, unless the program requests more."""

QUERY_CYCLES, QUERY_INSTRUCTIONS = 5_000, 100_000
"""Core cycles, or warp instructions where nothing is timed, by which a query advances what is not done. The
cycles are a few microseconds, about what a query takes on hardware."""
WAIT_INSTRUCTIONS = 4_000_000
"""Warp instructions that launches which are not timed execute in turn while the program waits."""

_OF_PROGRAM = ("cudaMalloc", "cudaMallocPitch")
"""Labels of memory that a program must free, or it leaks."""
_AHEAD = (
    "launches ran ahead while the program made no CUDA call, since it kept accessing memory that it shares "
    "with kernels, or a function of its own was queued: their cycles depend on the host's speed"
)

_FAILURES = (DeadlockError, ProgramFault, LaunchError, ImageError, CompileError, ToolkitError)
"""Errors of the program."""
# Error codes of program faults.
_FAULTS = {
    "illegal address": codes.ILLEGAL_ADDRESS,
    "misaligned address": codes.MISALIGNED_ADDRESS,
    "assert": codes.ASSERT,
    "endless wait": codes.LAUNCH_TIMEOUT,
    "stack overflow": codes.ILLEGAL_ADDRESS,
    "illegal instruction": codes.ILLEGAL_INSTRUCTION,
}

_PRIVATE_TABLES = (
    "asked for NVIDIA's private tables, as NVIDIA's closed libraries (cuBLAS, cuFFT, cuDNN, ...) and a CUDA "
    "runtime without symbols do, and the program launched no kernel afterwards; simt has no such tables. Do "
    "not strip files that have the runtime in them, or link it as a shared library (nvcc -cudart shared), "
    "and do without those libraries"
)
_WITHOUT_TABLES = ("libnvrtc", "libnvJitLink", "libnvvm", "libnvptxcompiler")
"""Compilers, which ask for private tables and work without them."""


def _window_of(record: WindowRecord) -> AccessWindow | None:
    if not record.size:
        return None
    hit, miss = (PROPERTIES[number] for number in (record.hit, record.miss))
    return AccessWindow(record.address, record.size, record.hit_ratio, hit, miss)


def _record_of(facts: LoadedKernel) -> KernelRecord:
    sizes, (x, y, z) = facts["max_threads"], facts["cluster"]
    return KernelRecord(
        parameters=[ParameterPlace(offset, size) for offset, size, *_ in facts["parameters"]],
        shared_bytes=facts["shared_bytes"],
        stack_bytes=facts["stack_bytes"],
        max_threads=sizes[0] * max(1, sizes[1]) * max(1, sizes[2]),
        cluster=(x, y, z),
    )


class ProgramDevice(Objects):
    """Device `ordinal` of one process of the program.

    options: of its GPU. profile: file for what its launches execute. ask: makes the program call one of its
    functions, by number, and returns when it has been called. steps: the launches before the point of a
    checkpoint. The methods with a `request` take those of `requests.py`.
    """

    def __init__(
        self,
        options: GpuOptions,
        profile: str | os.PathLike[str] | None,
        ordinal: int,
        program: str,
        ask: Callable[[int], None],
        steps: Steps | None = None,
    ) -> None:
        self._ask = ask
        self._steps = steps
        self._answers_launches = steps is not None and steps.active
        self._spec: Spec = load_spec(options.gpu, override_texts(options.set))
        self._shown = (steps.spec if steps is not None else None) or self._spec
        """What the program is told about its GPU."""
        self._ordinal, self._program = ordinal, program
        self._options = options
        self._profile = None if profile is None else Path(profile)
        self._executed: Executed | None = None
        self._gpu: ProgramGpu | None = None
        self._ranges: list[str] = []
        """Those that are open, in the order in which they were opened."""
        self._profiling = ExitStack()
        self._printed = bytearray()
        self._fault: tuple[int, str] | None = None
        self._modules: dict[int, Module] = {}
        self._loaded = 0
        """Number of the last module: numbers are not used again, since launches refer to modules by them."""
        self._kernels: dict[tuple[int, str], Kernel] = {}
        self._launcher = lru_cache(maxsize=1024)(self._make_launcher)
        self._streams = Streams()
        self._untimed = Untimed(self._streams)
        self._is_alone = False
        """Whether nobody can change memory while the program waits."""
        self._events: dict[int, tuple[int, QueuedTransfer]] = {}
        """By event: number and times of the work it stands for."""
        self.watch: Callable[[], None] = _nothing
        """Called again and again while launches run; what it raises stops them."""
        self.space: _engine.functional.AddressSpace | None = None
        """The engine's address space that the process's devices share; None if it is alone."""
        self.lacking = ""
        self._refused_tables = ""
        """The file that requested a private table, if the program has not launched a kernel or received
        another error since."""

    @property
    def facts(self) -> DeviceFacts:
        return DeviceFacts(
            name=self._shown.description.split(":")[0] or self._shown.name,
            attributes=device_attributes(self._shown, self._ordinal),
            uuid=device_uuid(self._shown, self._ordinal),
            memory=self._shown.dram.capacity_gib << 30,
            functional=self._answers_launches
            or (self._options.functional and not self._options.check and self._profile is None),
            synchronous=self._answers_launches,
            checked=bool(self._options.check),
            joined=self.space is not None,
        )

    # --- requests ---------------------------------------------------------------------------------------

    def open(self, request: OpenRequest) -> Arena:
        if self._gpu is None:
            options = replace(self._options, memory=(self._shown.dram.capacity_gib << 30) + HOST_BYTES)
            if self._steps is None:
                self._gpu = ProgramGpu(self._ordinal, self._printed, options, self.space)
            else:
                self._gpu = CheckpointedGpu(self._steps, self._ordinal, self._printed, options, self.space)
            self._gpu.program = self._program
            self._gpu.session.watch = self.watch
            for name in self._ranges:
                self._gpu.open_range(name)
            if self._profile is not None:
                self._executed = self._profiling.enter_context(self._gpu.profiled())
            self._untimed.following = self._gpu.following
        native = self.gpu.memory.native
        return Arena(native.base, native.capacity)

    @property
    def gpu(self) -> ProgramGpu:
        if self._gpu is None:
            raise LaunchError("the program uses a device before it has a context there")
        return self._gpu

    @property
    def file(self) -> int:
        """The file descriptor of its memory."""
        return self.gpu.memory.native.file

    def reset(self, request: ResetRequest) -> int:
        self._run()
        self._ended()
        self._modules.clear()
        self._kernels.clear()
        self._launcher.cache_clear()
        native = self.gpu.memory.native
        for address, *_ in native.allocations():
            native.free(address)
            if self.gpu.checking is not None:
                self.gpu.checking.paid(address)
        self._fault = None
        return 0

    def allocate(self, request: AllocateRequest) -> int:
        native = self.gpu.memory.native
        address = native.allocate(request.size, request.label)
        if request.everywhere:
            native.open(address, native.everywhere)
        elif (checking := self.gpu.checking) is not None and address:
            checking.native.begin_fresh(address, request.size)
            if request.label in _OF_PROGRAM:
                checking.owes(address)
        return address

    def share(self, request: ShareRequest) -> None:
        self.gpu.memory.native.open(request.address, request.devices)

    def reach(self, request: ReachRequest) -> None:
        if request.number >= 64:
            raise ValueError(f"device {request.number}, expected less than 64")
        self.gpu.memory.native.reach(request.number, request.all)

    def free(self, request: FreeRequest) -> None:
        self.gpu.memory.native.free(request.address)
        if self.gpu.checking is not None:
            self.gpu.checking.paid(request.address)

    def stack(self, request: StackRequest) -> None:
        if request.size > STACK_BYTES:
            self.gpu.machine_facts["stack_limit"] = request.size
            self._launcher.cache_clear()

    def note(self, request: NoteRequest) -> None:
        self.gpu.session.note(f"{request.what}: no effect on timing")

    def open_range(self, request: OpenRangeRequest) -> None:
        self._ranges.append(request.name)
        if self._gpu is not None:
            self._gpu.open_range(request.name)

    def close_range(self, request: CloseRangeRequest) -> None:
        name = request.name
        if name in self._ranges:
            del self._ranges[len(self._ranges) - 1 - self._ranges[::-1].index(name)]
            if self._gpu is not None:
                self._gpu.close_range(name)

    def set_aside(self, request: SetAsideRequest) -> None:
        self.gpu.set_persisting_l2(request.size)

    def reset_persisting(self, request: ResetPersistingRequest) -> None:
        self.gpu.reset_persisting_l2()

    def load(self, request: LoadRequest) -> LoadedModule:
        self._loaded += 1
        try:
            program = self._image(request.image)
            module = Module(self.gpu, program)
        except (ImageError, CompileError, ToolkitError) as error:
            self._refused_tables = ""  # this is the error that matters
            code = codes.NO_BINARY_FOR_GPU if isinstance(error, _NoImage) else codes.INVALID_PTX
            if isinstance(error, ToolkitError):
                self.lacking, code = str(error), codes.UNSUPPORTED_PTX_VERSION
            elif isinstance(error, DynamicParallelismError):
                self.lacking, code = str(error), codes.NOT_SUPPORTED
            return LoadedModule(refusal=Refusal(code, str(error)))
        number = self._loaded
        self._modules[number] = module
        managed = frozenset(module.native.managed)
        native = self.gpu.memory.native
        for name in managed:
            native.open(module.native.variables[name][0], native.everywhere)
        return LoadedModule(
            module=number,
            ptx_version=arch_number(program.arch)[0],
            kernels={name: _record_of(facts) for name, facts in module.native.kernels.items()},
            variables={
                name: VariableRecord(address, size, name in managed)
                for name, (address, size) in module.native.variables.items()
            },
        )

    def _image(self, image: bytes) -> Image:
        name = f"{self._program}[{self._loaded - 1}]"
        if image.startswith(FATBIN_MAGIC) or image.startswith(ELF_MAGIC):
            try:
                found = images_in(image, name, self.gpu.arch, self.gpu.code)
                if len(found) == 1:
                    return found[0]
                units = [unit for unit in found if isinstance(unit, PtxModule)]
                if len(units) == len(found):
                    return link(units, self.gpu.arch)
            except ImageError as error:
                raise _NoImage(str(error)) from error
            raise _NoImage(
                f"{name}: {len(found)} modules, {len(found) - len(units)} of them machine code; expected "
                "one, or PTX, which can be linked"
            )
        module = ptx_of(image, name)
        return link([module], self.gpu.arch) if not module.arch else module

    def unload(self, request: UnloadRequest) -> None:
        self._modules.pop(request.module, None)
        for key in [key for key in self._kernels if key[0] == request.module]:
            del self._kernels[key]
        self._launcher.cache_clear()

    def _kernel(self, module: int, name: str) -> Kernel:
        key = (module, name)
        if key not in self._kernels:
            self._kernels[key] = self._modules[module][name]
        return self._kernels[key]

    def _make_launcher(self, configuration: bytes) -> Launcher:
        launch = msgspec.msgpack.decode(configuration, type=LaunchConfiguration)
        kernel = self._kernel(launch.module, launch.kernel)
        return Launcher(
            kernel,
            launch.grid,
            launch.block,
            launch.shared_bytes,
            ProgramStream(self.gpu, launch.stream, self._streams),
            launch.cluster if launch.cluster[0] else kernel.facts.cluster,
            launch.cooperative,
            window=_window_of(launch.window),
        )

    def registers(self, request: RegistersRequest) -> int:
        try:
            return self._kernel(request.module, request.kernel).facts.registers
        except _FAILURES as error:
            self._failed(error)
            return 0

    def occupancy(self, request: OccupancyRequest) -> int:
        try:
            kernel = self._kernel(request.module, request.kernel)
            return kernel.occupancy(request.threads, request.shared_bytes).ctas
        except LaunchError:
            return 0
        except _FAILURES as error:
            self._failed(error)
            return 0

    def stream(self, request: StreamRequest) -> None:
        if (checking := self.gpu.checking) is not None:
            checking.order.streams += 1
        self._streams.add(request.stream, request.blocking)

    def launch(self, request: LaunchRequest) -> None:
        self._refused_tables = ""
        if self._fault is None:
            try:
                innermost = next((name for name in reversed(self._ranges) if name != PROFILER_RANGE), "")
                with self.gpu.annotate(innermost):
                    launcher = self._launcher(request.configuration)
                    self._launch(launcher, LaunchArguments(request.parameters))
            except _FAILURES as error:
                self._failed(error)

    def answered_launch(self, request: AnsweredLaunchRequest) -> LaunchMode:
        self.launch(request)
        self._answers_launches = self._steps is not None and self._steps.active
        return LaunchMode(synchronous=self._answers_launches, functional=self.gpu.functional)

    def copy(self, request: CopyRequest) -> None:
        native, to, source, link = self.gpu.memory.native, request.to, request.source, request.link
        width, height, depth = request.width, request.height, request.depth
        nbytes, staged = width * height * depth, request.staged
        moves = (
            []
            if request.moved
            else [
                _engine.functional.copying(
                    native,
                    to.address + z * to.slice,
                    source.address + z * source.slice,
                    width,
                    height,
                    to.pitch,
                    source.pitch,
                )
                for z in range(depth)
            ]
        )

        if request.moved and (checking := self.gpu.checking) is not None:
            for z in range(depth):
                checking.written(to.address + z * to.slice, width, height, to.pitch)

        def move() -> None:
            for part in moves:
                part()
            if staged:
                native.free(source.address)

        touched, rows = [], []
        arena = range(native.base, native.base + native.capacity)
        for side, writes in ((source, False), (to, True)):
            if side.address in arena and (writes or not staged):
                rows += [
                    (side.address + z * side.slice, width, height, side.pitch, writes) for z in range(depth)
                ]
        if link == "device":
            touched.append(
                MemoryRows(source.address, width, source.pitch, height, source.slice, depth, "read")
            )
        if link in ("device", "host_to_device", "peer_to_device"):
            use: Use = "written" if link == "device" else "received"
            touched.append(MemoryRows(to.address, width, to.pitch, height, to.slice, depth, use))
        number = self._do(
            request.stream,
            QueuedTransfer(
                link=link,
                traffic={"device": 2 * nbytes, "none": 0}.get(link, nbytes),
                touched=touched,
                perform=moves[0] if len(moves) == 1 and not staged else move if moves else None,
            ),
            "copy",
            rows,
        )
        if request.moved:
            self._waited([number])  # the program has

    def fill(self, request: FillRequest) -> None:
        address, pitch, height = request.address, request.pitch, request.height
        nbytes = request.width * request.element
        perform = None
        if not request.filled:
            perform = _engine.functional.filling(
                self.gpu.memory.native, address, request.value, request.element, nbytes, height, pitch
            )
        elif (checking := self.gpu.checking) is not None:
            checking.written(address, nbytes, height, pitch)
        rows = MemoryRows(address, nbytes, pitch, height, use="written")
        transfer = QueuedTransfer(link="device", traffic=nbytes * height, touched=[rows], perform=perform)
        self._do(request.stream, transfer, "fill", [(address, nbytes, height, pitch, True)])

    def release(self, request: ReleaseRequest) -> None:
        native, address = self.gpu.memory.native, request.address

        def free() -> None:
            native.free(address)

        self._do(request.stream, QueuedTransfer(perform=free))

    def call(self, request: CallRequest) -> None:
        number = request.number
        if not self.gpu.functional:
            self._do(request.stream, QueuedTransfer(perform=lambda: self._ask(number)))
        elif self._fault is None:
            self._untimed.add(request.stream, lambda _: HostCall(lambda: self._ask(number)))

    def record(self, request: RecordRequest) -> None:
        point = QueuedTransfer()
        self._events[request.event] = (self._do(request.stream, point), point)

    def wait(self, request: WaitRequest) -> None:
        if request.event in self._events:
            self._streams.wait(request.stream, self._events[request.event][0])

    def forget(self, request: ForgetRequest) -> None:
        self._events.pop(request.event, None)

    def elapsed(self, request: ElapsedRequest) -> float:
        first, last = (self._events[event][1].end_cycle for event in (request.start, request.end))
        if first is None or last is None:
            return 0.0
        return (last - first) * 1e3 / self._spec.clock.core_mhz

    def synchronize(self, request: SynchronizeRequest) -> WaitResult:
        what = request.what
        if what == "all":
            numbers = self._numbers
        elif what == "numbers":
            numbers = request.numbers
        else:
            numbers = self._numbers_of(what, request.which)
        self._is_alone = request.alone
        seconds = None if request.milliseconds is None else request.milliseconds / 1000
        self._run(None if what == "all" else numbers, seconds=seconds)
        if what == "all" and not self._numbers:
            self._ended()
        elif what != "numbers":
            self._waited(numbers)
        fault, printed = self._fault[0] if self._fault else 0, bytes(self._printed)
        self._printed.clear()
        return WaitResult(fault, printed, [number for number in numbers if not self._finished([number])])

    def query(self, request: QueryRequest) -> QueryResult:
        numbers = self._numbers_of(request.what, request.which)
        ran = not self._finished(numbers)
        self._run(numbers, most=QUERY_CYCLES)
        return QueryResult(done=self._finished(numbers), ran=ran)

    def run_ahead(self, request: RunAheadRequest) -> bool:
        if not self.gpu.functional and self._numbers:
            self.gpu.session.note(_AHEAD)
        self._run(most=QUERY_CYCLES)
        return not self._numbers

    def refuse_tables(self, request: RefuseTablesRequest) -> None:
        if not Path(request.file).name.startswith(_WITHOUT_TABLES):
            self._refused_tables = request.file or "the program"

    # --- inside -----------------------------------------------------------------------------------------

    def _launch(self, launcher: Launcher, arguments: LaunchArguments) -> None:
        gpu, stream = self.gpu, launcher.stream
        if gpu.functional and stream is not None:

            def begin(number: int) -> PausedLaunch | None:
                if gpu.following is not None:
                    gpu.following.launches(number)
                return gpu.launch_untimed(launcher, arguments)

            self._untimed.add(stream.number, begin)
        else:
            gpu.launch(launcher, lambda: arguments)

    def _do(
        self,
        stream: int,
        transfer: QueuedTransfer,
        what: str = "",
        rows: Sequence[tuple[int, int, int, int, bool]] = (),
    ) -> int:
        """Queues work in a stream, or, without timing, performs it as soon as may be. Returns its number.

        what, rows: for `Checking.moved`.
        """
        if self._fault is not None:
            return 0
        if self.gpu.functional:

            def begin(number: int) -> None:
                if transfer.perform is not None:
                    transfer.perform()
                if self.gpu.checking is not None:
                    self.gpu.checking.moved(number, what, rows)

            return self._untimed.add(stream, begin)
        transfer.stream, transfer.after = stream, self._streams.before(stream)
        number = self.gpu.transfer(transfer)
        self._streams.queued(stream, number)
        return number

    def _waited(self, numbers: Collection[int]) -> None:
        """The program knows that this work has ended."""
        if (following := self.gpu.following) is not None:
            following.order.waited(numbers)

    def _ended(self) -> None:
        """The program knows that all work has ended."""
        self._streams.clear()
        if (following := self.gpu.following) is not None:
            following.order.waited()

    @property
    def _numbers(self) -> list[int]:
        """Numbers of the work that has not ended."""
        return self._untimed.numbers + self.gpu.session.numbers

    def _numbers_of(self, what: Queried, which: int) -> list[int]:
        """Numbers of the work of a stream, or before an event."""
        if what == "stream":
            return self._streams.last(which)
        return [self._events[which][0]]

    def _finished(self, numbers: Collection[int]) -> bool:
        return self._untimed.finished(numbers) and self.gpu.session.finished(numbers)

    def _run(
        self, until: Collection[int] | None = None, most: int | None = None, seconds: float | None = None
    ) -> None:
        """Runs queued work: all of it, or only until that of these numbers has ended, and pauses after `most`
        core cycles, or seconds of the host. What is not timed goes on for a part at least."""
        try:
            if self._untimed.numbers:
                self._run_untimed(until, most, seconds)
            else:
                self.gpu.advance(until, most, seconds)
        except _FAILURES as error:
            self._failed(error)

    def _run_untimed(self, until: Collection[int] | None, most: int | None, seconds: float | None) -> None:
        end = None if seconds is None else time.monotonic() + seconds
        while True:
            over = not self._untimed.numbers if until is None else self._untimed.finished(until)
            is_short = over or most is not None
            self._untimed.advance(QUERY_INSTRUCTIONS if is_short else WAIT_INSTRUCTIONS)
            if is_short or (end is not None and time.monotonic() >= end):
                return
            if self._is_alone:
                self._untimed.require_progress()

    def _failed(self, error: SimtError) -> None:
        """An error of the program."""
        if isinstance(error, DeadlockError):
            code = codes.LAUNCH_TIMEOUT
        elif isinstance(error, ProgramFault):
            code = _FAULTS.get(error.kind, codes.LAUNCH_FAILED)
        elif isinstance(error, LaunchError):
            code = codes.LAUNCH_OUT_OF_RESOURCES if error.kind else codes.INVALID_VALUE
        else:
            code = codes.INVALID_PTX
        self._untimed.drop()
        if self._fault is None:
            self._fault = (code, str(error))
            print(f"simt: {printable(str(error))}", file=sys.stderr)

    def end(self, is_lost: bool) -> Result | None:
        """The process has ended: runs its queued work, or drops it if the process is lost. Returns the
        Result, if there are timed launches.
        """
        if self._refused_tables:
            print(f"simt: {self._refused_tables} {_PRIVATE_TABLES}", file=sys.stderr)
        if self._gpu is None:
            return None
        self._ask = lambda _: None
        self._is_alone = True
        self.gpu.session.watch = _nothing
        if is_lost:
            self.gpu.session.drop()
            self._untimed.drop()
        else:
            self._run()
        if self._printed:
            sys.stdout.write(self._printed.decode("utf-8", "replace"))
        return self.saved("failed" if self._fault else "interrupted" if is_lost else "complete")

    def findings(self) -> list[Finding]:
        """What the checker has found; what is still allocated at the end counts as leaked."""
        return [] if self._gpu is None or self._gpu.checking is None else self._gpu.checking.findings()

    def saved(self, status: str) -> Result | None:
        """Saves the finished launches, and their profile, and returns their Result; None if there are none.

        status: why launches may be missing.
        """
        self._profiling.close()
        if self._profile is not None and self._executed:
            self._executed.profile().save(self._profile)
        if self._gpu is None:
            return None
        if not self.gpu.launches:
            for warning in self.gpu.untimed_warnings:  # there is no Result that holds them
                print(f"simt: {warning}", file=sys.stderr)
            return None
        result = self.gpu.result(status)
        self.gpu.save(result)
        return result


def _nothing() -> None:
    pass


class _NoImage(ImageError):
    """An image that holds nothing for the device."""
