"""The file that a profile is read from, as a decompressed stream."""

from __future__ import annotations

import codecs
import gzip
import io
import os
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

import zstandard

from simt.errors import ProfileError
from simt.files import require_regular
from simt.progress import Progress

PIECE = 8 << 20
HEAD = 1 << 20
_ZSTD_WINDOW = 128 << 20  # maximum window of the decompressor, in bytes
_MAX_UNPACKED, _MAX_RATIO = 64 << 20, 200  # SQLite exports shrink about tenfold, CSV up to fiftyfold
Report = Callable[[Progress], None]


class ProfileSource:
    """A file that can be read several times from the start; only `head` is kept in memory.

    head: its first bytes, at most HEAD, decompressed.
    compression: "gz", "zst", or None.
    encoding: "utf-16-le" or "utf-16-be" for text in UTF-16, which is passed on as UTF-8; else None.
    """

    def __init__(self, path: str | os.PathLike[str], progress: Report | None = None) -> None:
        self.path = Path(path)
        self.name = os.fspath(path)
        self._progress = progress
        self._began = time.monotonic()
        self._position: Callable[[], int] = lambda: 0  # position in the file itself, compressed or not
        try:
            require_regular(self.path)
            self.size = self.path.stat().st_size
            with self.path.open("rb") as file:
                magic = file.read(4)
        except OSError as error:
            raise ProfileError(f"{self.name}: cannot be read: {error.strerror}") from error
        self.compression = (
            "gz" if magic[:2] == b"\x1f\x8b" else "zst" if magic == b"\x28\xb5\x2f\xfd" else None
        )
        self.encoding: str | None = None
        with self.open() as stream:
            self.encoding = _utf16(_read(stream, 4))
        with self.open() as stream:
            self.head = _read(stream, HEAD)

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """The decompressed content. Raises ProfileError if it cannot be opened or read."""
        with self._decompressed() as stream:
            if self.encoding is None:
                yield stream
                return
            try:
                yield cast(BinaryIO, io.BufferedReader(_Recoded(stream, self.encoding)))
            except UnicodeDecodeError as error:
                raise ProfileError(f"{self.name}: damaged text in UTF-16: {error.reason}") from error

    @contextmanager
    def _decompressed(self) -> Iterator[BinaryIO]:
        try:
            with self.path.open("rb") as raw:
                self._position = raw.tell
                if self.compression == "gz":
                    with gzip.GzipFile(fileobj=raw) as stream:
                        yield cast(BinaryIO, stream)
                elif self.compression == "zst":
                    decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
                    with decompressor.stream_reader(
                        raw, read_size=1 << 16, read_across_frames=True
                    ) as reader:
                        yield cast(BinaryIO, reader)
                else:
                    yield raw
        except EOFError as error:
            raise ProfileError(
                f"{self.name}: the {self.compression} data ends too early; the file is truncated"
            ) from error
        except (gzip.BadGzipFile, zlib.error, zstandard.ZstdError) as error:
            raise ProfileError(f"{self.name}: the {self.compression} data is damaged: {error}") from error
        except OSError as error:
            raise ProfileError(f"{self.name}: cannot be read: {error.strerror or error}") from error

    def pieces(self, size: int = PIECE) -> Iterator[bytes]:
        """The decompressed content in pieces of `size` bytes, the last one shorter."""
        with self.open() as stream:
            while piece := _read(stream, size):
                self.report(self._position() / max(self.size, 1))
                yield piece

    @contextmanager
    def local(self, offset: int = 0) -> Iterator[Path]:
        """An uncompressed file with the content from `offset` on: the file itself, or a temporary one.

        Raises ProfileError if the content is implausibly larger than the file.
        """
        if self.compression is None and self.encoding is None and not offset:
            yield self.path
            return
        try:
            with tempfile.TemporaryDirectory(prefix="simt-profile-") as folder:
                target = Path(folder) / "content"
                with self.open() as stream, target.open("wb") as file:
                    _read(stream, offset)
                    most = _MAX_UNPACKED + _MAX_RATIO * self.size
                    while piece := _read(stream, PIECE):
                        most -= file.write(piece)
                        if most < 0:
                            raise ProfileError(
                                f"{self.name}: unpacks to more than {_MAX_RATIO} times its {self.size:,} "
                                f"bytes; this is not a profile"
                            )
                yield target
        except OSError as error:
            raise ProfileError(f"{self.name}: cannot be unpacked: {error.strerror or error}") from error

    def report(self, fraction: float, launches: int = 0) -> None:
        """Reports progress to the caller of `read_profile`."""
        if self._progress is not None:
            seconds = time.monotonic() - self._began
            self._progress(Progress("reading", min(fraction, 1.0), seconds, launches, launches))


class _Recoded(io.RawIOBase):
    """Text of another encoding as UTF-8, without a byte order mark."""

    def __init__(self, stream: BinaryIO, encoding: str) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._left, self._began, self._ended = b"", False, False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._left and not self._ended:
            piece = self._stream.read(1 << 16)
            self._ended = not piece
            text = self._decoder.decode(piece, final=self._ended)
            self._left = (text if self._began else text.lstrip("\ufeff")).encode("utf-8")
            self._began |= bool(text)
        size = min(len(buffer), len(self._left))
        buffer[:size], self._left = self._left[:size], self._left[size:]
        return size


def _utf16(beginning: bytes) -> str | None:
    """The encoding of text in UTF-16, which begins with a byte order mark or with two ASCII characters."""
    if beginning[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return "utf-16-le" if beginning[:2] == codecs.BOM_UTF16_LE else "utf-16-be"
    if len(beginning) == 4:
        for encoding, text, zero in (("utf-16-le", 0, 1), ("utf-16-be", 1, 0)):
            if beginning[zero::2] == b"\0\0" and all(9 <= byte < 127 for byte in beginning[text::2]):
                return encoding
    return None


def _read(stream: BinaryIO, size: int) -> bytes:
    """`size` bytes, fewer only at the end of the stream."""
    pieces = []
    while size > 0 and (piece := stream.read(min(size, PIECE))):
        pieces.append(piece)
        size -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
