"""Records executed launches as a trace."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from simt import _engine
from simt.errors import TraceError
from simt.trace.commands import Copy
from simt.trace.store import StoreWriter, compress
from simt.trace.text import no_text, to_text


class TraceRecording:
    """A trace being recorded: a `.simt` store, or a directory of version 5 text for any other name."""

    def __init__(
        self,
        path: Path,
        lanes: int,
        *,
        converged: bool = False,
        plain: bool = False,
        combined: bool = False,
        opcode: Callable[[str], str] | None = None,
    ) -> None:
        if lanes != 32 and path.suffix != ".simt":
            raise TraceError(f"{path}: {no_text(lanes)}; record it to a *.simt file")
        self._path = path
        self._lanes = lanes
        self._converged = converged
        self.plain = plain
        self._combined = combined
        self._opcode = opcode
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        if path.suffix == ".simt":
            store = path
        else:
            self._folder = tempfile.TemporaryDirectory(prefix="simt-trace-")
            store = Path(self._folder.name) / "trace.simt"
        self._store = store
        self._writer = StoreWriter(store)

    def __enter__(self) -> TraceRecording:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.__exit__(kind, error, trace)
        if self._folder is not None:
            self._folder.cleanup()

    def add(self, source: _engine.functional.ExecutedSource) -> None:
        """Executes a launch and appends it."""
        recorder = _engine.functional.Recorder(source, self._lanes, self._converged, self._combined)
        blocks = [
            (self._writer.add_part(len(data), compress(data)), summary)
            for summary, data in recorder.take_blocks()
        ]
        names = recorder.opcodes if self._opcode is None else [self._opcode(x) for x in recorder.opcodes]
        self._writer.add_kernel(recorder, blocks, names)

    def add_copy(self, copy: Copy) -> None:
        """Appends a copy from the host, in order with launches."""
        self._writer.add_copy(copy)

    def finish(self) -> None:
        """Completes the trace under its final name."""
        self._writer.finish()
        if self._folder is not None:
            to_text(self._store, self._path)
