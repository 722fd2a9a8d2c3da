"""Reads and writes files: outputs appear whole or not at all; only regular files are read or replaced."""

from __future__ import annotations

import errno
import math
import os
import re
import stat
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from simt.errors import ResultError, SimtError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_MOST_TOML = 1 << 20  # bytes
_MOST_PARTS = 32  # of a dotted key in TOML
_PART = r"""(?:[\w-]+|"[^"\n]*"|'[^'\n]*')"""
_LONG_KEY = re.compile(rf"(?<![\w-]){_PART}(?:[ \t]*\.[ \t]*{_PART}){{{_MOST_PARTS}}}")

_SYNC_SECONDS, _SYNC_SHARE = 1.0, 0.02
"""A `LineFile` is synchronised so often, and takes at most this share of the time."""

_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a FIFO (a pipe)"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


def kind_of(path: Path) -> str:
    """The kind of a path that is not a regular file; "" for a regular file or if nothing is there."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):  # a zero byte in the name
        return ""
    return next((kind for test, kind in _KINDS if test(mode)), "")


_AMD_MACHINE = 224  # EM_AMDGPU
_OFFLOAD_BUNDLES = (b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB")
AMD_CODE = (
    "AMD's machine code (a code object); all GPUs of simt, mi100 and r9nano as well, execute PTX and "
    "NVIDIA's machine code: pass the kernels' source as CUDA C++ (.cu)"
)


def is_amd_code(head: bytes) -> bool:
    """Whether a file that begins so is a code object for AMD's GPUs, or a bundle of them."""
    elf = head[:4] == b"\x7fELF" and head[18:20] == _AMD_MACHINE.to_bytes(2, "little")
    return elf or head.startswith(_OFFLOAD_BUNDLES)


def is_folder(path: Path) -> bool:
    """Whether a directory is there; False also for names that no file can have."""
    return kind_of(path) == "a directory"


