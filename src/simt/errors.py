"""Errors that users can cause. Messages name the file and place, what was found, and what was expected."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simt.result import Result


class SimtError(Exception):
    """Base class of all errors that simt raises for bad input."""


class TraceError(SimtError):
    """A trace, a launch list or a trace store cannot be read."""


class OpcodeTableError(SimtError):
    """An opcode table cannot be read."""


class InstructionError(SimtError):
    """An instruction of one's own cannot be defined."""


class SpecError(SimtError):
    """A GPU specification cannot be read, or is inconsistent."""


class SelectionError(SimtError):
    """A kernel selection cannot be parsed, or selects nothing."""


class ResultError(SimtError):
    """A saved Result cannot be read or written, or does not belong to the run to be resumed."""


class TuneError(SimtError):
    """A hardware description or measured records cannot be read, or do not belong together."""


class ProfileError(SimtError):
    """A profile cannot be read, or lacks data that a method needs."""


class PlanError(SimtError):
    """A Plan cannot be made or read, or does not match what it is used with."""


class ParameterError(PlanError):
    """A parameter of a sampler or a controller has an invalid value."""


class ControlError(SimtError):
    """A controller cannot be made, or cannot carry out its decision."""


class ImageError(SimtError):
    """A program's code cannot be read or executed, or lacks what was requested."""


class PtxError(ImageError):
    """No PTX can be read from a file, or it lacks what was requested."""


class SassError(ImageError):
    """A cubin cannot be read, or its machine code cannot be decoded or executed."""


class DynamicParallelismError(ImageError):
    """A program whose kernels launch kernels or graphs, which is not supported."""


class CompileError(SimtError):
    """A program does not compile. The message holds the compiler's log, with source lines."""


class ToolkitError(SimtError):
    """A required compiler or library is not installed."""


class CheckpointError(SimtError):
    """A checkpoint cannot be read or written, or does not fit the GPU or the program."""


class CheckError(SimtError):
    """A check does not exist, or a file of suppressions cannot be read."""


class DebugError(SimtError):
    """Two executions cannot be compared, or a recording of one cannot be read or written."""


class PowerError(SimtError):
    """Energies cannot be read, are unknown for a GPU, or cannot be measured or fitted."""


class StudyError(SimtError):
    """A study cannot be read, its points cannot be made or run, or its results cannot be kept."""


class DriverError(SimtError):
    """The CUDA driver of this machine is missing or refused a call.

    status: the driver's error number, or 0.
    """

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class LaunchError(SimtError):
    """A launch is impossible: its arguments, sizes or memory are invalid.

    kind: "invalid launch", "too much shared memory", "too many registers", ... if the GPU lacks resources for
        the launch, else empty.
    """

    def __init__(self, message: str, kind: str = "") -> None:
        super().__init__(message)
        self.kind = kind


class ProgramFault(SimtError):
    """A simulated program made an error: an illegal address, a trap, a failed assertion, ...

    kind: "illegal address", "misaligned address", "trap", "assert", "unbacked", "divergent barrier", ...
    kernel: name of the kernel.
    block, thread: indices (x, y, z) of the faulting thread.
    instruction: of PTX or of machine code. ptx_line: its line in the PTX, 0 for machine code.
    source_file, source_line, source_text: the place in the source, if known.
    address: the address, for memory faults, else None.
    launch: number of the launch on its GPU, from 1.
    """

    kind: str = ""
    kernel: str = ""
    block: tuple[int, int, int] = (0, 0, 0)
    thread: tuple[int, int, int] = (0, 0, 0)
    instruction: str = ""
    ptx_line: int = 0
    source_file: str = ""
    source_line: int = 0
    source_text: str = ""
    launch: int = 0
    address: int | None = None

    @classmethod
    def from_native(cls, error: Exception, source_text: str = "") -> ProgramFault:
        """Makes a fault from the engine's exception. source_text: the line of the source, if known."""
        fault = cls(f"{error}: {source_text}" if source_text else str(error))
        for name, value in vars(error).items():
            setattr(fault, name, value)
        fault.source_text = source_text
        return fault


class SimulationError(SimtError):
    """A simulation cannot continue. `result` holds the launches that had finished."""

    def __init__(self, message: str, result: Result) -> None:
        super().__init__(message)
        self.result = result


class DeadlockError(SimulationError):
    """The simulated machine is deadlocked."""


class LimitReached(SimulationError):
    """A program reached its limit of cycles."""


class Interrupted(KeyboardInterrupt):
    """A simulation was stopped by Ctrl-C or another signal. `result` holds the launches that had finished.

    number: the signal: SIGINT, SIGTERM, SIGHUP, or SIGALRM for a timeout.
    """

    def __init__(self, result: Result, number: int = signal.SIGINT) -> None:
        super().__init__("simulation interrupted")
        self.result = result
        self.number = number
