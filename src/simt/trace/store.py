"""The trace store: one file of checksummed, compressed blocks with an index (docs/trace-store.md)."""

from __future__ import annotations

import json
import os
import struct
import tempfile
import zlib
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, BinaryIO, NoReturn

import msgspec
import zstandard

from simt import _engine
from simt.errors import TraceError
from simt.files import require_output

from .commands import Copy

MAGIC = b"SIMTRACE"
FORMAT_VERSION = 2  # 1: without control bits
_HEADER = struct.Struct("<8sII")
_TRAILER = struct.Struct("<QQQI4s")
_TRAILER_MAGIC = b"end."
_LEVEL = 9
_MAX_BLOCK = 8 << 20
_MAX_DESCRIPTION = 1 << 30

Span = tuple[int, int, int, int]
"""Where a part lies: offset, compressed bytes, uncompressed bytes, CRC-32 of the compressed bytes."""
BlockSummary = tuple[int, int, int, int, int]
"""First CTA, CTAs, first warp, last warp, instructions."""

_LAUNCH_FIELDS = (
    "id",
    "name",
    "grid",
    "block",
    "shared_bytes",
    "registers_per_thread",
    "sm_version",
    "stream",
    "shared_base",
    "local_base",
)
COUNT_FIELDS = ("ctas", "empty_ctas", "warps", "empty_warps", "instructions")


@dataclass(frozen=True)
class KernelSummary:
    """A kernel in a store's index: its launch, and counts of CTAs, warps and warp instructions."""

    launch: dict[str, Any]
    counts: dict[str, int]
    description: Span


@dataclass
class KernelParts:
    """The data from a kernel's description that is needed to read its blocks."""

    opcodes: list[str]
    instructions: Span
    blocks: list[tuple[Span, BlockSummary]] = field(default_factory=list)


def launch_dict(launch: _engine.LaunchInfo) -> dict[str, Any]:
    """A launch in JSON form. `warp_size` is included unless it is 32."""
    fields = {name: getattr(launch, name) for name in _LAUNCH_FIELDS}
    return fields if launch.warp_size == 32 else {**fields, "warp_size": launch.warp_size}


def launch_info(launch: dict[str, Any]) -> _engine.LaunchInfo:
    """The inverse of `launch_dict`."""
    info = _engine.LaunchInfo()
    for name in _LAUNCH_FIELDS:
        value = launch[name]
        setattr(info, name, tuple(value) if isinstance(value, list) else value)
    info.warp_size = launch.get("warp_size", 32)
    if info.warp_size not in (32, 64):
        raise ValueError(f"warps of {info.warp_size} lanes")
    return info


def compress(data: bytes) -> bytes:
    """A block's bytes in stored form. May be called from any thread."""
    return zstandard.ZstdCompressor(level=_LEVEL).compress(data)


_Number = Annotated[int, msgspec.Meta(ge=0, le=2**53)]


class _Counts(msgspec.Struct):
    ctas: Annotated[int, msgspec.Meta(ge=0, le=2**31)]
    empty_ctas: _Number
    warps: _Number
    empty_warps: _Number
    instructions: _Number


class _IndexKernel(msgspec.Struct):
    launch: dict[str, Any]  # checked by `launch_info`
    counts: _Counts
    description: tuple[_Number, _Number, _Number, _Number]


class _Command(msgspec.Struct):
    copy: tuple[Annotated[int, msgspec.Meta(ge=0)], Annotated[int, msgspec.Meta(ge=0)]] | None = None
    kernel: _Number | None = None


class _Index(msgspec.Struct):
    """Types and ranges of a store's index."""

    commands: list[_Command]
    kernels: list[_IndexKernel]
    warnings: list[str]


