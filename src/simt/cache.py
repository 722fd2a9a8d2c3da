"""The cache of converted traces and compiled programs: `$SIMT_CACHE`, or `~/.cache/simt`.

It holds at most `$SIMT_CACHE_LIMIT` bytes (LIMIT by default). The least recently used entries are removed
first, but none that was used within the last hour, since a run may be reading it.
"""

from __future__ import annotations

import os
import tempfile
import time
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from simt.errors import SimtError

LIMIT = 20 << 30
KEPT_SECONDS = 3600


def cache_directory(kind: str) -> Path:
    """The folder for one kind of entry, created if needed; a temporary one if the cache is not writable."""
    directory = cache_root() / kind
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            return directory
    except OSError:
        return Path(_temporary_directory().name)


def write_whole(path: Path, data: bytes) -> None:
    """Writes a file atomically: under a temporary name, then renamed, so that no reader sees a part of it."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def cache_root() -> Path:
    root = os.environ.get("SIMT_CACHE")
    return Path(root) if root else Path.home() / ".cache" / "simt"


def cached_files() -> list[tuple[Path, int, float]]:
    """Every cached file with its size and time of last use, the most recently used last."""
    found = []
    for path in cache_root().glob("*/*"):
        with suppress(OSError):
            status = path.stat()
            if path.is_file():
                found.append((path, status.st_size, status.st_atime))
    return sorted(found, key=lambda item: item[2])


def used(path: Path) -> None:
    """Records that a cached file was used now."""
    with suppress(OSError):
        os.utime(path, ns=(time.time_ns(), path.stat().st_mtime_ns))


def cache_limit() -> int:
    """The limit in bytes. Raises SimtError if `$SIMT_CACHE_LIMIT` is not a number."""
    text = os.environ.get("SIMT_CACHE_LIMIT", str(LIMIT))
    if not text.isdigit():
        raise SimtError(f"SIMT_CACHE_LIMIT is {text!r}, expected a number of bytes")
    return int(text)


def evict() -> None:
    """Deletes the least recently used files until the cache is within its limit."""
    files = cached_files()
    total, limit, now = sum(size for _, size, _ in files), cache_limit(), time.time()
    for path, size, last in files:
        if total <= limit or now - last < KEPT_SECONDS:
            return
        with suppress(OSError):
            path.unlink()
            total -= size


def clear() -> tuple[int, int]:
    """Deletes all cached files; returns their number and bytes."""
    count = freed = 0
    for path, size, _ in cached_files():
        with suppress(OSError):
            path.unlink()
            count, freed = count + 1, freed + size
    return count, freed


@lru_cache(maxsize=1)
def _temporary_directory() -> tempfile.TemporaryDirectory[str]:
    """Removed when the process ends."""
    return tempfile.TemporaryDirectory(prefix="simt-")
