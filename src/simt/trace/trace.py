"""A trace as a list of copies and kernels."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from simt import _engine
from simt.cache import evict, used
from simt.errors import TraceError
from simt.files import kind_of, not_found
from simt.isa import OpcodeTable, load_table, table_for
from simt.names import listed

from .cache import cached_store
from .commands import Copy, read_launch_list
from .convert import convert_kernel, convert_side_by_side, read_header
from .foreign import refuse_foreign
from .store import KernelSummary, StoreReader, StoreWriter, is_store, launch_info

LIST_NAMES = ("kernelslist.g", "kernelslist")
_CONTEXTS = "ctx_*"
ConvertProgress = Callable[[int, int], None]
"""Called with the bytes of input read so far and their total number."""


class TraceKernel:
    """One kernel launch of a trace. Its file is opened only when its data is needed."""

    def __init__(
        self, trace: Trace, path: Path, stored: tuple[StoreReader, KernelSummary] | None = None
    ) -> None:
        self._trace = trace
        self.path = path
        """The file that the launch is in: a kernel trace or a store."""
        self._stored = stored
        self._kept: Path | None = None  # the store, if it is in the cache

    @cached_property
    def launch(self) -> _engine.LaunchInfo:
        """The launch in the form that the engine takes."""
        if self._stored is not None:
            return launch_info(self._stored[1].launch)
        return read_header(self.path)

    @property
    def id(self) -> int:
        """Number of the launch in the traced program, from 1."""
        return self.launch.id

    @property
    def name(self) -> str:
        """Mangled name."""
        return self.launch.name

    @property
    def grid(self) -> tuple[int, int, int]:
        """CTAs in x, y and z."""
        return self.launch.grid

    @property
    def block(self) -> tuple[int, int, int]:
        """Threads of a CTA in x, y and z."""
        return self.launch.block

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a CTA, static and dynamic."""
        return self.launch.shared_bytes

    @property
    def registers(self) -> int:
        """Registers of a thread."""
        return self.launch.registers_per_thread

    @property
    def sm_version(self) -> int:
        """70, 80, 90, ...; 0 if the trace does not say."""
        return self.launch.sm_version

    @property
    def stream(self) -> int:
        """CUDA stream handle."""
        return self.launch.stream

    def stored(self, progress: Callable[[int], None] | None = None) -> tuple[StoreReader, KernelSummary]:
        """The kernel in a trace store. Converts it into the cache first if necessary.

        progress: called with the number of bytes of the kernel's file read so far.
        """
        if self._kept is not None and not self._kept.exists():
            self._stored = None  # another process has made room in the cache
        if self._stored is None:
            place = cached_store(self.path)
            reader = self._open_cached(place)
            if reader is None:
                with StoreWriter(place) as writer:
                    convert_kernel(self.path, writer, progress)
                    writer.finish()
                reader = StoreReader(place)
                evict()
            self._stored, self._kept = (reader, reader.kernels[0]), place
        return self._stored

    @staticmethod
    def _open_cached(place: Path) -> StoreReader | None:
        try:
            reader = StoreReader(place)
            reader.verify()
            used(place)
        except TraceError:  # missing or damaged: it is written again
            return None
        return reader if len(reader.kernels) == 1 else None

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the launch and its instructions, independent of their location. Converts the kernel if
        necessary.
        """
        reader, summary = self.stored()
        parts = reader.parts(summary)
        content = [
            summary.launch,
            summary.counts,
            parts.opcodes,
            parts.instructions[1:],
            [[span[1:], block] for span, block in parts.blocks],
        ]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of ctas, empty_ctas, warps, empty_warps and (warp) instructions. Converts the kernel if
        necessary.
        """
        return dict(self.stored()[1].counts)

    def source(
        self,
        table: OpcodeTable | str | Path | None = None,
        progress: Callable[[int], None] | None = None,
        special: frozenset[str] = frozenset(),
    ) -> _engine.TraceSource:
        """The instruction streams for the engine.

        table: an opcode table, or a file to read it from; by default, the table of the trace's SM version.
            Opcodes missing from it are added to the trace's warnings.
        special: opcodes that the GPU's special units execute (`Spec.special_opcodes`).
        """
        if table is None:
            chosen, warning = table_for(self.sm_version)
            if warning:
                self._trace.warn(warning)
        else:
            chosen = table if isinstance(table, OpcodeTable) else load_table(table)
        chosen = chosen.with_arithmetic(special)
        reader, summary = self.stored(progress)
        source = reader.source(summary, chosen.native)
        for opcode, nearest in source.unknown_opcodes.items():
            self._trace.warn(f"opcode {opcode} is not in the {chosen.name} table; simulated as {nearest}")
        return source

    def __repr__(self) -> str:
        shape = f"grid={self.grid}, block={self.block}"
        return f"TraceKernel({self.id}, {self.name!r}, {shape}, sm_{self.sm_version})"


