"""Conversion from text to a trace store."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from simt import _engine
from simt.errors import TraceError

from . import regroup, store, streams

Progress = Callable[[int], None]
"""Called with the number of bytes of the input file read so far."""

_BLOCKS_IN_FLIGHT = 16


def convert_kernel(path: Path, writer: store.StoreWriter, progress: Progress | None = None) -> None:
    """Appends one kernel trace (text in any form) to a store.

    Memory stays bounded for traces of any size. Raises TraceError with file, line and reason.
    """
    converter = _engine.TraceConverter()
    blocks: list[tuple[store.Span, store.BlockSummary]] = []
    pending: deque[tuple[store.BlockSummary, int, Future[bytes]]] = deque()

    def write(at_most: int) -> None:
        while len(pending) > at_most:
            summary, size, compressed = pending.popleft()
            blocks.append((writer.add_part(size, compressed.result()), summary))

    # One thread reads and decompresses ahead, one compresses blocks; this one parses.
    with ThreadPoolExecutor(1) as reader, ThreadPoolExecutor(1) as compressor:

        def take_blocks() -> None:
            for summary, data in converter.take_blocks():
                pending.append((summary, len(data), compressor.submit(store.compress, data)))

        for window, position in _ahead(regroup.grouped_windows(path), reader):
            with streams.naming(path):
                converter.feed(window)
            take_blocks()
            write(_BLOCKS_IN_FLIGHT)
            if progress is not None:
                progress(position)
        with streams.naming(path):
            converter.finish()
        take_blocks()
        write(0)
    writer.add_kernel(converter, blocks)


def read_header(path: Path) -> _engine.LaunchInfo:
    """The launch that a kernel trace's header describes. Reads only the beginning of the file."""
    header = b""
    limit = 1 << 20
    for window, _ in streams.text_windows(path):
        header += window
        end = 0 if header.startswith(b"#") else header.find(b"\n#") + 1
        if end > 0 or header.startswith(b"#"):
            header = header[:end] + b"#\n"
            break
        if len(header) > limit:
            raise TraceError(
                f"{path}: no line beginning with '#' ends the header; this is not a kernel trace"
            )
    with streams.naming(path):
        return _engine.parse_trace_header(header)


def _ahead(windows: Iterator[tuple[bytes, int]], pool: ThreadPoolExecutor) -> Iterator[tuple[bytes, int]]:
    """The same items, each fetched by the pool while its predecessor is in use."""
    future = pool.submit(next, windows, None)
    while (item := future.result()) is not None:
        future = pool.submit(next, windows, None)
        yield item
