"""What the shell's completion offers: GPUs, programs, kernels of a file, fields of specifications."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path


def gpus(incomplete: str) -> list[str]:
    """Names of the shipped GPUs, for the last of a list."""
    from simt.spec import available

    before, comma, last = incomplete.rpartition(",")
    return _beginning(last, available(), before + comma)


def programs(incomplete: str) -> list[str]:
    """Examples and workloads, and files of programs and traces."""
    from simt.program import SUFFIXES, examples
    from simt.workloads import WORKLOADS

    folder = Path(incomplete).parent if incomplete else Path()
    files = []
    if folder.is_dir():
        known = (*SUFFIXES, ".simt", ".g", ".json")
        for path in sorted(folder.iterdir()):
            if path.is_dir() or path.suffix in known:
                files.append(str(path) + "/" * path.is_dir())
    return _beginning(incomplete, [*files, *examples(), *WORKLOADS])


def fields(incomplete: str) -> list[str]:
    """Fields of specifications, as `sm.count=`."""
    from simt.spec import load_spec

    return _beginning(incomplete, [f"{path}=" for path, _ in load_spec("h100").leaves()])


def kernels(ctx: object, incomplete: str) -> list[str]:
    """Kernels that the program named before, a CUDA or PTX file, defines."""
    found: list[str] = []
    for value in getattr(ctx, "params", {}).values():
        path = Path(value) if isinstance(value, str | Path) else Path()
        if path.suffix in (".cu", ".ptx") and path.is_file():
            text = path.read_text(encoding="utf-8", errors="replace")
            found += re.findall(r"__global__[^;{(]*?(\w+)\s*\(|\.entry\s+(\w+)", text)
    return _beginning(incomplete, dict.fromkeys(a or b for a, b in map(tuple, found)))


def _beginning(incomplete: str, names: Iterable[str], before: str = "") -> list[str]:
    return [before + name for name in names if name.startswith(incomplete)]