class StoreWriter:
    """Writes a store under a temporary name. `finish` gives it its final name; leaving the block without it
    removes the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.kernels: list[KernelSummary] = []
        self._commands: list[dict[str, Any]] = []
        require_output(path, TraceError)
        try:
            handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
        except OSError as error:
            raise TraceError(f"{path}: cannot write a trace store there: {error.strerror}") from error
        self._temporary = Path(name)
        self._file: BinaryIO = os.fdopen(handle, "wb")
        self._file.write(_HEADER.pack(MAGIC, FORMAT_VERSION, 0))

    def __enter__(self) -> StoreWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._file.closed:
            self._file.close()
            with suppress(OSError):
                self._temporary.unlink()

    def add_part(self, raw_size: int, compressed: bytes) -> Span:
        """Appends compressed bytes and returns their location."""
        span = (self._file.tell(), len(compressed), raw_size, zlib.crc32(compressed))
        try:
            self._file.write(compressed)
        except OSError as error:
            raise TraceError(f"{self.path}: cannot write this trace store: {error.strerror}") from error
        return span

    def add_copy(self, copy: Copy) -> None:
        """Appends a copy to the store's commands."""
        self._commands.append({"copy": [copy.address, copy.bytes]})

    def add_kernel(
        self,
        converter: _engine.TraceConverter | _engine.functional.Recorder,
        blocks: list[tuple[Span, BlockSummary]],
        opcodes: list[str] | None = None,
    ) -> None:
        """Appends a launch whose blocks have all been added, and its description. opcodes: other names than
        the converter's."""
        instructions = converter.instructions
        description = {
            "opcodes": converter.opcodes if opcodes is None else opcodes,
            "instructions": self.add_part(len(instructions), compress(instructions)),
            "blocks": [[*span, *summary] for span, summary in blocks],
        }
        counts = {name: getattr(converter.counts, name) for name in COUNT_FIELDS}
        self.kernels.append(KernelSummary(launch_dict(converter.launch), counts, self._add_json(description)))
        self._commands.append({"kernel": len(self.kernels) - 1})

    def copy_kernel(self, reader: StoreReader, kernel: KernelSummary) -> None:
        """Appends a kernel of another store unchanged."""
        parts = reader.parts(kernel)
        blocks = [[*self._copy_part(reader, span), *summary] for span, summary in parts.blocks]
        description = {
            "opcodes": parts.opcodes,
            "instructions": self._copy_part(reader, parts.instructions),
            "blocks": blocks,
        }
        self.kernels.append(KernelSummary(kernel.launch, kernel.counts, self._add_json(description)))
        self._commands.append({"kernel": len(self.kernels) - 1})

    def _copy_part(self, reader: StoreReader, span: Span) -> Span:
        return self.add_part(span[2], reader.compressed_part(span))

    def finish(self, warnings: Iterable[str] = ()) -> None:
        """Writes the index and gives the store its name."""
        index = {
            "commands": self._commands,
            "kernels": [
                {"launch": k.launch, "counts": k.counts, "description": k.description} for k in self.kernels
            ],
            "warnings": list(warnings),
        }
        span = self._add_json(index)
        try:
            self._file.write(_TRAILER.pack(*span, _TRAILER_MAGIC))
            self._file.close()
            os.replace(self._temporary, self.path)
        except OSError as error:
            raise TraceError(f"{self.path}: cannot write this trace store: {error.strerror}") from error

    def _add_json(self, value: object) -> Span:
        raw = json.dumps(value, separators=(",", ":")).encode()
        return self.add_part(len(raw), compress(raw))


