"""One device of a program: executes the requests of the program's CUDA library."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

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
from simt.gpu import GPU
from simt.gpu.arguments import LaunchArguments
from simt.gpu.module import Kernel, Launcher, Module
from simt.names import printable
from simt.result import Result
from simt.run.l2 import PROPERTIES, AccessWindow, Rows, Use
from simt.run.session import QueuedTransfer
from simt.spec import Spec, load_spec

from . import codes
from .attributes import device_attributes, device_uuid
from .checkpoints import Steps
from .gpus import EVERYWHERE, CheckpointedGpu, ProgramGpu
from .objects import Objects, ptx_of
from .requests import Number
from .streams import ProgramStream, Streams

if TYPE_CHECKING:
    from simt.profile.executed import Executed

HOST_BYTES = 64 << 30
"""Address space for the program's pinned and registered memory, in addition to device memory."""
STACK_BYTES = 16 << 10
"""Stack per thread, unless the program requests more."""

_FAILURES = (DeadlockError, ProgramFault, LaunchError, ImageError, CompileError, ToolkitError)
"""Errors of the program."""
# Error codes of program faults.
_FAULTS = {
    "illegal address": codes.ILLEGAL_ADDRESS,
    "misaligned address": codes.MISALIGNED_ADDRESS,
    "assert": codes.ASSERT,
    "stack overflow": codes.ILLEGAL_ADDRESS,
    "illegal instruction": codes.ILLEGAL_INSTRUCTION,
}

_PRIVATE_TABLES = (
    "asked for NVIDIA's private tables, as the static CUDA runtime and NVIDIA's closed libraries (cuBLAS, "
    "cuFFT, cuDNN, ...) do, and the program launched no kernel afterwards; simt has no such tables. Link the "
    "runtime as a shared library (nvcc -cudart shared), and do without those libraries"
)


class _Configuration(msgspec.Struct, array_like=True):
    """A launch without its parameters."""

    stream: int
    module: int
    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    shared: int
    cooperative: bool
    window_address: int
    window_bytes: int
    hit_ratio: float
    hit_property: int
    miss_property: int

    @property
    def window(self) -> AccessWindow | None:
        if not self.window_bytes:
            return None
        hit, miss = (PROPERTIES[number] for number in (self.hit_property, self.miss_property))
        return AccessWindow(self.window_address, self.window_bytes, self.hit_ratio, hit, miss)


