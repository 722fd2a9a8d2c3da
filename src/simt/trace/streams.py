"""Reads kernel trace files as pieces of grouped text, independent of their compression."""

from __future__ import annotations

import gzip
import lzma
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import zstandard

from simt.errors import TraceError
from simt.files import require_regular

from . import tracez

WINDOW = 4 << 20
"""Most bytes of text in one piece (zstd pieces can be larger, up to 32 MiB)."""

_MAGIC = {b"\xfd7zXZ\x00": "xz", b"\x1f\x8b": "gz", b"\x28\xb5\x2f\xfd": "zst"}
_SUFFIXES = {".xz": "xz", ".gz": "gz", ".zst": "zst"}
_MEMORY_LIMIT = 256 << 20
"""Bytes that a decompressor may take; xz -9 and zstd --long=27 need less."""


def open_binary(path: Path) -> BinaryIO:
    """Opens a file for reading. Raises TraceError if that fails."""
    try:
        if path.is_dir():
            raise TraceError(f"{path}: this is a directory, expected a file")
        require_regular(path)
        return path.open("rb")
    except OSError as error:
        raise TraceError(f"{path}: cannot open this file: {error.strerror}") from error


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Adds the file's name to errors that the engine finds in its text."""
    try:
        yield
    except TraceError as error:
        raise TraceError(f"{path}: {error}") from error


def compression(path: Path, beginning: bytes) -> str | None:
    """How a file is compressed ("xz", "gz", "zst"), determined from its content; None for plain text.

    Raises TraceError if the name contradicts the content.
    """
    found = next((name for magic, name in _MAGIC.items() if beginning.startswith(magic)), None)
    promised = _SUFFIXES.get(path.suffix)
    if promised is not None and found != promised:
        kind = f"{found} data" if found else "not compressed, or damaged"
        raise TraceError(f"{path}: the name says {promised}, but the content is {kind}")
    return found


def text_windows(path: Path) -> Iterator[tuple[bytes, int]]:
    """The text of a kernel trace in pieces, each with the number of file bytes read so far.

    Raises TraceError if the file cannot be read or decompressed, or is truncated.
    """
    with open_binary(path) as file:
        try:
            beginning = file.read(8)
            file.seek(0)
            if path.suffix == ".tracez":
                yield from tracez.grouped_text(file, path)
                return
            kind = compression(path, beginning)
            pieces = {"xz": _xz, "gz": _gz, "zst": _zst, None: _plain}[kind](file, path)
            for piece in pieces:
                yield piece, file.tell()
        except OSError as error:
            raise TraceError(f"{path}: cannot read this file: {error}") from error


def _plain(file: BinaryIO, path: Path) -> Iterator[bytes]:
    while piece := file.read(WINDOW):
        yield piece


def _xz(file: BinaryIO, path: Path) -> Iterator[bytes]:
    try:
        data = file.read(WINDOW)
        while data:
            stream = lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=_MEMORY_LIMIT)
            while not stream.eof:
                if stream.needs_input and not data:
                    data = file.read(WINDOW)
                    if not data:
                        raise TraceError(f"{path}: the xz data ends too early; the file is truncated")
                if piece := stream.decompress(data, WINDOW):
                    yield piece
                data = b""
            # Another stream may follow, after padding of zero bytes.
            data = (stream.unused_data or file.read(WINDOW)).lstrip(b"\0")
    except lzma.LZMAError as error:
        raise TraceError(f"{path}: the xz data is damaged: {error}") from error


def _gz(file: BinaryIO, path: Path) -> Iterator[bytes]:
    try:
        with gzip.GzipFile(fileobj=file) as stream:
            while piece := stream.read(WINDOW):
                yield piece
    except EOFError as error:
        raise TraceError(f"{path}: the gzip data ends too early; the file is truncated") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise TraceError(f"{path}: the gzip data is damaged: {error}") from error


def _zst(file: BinaryIO, path: Path) -> Iterator[bytes]:
    # A kilobyte of zstd data can expand to 32 MiB of text; small reads keep the pieces small.
    bite = 1 << 10
    decompressor = zstandard.ZstdDecompressor(max_window_size=_MEMORY_LIMIT // 2)
    try:
        data = file.read(bite)
        collected: list[bytes] = []
        size = 0
        while data:
            frame = decompressor.decompressobj()
            while not frame.eof:
                if not data:
                    data = file.read(bite)
                    if not data:
                        raise TraceError(f"{path}: the zstd data ends too early; the file is truncated")
                piece = frame.decompress(data)
                data = b""
                collected.append(piece)
                size += len(piece)
                if size >= WINDOW:
                    yield b"".join(collected)
                    collected, size = [], 0
            data = frame.unused_data or file.read(bite)
        if collected:
            yield b"".join(collected)
    except zstandard.ZstdError as error:
        raise TraceError(f"{path}: the zstd data is damaged: {error}") from error
