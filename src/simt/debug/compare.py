"""Runs a program on two executors and finds where they diverge."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import numpy as np

from simt.errors import DebugError, ProgramFault
from simt.gpu.programs import target_of
from simt.options import DEFAULT_GPU
from simt.selection import Selection, chooser
from simt.spec import load_spec

from .cuda import CudaExecutor
from .executors import Executor, InstrumentedExecutor, MachineCode, Ours
from .instrument import InstrumentedProgram as PtxProgram
from .instrument import WritePoint
from .launches import (
    LaunchOutcome,
    Memory,
    Program,
    RecordedAllocation,
    WatchedLaunch,
    check_same_program,
    run_watched,
)
from .recording import FILE, MAX_BYTES, OtherPython, Recording, RecordingWriter
from .registers import LoggedTracer, RegisterLog
from .result import ExecutionComparison, LaunchDifference, MemoryDifference
from .search import DivergenceSearch, Registers, Tracer, find_writer
from .values import Tolerance, compare_arrays, dtype_of, element_value, ulps


def compare(
    program: Program,
    reference: str | os.PathLike[str] | Recording | Executor,
    *,
    gpu: str | os.PathLike[str] = DEFAULT_GPU,
    driver: Path | None = None,
    size: int | None = None,
    rtol: float = 0.0,
    atol: float = 0.0,
    instructions: bool = True,
    block: tuple[int, int, int] | None = None,
) -> ExecutionComparison:
    """Runs a program on our executor and on a reference, and reports the first launch, and then the first
    instruction, whose result differs (Lew et al., "Analyzing Machine Learning Workloads Using a Detailed GPU
    Simulator", section III-D).

    program: a .py, .cu or .ptx file as for `simt run`, the name of an example or a workload, or a function of
        a GPU.
    reference: a directory written by `record`; the Python of another version of simt; "cuda" or "cuda:1" for
        a GPU in this machine; "sass" for the machine code that ptxas makes of the program; or an Executor.
    gpu: a name listed by `simt gpus`, or a TOML file; of the reference's generation, if the program uses
        tensor cores, since each adds in its own way.
    driver: the driver of a .cu or .ptx file.
    size: the size of a workload.
    rtol, atol: floats a (ours) and b are equal if |a - b| <= atol + rtol * |b|, and so are any two NaNs; by
        default, equal means bitwise equal.
    instructions: whether to search for the instruction, too.
    block: the CTA to search, if it is known better.

    Raises DebugError if the executions cannot be compared; LaunchError, PtxError or CompileError as `simt
    run` does.
    """
    if rtol < 0 or atol < 0:
        raise DebugError(f"tolerances are {rtol} and {atol}, expected 0 or more")
    tolerance = Tolerance(rtol, atol)
    name = getattr(program, "__name__", "program") if callable(program) else str(program)
    with tempfile.TemporaryDirectory(prefix="simt-debug-") as folder:
        source = _source_of(reference, program, gpu, driver, size, Path(folder))
        found: list[LaunchDifference] = []
        compared = 0

        def watch(launch: WatchedLaunch, outcome: LaunchOutcome) -> None:
            nonlocal compared
            compared += 1
            difference = _compare_launch(source, launch, outcome, tolerance, instructions, block)
            if difference is not None:
                found.append(difference)
                raise _Found

        with suppress(_Found, ProgramFault):  # a fault in both ends the program
            run_watched(program, gpu, watch, driver, size)
        if not found and (extra := source.launch_after(compared)) is not None:
            compared += 1
            found.append(_missing(extra, "only the reference makes this launch"))
    return ExecutionComparison(name, source.name, compared, found[0] if found else None)


def record(
    program: Program,
    directory: str | os.PathLike[str],
    *,
    gpu: str | os.PathLike[str] = DEFAULT_GPU,
    driver: Path | None = None,
    size: int | None = None,
    executor: Executor | None = None,
    max_bytes: int = MAX_BYTES,
    contents: bool = True,
    launches: Selection = None,
    registers: Selection = None,
    block: tuple[int, int, int] = (0, 0, 0),
) -> Recording:
    """Runs a program and writes each launch, with the memory before and after it, into a directory.

    program, gpu, driver, size: as in `compare`.
    executor: runs the launches; ours by default.
    max_bytes: limit on the size of the data.
    contents: False keeps only digests, with which a comparison finds the launch and the allocation.
    launches: the launches whose contents are kept, by number, range or kernel, as `kernels` of
        `simt.simulate`; all by default.
    registers: launches for which the registers written by the threads of `block` are recorded, too, so that
        the instruction can be found.

    Raises DebugError if the directory exists or becomes too large. Exceptions of the program propagate,
    except its faults, which are recorded.
    """
    name = getattr(program, "__name__", "program") if callable(program) else str(program)
    runs = executor or Ours()
    wanted = chooser(registers) if registers is not None else lambda launch: False
    with (
        RecordingWriter(
            Path(directory),
            program=name,
            gpu=str(gpu),
            executor=runs.name,
            exclude=runs.exclude | Ours.exclude,
            max_bytes=max_bytes,
            keep=chooser(launches) if contents else lambda launch: False,
            registers=lambda launch: RegisterLog.take(runs, launch, block) if wanted(launch) else None,
        ) as writer,
        suppress(ProgramFault),
    ):
        run_watched(program, gpu, writer.add, driver, size, executor.run if executor else None)
    return Recording(Path(directory))


class _Found(BaseException):
    """Ends the program once a difference is found. Not an Exception, lest the program catch it."""


# --- references -----------------------------------------------------------------------------------------


class _Source(Protocol):
    """Source of the reference's executions."""

    name: str
    exclude: frozenset[str]

    def launch(self, launch: WatchedLaunch) -> tuple[WatchedLaunch, LaunchOutcome] | None:
        """The launch that corresponds to one of ours, and its outcome; None if there is none."""
        ...

    def launch_after(self, count: int) -> WatchedLaunch | None:
        """A launch it makes after our last one."""
        ...

    def registers(
        self, launch: WatchedLaunch, reference: WatchedLaunch
    ) -> InstrumentedExecutor | RegisterLog | str:
        """Reruns the reference's launch; or the registers it wrote, or why neither is available."""
        ...


class _Replay:
    """Runs each launch on another executor, from the same initial memory as ours: one error does not cause
    further differences.
    """

    def __init__(self, executor: Executor) -> None:
        self.name = executor.name
        self.exclude = executor.exclude
        self._executor = executor

    def launch(self, launch: WatchedLaunch) -> tuple[WatchedLaunch, LaunchOutcome] | None:
        return launch, self._executor.run(launch)

    def launch_after(self, count: int) -> WatchedLaunch | None:
        return None

    def registers(
        self, launch: WatchedLaunch, reference: WatchedLaunch
    ) -> InstrumentedExecutor | RegisterLog | str:
        return self._executor


class _Recorded:
    """A recording. other: the executor that made it, if available."""

    def __init__(self, recording: Recording, other: InstrumentedExecutor | None = None) -> None:
        self.name = other.name if other else recording.name
        self.exclude = recording.exclude
        self._recording = recording
        self._other = other

    def launch(self, launch: WatchedLaunch) -> tuple[WatchedLaunch, LaunchOutcome] | None:
        return self._recording.launch(launch.index) if launch.index <= len(self._recording) else None

    def launch_after(self, count: int) -> WatchedLaunch | None:
        return self._recording.launch(count + 1)[0] if count < len(self._recording) else None

    def registers(
        self, launch: WatchedLaunch, reference: WatchedLaunch
    ) -> InstrumentedExecutor | RegisterLog | str:
        if self._other is not None:
            return self._other
        if launch.ptx != reference.ptx:
            if any(a.content is None for a in reference.before):
                return "the recording holds digests only for this launch"
            return Ours()
        return self._recording.registers(reference) or (
            "the recording holds memory only. Compare with what made it (another Python's simt, a GPU), or "
            f"record there with `--registers {launch.index} --block X,Y,Z`, the block of the thread above"
        )


def _source_of(
    reference: str | os.PathLike[str] | Recording | Executor,
    program: Program,
    gpu: str | os.PathLike[str],
    driver: Path | None,
    size: int | None,
    folder: Path,
) -> _Source:
    if isinstance(reference, Recording):
        return _Recorded(reference)
    if not isinstance(reference, (str, os.PathLike)):
        return _Replay(reference)
    text = os.fspath(reference)
    if text == "cuda" or text.startswith("cuda:"):
        return _Replay(CudaExecutor.of(text))
    if text == "sass":
        return _Replay(MachineCode(target_of(load_spec(gpu))))
    path = Path(text)
    if path.is_dir():
        return _Recorded(Recording(path))
    found = shutil.which(text)
    if found is None:
        raise DebugError(
            f"{text}: not a reference: expected a directory written by `simt debug record` (with a {FILE}), "
            f"the Python of another version of simt, cuda, or sass"
        )
    if callable(program):
        raise DebugError(f"{text}: another Python runs programs in files, not functions of this one")
    other = OtherPython(Path(found), folder)
    return _Recorded(other.record(os.fspath(program), str(gpu), driver, size), other)


# --- one launch -----------------------------------------------------------------------------------------


def _compare_launch(
    source: _Source,
    launch: WatchedLaunch,
    outcome: LaunchOutcome,
    tolerance: Tolerance,
    instructions: bool,
    block: tuple[int, int, int] | None,
) -> LaunchDifference | None:
    pair = source.launch(launch)
    if pair is None:
        return _missing(launch, "only our program makes this launch")
    other, other_outcome = pair

    def difference(kind: str, message: str, memory: tuple[MemoryDifference, ...] = ()) -> LaunchDifference:
        return LaunchDifference(launch.index, launch.kernel, launch.grid, launch.block, kind, message, memory)

    if message := check_same_program(launch, other):
        return difference("launch", f"it is a different launch: {message}")
    before = _compare_memory(launch, launch.before, other.before, Tolerance())
    if before:
        return difference("inputs", "its initial memory already differs", before)
    if launch.parameters != other.parameters:
        return difference("inputs", "its parameters differ")
    memory = _compare_memory(launch, outcome.after, other_outcome.after, tolerance)
    if bool(outcome.fault) != bool(other_outcome.fault):
        which = "our" if outcome.fault else "the reference's"
        fault = outcome.fault or other_outcome.fault
        found = difference("fault", f"{which} execution faults: {fault}", memory)
    elif memory:
        found = difference("memory", "the memory it leaves behind differs", memory)
    else:
        return None
    if not instructions:
        return found
    memory, writer = _with_writer(launch, memory)
    registers = source.registers(launch, other)
    if isinstance(registers, str):
        return replace(found, memory=memory, note=registers)

    def reference_registers(
        of: WatchedLaunch, program: PtxProgram, points: Sequence[WritePoint]
    ) -> Registers:
        if isinstance(registers, RegisterLog):
            return LoggedTracer(registers, of, program, points)
        return Tracer(registers, of, program, points)

    exclude = Ours.exclude | source.exclude
    search = DivergenceSearch(launch, other, Ours(), reference_registers, exclude, tolerance)
    instruction = search.first_difference(writer, block)
    note = ""
    if instruction is None:
        note = NOTHING_DIFFERS
        if isinstance(registers, RegisterLog):
            note += f", or in another block than {registers.block}, whose registers were recorded"
    return replace(found, memory=memory, instruction=instruction, note=note)


NOTHING_DIFFERS = (
    "no register that could be compared was written differently: the difference lies in what is stored "
    "without passing through registers, or in results that may differ between right executions"
)


def _with_writer(
    launch: WatchedLaunch, memory: tuple[MemoryDifference, ...]
) -> tuple[tuple[MemoryDifference, ...], int | None]:
    """The first difference, with the thread that last stored there in our execution, and that thread's
    number.
    """
    if not memory or not memory[0].dtype:
        return memory, None
    first = memory[0]
    size = max(1, first.bytes // max(1, first.elements))
    found = find_writer(Ours(), launch, first.address + first.flat * size, size)
    if found is None:
        return memory, None
    thread, writer = found
    return (replace(first, writer=writer), *memory[1:]), thread


def _missing(launch: WatchedLaunch, message: str) -> LaunchDifference:
    return LaunchDifference(launch.index, launch.kernel, launch.grid, launch.block, "missing", message)


def _compare_memory(
    launch: WatchedLaunch, ours: Memory, reference: Memory, tolerance: Tolerance
) -> tuple[MemoryDifference, ...]:
    theirs = {a.address: a for a in reference}
    found = []
    for a in ours:
        b = theirs.pop(a.address, None)
        if b is None or b.size != a.size:
            if not a.by_kernel:
                found.append(_whole(launch, a))
        elif a.digest != b.digest and (difference := _compare_allocation(launch, a, b, tolerance)):
            found.append(difference)
    found += [_whole(launch, b) for b in theirs.values() if not b.by_kernel]
    return tuple(sorted(found, key=lambda d: d.address))


def _compare_allocation(
    launch: WatchedLaunch, a: RecordedAllocation, b: RecordedAllocation, tolerance: Tolerance
) -> MemoryDifference | None:
    if a.content is None or b.content is None:
        return _whole(launch, a)
    dtype, shape = a.dtype, a.shape
    if dtype is None or a.size % max(1, dtype.itemsize):
        dtype, shape = _variable_type(launch, a), ()
    size = a.size // dtype.itemsize * dtype.itemsize
    difference = compare_arrays(a.content[:size], b.content[:size], dtype, tolerance)
    if difference is None:
        return None
    first = difference.first
    x = np.frombuffer(a.content[:size], dtype)[first]
    y = np.frombuffer(b.content[:size], dtype)[first]
    return replace(
        _whole(launch, a),
        dtype=dtype.name if dtype.fields is None else str(dtype),
        flat=first,
        element=tuple(int(n) for n in np.unravel_index(first, shape)) if shape else (first,),
        ours=element_value(x),
        reference=element_value(y),
        ulps=ulps(x, y),
        differing=difference.differing,
        elements=difference.elements,
        largest_ulps=difference.largest_ulps,
    )


def _variable_type(launch: WatchedLaunch, a: RecordedAllocation) -> np.dtype[np.generic]:
    """The type of a module's variable; bytes for anything else."""
    names = [name for name, address in launch.variables.items() if address == a.address]
    if not names:
        return np.dtype("u1")
    types = PtxProgram(launch.ptx, launch.module, launch.kernel).variable_types
    return dtype_of(types.get(names[0], "b8"), a.size)


def _whole(launch: WatchedLaunch, a: RecordedAllocation) -> MemoryDifference:
    """A difference for which only the allocation is known."""
    parameter = next(
        (k + 1 for k, p in enumerate(launch.pointers) if a.address <= p < a.address + max(1, a.size)), 0
    )
    return MemoryDifference(
        allocation=a.label,
        address=a.address,
        bytes=a.size,
        parameter=parameter,
        dtype="",
        flat=0,
        element=(),
        ours=None,
        reference=None,
        ulps=None,
        differing=0,
        elements=0,
        largest_ulps=None,
    )


def executor_named(name: str) -> Executor | None:
    """The executor of `simt debug record --on NAME`: None for ours. Raises DebugError for other names."""
    if name == "simt":
        return None
    if name == "cuda" or name.startswith("cuda:"):
        return CudaExecutor.of(name)
    raise DebugError(f"executor {name!r}: expected simt, cuda or cuda:N")
