"""The GPUs of a program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simt import _engine
from simt.errors import CheckpointError, LaunchError
from simt.gpu import GPU
from simt.gpu.arguments import LaunchArguments
from simt.gpu.module import Launcher
from simt.gpu.output import Output
from simt.result import LaunchResult

from .checkpoints import Steps

FIRST_ADDRESS, ADDRESSES = 16 << 32, 1 << 40
"""Start of device 0's memory, and distance between the memories of devices."""
EVERYWHERE = (1 << 64) - 1
"""All devices, for `open` of the engine's memory."""


class AddressSpaces:
    """The address spaces that the devices of a process share, by process.

    devices: how many a process has; one alone needs none.
    """

    def __init__(self, devices: int) -> None:
        self._devices = devices
        self._open: dict[int, tuple[Any, set[int]]] = {}
        """The space, and the devices in it."""

    def enter(self, process: int, ordinal: int) -> Any:
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

    def __init__(self, ordinal: int, printed: bytearray, options: dict[str, Any], space: Any = None) -> None:
        self._ordinal, self._space = ordinal, space
        super().__init__(**options)
        self._printed = printed
        self._output = Output(printed.extend)

    def _device_memory(self, capacity: int) -> Any:
        memory = _engine.functional.DeviceMemory
        if self._space is not None:
            return memory(capacity, self._space, self._ordinal, self.exact_bounds)
        return memory(capacity, FIRST_ADDRESS + self._ordinal * ADDRESSES, self.exact_bounds)


class CheckpointedGpu(ProgramGpu):
    """A GPU whose launches before the point of a checkpoint are steps that are recorded or restored."""

    def __init__(
        self, steps: Steps, ordinal: int, printed: bytearray, options: dict[str, Any], space: Any = None
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
        memory: Any = None,
        until: tuple[int, int, int] | None = None,
    ) -> bytes:
        if not self._steps.active:
            return super().run_values(launcher, parameters, launch_id, memory, until)

        def execute(copy: Any) -> None:
            super(CheckpointedGpu, self).run_values(launcher, parameters, launch_id, copy)

        self._steps.run(self, launcher, parameters, execute, self._printed)
        return b""

    def _refuse(self, launcher: Launcher) -> None:
        if not self._steps.active:  # earlier ones ran on the checkpoint's GPU
            super()._refuse(launcher)
