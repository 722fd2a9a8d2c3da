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

FIRST_ADDRESS, ADDRESSES = 16 << 32, 1 << 42
"""Start of device 0's memory, and distance between the memories of devices."""


class ProgramGpu(GPU):
    """A GPU whose kernels print to the program, with addresses unique among the program's devices."""

    def __init__(self, ordinal: int, printed: bytearray, options: dict[str, Any]) -> None:
        self._ordinal = ordinal
        super().__init__(**options)
        self._printed = printed
        self._output = Output(printed.extend)

    def _device_memory(self, capacity: int) -> Any:
        return _engine.functional.DeviceMemory(capacity, FIRST_ADDRESS + self._ordinal * ADDRESSES)


class CheckpointedGpu(ProgramGpu):
    """A GPU whose launches before the point of a checkpoint are steps that are recorded or restored."""

    def __init__(self, steps: Steps, ordinal: int, printed: bytearray, options: dict[str, Any]) -> None:
        super().__init__(ordinal, printed, options)
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