class Device(Objects):
    """Device `ordinal` of one process of the program.

    gpu, options: as for `simt.GPU`. ask: makes the program call one of its functions, by number, and returns
    when it has been called. steps: the launches before the point of a checkpoint. Operations are the methods
    named in `operations`; those that return a value are answered.
    """

    operations = Objects.operations | frozenset(
        [
            "open",
            "reset",
            "allocate",
            "share",
            "reach",
            "free",
            "load",
            "unload",
            "launch",
            "copy",
            "fill",
            "release",
            "record",
            "wait",
            "forget",
            "call",
            "elapsed",
            "stream",
            "synchronize",
            "registers",
            "occupancy",
            "stack",
            "set_aside",
            "reset_persisting",
            "note",
            "open_range",
            "close_range",
            "refuse_tables",
        ]
    )

    def __init__(
        self,
        gpu: Any,
        ordinal: int,
        program: str,
        options: dict[str, Any],
        ask: Callable[[int], None],
        steps: Steps | None = None,
    ) -> None:
        self._ask = ask
        self._steps = steps
        self._answers_launches = steps is not None and steps.active
        self._spec: Spec = load_spec(gpu, options.get("set") or {})
        self._shown = (steps.spec if steps is not None else None) or self._spec
        """What the program is told about its GPU."""
        self._ordinal, self._program = ordinal, program
        self._options = {name: value for name, value in options.items() if name != "profile"}
        profile = options.get("profile")
        self._profile = None if profile is None else Path(profile)
        self._executed: Executed | None = None
        self._gpu: GPU | None = None
        self._ranges: Counter[str] = Counter()
        """Ranges opened before the GPU was."""
        self._profiling = ExitStack()
        self._printed = bytearray()
        self._fault: tuple[int, str] | None = None
        self._modules: dict[int, Module] = {}
        self._loaded = 0
        """Number of the last module: numbers are not used again, since launches refer to modules by them."""
        self._kernels: dict[tuple[int, str], Kernel] = {}
        self._launcher = lru_cache(maxsize=1024)(self._make_launcher)
        self._streams = Streams()
        self._events: dict[int, tuple[int, QueuedTransfer]] = {}
        """By event: number and times of the work it stands for."""
        self.watch: Callable[[], None] = _nothing
        """Called again and again while launches run; what it raises stops them."""
        self.space: Any = None
        """The engine's address space that the process's devices share; None if it is alone."""
        self.lacking = ""
        self._refused_tables = ""
        """The file that requested a private table, if the program has not launched a kernel or received
        another error since."""

    @property
    def facts(self) -> dict[str, Any]:
        """What the program is told about it."""
        return {
            "name": self._shown.description.split(":")[0] or self._shown.name,
            "attributes": device_attributes(self._shown, self._ordinal),
            "uuid": device_uuid(self._shown, self._ordinal),
            "memory": self._shown.dram.capacity_gib << 30,
            "functional": self._answers_launches or bool(self._options.get("functional")),
            "synchronous": self._answers_launches,
            "joined": self.space is not None,
        }

    # --- operations -------------------------------------------------------------------------------------

    def open(self) -> list[int]:
        """Creates the GPU. Returns the address of its memory, and its size in bytes."""
        if self._gpu is None:
            options = {**self._options, "memory": (self._shown.dram.capacity_gib << 30) + HOST_BYTES}
            if self._steps is None:
                self._gpu = ProgramGpu(self._ordinal, self._printed, options, self.space)
            else:
                self._gpu = CheckpointedGpu(self._steps, self._ordinal, self._printed, options, self.space)
            self._gpu.program = self._program
            self._gpu.session.watch = self.watch
            for name in self._ranges.elements():
                self._gpu.open_range(name)
            if self._profile is not None:
                self._executed = self._profiling.enter_context(self._gpu.profiled())
        native = self.gpu.memory.native
        return [native.base, native.capacity]

    @property
    def gpu(self) -> GPU:
        if self._gpu is None:
            raise LaunchError("the program uses a device before it has a context there")
        return self._gpu

    @property
    def file(self) -> int:
        """The file descriptor of its memory."""
        return int(self.gpu.memory.native.file)

    def reset(self) -> int:
        self.synchronize("all", 0)
        self._modules.clear()
        self._kernels.clear()
        self._launcher.cache_clear()
        native = self.gpu.memory.native
        for address, *_ in native.allocations():
            native.free(address)
        self._fault = None
        return 0

    def allocate(self, size: Number, label: str, everywhere: bool) -> int:
        """everywhere: kernels of all devices may access it."""
        native = self.gpu.memory.native
        address = int(native.allocate(size, label))
        if everywhere:
            native.open(address, EVERYWHERE)
        return address

    def share(self, address: Number, devices: Number) -> None:
        """Which other devices' kernels may access an allocation: bit n for device n."""
        self.gpu.memory.native.open(address, devices)

    def reach(self, number: Number, all: bool) -> None:
        """Whether kernels of this device may access all memory of device `number`."""
        if number >= 64:
            raise ValueError(f"device {number}, expected less than 64")
        self.gpu.memory.native.reach(number, all)

    def free(self, address: Number) -> None:
        self.gpu.memory.native.free(address)

    def stack(self, size: Number) -> None:
        """Sets the stack size per thread in bytes, if larger than the engine's default."""
        if size > STACK_BYTES:
            self.gpu.machine_facts["stack_limit"] = size
            self._launcher.cache_clear()

    def note(self, what: str) -> None:
        """The program has asked for something that has no effect on timing."""
        self.gpu.session.note(f"{what}: no effect on timing")

    def open_range(self, name: str) -> None:
        """A range begins, for the launches that follow."""
        if self._gpu is None:
            self._ranges[name] += 1
        else:
            self._gpu.open_range(name)

    def close_range(self, name: str) -> None:
        """The range of this name that was opened last ends."""
        if self._gpu is None:
            self._ranges[name] -= 1
        else:
            self._gpu.close_range(name)

    def set_aside(self, nbytes: Number) -> None:
        """Sets aside a part of the L2 for persisting accesses, in order with what is queued."""
        self.gpu.set_persisting_l2(nbytes)

    def reset_persisting(self) -> None:
        """Ends the persistence of the lines that are in the L2, in order with what is queued."""
        self.gpu.reset_persisting_l2()

    def load(self, image: bytes) -> dict[str, Any]:
        """Loads a module. Returns its number, kernels and variables; or an error and its text."""
        self._loaded += 1
        try:
            program = self._image(image)
            module = Module(self.gpu, program)
        except (ImageError, CompileError, ToolkitError) as error:
            self._refused_tables = ""  # this is the error that matters
            code = codes.NO_BINARY_FOR_GPU if isinstance(error, _NoImage) else codes.INVALID_PTX
            if isinstance(error, ToolkitError):
                self.lacking, code = str(error), codes.UNSUPPORTED_PTX_VERSION
            elif isinstance(error, DynamicParallelismError):
                self.lacking, code = str(error), codes.NOT_SUPPORTED
            return {"error": code, "text": str(error)}
        number = self._loaded
        self._modules[number] = module
        managed = frozenset(module.native.managed)
        for name in managed:
            self.gpu.memory.native.open(module.native.variables[name][0], EVERYWHERE)
        return {
            "module": number,
            "ptx_version": arch_number(program.arch)[0],
            "kernels": {
                name: [
                    [(offset, size) for offset, size, *_ in facts["parameters"]],
                    facts["shared_bytes"],
                    facts["stack_bytes"],
                    facts["max_threads"][0]
                    * max(1, facts["max_threads"][1])
                    * max(1, facts["max_threads"][2]),
                    facts["cluster"],
                ]
                for name, facts in module.native.kernels.items()
            },
            "variables": {
                name: (address, size, name in managed)
                for name, (address, size) in module.native.variables.items()
            },
        }

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

    def unload(self, number: Number) -> None:
        self._modules.pop(number, None)
        for key in [key for key in self._kernels if key[0] == number]:
            del self._kernels[key]
        self._launcher.cache_clear()

    def _kernel(self, module: Number, name: str) -> Kernel:
        key = (module, name)
        if key not in self._kernels:
            self._kernels[key] = self._modules[module][name]
        return self._kernels[key]

    def _make_launcher(self, configuration: bytes) -> Launcher:
        launch = msgspec.msgpack.decode(configuration, type=_Configuration)
        kernel = self._kernel(launch.module, launch.kernel)
        return Launcher(
            kernel,
            launch.grid,
            launch.block,
            launch.shared,
            ProgramStream(self.gpu, launch.stream, self._streams),
            launch.cluster if launch.cluster[0] else kernel.facts.cluster,
            launch.cooperative,
            window=launch.window,
        )

    def registers(self, module: Number, name: str) -> int:
        try:
            return self._kernel(module, name).facts.registers
        except _FAILURES as error:
            self._failed(error)
            return 0

    def occupancy(self, module: Number, name: str, threads: Number, shared: Number) -> int:
        """CTAs of a kernel that fit on an SM; 0 if none fits."""
        try:
            return self._kernel(module, name).occupancy(threads, shared).ctas
        except LaunchError:
            return 0
        except _FAILURES as error:
            self._failed(error)
            return 0

    def stream(self, number: Number, blocking: bool) -> None:
        """Creates a stream."""
        self._streams.add(number, blocking)

    def launch(self, configuration: bytes, parameters: bytes) -> dict[str, bool] | None:
        """Launches a kernel. configuration: an encoded `_Configuration`. Before the point of a checkpoint,
        the program waits for the answer: whether it also does so next time, and whether work is executed as
        it arrives.
        """
        self._refused_tables = ""
        if self._fault is None:
            try:
                self.gpu.launch(self._launcher(configuration), lambda: LaunchArguments(parameters))
            except _FAILURES as error:
                self._failed(error)
        if not self._answers_launches:
            return None
        self._answers_launches = self._steps is not None and self._steps.active
        return {"synchronous": self._answers_launches, "functional": self.gpu.functional}

    def copy(
        self,
        stream: Number,
        moved: bool,
        staged: bool,
        link: Literal["device", "host_to_device", "device_to_host", "none"],
        to: Number,
        to_pitch: Number,
        to_slice: Number,
        source: Number,
        pitch: Number,
        slice: Number,
        width: Number,
        height: Number,
        depth: Number,
    ) -> None:
        """Copies rows. moved: the program has already copied them; only timing is simulated. staged: `source`
        is memory that the program allocated for this copy; it is freed afterwards. link: what it occupies."""
        native, nbytes = self.gpu.memory.native, width * height * depth
        moves = (
            []
            if moved
            else [
                _engine.functional.copying(
                    native, to + z * to_slice, source + z * slice, width, height, to_pitch, pitch
                )
                for z in range(depth)
            ]
        )

        def move() -> None:
            for part in moves:
                part()
            if staged:
                native.free(source)

        touched = []
        if link == "device":
            touched.append(Rows(source, width, pitch, height, slice, depth, "read"))
        if link in ("device", "host_to_device"):
            use: Use = "written" if link == "device" else "received"
            touched.append(Rows(to, width, to_pitch, height, to_slice, depth, use))
        self._do(
            stream,
            QueuedTransfer(
                link=link,
                traffic={"device": 2 * nbytes, "none": 0}.get(link, nbytes),
                touched=touched,
                perform=moves[0] if len(moves) == 1 and not staged else move if moves else None,
            ),
        )

    def fill(
        self,
        stream: Number,
        filled: bool,
        address: Number,
        pitch: Number,
        value: Number,
        element: Number,
        width: Number,
        height: Number,
    ) -> None:
        """Fills rows of elements. filled: the program has already filled them; only timing is simulated."""
        perform = None
        if not filled:
            perform = _engine.functional.filling(
                self.gpu.memory.native, address, value, element, width * element, height, pitch
            )
        traffic = width * element * height
        rows = Rows(address, width * element, pitch, height, use="written")
        self._do(stream, QueuedTransfer(link="device", traffic=traffic, touched=[rows], perform=perform))

    def release(self, stream: Number, address: Number) -> None:
        """Frees memory, in stream order."""
        native = self.gpu.memory.native
        self._do(stream, QueuedTransfer(perform=lambda: native.free(address)))

    def call(self, stream: Number, number: Number) -> None:
        """Calls a function of the program, in stream order."""
        self._do(stream, QueuedTransfer(perform=lambda: self._ask(number)))

    def record(self, stream: Number, event: Number) -> None:
        """Records an event. Every record has a new number."""
        point = QueuedTransfer()
        self._events[event] = (self._do(stream, point), point)

    def wait(self, stream: Number, event: Number) -> None:
        """Makes a stream wait for a recorded event."""
        if event in self._events:
            self._streams.wait(stream, self._events[event][0])

    def forget(self, event: Number) -> None:
        """The program can no longer refer to this record of an event."""
        self._events.pop(event, None)

    def elapsed(self, start: Number, end: Number) -> float:
        """Nanoseconds between two events; 0 without timing."""
        first, last = (self._events[event][1].end_cycle for event in (start, end))
        if first is None or last is None:
            return 0.0
        return (last - first) * 1e3 / self._spec.clock.core_mhz

    def synchronize(self, what: Literal["all", "stream", "event"], which: Number) -> dict[str, Any]:
        """Runs queued work: all of it ("all"), that of a stream, or that before an event. Returns the code of
        a fault that has occurred, or 0, and what was printed.
        """
        if what == "all":
            self._run()
            self._streams.clear()
        else:
            self._run(self._streams.last(which) if what == "stream" else [self._events[which][0]])
        printed = bytes(self._printed)
        self._printed.clear()
        return {"fault": self._fault[0] if self._fault else 0, "printed": printed}

    def refuse_tables(self, file: str) -> None:
        """A file of the program requested one of NVIDIA's private tables and was refused."""
        self._refused_tables = file or "the program"

    # --- inside -----------------------------------------------------------------------------------------

    def _do(self, stream: int, transfer: QueuedTransfer) -> int:
        """Queues work in a stream, or performs it immediately without timing. Returns its number."""
        if self._fault is not None:
            return 0
        if self.gpu.functional:
            if transfer.perform is not None:
                transfer.perform()
            return 0
        transfer.stream, transfer.after = stream, self._streams.before(stream)
        number = self.gpu.transfer(transfer)
        self._streams.queued(stream, number)
        return number

    def _run(self, until: list[int] | None = None) -> None:
        """Runs queued work: all of it, or only until that of these numbers has ended."""
        try:
            self.gpu.synchronize(until)
        except _FAILURES as error:
            self._failed(error)

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
        self.gpu.session.watch = _nothing
        if is_lost:
            self.gpu.session.drop()
        else:
            self._run()
        if self._printed:
            sys.stdout.write(self._printed.decode("utf-8", "replace"))
        return self.saved("failed" if self._fault else "interrupted" if is_lost else "complete")

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
