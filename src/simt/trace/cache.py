"""Where converted traces are kept: `$SIMT_CACHE`, or `~/.cache/simt`."""

from __future__ import annotations

import hashlib
import os
import tempfile
from functools import lru_cache
from pathlib import Path

from .store import FORMAT_VERSION


def cached_store(path: Path) -> Path:
    """Where the store of a kernel trace is, or is to be put.

    The name is made of the file's path, size and time of change and of the store's format version, so that a
    changed file is converted again.
    """
    status = path.stat()
    identity = f"{path.resolve()}\0{status.st_size}\0{status.st_mtime_ns}\0{FORMAT_VERSION}"
    return _directory() / f"{hashlib.sha256(identity.encode()).hexdigest()[:32]}.simt"


def _directory() -> Path:
    root = os.environ.get("SIMT_CACHE")
    directory = (Path(root) if root else Path.home() / ".cache" / "simt") / "traces"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            return directory
    except OSError:
        return Path(_temporary_directory().name)


@lru_cache(maxsize=1)
def _temporary_directory() -> tempfile.TemporaryDirectory[str]:
    """Used where the cache cannot be written; removed when the process ends."""
    return tempfile.TemporaryDirectory(prefix="simt-")
