"""Where converted traces are kept."""

from __future__ import annotations

import hashlib
from pathlib import Path

from simt.cache import cache_directory

from .store import FORMAT_VERSION


def cached_store(path: Path) -> Path:
    """Where the store of a kernel trace is, or is to be put.

    The name is made of the file's path, size and time of change and of the store's format version, so that a
    changed file is converted again.
    """
    status = path.stat()
    identity = f"{path.resolve()}\0{status.st_size}\0{status.st_mtime_ns}\0{FORMAT_VERSION}"
    return cache_directory("traces") / f"{hashlib.sha256(identity.encode()).hexdigest()[:32]}.simt"
