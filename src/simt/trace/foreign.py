"""Recognises files that are often mistaken for traces, and says what to do with them."""

from __future__ import annotations

import re
from pathlib import Path

from simt.errors import TraceError

_AMD = (
    "AMD's machine code, which simt does not execute; mi100 and r9nano run CUDA C++ (.cu) and PTX (.ptx), on "
    "wavefronts of 64 lanes, and traces"
)
_BY_SUFFIX = {
    ".hip": "HIP source; simt compiles CUDA C++: rename it to .cu if it contains only kernels",
    ".cl": "OpenCL C; simt runs kernels in CUDA C++ (.cu) and PTX (.ptx): port them to one of these",
    ".hsaco": _AMD,
    ".co": _AMD,
    ".c": "C source; simt runs kernels in CUDA C++ (.cu), PTX (.ptx), or programs in Python (.py)",
    ".cc": "C++ source; simt runs kernels in CUDA C++ (.cu), PTX (.ptx), or programs in Python (.py)",
    ".cpp": "C++ source; simt runs kernels in CUDA C++ (.cu), PTX (.ptx), or programs in Python (.py)",
    ".ipynb": "a notebook; save its code as a Python file with a function main(gpu)",
    ".cubin": "machine code; simt needs the PTX or source: pass the .ptx or .cu file",
    ".nsys-rep": "Nsight Systems' own format; export it with `nsys export --type sqlite`, for `simt sample`",
    ".sqlite": "a profile, not a trace; `simt sample` chooses launches from it",
    ".ncu-rep": "Nsight Compute's own format; export it with `ncu --import FILE --csv --page raw`, for "
    "`simt sample`",
    ".csv": "a table; `simt sample` and `simt correlate` read profiles",
    ".json": "JSON; `simt report` reads a saved Result, `simt sample` a profile",
    ".parquet": "a table; `simt report` reads the saved Result that it belongs to",
    ".toml": "a specification; name it with --gpu",
    ".config": "a configuration of Accel-Sim; `simt gpus import` makes a specification of it, for --gpu",
}
_BY_MAGIC = {
    b"\x7fELF": "a native program or library; `simt exec -- PROGRAM` runs CUDA programs. Of kernels, pass "
    "the CUDA C++ (.cu) or PTX (.ptx), or a trace of their launches",
    b"\x50\xed\x55\xba": "a fat binary; pass the .cu or .ptx file it was made from",
    b"SQLite format 3": "a profile (SQLite), not a trace; `simt sample` chooses launches from it",
    b"%PDF": "a PDF document",
    b"PK\x03\x04": "a zip archive; unpack it",
    b"\x89PNG": "a picture",
}
_EM_AMDGPU = b"\xe0\0"  # of an ELF file's header: its machine
_STUDY = re.compile(r"^\s*(inputs|gpus)\s*=", re.MULTILINE)


def refuse_foreign(path: Path) -> None:
    """Raises TraceError for a file that is recognisably not a trace."""
    if path.is_dir():
        if (path / "result.json").is_file():
            raise TraceError(f"{path}: is a saved Result, not a trace; `simt report` shows it")
        return
    what = _BY_SUFFIX.get(path.suffix)
    if what is None and path.is_file():
        with path.open("rb") as file:
            head = file.read(20)
        what = next((text for magic, text in _BY_MAGIC.items() if head.startswith(magic)), None)
        if head[:4] == b"\x7fELF" and head[18:20] == _EM_AMDGPU:
            what = _AMD
    elif path.suffix == ".toml" and path.is_file() and _STUDY.search(path.read_text(errors="replace")):
        what = "a study; `simt study FILE` runs it"
    if what is not None:
        raise TraceError(f"{path}: is {what}")
