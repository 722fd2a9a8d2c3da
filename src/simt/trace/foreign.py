"""Recognises files that are often mistaken for traces, and says what to do with them."""

from __future__ import annotations

import re
from pathlib import Path

from simt.errors import TraceError
from simt.files import AMD_CODE, is_amd_code

_BY_SUFFIX = {
    ".hip": "HIP source; simt compiles CUDA C++: rename it to .cu if it contains only kernels",
    ".cl": "OpenCL C; simt runs kernels in CUDA C++ (.cu) and PTX (.ptx): port them to one of these",
    ".c": "C source; simt runs kernels in CUDA C++ (.cu), PTX (.ptx), or programs in Python (.py)",
    ".cc": "C++ source; simt runs kernels in CUDA C++ (.cu), PTX (.ptx), or programs in Python (.py)",
    ".cpp": "C++ source; simt runs kernels in CUDA C++ (.cu), PTX (.ptx), or programs in Python (.py)",
    ".spv": "SPIR-V; simt executes PTX and NVIDIA's machine code: pass the kernels as CUDA C++ (.cu) or PTX",
    ".hsaco": AMD_CODE,
    ".ipynb": "a notebook; save its code as a Python file with a function main(gpu)",
    ".cubin": "machine code; simt needs the PTX or source: pass the .ptx or .cu file",
    ".nsys-rep": "Nsight Systems' own format; export it with `nsys export --type sqlite`, for `simt sample`",
    ".sqlite": "a profile, not a trace; `simt sample` chooses launches from it",
    ".ncu-rep": "Nsight Compute's own format; export it with `ncu --import FILE --csv --page raw`, for "
    "`simt sample`",
    ".csv": "a table; `simt sample` and `simt correlate` read profiles",
    ".jsonl": "JSON lines; of Nsight Systems, export SQLite (`nsys export --type sqlite`), for `simt sample`",
    ".json": "JSON; `simt report` reads a saved Result, `simt sample` a profile",
    ".parquet": "a table; `simt report` reads the saved Result that it belongs to",
    ".toml": "a specification; name it with --gpu",
    ".config": "a configuration of Accel-Sim; `simt gpus import` makes a specification of it, for --gpu",
}
_STUDY = re.compile(rb"^\s*(?:inputs\s*=|\[\[inputs\]\])", re.MULTILINE)  # the key that every study has
_LOOKED_AT = 1 << 16  # bytes
_BY_MAGIC = {
    b"\x7fELF": "a native program or library; `simt exec -- PROGRAM` runs CUDA programs. Of kernels, pass "
    "the CUDA C++ (.cu) or PTX (.ptx), or a trace of their launches",
    b"\x50\xed\x55\xba": "a fat binary; pass the .cu or .ptx file it was made from",
    b"SQLite format 3": "a profile (SQLite), not a trace; `simt sample` chooses launches from it",
    b"%PDF": "a PDF document",
    b"PK\x03\x04": "a zip archive; unpack it",
    b"\x89PNG": "a picture",
}


def refuse_foreign(path: Path) -> None:
    """Raises TraceError for a file that is recognisably not a trace."""
    if path.is_dir():
        if (path / "result.json").is_file():
            raise TraceError(f"{path}: is a saved Result, not a trace; `simt report` shows it")
        return
    what = _BY_SUFFIX.get(path.suffix)
    if path.is_file():
        with path.open("rb") as file:
            head = file.read(_LOOKED_AT)
        if path.suffix == ".toml" and _STUDY.search(head):
            what = "a study; `simt study FILE` runs it"
        elif is_amd_code(head):
            what = AMD_CODE
        elif what is None:
            what = next((text for magic, text in _BY_MAGIC.items() if head.startswith(magic)), None)
    if what is not None:
        raise TraceError(f"{path}: is {what}")
