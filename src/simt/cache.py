"""Where simt keeps what it can make again: `$SIMT_CACHE`, or `~/.cache/simt`."""

from __future__ import annotations

import os
import tempfile
from functools import lru_cache
from pathlib import Path


def cache_directory(kind: str) -> Path:
    """The folder for one kind of kept thing, made if need be; a temporary one where the cache cannot be
    written.
    """
    root = os.environ.get("SIMT_CACHE")
    directory = (Path(root) if root else Path.home() / ".cache" / "simt") / kind
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            return directory
    except OSError:
        return Path(_temporary_directory().name)


def write_whole(path: Path, data: bytes) -> None:
    """Writes a file so that no reader ever sees a part of it: under a temporary name, then renamed."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


@lru_cache(maxsize=1)
def _temporary_directory() -> tempfile.TemporaryDirectory[str]:
    """Removed when the process ends."""
    return tempfile.TemporaryDirectory(prefix="simt-")
