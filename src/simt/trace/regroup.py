"""Sorts ungrouped traces, as the tracer itself writes them, by CTA and warp, on disk if they are large."""

from __future__ import annotations

import heapq
import itertools
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import zstandard

from simt import _engine
from simt.errors import TraceError

from .streams import WINDOW, naming, text_windows

BUFFER = 192 << 20
"""Bytes of text that are sorted in memory at once; larger traces are sorted in runs of this size."""

_MAX_HEADER = 1 << 20
_RECORD = struct.Struct("<4I7IQQ")  # z, y, x, warp; cluster; instructions; bytes


def grouped_windows(path: Path, buffer: int = BUFFER) -> Iterator[tuple[bytes, int]]:
    """A kernel trace as grouped text in pieces, each with the number of file bytes read so far."""
    windows = text_windows(path)
    beginning: list[tuple[bytes, int]] = []
    layout = _engine.TraceLayout.Unknown
    for window in windows:
        beginning.append(window)
        text = b"".join(w for w, _ in beginning)
        layout = _engine.trace_layout(text)
        if layout != _engine.TraceLayout.Unknown or len(text) > _MAX_HEADER:
            break
    everything = itertools.chain(beginning, windows)
    if layout == _engine.TraceLayout.Ungrouped:
        yield from _sorted(path, everything, buffer)
    else:
        yield from everything


class _Run:
    """The sorted pieces of one stretch of the trace: a directory of records, and their text, compressed."""

    def __init__(self, pieces: list[tuple[tuple[int, ...], bytes]]) -> None:
        self.directory: BinaryIO = tempfile.TemporaryFile()  # noqa: SIM115
        self.text: BinaryIO = tempfile.TemporaryFile()  # noqa: SIM115
        with zstandard.ZstdCompressor(level=1).stream_writer(self.text, closefd=False) as out:
            for fields, lines in pieces:
                self.directory.write(_RECORD.pack(*fields, len(lines)))
                out.write(lines)
        self.directory.seek(0)
        self.text.seek(0)
        self.reader = zstandard.ZstdDecompressor().stream_reader(self.text)

    def records(self) -> Iterator[tuple[int, ...]]:
        while data := self.directory.read(_RECORD.size):
            yield _RECORD.unpack(data)

    def take(self, size: int) -> Iterator[bytes]:
        while size > 0:
            data = self.reader.read(min(size, WINDOW))
            size -= len(data)
            yield data

    def close(self) -> None:
        self.directory.close()
        self.text.close()


def _sorted(path: Path, windows: Iterator[tuple[bytes, int]], buffer: int) -> Iterator[tuple[bytes, int]]:
    regrouper = _engine.Regrouper()
    runs: list[_Run] = []
    position = 0
    try:
        for window, read in windows:
            position = read
            with naming(path):
                regrouper.feed(window)
            if regrouper.buffered_bytes > buffer:
                runs.append(_Run(regrouper.take_pieces()))
        with naming(path):
            regrouper.finish()
        runs.append(_Run(regrouper.take_pieces()))
        yield regrouper.header, position
        for text in _merged(runs):
            yield text, position
    except OSError as error:
        raise TraceError(f"{path}: cannot sort this un-grouped trace on disk: {error}") from error
    finally:
        for run in runs:
            run.close()


def _merged(runs: list[_Run]) -> Iterator[bytes]:
    def keyed(number: int, run: _Run) -> Iterator[tuple[tuple[int, ...], int, tuple[int, ...]]]:
        return ((record[:4], number, record) for record in run.records())

    merged = heapq.merge(*(keyed(number, run) for number, run in enumerate(runs)))
    for (z, y, x), warps in itertools.groupby(merged, key=lambda item: item[0][:3]):
        first = True
        for (*_, warp), pieces in itertools.groupby(warps, key=lambda item: item[0]):
            of_warp = list(pieces)
            if first:
                yield _cta_lines((x, y, z), of_warp[0][2][4:11])
                first = False
            instructions = sum(record[11] for _, _, record in of_warp)
            yield f"warp = {warp}\ninsts = {instructions}\n".encode()
            for _, number, record in of_warp:
                yield from runs[number].take(record[12])
        yield b"#END_TB\n\n"


def _cta_lines(cta: tuple[int, int, int], cluster: tuple[int, ...]) -> bytes:
    lines = ["#BEGIN_TB", "thread block = {},{},{}".format(*cta)]
    if any(cluster):
        lines.append("cluster id = {},{},{}".format(*cluster[0:3]))
        lines.append("cluster cta = {},{},{}".format(*cluster[3:6]))
        lines.append(f"cluster rank = {cluster[6]}")
    return "\n".join([*lines, ""]).encode()
