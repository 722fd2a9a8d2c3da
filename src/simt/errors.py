"""Errors that a user can cause: each names the file, the place, what was found and what was expected."""

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


class SpecError(SimtError):
    """A GPU specification cannot be read, or does not make sense."""


class SelectionError(SimtError):
    """A kernel selection that cannot be understood or that selects nothing."""


class ResultError(SimtError):
    """A saved Result that cannot be read or written, or that does not belong to the run to be resumed."""


class TuneError(SimtError):
    """A hardware description or measured records cannot be read, or do not belong together."""


class ProfileError(SimtError):
    """A profile cannot be read, or lacks what a method needs."""


class PlanError(SimtError):
    """A Plan cannot be made or read, or does not fit what it is used with."""


class ParameterError(PlanError):
    """A parameter of a sampler or a controller has a value that makes no sense."""


class ControlError(SimtError):
    """A controller cannot be made, or cannot do what it decided."""


class PtxError(SimtError):
    """No PTX can be read from a file, or it does not hold what is asked for."""


class CompileError(SimtError):
    """A program does not compile. The message holds the compiler's log, with source lines."""


class ToolkitError(SimtError):
    """A compiler or library that is needed is not installed."""


class DebugError(SimtError):
    """Two executions cannot be compared, or a recording of one cannot be read or written."""


class DriverError(SimtError):
    """The CUDA driver of this machine is missing, or refuses something. status: its number of the error, 0
    for none."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class LaunchError(SimtError):
    """A launch that cannot be made: arguments, sizes, memory.

    kind: "invalid launch", "too much shared memory", "too many registers", ... where the GPU has no room for
    it, else empty.
    """

    def __init__(self, message: str, kind: str = "") -> None:
        super().__init__(message)
        self.kind = kind


class ProgramFault(SimtError):
    """A simulated program did something wrong: an illegal address, a trap, a failed assertion, ...

    kind: "illegal address", "misaligned address", "trap", "assert", "divergent barrier", ...
    kernel: its name.
    block, thread: indices (x, y, z) of who did it. instruction, ptx_line: where, in the PTX. source_file,
    source_line, source_text: where, in the source, if known. address: where it is about memory, else None.
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
        """From what the engine raised. source_text: the line of the source, where it is known."""
        fault = cls(f"{error}: {source_text}" if source_text else str(error))
        for name, value in vars(error).items():
            setattr(fault, name, value)
        fault.source_text = source_text
        return fault


class SimulationError(SimtError):
    """A simulation cannot go on. `result` holds the launches finished before."""

    def __init__(self, message: str, result: Result) -> None:
        super().__init__(message)
        self.result = result


class DeadlockError(SimulationError):
    """The simulated machine can make no further progress."""


class LimitReached(SimulationError):
    """A program's run has reached its limit of cycles."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a simulation, or what else stops it. `result` holds the launches finished before.

    number: of the signal: SIGINT, SIGTERM, SIGHUP, or SIGALRM where the time was over.
    """

    def __init__(self, result: Result, number: int = signal.SIGINT) -> None:
        super().__init__("simulation interrupted")
        self.result = result
        self.number = number