def is_regular(path: Path) -> bool:
    """Whether a regular file is there; False also for names that no file can have."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except (OSError, ValueError):
        return False


def require_regular(path: Path) -> None:
    """Raises OSError for an input that is a FIFO, a device or a socket, before it is opened: opening a FIFO
    would block, and a device never ends.
    """
    kind = kind_of(path)
    if kind and not path.is_dir():
        raise OSError(errno.EINVAL, f"this is {kind}, expected a regular file", str(path))


def not_found(path: Path, what: str) -> str:
    """Why there is nothing of this name, or it cannot be reached: the name may be too long; or "".

    what: the expected kind of file.
    """
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return f"there is no such file, expected {what}"
    except OSError as refused:
        return f"cannot be read: {refused.strerror}"
    except ValueError as refused:
        return f"no name of a file: {refused}"
    return ""


def unreadable(path: Path, what: str) -> str:
    """Why an input cannot be read, such as that it is not a regular file, or ""; before it is opened.

    what: the expected kind of file.
    """
    kind = kind_of(path)
    return f"this is {kind}, expected {what}" if kind else not_found(path, what)


def require_file(path: Path, what: str, error: type[SimtError]) -> None:
    """Raises `error` if a file is unreadable."""
    if why := unreadable(path, what):
        raise error(f"{path}: {why}")


def read_toml(path: Path, what: str, error: type[SimtError]) -> dict[str, Any]:
    """The keys of a TOML file of at most a megabyte. what: the expected kind of file. Raises `error`."""
    require_file(path, f"{what} in TOML", error)
    try:
        if path.stat().st_size > _MOST_TOML:
            raise error(f"{path}: larger than {_MOST_TOML:,} bytes; this is not {what}")
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as bad:
        raise error(f"{path}: not a text file (byte {bad.start} is not UTF-8)") from None
    except OSError as bad:
        raise error(f"{path}: cannot be read: {bad.strerror}") from None
    try:
        return parse_toml(text)
    except ValueError as bad:
        raise error(f"{path}: not valid TOML: {bad}") from None


def parse_toml(text: str) -> dict[str, Any]:
    """The keys of a TOML text. Raises ValueError, also for nesting and dotted keys that the parser would take
    too much time or stack for."""
    if long := _LONG_KEY.search(text):
        line = text.count("\n", 0, long.start()) + 1
        raise ValueError(f"line {line}: a key of more than {_MOST_PARTS} parts: {long[0][:40]!r}...")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("its values are nested too deeply") from None


def decompressed(data: bytes, most: int) -> bytes:
    """The contents of a Zstandard frame, of at most so many bytes. Raises ZstdError. (Where the frame says
    its size, zstandard's own `max_output_size` is no bound.)"""
    import zstandard

    size = zstandard.frame_content_size(data)
    if size > most:
        raise zstandard.ZstdError(f"it would take {size:,} bytes, expected {most:,} at most")
    return zstandard.ZstdDecompressor().decompress(data, max_output_size=most)


def require_output(path: Path, error: type[SimtError] = ResultError) -> None:
    """Makes the folder of an output file. Raises `error` if the file cannot be written, or must not be
    replaced
    because it is a directory, a device or a FIFO.
    """
    if kind := kind_of(path):
        raise error(f"{path}: this is {kind}, expected the name of a file to write")
    require_folder(path.parent, error)
    try:  # what is written beside it before has a longer name
        with tempfile.NamedTemporaryFile(prefix=f".{path.name}.journal.", dir=path.parent):
            pass
    except (OSError, ValueError) as refused:
        why = refused.strerror if isinstance(refused, OSError) else str(refused)
        raise error(f"{path}: cannot write a file of this name: {why}") from None


def require_folder(folder: Path, error: type[SimtError] = ResultError) -> None:
    """Makes the directory. Raises `error` if files cannot be written in it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as refused:
        raise error(f"{folder}: cannot write there: {refused.strerror}") from refused


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """Yields a temporary name beside the target and renames it at the end, so the target is never half-
    written.
    A link keeps its destination. Raises FileExistsError if the target is not a regular file.
    """
    if kind := kind_of(target):
        raise FileExistsError(errno.EEXIST, f"this is {kind}, expected the name of a file", str(target))
    target = target.resolve()
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(target: Path, text: str, error: type[SimtError] = ResultError) -> None:
    """Writes the file whole or not at all, and makes the directories that it needs. Raises `error`."""
    write_bytes(target, text.encode("utf-8"), error)


def write_bytes(target: Path, data: bytes, error: type[SimtError] = ResultError) -> None:
    """As `write_text`."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with replacing(target) as temporary:
            temporary.write_bytes(data)
    except OSError as refused:
        raise error(f"{target}: cannot write: {refused.strerror}") from refused


class LineFile:
    """A file to which lines are appended, each whole or not at all.

    Lines survive the death of the process, and a crash of the machine soon after they are written: files are
    synchronised every second, more rarely where that takes long. Methods raise OSError.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: Any = None
        self._synced, self._sync_cost = -math.inf, 0.0

    @property
    def is_open(self) -> bool:
        return self._file is not None

    def begin(self, lines: Iterable[bytes]) -> None:
        """Starts afresh with these lines; what was there is replaced at once."""
        self.close()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(self.path) as temporary, temporary.open("wb") as file:
            file.writelines(lines)
            file.flush()
            os.fsync(file.fileno())
        self._file = self.path.open("ab", buffering=0)

    def append(self, line: bytes) -> None:
        before = self._file.tell()
        try:
            written = self._file.write(line)
            if written != len(line):  # the disk is full: the next byte will fail
                self._file.write(line[written:])
        except OSError:
            # A partial line would hide the lines that another process appends.
            os.ftruncate(self._file.fileno(), before)
            raise
        if time.monotonic() - self._synced > max(_SYNC_SECONDS, self._sync_cost / _SYNC_SHARE):
            self.sync()

    def sync(self) -> None:
        begin = time.monotonic()
        os.fsync(self._file.fileno())
        self._synced = time.monotonic()
        self._sync_cost = self._synced - begin

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def remove(self) -> None:
        """Also what a killed process has left beside it."""
        self.close()
        self.path.unlink(missing_ok=True)
        for left in self.path.parent.glob(f".{self.path.name}.*"):
            left.unlink(missing_ok=True)
