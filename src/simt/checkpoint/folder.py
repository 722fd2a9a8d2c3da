"""The directory of a checkpoint: a description, and files of compressed, checksummed pieces."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, BinaryIO, NoReturn, TypeVar

import msgspec
import zstandard

from simt.errors import CheckpointError
from simt.files import decompressed, require_regular
from simt.version import __version__

FORMAT = "simt.checkpoint"
VERSION = 2
HEADER = "checkpoint.json"
STATE = "state.json.zst"
PIECE = 1 << 20
"""Most bytes of a piece, so that memory use is bounded."""
_LEVEL = 1
_MOST_STATE = 1 << 30
"""Most bytes of the state."""
_MOST_HEADER = 1 << 16

Natural = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Span = tuple[Natural, Natural, Natural, Natural]
"""A piece: offset, compressed bytes, bytes, CRC-32 of the compressed bytes."""

_State = TypeVar("_State", bound=msgspec.Struct)


class _Header(msgspec.Struct, forbid_unknown_fields=True):
    """kind: what the checkpoint is of. sha256: of the state's file."""

    format: str
    version: int
    kind: str
    simt: str
    sha256: str


class CheckpointWriter:
    """Writes a checkpoint under a temporary name; `finish` gives it its final name. Leaving the block without
    it removes everything written.

    Raises CheckpointError if something exists at `path`, or nothing can be written there.
    """

    def __init__(self, path: str | os.PathLike[str], kind: str) -> None:
        self.path = Path(path)
        self._kind = kind
        self._files: dict[str, BinaryIO] = {}
        self._compressor = zstandard.ZstdCompressor(level=_LEVEL)
        if os.path.lexists(self.path):
            raise CheckpointError(f"{self.path}: exists already; remove it or choose another name")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            folder = tempfile.mkdtemp(dir=self.path.parent, prefix=f".{self.path.name}.")
        except OSError as error:
            self._failed(error)
        self._folder = Path(folder)

    def __enter__(self) -> CheckpointWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.discard()

    def discard(self) -> None:
        """Removes everything that was written, unless the checkpoint is finished."""
        for file in self._files.values():
            file.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def add(self, name: str, data: bytes) -> list[Span]:
        """Appends data to a file. Returns its pieces."""
        spans = []
        try:
            if name not in self._files:
                self._files[name] = open(self._folder / name, "wb")  # noqa: SIM115
            file = self._files[name]
            for begin in range(0, len(data), PIECE):
                piece = data[begin : begin + PIECE]
                compressed = self._compressor.compress(piece)
                spans.append((file.tell(), len(compressed), len(piece), zlib.crc32(compressed)))
                file.write(compressed)
        except OSError as error:
            self._failed(error)
        return spans

    def finish(self, state: msgspec.Struct) -> None:
        """Writes the state and gives the checkpoint its name."""
        compressed = self._compressor.compress(msgspec.json.encode(state))
        header = _Header(FORMAT, VERSION, self._kind, __version__, hashlib.sha256(compressed).hexdigest())
        try:
            (self._folder / STATE).write_bytes(compressed)
            (self._folder / HEADER).write_bytes(msgspec.json.encode(header) + b"\n")
            for file in self._files.values():
                file.close()
            self._folder.chmod(0o755)
            os.rename(self._folder, self.path)
        except OSError as error:
            self._failed(error)

    def _failed(self, error: OSError) -> NoReturn:
        raise CheckpointError(f"{self.path}: cannot write a checkpoint there: {error.strerror}") from error


class CheckpointReader:
    """Reads a checkpoint, and checks all that it reads against the checksums.

    kind: what it must be of. Raises CheckpointError if it is something else, of another version or damaged.
    """

    def __init__(self, path: str | os.PathLike[str], kind: str) -> None:
        self.path = Path(path)
        self._files: dict[str, BinaryIO] = {}
        if not self.path.is_dir():
            raise CheckpointError(f"{self.path}: there is no such directory; expected a checkpoint")
        try:
            header = msgspec.json.decode(self._whole(HEADER, _MOST_HEADER), type=_Header)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            self.damaged(f"{HEADER}: {error}")
        if header.format != FORMAT:
            raise CheckpointError(f"{self.path}: not a checkpoint: its format is {header.format!r}")
        if header.version != VERSION:
            raise CheckpointError(
                f"{self.path}: a checkpoint of version {header.version}, made by simt {header.simt}; this is "
                f"simt {__version__}, which reads version {VERSION}: make the checkpoint again"
            )
        if header.kind != kind:
            raise CheckpointError(f"{self.path}: a checkpoint of a {header.kind}, expected one of a {kind}")
        self._sha256 = header.sha256

    def __enter__(self) -> CheckpointReader:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        for file in self._files.values():
            file.close()

    def state(self, type: type[_State]) -> _State:
        """The state, of this type."""
        compressed = self._whole(STATE, _MOST_STATE)
        if hashlib.sha256(compressed).hexdigest() != self._sha256:
            self.damaged(f"{STATE} does not match its checksum")
        try:
            return msgspec.json.decode(decompressed(compressed, _MOST_STATE), type=type)
        except (zstandard.ZstdError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            self.damaged(f"{STATE}: {error}")

    def read(self, name: str, spans: Iterable[Span]) -> bytes:
        """Pieces of a file."""
        return b"".join(self._piece(name, span) for span in spans)

    def damaged(self, why: str) -> NoReturn:
        """Raises CheckpointError for what cannot be right."""
        raise CheckpointError(f"{self.path}: this checkpoint is damaged: {why}; make it again") from None

    def _piece(self, name: str, span: Span) -> bytes:
        offset, length, size, checksum = span
        try:
            if name not in self._files:
                self._files[name] = self._opened(name)
            file = self._files[name]
            file.seek(offset)
            data = file.read(length) if length <= 2 * PIECE else b""
            if len(data) != length or zlib.crc32(data) != checksum or size > PIECE:
                self.damaged(f"{name}: the piece at byte {offset} does not match its checksum")
            raw = decompressed(data, PIECE)
        except OSError as error:
            self.damaged(f"{name}: {error.strerror}")
        except zstandard.ZstdError as error:
            self.damaged(f"{name}: the piece at byte {offset}: {error}")
        if len(raw) != size:
            self.damaged(f"{name}: the piece at byte {offset} has {len(raw)} bytes, expected {size}")
        return raw

    def _opened(self, name: str) -> BinaryIO:
        require_regular(self.path / name)
        return open(self.path / name, "rb")

    def _whole(self, name: str, most: int) -> bytes:
        try:
            with self._opened(name) as file:
                data = file.read(most + 1)
        except OSError as error:
            self.damaged(f"{name}: {error.strerror}")
        if len(data) > most:
            self.damaged(f"{name} has more than {most:,} bytes")
        return data
