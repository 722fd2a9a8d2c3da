"""The cache of converted traces."""

from __future__ import annotations

import hashlib
from pathlib import Path

from simt.cache import cache_directory

from .store import FORMAT_VERSION

SAMPLE = 64 << 10  # bytes each


def cached_store(path: Path) -> Path:
    """The path of a kernel trace's store, whether it exists or not.

    The name is derived from the file's path, size, modification time and samples of its content, and from the
    store's format version, so a changed file is converted again.
    """
    status = path.stat()
    identity = f"{path.resolve()}\0{status.st_size}\0{status.st_mtime_ns}\0{FORMAT_VERSION}\0"
    identity += _sample(path, status.st_size)
    return cache_directory("traces") / f"{hashlib.sha256(identity.encode()).hexdigest()[:32]}.simt"


def _sample(path: Path, size: int) -> str:
    """A hash of the beginning, the middle and the end."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        for offset in sorted({0, max(0, size // 2 - SAMPLE // 2), max(0, size - SAMPLE)}):
            file.seek(offset)
            digest.update(file.read(SAMPLE))
    return digest.hexdigest()
