"""The GPUs of a program."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from simt import _engine
from simt.errors import CheckpointError, LaunchError
from simt.gpu import GPU
from simt.gpu.arguments import LaunchArguments
from simt.gpu.module import Launcher
from simt.gpu.output import Output
from simt.options import GpuOptions
from simt.result import LaunchResult

from .checkpoints import Steps

if TYPE_CHECKING:
    from simt.check.checking import Checking
    from simt.profile.executed import Executed

FIRST_ADDRESS, ADDRESSES = 16 << 32, 1 << 40
"""Start of device 0's memory, and distance between the memories of devices."""
AT_ARRIVAL = 20_000_000
"""Warp instructions that a launch executes as it arrives, if nothing is timed; then it pauses. About a
second's: up to there, launches run while the host works."""


class AddressSpaces:
    """The address spaces that the devices of a process share, by process.

    devices: how many a process has; one alone needs none.
    """

    def __init__(self, devices: int) -> None:
        self._devices = devices
        self._open: dict[int, tuple[_engine.functional.AddressSpace, set[int]]] = {}
        """The space, and the devices in it."""

    def enter(self, process: int, ordinal: int) -> _engine.functional.AddressSpace | None:
        """The space for a device of a process; None if it has none."""
        if self._devices < 2:
            return None
        if process not in self._open:
            try:
                space = _engine.functional.AddressSpace(FIRST_ADDRESS, ADDRESSES, self._devices)
            except MemoryError:
                return None
            self._open[process] = space, set()
        space, inside = self._open[process]
        if ordinal in inside:
            return None
        inside.add(ordinal)
        return space

    def leave(self, process: int, ordinal: int) -> None:
        """A device that has entered has ended: when all have, the process's number may be another's."""
        _, inside = self._open[process]
        inside.discard(ordinal)
        if not inside:
            del self._open[process]


class ProgramGpu(GPU):
    """A GPU whose kernels print to the program, with addresses unique among the program's devices.

    space: the engine's address space that its memory is in, if any.
    """

    def __init__(
        self,
        ordinal: int,
        printed: bytearray,
        options: GpuOptions,
        space: _engine.functional.AddressSpace | None = None,
    ) -> None:
        self._ordinal, self._space = ordinal, space
        super().__init__(**options.keywords())
        if space is not None:
            self._session.join(self.memory.native)
        self._printed = printed
        self._output = Output(printed.extend)
        self._paused: PausedLaunch | None = None

    def advance(self, until: Collection[int] | None, most: int | None, seconds: float | None) -> None:
        """As `synchronize`, but pauses after `most` core cycles, or `seconds` of the host; None: does not."""
        with self.exclusive:
            if self._session.busy:
                with self.exclusive.running:
                    self._session.run(until=until, most=most, seconds=seconds)

    def follow_order(self, following: Checking | Executed, launcher: Launcher, launch_id: int) -> None:
        pass  # a device orders launches among its copies

    def run_values(
        self,
        launcher: Launcher,
        parameters: bytes,
        launch_id: int,
        memory: Any = None,
        until: tuple[int, int, int] | None = None,
    ) -> bytes:
        """Executes a launch without timing; if nothing is timed, up to where it pauses."""
        if memory is not None or until is not None or not self.functional or self._profiling is not None:
            return super().run_values(launcher, parameters, launch_id, memory, until)
        self._session.require_time()
        paused = PausedLaunch(self, launcher, parameters, launch_id)
        if not paused.advance(AT_ARRIVAL):
            self._paused = paused
        return b""

    def launch_untimed(self, launcher: Launcher, arguments: LaunchArguments) -> PausedLaunch | None:
        """As `launch`, if nothing is timed. Returns what is left of a launch that has paused."""
        self.launch(launcher, lambda: arguments)
        paused, self._paused = self._paused, None
        return paused

    def _device_memory(self, capacity: int) -> _engine.functional.DeviceMemory:
        memory = _engine.functional.DeviceMemory
        if self._space is not None:
            return memory(capacity, self._space, self._ordinal, self.exact_bounds)
        return memory(capacity, FIRST_ADDRESS + self._ordinal * ADDRESSES, self.exact_bounds)


class PausedLaunch:
    """A launch that is executed without timing, part by part."""

    def __init__(self, gpu: ProgramGpu, launcher: Launcher, parameters: bytes, launch_id: int) -> None:
        self._gpu, self._launcher = gpu, launcher
        with self._errors():
            self._native = launcher.native.begin(
                parameters,
                launch_id,
                gpu.threads,
                gpu._output.write,
                gpu.session.require_time,
                None if gpu.checking is None else gpu.checking.native,
            )
        self._counted = 0, 0

    def advance(self, most: int) -> bool:
        """Executes `most` warp instructions, and to the end of a turn. Whether the launch has ended."""
        with self._errors():
            try:
                return bool(self._native.advance(most))
            finally:
                before, self._counted = self._counted, self._native.instructions
                self._gpu.instructions += self._counted[0] - before[0]
                self._gpu.thread_instructions += self._counted[1] - before[1]

    def repeats(self) -> bool:
        """Whether its warps have only repeated themselves for long."""
        return bool(self._native.repeats())

    def report_endless_wait(self) -> None:
        """Raises ProgramFault for warps that only repeat themselves."""
        with self._errors():
            self._native.report_endless_wait()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        gpu, launcher = self._gpu, self._launcher
        checked = nullcontext() if gpu.checking is None else gpu.checking.launch(launcher)
        with gpu.exclusive, checked, launcher.kernel.module.explained, gpu.exclusive.running:
            yield


class CheckpointedGpu(ProgramGpu):
    """A GPU whose launches before the point of a checkpoint are steps that are recorded or restored."""

    def __init__(
        self,
        steps: Steps,
        ordinal: int,
        printed: bytearray,
        options: GpuOptions,
        space: _engine.functional.AddressSpace | None = None,
    ) -> None:
        super().__init__(ordinal, printed, options, space)
        self._steps = steps
        self.functional = self.functional or steps.active

    def launch(self, launcher: Launcher, arguments: Callable[[], LaunchArguments]) -> LaunchResult | None:
        launcher = self._steps.begin(self, launcher, arguments().block, self._printed)
        try:
            return super().launch(launcher, arguments)
        except LaunchError as error:
            if launcher.state:
                raise CheckpointError(f"{self._steps.path}: {error}") from error
            raise

    def run_values(
        self,
        launcher: Launcher,
        parameters: bytes,
        launch_id: int,
        memory: _engine.functional.DeviceMemory | None = None,
        until: tuple[int, int, int] | None = None,
    ) -> bytes:
        if not self._steps.active:
            return super().run_values(launcher, parameters, launch_id, memory, until)

        def execute(copy: _engine.functional.DeviceMemory) -> None:
            super(CheckpointedGpu, self).run_values(launcher, parameters, launch_id, copy)

        self._steps.run(self, launcher, parameters, execute, self._printed)
        return b""

    def _refuse(self, launcher: Launcher) -> None:
        if not self._steps.active:  # earlier ones ran on the checkpoint's GPU
            super()._refuse(launcher)
