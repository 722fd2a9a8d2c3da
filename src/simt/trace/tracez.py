"""The `.tracez` container: warps in zstd sub-chunks with a common dictionary, and an index at the end."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NoReturn

import zstandard

from simt.errors import TraceError

_MAX_HEADER = 1 << 20
_MAX_DICTIONARY = 16 << 20
_MAX_CHUNK = 64 << 20
_INDEX_PER_CTA = 44
_INDEX_PER_WARP = 16


class _Reader:
    """Reads a given number of bytes at a time from one file, and refuses sizes that the file cannot hold."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self.file = file
        self.path = path
        self.size = os.fstat(file.fileno()).st_size

    def seek(self, offset: int) -> None:
        if offset > self.size:
            self.damaged(f"it points to byte {offset} of {self.size}")
        self.file.seek(offset)

    def take(self, size: int, limit: int) -> bytes:
        if size > limit:
            self.damaged(f"a part of {size} bytes at byte {self.file.tell()}, expected at most {limit}")
        data = self.file.read(size)
        if len(data) != size:
            self.damaged("it ends too early")
        return data

    def u32(self, count: int) -> tuple[int, ...]:
        return struct.unpack(f"<{count}I", self.take(4 * count, _MAX_CHUNK))

    def u64(self) -> int:
        return int(struct.unpack("<Q", self.take(8, 8))[0])

    def damaged(self, reason: str) -> NoReturn:
        raise TraceError(f"{self.path}: the tracez file is damaged or truncated: {reason}")


def grouped_text(file: BinaryIO, path: Path) -> Iterator[tuple[bytes, int]]:
    """The container's content as grouped text, each piece with the number of file bytes after it."""
    reader = _Reader(file, path)
    beginning = file.read(_MAX_HEADER)
    end = beginning.find(b"\0")
    if end < 0:
        reader.damaged("its header does not end with a zero byte")
    yield beginning[:end] + b"\n", end
    reader.seek(end + 1)
    dictionary_size, _ = reader.u32(2)
    dictionary = reader.take(dictionary_size, _MAX_DICTIONARY)
    try:
        decompressor = zstandard.ZstdDecompressor(
            dict_data=zstandard.ZstdCompressionDict(dictionary) if dictionary else None
        )
    except zstandard.ZstdError as error:
        raise TraceError(f"{path}: the tracez file is damaged: {error}") from error
    if reader.size < 8:
        reader.damaged("it ends too early")
    reader.seek(reader.size - 8)
    reader.seek(reader.u64())
    (cta_count,) = reader.u32(1)
    if cta_count > reader.size // _INDEX_PER_CTA:
        reader.damaged(f"its index announces {cta_count} thread blocks")
    for _ in range(cta_count):
        fields = reader.u32(11)
        warps = []
        if fields[10] > reader.size // _INDEX_PER_WARP:
            reader.damaged(f"its index announces {fields[10]} warps in a thread block")
        for _ in range(fields[10]):
            instructions, chunks = reader.u32(2)
            offset = reader.u64()
            if chunks > reader.size // 4:
                reader.damaged(f"its index announces {chunks} sub-chunks in a warp")
            reader.take(4 * chunks, _MAX_CHUNK)
            warps.append((instructions, offset))
        resume = file.tell()
        yield _cta_lines(fields), resume
        for number, (instructions, offset) in enumerate(warps):
            yield f"warp = {number}\ninsts = {instructions}\n".encode(), resume
            yield from _warp_lines(reader, decompressor, instructions, offset)
        yield b"#END_TB\n\n", resume
        file.seek(resume)


def _cta_lines(fields: tuple[int, ...]) -> bytes:
    names = ("thread block", "cluster id", "cluster cta")
    lines = [f"{name} = {x},{y},{z}" for name, (x, y, z) in zip(names, _triples(fields), strict=True)]
    return "\n".join(["#BEGIN_TB", *lines, f"cluster rank = {fields[9]}", "", ""]).encode()


def _triples(fields: tuple[int, ...]) -> list[tuple[int, int, int]]:
    return [(fields[i], fields[i + 1], fields[i + 2]) for i in (0, 3, 6)]


def _warp_lines(
    reader: _Reader, decompressor: zstandard.ZstdDecompressor, instructions: int, offset: int
) -> Iterator[tuple[bytes, int]]:
    reader.seek(offset)
    announced, chunks = reader.u32(2)
    if announced != instructions:
        reader.damaged(f"index and warp disagree on the number of instructions: {instructions}, {announced}")
    for _ in range(chunks):
        (size,) = reader.u32(1)
        at = reader.file.tell()
        data = reader.take(size, _MAX_CHUNK)
        try:
            # The announced content size decides what is allocated, so it is checked first.
            content = zstandard.frame_content_size(data)
            if content > _MAX_CHUNK:
                reader.damaged(f"a sub-chunk of {content} bytes, expected at most {_MAX_CHUNK}")
            text = decompressor.decompress(data, max_output_size=_MAX_CHUNK if content < 0 else 0)
        except zstandard.ZstdError as error:
            raise TraceError(f"{reader.path}: the sub-chunk at byte {at} is damaged: {error}") from error
        yield text + b"\n", reader.file.tell()