@dataclass(eq=False)
class Trace:
    """A traced program.

    commands: copies and kernels in program order.
    warnings: what was skipped or is approximated; grows as kernels are opened.
    """

    path: Path
    commands: list[Copy | TraceKernel]
    warnings: list[str]

    @property
    def kernels(self) -> list[TraceKernel]:
        """The kernels among the commands."""
        return [c for c in self.commands if isinstance(c, TraceKernel)]

    def warn(self, text: str) -> None:
        """Adds a warning unless it is already present."""
        if text not in self.warnings:
            self.warnings.append(text)

    def __repr__(self) -> str:
        return f"Trace({str(self.path)!r}, {len(self.kernels)} kernels, {len(self.commands)} commands)"


def open_trace(path: str | os.PathLike[str], outside: bool = False) -> Trace:
    """Opens a launch list (kernelslist.g), a directory that contains one, a single kernel trace, or a trace
    store.

    In a directory of contexts (`ctx_0x...` with a launch list each, as Accel-Sim's tracer writes), the
    contexts follow one another in the order of their names: their lists do not say which launch came first.

    Kernel traces are text of tracer versions 0 to 6: plain, .xz, .gz, .zst or .tracez.

    outside: whether a list may name files outside its folder.

    Raises TraceError.
    """
    given = Path(path)
    if why := not_found(given, "a trace or a directory with one"):
        raise TraceError(f"{given}: {why}")
    if (kind := kind_of(given)) and not given.is_dir():
        raise TraceError(f"{given}: this is {kind}, expected a trace: a regular file or a directory")
    refuse_foreign(given)
    if given.is_dir():
        if contexts := _contexts_in(given):
            return _joined(given, [open_trace(context, outside) for context in contexts])
        given = _list_in(given)
    trace = Trace(given, [], [])
    if is_store(given):
        reader = StoreReader(given)
        trace.commands = [
            c if isinstance(c, Copy) else TraceKernel(trace, given, (reader, reader.kernels[c]))
            for c in reader.commands
        ]
        trace.warnings = list(reader.warnings)
    elif "kernelslist" in given.name or given.suffix == ".g":
        commands, trace.warnings = read_launch_list(given, outside)
        trace.commands = [c if isinstance(c, Copy) else TraceKernel(trace, c.path) for c in commands]
    else:
        kernel = TraceKernel(trace, given)
        _ = kernel.launch  # refuses files that are not kernel traces
        trace.commands = [kernel]
    return trace


def convert(
    source: str | os.PathLike[str],
    destination: str | os.PathLike[str],
    progress: ConvertProgress | None = None,
    outside: bool = False,
) -> None:
    """Writes a whole trace into one store, which appears complete or not at all. Raises TraceError."""
    trace = open_trace(source, outside)
    sizes = {k.path: k.path.stat().st_size for k in trace.kernels}
    total = sum(sizes[k.path] for k in trace.kernels)
    copied = 0  # bytes of the kernels that come from a store

    def advance(position: int) -> None:
        if progress is not None:
            progress(copied + position, total)

    texts = [k.path for k in trace.kernels if not is_store(k.path)]
    with StoreWriter(Path(destination)) as writer, closing(convert_side_by_side(texts, advance)) as converted:
        for command in trace.commands:
            if isinstance(command, Copy):
                writer.add_copy(command)
            elif is_store(command.path):
                writer.copy_kernel(*command.stored())
                copied += sizes[command.path]
            else:
                next(converted)(writer)
        writer.finish(trace.warnings)
    if progress is not None:
        progress(total, total)


def _contexts_in(directory: Path) -> list[Path]:
    """The folders of contexts in a directory that has no launch list of its own."""
    if any("kernelslist" in path.name for path in directory.iterdir()):
        return []
    return sorted(path for path in directory.glob(_CONTEXTS) if path.is_dir())


def _joined(directory: Path, contexts: list[Trace]) -> Trace:
    """The traces of contexts, one after another."""
    joined = Trace(directory, [], [])
    for context in contexts:
        joined.commands += [
            c if isinstance(c, Copy) else TraceKernel(joined, c.path) for c in context.commands
        ]
        for warning in context.warnings:
            joined.warn(f"{context.path.parent.name}: {warning}")
    if len(contexts) > 1:
        names = listed([context.path.parent.name for context in contexts], 4)
        joined.warn(
            f"the launches of {len(contexts)} contexts ({names}) follow one another, context by context"
        )
    return joined


def _list_in(directory: Path) -> Path:
    for name in LIST_NAMES:
        if (directory / name).is_file():
            return directory / name
    others = sorted(p for p in directory.iterdir() if "kernelslist" in p.name and p.is_file())
    if len(others) == 1:
        return others[0]
    found = f"it has {len(others)}: name one" if others else "it has none"
    if not others and (kernel := next(iter(sorted(directory.glob("kernel*.trace*"))), None)):
        found += f"; a kernel trace can be named by itself, such as {kernel.name}"
    raise TraceError(
        f"{directory}: expected a launch list ({' or '.join(LIST_NAMES)}) in this directory; {found}"
    )