class StoreReader:
    """Reads a store and checks every part against its checksum. Safe to use from several threads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._size = path.stat().st_size
        except OSError as error:
            raise TraceError(f"{path}: cannot open this file: {error.strerror}") from error
        magic, version, _ = _HEADER.unpack(self._read(0, _HEADER.size))
        if magic != MAGIC:
            raise TraceError(f"{path}: this is not a trace store")
        if version not in (1, FORMAT_VERSION):
            raise TraceError(
                f"{path}: the store has format version {version}, this simt reads versions 1 to "
                f"{FORMAT_VERSION}; convert the trace again"
            )
        trailer = _TRAILER.unpack(self._read(self._size - _TRAILER.size, _TRAILER.size))
        if trailer[4] != _TRAILER_MAGIC:
            self.damaged("it ends too early")
        try:
            index = self._json(trailer[:4])
            msgspec.convert(index, _Index)
            self.commands: list[Copy | int] = [
                Copy(*c["copy"]) if "copy" in c else int(c["kernel"]) for c in index["commands"]
            ]
            self.kernels = [
                KernelSummary(k["launch"], k["counts"], tuple(k["description"])) for k in index["kernels"]
            ]
            self.warnings = [str(w) for w in index["warnings"]]
            if any(isinstance(c, int) and not 0 <= c < len(self.kernels) for c in self.commands):
                self.damaged("its list of commands does not fit its kernels")
            for kernel in self.kernels:
                launch_info(kernel.launch)
        except (KeyError, TypeError, ValueError, OverflowError, RecursionError, struct.error) as error:
            raise TraceError(f"{path}: the trace store is damaged: {error!r} in its index") from error

    def parts(self, kernel: KernelSummary) -> KernelParts:
        """A kernel's description."""
        try:
            d = self._json(kernel.description)
            blocks = [
                ((int(b[0]), int(b[1]), int(b[2]), int(b[3])), (b[4], b[5], b[6], b[7], b[8]))
                for b in d["blocks"]
            ]
            return KernelParts([str(o) for o in d["opcodes"]], tuple(d["instructions"]), blocks)
        except (KeyError, TypeError, ValueError, IndexError, RecursionError, struct.error) as error:
            raise TraceError(
                f"{self.path}: the trace store is damaged: {error!r} in a kernel's description"
            ) from error

    def source(self, kernel: KernelSummary, table: _engine.OpcodeTable) -> _engine.TraceSource:
        """The kernel's instruction source, which reads blocks on demand."""
        parts = self.parts(kernel)
        spans = [span for span, _ in parts.blocks]
        held = sum(summary[1] for _, summary in parts.blocks)
        if kernel.counts["ctas"] > held:
            self.damaged(f"{kernel.counts['ctas']} thread blocks are announced, its blocks hold {held}")
        try:
            return _engine.TraceSource(
                launch_info(kernel.launch),
                parts.opcodes,
                self.part(parts.instructions, _MAX_DESCRIPTION),
                [summary for _, summary in parts.blocks],
                kernel.counts["ctas"],
                table,
                lambda block: self.part(spans[block], _MAX_BLOCK),
            )
        except (TypeError, ValueError, IndexError, OverflowError, MemoryError, TraceError) as error:
            raise TraceError(f"{self.path}: the trace store is damaged: {error}") from error

    def verify(self) -> None:
        """Raises TraceError if anything in the store is damaged."""
        for kernel in self.kernels:
            parts = self.parts(kernel)
            self.compressed_part(parts.instructions)
            for span, _ in parts.blocks:
                self.compressed_part(span)

    def part(self, span: Span, limit: int) -> bytes:
        """The uncompressed bytes of a part. Raises TraceError if they are damaged."""
        offset, _, raw_size, _ = span
        if raw_size > limit:
            self.damaged(f"a part of {raw_size} bytes, expected at most {limit}")
        data = self.compressed_part(span)
        try:
            if zstandard.frame_content_size(data) != raw_size:
                self.damaged(f"the part at byte {offset} has a different size from the one in the index")
            return zstandard.ZstdDecompressor().decompress(data)
        except zstandard.ZstdError as error:
            raise TraceError(f"{self.path}: the part at byte {offset} is damaged: {error}") from error

    def compressed_part(self, span: Span) -> bytes:
        """The bytes of a part as stored in the file. Raises TraceError if they are damaged."""
        offset, size, _, checksum = span
        data = self._read(offset, size)
        if zlib.crc32(data) != checksum:
            self.damaged(f"the part at byte {offset} does not match its checksum")
        return data

    def damaged(self, reason: str) -> NoReturn:
        raise TraceError(f"{self.path}: the trace store is damaged or truncated: {reason}")

    def _read(self, offset: int, size: int) -> bytes:
        if offset < 0 or size < 0 or offset + size > self._size:
            self.damaged("it ends too early")
        # Opened for each part, so that a trace of thousands of kernels does not hold as many open files.
        try:
            with self.path.open("rb") as file:
                return os.pread(file.fileno(), size, offset)
        except OSError as error:
            raise TraceError(f"{self.path}: cannot read this file: {error.strerror}") from error

    def _json(self, span: Span) -> dict[str, Any]:
        value = json.loads(self.part(span, _MAX_DESCRIPTION))
        if not isinstance(value, dict):
            raise ValueError("no object")
        return value


def is_store(path: Path) -> bool:
    """Whether a file begins like a store."""
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False
