"""Finds the first instruction whose result differs between two executions of a launch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from .executors import InstrumentedExecutor, Scratch
from .instrument import (
    ENTRY_TYPE,
    HEADER_TYPE,
    MOST_INPUTS,
    STATE_TYPE,
    WRITERS_TYPE,
    InstrumentedProgram,
    WritePoint,
)
from .launches import Index, WatchedLaunch
from .matching import match
from .result import ComparedValue, InstructionDifference, RegisterInput, Writer
from .values import Tolerance, equal, register_ulps, register_value

WINDOW = 1024
"""Entries that a thread stores in one run."""
MOST_THREADS = 1 << 20
"""Threads whose hashes are taken in one run: 32 bytes each."""
MOST_SCANS = 256
"""Windows that are looked through where a tolerance makes hashes useless."""
MOST_BLOCKS = 8
"""CTAs that are searched for a difference that was not read from memory."""


class RegisterTrace(NamedTuple):
    """Written registers of `threads` threads: how each ends, and windows of what it wrote."""

    states: npt.NDArray[Any]
    entries: npt.NDArray[Any]  # (threads, capacity)


class Windows(NamedTuple):
    """Which threads (`count` of them, from number `first` of the grid) store which of their writes: each from
    its start on, one in `stride`, at most `capacity`."""

    first: int
    starts: npt.NDArray[np.uint32]
    stride: int
    capacity: int


class Tracer:
    """A launch on an executor, as its threads' written registers.

    points: what is stored, `points[k]` under the number k.
    """

    block: Index | None = None
    limit = 1 << 32

    def __init__(
        self,
        executor: InstrumentedExecutor,
        launch: WatchedLaunch,
        program: InstrumentedProgram,
        points: Sequence[WritePoint],
    ) -> None:
        self.points = points
        self.program = program
        self._executor = executor
        self._launch = launch
        self._traced = program.traced(points)

    def trace(self, windows: Windows) -> RegisterTrace:
        return self._run(self._traced, windows, 0, 0)[0]

    def inputs(self, thread: int, count: int, point: WritePoint) -> Sequence[int | None]:
        """Bits of the registers that an instruction reads, where a thread had written `count` registers."""
        registers = self.program.inputs(point)
        windows = Windows(thread, np.zeros(1, np.uint32), 1, 0)
        _, rest = self._run(self.program.traced(self.points, point), windows, 8 * MOST_INPUTS, count)
        return [int(bits) for bits in np.frombuffer(rest, "<u8", len(registers))]

    def _run(self, ptx: str, windows: Windows, extra: int, probe: int) -> tuple[RegisterTrace, bytes]:
        threads, capacity = len(windows.starts), windows.capacity
        header = np.zeros(1, HEADER_TYPE)
        header["first"], header["threads"] = windows.first, threads
        header["capacity"], header["stride"], header["probe"] = capacity, windows.stride, probe
        states = np.zeros(threads, STATE_TYPE)
        if capacity:
            states["next"] = windows.starts + windows.stride
        offsets = np.arange(threads, dtype=np.uint64) * np.uint64(capacity * ENTRY_TYPE.itemsize)
        states["entry"] = offsets + np.uint64(states.nbytes)
        entries = bytes(threads * capacity * ENTRY_TYPE.itemsize)
        scratch = Scratch(header.tobytes(), states.tobytes() + entries + bytes(extra))
        raw = self._executor.run_instrumented(self._launch, ptx, scratch)
        at = states.nbytes
        return (
            RegisterTrace(
                np.frombuffer(raw, STATE_TYPE, threads),
                np.frombuffer(raw, ENTRY_TYPE, threads * capacity, at).reshape(threads, capacity),
            ),
            raw[at + len(entries) :],
        )


def find_writer(
    executor: InstrumentedExecutor, launch: WatchedLaunch, address: int, size: int
) -> tuple[int, Writer] | None:
    """The thread (its number in the grid) that last stored to a location; None if no plain store did."""
    program = InstrumentedProgram(launch.ptx, launch.module, launch.kernel)
    header = np.zeros(1, HEADER_TYPE)
    header["target"], header["size"] = address, size
    scratch = Scratch(header.tobytes(), bytes(WRITERS_TYPE.itemsize))
    raw = executor.run_instrumented(launch, program.writers(), scratch)
    found = np.frombuffer(raw, WRITERS_TYPE, 1)[0]
    if not found["stores"]:
        return None
    thread = int(found["thread"])
    text, line = program.store_text(int(found["point"]))
    return thread, Writer(launch.block_of(thread), launch.thread_of(thread), text, line)


@dataclass(frozen=True)
class _Suspect:
    """Where a thread's executions diverge: after `count` written registers, at entries of the two (None: it
    has
    ended).
    """

    thread: int
    count: int
    ours: npt.NDArray[Any] | None
    reference: npt.NDArray[Any] | None


class Registers(Protocol):
    """The registers that a launch's threads write: of `Tracer`, or recorded.

    block: the only CTA that is known, None for all. limit: of how many of a thread's writes are known.
    """

    program: InstrumentedProgram
    points: Sequence[WritePoint]
    block: Index | None
    limit: int

    def trace(self, windows: Windows) -> RegisterTrace: ...

    def inputs(self, thread: int, count: int, point: WritePoint) -> Sequence[int | None]: ...


class DivergenceSearch:
    """Searches for the first differing instruction of a launch.

    open_reference: returns the registers of the reference's launch, for the given program and write points.
    exclude: as for `InstrumentedProgram.points`.
    """

    def __init__(
        self,
        launch: WatchedLaunch,
        reference_launch: WatchedLaunch,
        ours: InstrumentedExecutor,
        open_reference: Callable[[WatchedLaunch, InstrumentedProgram, Sequence[WritePoint]], Registers],
        exclude: frozenset[str],
        tolerance: Tolerance,
    ) -> None:
        self._launch = launch
        self._tolerance = tolerance
        self._programs = (
            InstrumentedProgram(launch.ptx, launch.module, launch.kernel),
            InstrumentedProgram(reference_launch.ptx, reference_launch.module, reference_launch.kernel),
        )
        self._matching = match(*self._programs, exclude)
        self._ours: Registers = Tracer(ours, launch, self._programs[0], self._matching.ours)
        self._reference = open_reference(reference_launch, self._programs[1], self._matching.reference)
        # Hashes are useless with a tolerance, and are not recorded.
        self._hashes = tolerance.exact and self._reference.block is None

    def first_difference(self, writer: int | None, block: Index | None) -> InstructionDifference | None:
        """The first difference of the thread `writer` if it computes something else itself; else of another
        thread, of its CTA first. None if no written register differs."""
        size = self._launch.threads_per_block
        block = self._reference.block or block
        if block is not None:
            blocks, differing = [self._launch.number_of(block)], None
        elif not self._hashes:
            blocks, differing = [(writer or 0) // size], None
        else:
            blocks, differing = self._differing_blocks(None if writer is None else writer // size)
        best: _Suspect | None = None
        threads = 0
        for number in blocks[:MOST_BLOCKS]:
            found = self._search_block(number)
            threads += len(found)
            own = sorted(found, key=lambda s: (self._reads_memory(s), s.thread != writer, s.count, s.thread))
            if own and (best is None or self._reads_memory(best)):
                best = own[0]
            if best is not None and not self._reads_memory(best):
                break
        if best is None:
            return None
        return self._describe(best, threads if differing is None else differing)

    # --- which threads ----------------------------------------------------------------------------------

    def _differing_blocks(self, preferred: int | None) -> tuple[list[int], int]:
        """CTAs with threads whose hashes differ, the preferred one first, and how many threads differ.

        Ends after the first piece of the grid, or the preferred CTA, that holds any.
        """
        size, total = self._launch.threads_per_block, self._launch.threads
        per_piece = max(1, MOST_THREADS // size) * size
        for first in range(0, total, per_piece):
            threads = min(per_piece, total - first)
            windows = Windows(first, np.zeros(threads, np.uint32), 1, 0)
            a, b = self._ours.trace(windows).states, self._reference.trace(windows).states
            where = np.flatnonzero((a["hash"] != b["hash"]) | (a["count"] != b["count"]))
            if len(where):
                blocks = np.unique((first + where) // size).tolist()
                return sorted(blocks, key=lambda n: (n != preferred, n)), len(where)
        return [], 0

    # --- which of a thread's writes ---------------------------------------------------------------------

    def _search_block(self, number: int) -> list[_Suspect]:
        size = self._launch.threads_per_block
        first = number * size
        zeros = np.zeros(size, np.uint32)
        a = self._ours.trace(Windows(first, zeros, 1, 0)).states
        b = self._reference.trace(Windows(first, zeros, 1, 0)).states
        longest = int(max(a["count"].max(), b["count"].max()))
        if not self._hashes:
            return self._scan(first, size, min(longest, self._reference.limit))
        differs = (a["hash"] != b["hash"]) | (a["count"] != b["count"])
        if not differs.any():
            return []
        # Only the range of threads that differ is stored.
        where = np.flatnonzero(differs)
        first, size = first + int(where[0]), int(where[-1] - where[0]) + 1
        starts = np.zeros(size, np.uint32)
        span = longest
        while span > WINDOW:
            stride = -(-span // WINDOW)
            windows = Windows(first, starts, stride, -(-span // stride))
            starts = starts + stride * self._first_unequal_hash(windows)
            span = stride
        return self._window(Windows(first, starts, 1, max(1, span)))

    def _first_unequal_hash(self, windows: Windows) -> npt.NDArray[np.uint32]:
        a, b = self._ours.trace(windows).entries, self._reference.trace(windows).entries
        unequal = a["hash"] != b["hash"]
        # A thread that has ended has no entry: both have none there, or one of them ends in between.
        return np.where(unequal.any(axis=1), unequal.argmax(axis=1), _written(a, b)).astype(np.uint32)

    def _scan(self, first: int, size: int, longest: int) -> list[_Suspect]:
        """Like `_search_block`, with a tolerance: window by window."""
        capacity = max(WINDOW, (1 << 18) // size)
        for start in range(0, min(longest, MOST_SCANS * capacity), capacity):
            starts = np.full(size, start, np.uint32)
            windows = Windows(first, starts, 1, min(capacity, longest - start))
            if found := self._window(windows):
                return found
        return []

    def _window(self, windows: Windows) -> list[_Suspect]:
        """The first difference of each thread in its window."""
        a, b = self._ours.trace(windows), self._reference.trace(windows)
        found = []
        same = (a.entries["value"] == b.entries["value"]) & (a.entries["point"] == b.entries["point"])
        for k in range(len(windows.starts)):
            start = int(windows.starts[k])
            lengths = [min(max(int(t.states["count"][k]) - start, 0), windows.capacity) for t in (a, b)]
            shorter = min(lengths)
            for n in np.flatnonzero(~same[k, :shorter]).tolist():
                x, y = a.entries[k, n], b.entries[k, n]
                if x["point"] == y["point"]:
                    point = self._ours.points[int(x["point"])]
                    if equal(int(x["value"]), int(y["value"]), point.type, self._tolerance):
                        continue
                found.append(_Suspect(windows.first + k, start + n, x, y))
                break
            else:
                if lengths[0] != lengths[1]:
                    x = a.entries[k, shorter] if lengths[0] > shorter else None
                    y = b.entries[k, shorter] if lengths[1] > shorter else None
                    found.append(_Suspect(windows.first + k, start + shorter, x, y))
        return found

    # --- the difference -------------------------------------------------------------------------------------

    def _point(self, tracer: Registers, entry: npt.NDArray[Any] | None) -> WritePoint | None:
        return None if entry is None else tracer.points[int(entry["point"])]

    def _reads_memory(self, suspect: _Suspect) -> bool:
        point = self._point(self._ours, suspect.ours)
        return point is not None and point.reads_memory

    def _describe(self, suspect: _Suspect, threads: int) -> InstructionDifference:
        launch = self._launch
        ours = self._point(self._ours, suspect.ours)
        reference = self._point(self._reference, suspect.reference)
        known = ours or reference
        assert known is not None
        is_value = (
            suspect.ours is not None
            and suspect.reference is not None
            and suspect.ours["point"] == suspect.reference["point"]
        )
        file, line = known.location or ("", 0)
        number = int(suspect.ours["point"]) if suspect.ours is not None else -1
        replaced, replacement = self._matching.replaced.get(number, ((), ()))
        a = int(suspect.ours["value"]) if suspect.ours is not None else 0
        b = int(suspect.reference["value"]) if suspect.reference is not None else 0
        return InstructionDifference(
            kind="value" if is_value else "path",
            block=launch.block_of(suspect.thread),
            thread=launch.thread_of(suspect.thread),
            count=suspect.count,
            instruction=ours.text if ours else "the end of the thread",
            ptx_line=ours.line if ours else 0,
            reference_instruction=reference.text if reference else "the end of the thread",
            reference_line=reference.line if reference else 0,
            replaced=replaced,
            replacement=replacement,
            source_file=file,
            source_line=line,
            source_text=launch.source_text(file, line),
            register=known.register,
            type=known.type,
            ours=register_value(a, known.type) if is_value else None,
            reference=register_value(b, known.type) if is_value else None,
            ulps=register_ulps(a, b, known.type) if is_value else None,
            inputs=self._inputs(suspect, ours, reference) if is_value and ours and reference else (),
            threads=threads,
        )

    def _inputs(
        self, suspect: _Suspect, ours: WritePoint, reference: WritePoint
    ) -> tuple[RegisterInput, ...]:
        """What the instruction reads: registers of ours, then, where another instruction stands in the
        reference, those of that one."""
        sides = []
        for tracer, point in ((self._ours, ours), (self._reference, reference)):
            # The count before the instruction's first register, should it write several.
            bits = tracer.inputs(suspect.thread, suspect.count - point.part, point)
            names = tracer.program.inputs(point)
            sides.append([(name, kind, x) for (name, kind), x in zip(names, bits, strict=True)])
        if ours.opcode == reference.opcode and len(sides[0]) == len(sides[1]):
            return tuple(
                RegisterInput(name, kind, _known(x, kind), _known(y, kind))
                for (name, kind, x), (_, _, y) in zip(*sides, strict=True)
            )
        return (
            *(RegisterInput(name, kind, _known(x, kind), None) for name, kind, x in sides[0]),
            *(RegisterInput(name, kind, None, _known(x, kind)) for name, kind, x in sides[1]),
        )


def _known(bits: int | None, kind: str) -> ComparedValue | None:
    return None if bits is None else register_value(bits, kind)


def _written(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """How many entries were written in both: the hashes of unwritten ones are 0."""
    written: npt.NDArray[np.int64] = ((a["hash"] != 0) & (b["hash"] != 0)).sum(axis=1)
    return written
