"""Conversion from text to a trace store."""

from __future__ import annotations

import os
import tempfile
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from pathlib import Path
from threading import Event, Lock

from simt import _engine
from simt.errors import TraceError

from . import regroup, store, streams

Progress = Callable[[int], None]
"""Called with the number of bytes of the input file read so far."""

_BLOCKS_IN_FLIGHT = 16


_KERNELS_AT_ONCE = min(8, os.cpu_count() or 1)
"""A kernel may take hundreds of MB: a decompressor's memory, and what an ungrouped trace sorts at once."""

_IN_MEMORY = 16 << 20
"""Compressed bytes of a kernel that wait for their turn in memory; more wait on disk."""


def convert_kernel(path: Path, writer: store.StoreWriter, progress: Progress | None = None) -> None:
    """Appends one kernel trace (text in any form) to a store.

    Memory stays bounded for traces of any size. Raises TraceError with file, line and reason.
    """
    blocks: list[tuple[store.Span, store.BlockSummary]] = []

    def put(summary: store.BlockSummary, size: int, compressed: bytes) -> None:
        blocks.append((writer.add_part(size, compressed), summary))

    writer.add_kernel(_parse(path, put, progress), blocks)


def convert_side_by_side(
    paths: Iterable[Path], progress: Progress | None = None
) -> Generator[Callable[[store.StoreWriter], None], None, None]:
    """As `convert_kernel()` for each of several kernels, of which up to eight are parsed at the same time.

    Yields, in the order of `paths`, functions that append a kernel to a store. A kernel that cannot be
    converted raises TraceError in its turn. progress: called from one thread at a time, with the bytes of all
    files read so far.
    """
    stop, lock = Event(), Lock()
    positions: dict[int, int] = {}

    def convert(number: int, path: Path) -> Callable[[store.StoreWriter], None]:
        def advance(position: int) -> None:
            if stop.is_set():
                raise CancelledError
            with lock:
                positions[number] = position
                if progress is not None:
                    progress(sum(positions.values()))

        return _spool(path, advance)

    waiting: deque[Future[Callable[[store.StoreWriter], None]]] = deque()
    with ThreadPoolExecutor(_KERNELS_AT_ONCE) as pool:
        try:
            for number, path in enumerate(paths):
                waiting.append(pool.submit(convert, number, path))
                if len(waiting) > _KERNELS_AT_ONCE:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            stop.set()
            for future in waiting:
                future.cancel()


def _spool(path: Path, progress: Progress) -> Callable[[store.StoreWriter], None]:
    """Converts a kernel; the function that is returned appends it to a store."""
    file = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115
    sizes: list[tuple[store.BlockSummary, int, int]] = []

    def put(summary: store.BlockSummary, size: int, compressed: bytes) -> None:
        file.write(compressed)
        sizes.append((summary, size, len(compressed)))

    try:
        converter = _parse(path, put, progress)
    except BaseException:
        file.close()
        raise

    def append(writer: store.StoreWriter) -> None:
        with file:
            file.seek(0)
            blocks = [(writer.add_part(size, file.read(length)), summary) for summary, size, length in sizes]
        writer.add_kernel(converter, blocks)

    return append


def _parse(
    path: Path, put: Callable[[store.BlockSummary, int, bytes], None], progress: Progress | None
) -> _engine.TraceConverter:
    """Parses a kernel trace, and puts its blocks: summary, bytes before compression, compressed bytes."""
    converter = _engine.TraceConverter()
    pending: deque[tuple[store.BlockSummary, int, Future[bytes]]] = deque()

    def write(at_most: int) -> None:
        while len(pending) > at_most:
            summary, size, compressed = pending.popleft()
            put(summary, size, compressed.result())

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
    return converter


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
