"""The registers that the threads of one CTA write, as a file of a recording."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from simt.errors import DebugError

from .executors import InstrumentedExecutor, Ours
from .instrument import ENTRY_TYPE, STATE_TYPE, InstrumentedProgram, WritePoint
from .launches import Index, RecordedAllocation, WatchedLaunch
from .search import RegisterTrace, Tracer, Windows

MOST_ENTRIES = 1 << 20
"""Written registers that are kept of a launch."""


@dataclass(frozen=True)
class RegisterLog:
    """block: the CTA. code: digest of the instrumented PTX, without which the numbers of `points` mean
    nothing. counts: of the registers that each thread writes. values, points: (threads, capacity), the first
    of them, with the numbers of the instructions' results.
    """

    block: Index
    code: str
    counts: npt.NDArray[np.uint32]
    values: npt.NDArray[np.uint64]
    points: npt.NDArray[np.uint32]

    @staticmethod
    def take(executor: InstrumentedExecutor, launch: WatchedLaunch, block: Index) -> RegisterLog:
        """Runs a launch instrumented. Raises DebugError if it has no such CTA."""
        first = launch.number_of(block) * launch.threads_per_block
        program = InstrumentedProgram(launch.ptx, launch.module, launch.kernel)
        points = program.points(executor.exclude | Ours.exclude)
        tracer = Tracer(executor, launch, program, points)
        size = launch.threads_per_block
        zeros = np.zeros(size, np.uint32)
        longest = int(tracer.trace(Windows(first, zeros, 1, 0)).states["count"].max())
        capacity = max(1, min(longest, MOST_ENTRIES // size))
        trace = tracer.trace(Windows(first, zeros, 1, capacity))
        return RegisterLog(
            block=block,
            code=_digest(program, points),
            counts=trace.states["count"].copy(),
            values=trace.entries["value"].copy(),
            points=trace.entries["point"].copy(),
        )

    def save(self, path: Path) -> None:
        np.savez_compressed(
            path,
            block=np.array(self.block, np.int64),
            code=np.array(self.code),
            counts=self.counts,
            values=self.values,
            points=self.points,
        )

    @staticmethod
    def load(path: Path, launch: WatchedLaunch) -> RegisterLog:
        """Raises DebugError if the file is damaged or does not belong to the launch."""
        try:
            with np.load(path, allow_pickle=False) as arrays:
                x, y, z = (int(n) for n in arrays["block"])
                log = RegisterLog(
                    (x, y, z), str(arrays["code"]), arrays["counts"], arrays["values"], arrays["points"]
                )
        except (
            OSError,
            ValueError,
            KeyError,
            EOFError,
            MemoryError,
            zipfile.BadZipFile,
            zlib.error,
        ) as error:
            raise DebugError(f"{path}: cannot be read: {error}") from None
        fits = (
            log.counts.dtype == np.uint32
            and log.counts.shape == (launch.threads_per_block,)
            and log.values.dtype == np.uint64
            and log.points.dtype == np.uint32
            and log.values.ndim == 2
            and log.values.shape == log.points.shape
            and len(log.values) == len(log.counts)
            and all(0 <= a < b for a, b in zip(log.block, launch.grid, strict=True))
        )
        if not fits:
            raise DebugError(f"{path}: damaged: it does not match its launch")
        return log


class LoggedTracer:
    """A RegisterLog in place of a launch on an executor.

    Raises DebugError if it was made from other code, or by another version of the instrumentation.
    """

    def __init__(
        self,
        log: RegisterLog,
        launch: WatchedLaunch,
        program: InstrumentedProgram,
        points: Sequence[WritePoint],
    ) -> None:
        self.program = program
        self.points = points
        self.block: Index | None = log.block
        self.limit = log.values.shape[1]
        if log.code != _digest(program, points):
            raise DebugError(
                "the recorded registers belong to other code, or another version of simt's instrumentation"
            )
        if log.points.size and int(log.points.max()) >= len(points):
            raise DebugError("the recorded registers are damaged: there is no such instruction")
        self._log = log
        self._first = launch.number_of(log.block) * launch.threads_per_block

    def trace(self, windows: Windows) -> RegisterTrace:
        """Like Tracer, from the log: windows begin at one point, with a stride of 1."""
        threads = slice(windows.first - self._first, windows.first - self._first + len(windows.starts))
        start = int(windows.starts[0]) if len(windows.starts) else 0
        states = np.zeros(len(windows.starts), STATE_TYPE)
        states["count"] = self._log.counts[threads]
        entries = np.zeros((len(windows.starts), windows.capacity), ENTRY_TYPE)
        there = self._log.values[threads, start : start + windows.capacity]
        entries["value"][:, : there.shape[1]] = there
        entries["point"][:, : there.shape[1]] = self._log.points[threads, start : start + windows.capacity]
        return RegisterTrace(states, entries)

    def inputs(self, thread: int, count: int, point: WritePoint) -> list[int | None]:
        """Bits of the registers that an instruction reads, as last written by the thread; None if the log
        does
        not have them.
        """
        found: list[int | None] = []
        row = thread - self._first
        for register, _ in self.program.inputs(point):
            numbers = [
                k for k, p in enumerate(self.points) if (p.function, p.register) == (point.function, register)
            ]
            where = np.flatnonzero(np.isin(self._log.points[row, :count], numbers))
            found.append(int(self._log.values[row, where[-1]]) if len(where) else None)
        return found


def _digest(program: InstrumentedProgram, points: Sequence[WritePoint]) -> str:
    return RecordedAllocation.digest_of(program.traced(points).encode())
