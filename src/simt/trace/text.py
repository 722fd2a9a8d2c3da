"""From trace store back to tracer version 5 text."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from simt import _engine
from simt.errors import TraceError

from .commands import Copy
from .trace import open_trace

_LIST = "kernelslist.g"


def to_text(source: str | os.PathLike[str], directory: str | os.PathLike[str]) -> Path:
    """Writes a trace as version 5 text, one `kernel-N.traceg` per kernel, and returns the path of its launch
    list.

    The launch list is written last, so a directory that has one is complete. Raises TraceError.
    """
    trace = open_trace(source)
    folder = Path(directory)
    lines = []
    number = 0
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for command in trace.commands:
            if isinstance(command, Copy):
                lines.append(f"MemcpyHtoD,0x{command.address:016x},{command.bytes}")
                continue
            if (lanes := command.launch.warp_size) != 32:
                raise TraceError(f"{source}: kernel {command.id}: {no_text(lanes)}")
            number += 1
            name = f"kernel-{number}.traceg"
            _write_kernel(command.source(), folder / name)
            lines.append(name)
        _replace(folder / _LIST, ["\n".join([*lines, ""]).encode()])
    except OSError as error:
        raise TraceError(f"{folder}: cannot write the trace there: {error.strerror}") from error
    return folder / _LIST


def no_text(lanes: int) -> str:
    """Why warps with this many lanes cannot be written as text."""
    return f"its warps have {lanes} lanes; the text formats know warps of 32 only"


def _write_kernel(source: _engine.TraceSource, path: Path) -> None:
    writer = _engine.TextWriter(source)
    _replace(path, iter(writer.next_piece, b""))


def _replace(path: Path, pieces: Iterable[bytes]) -> None:
    """Writes a file that appears complete or not at all."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            for piece in pieces:
                file.write(piece)
        os.replace(name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise
