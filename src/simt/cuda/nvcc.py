"""Finds nvcc, and compiles whole programs in CUDA C++ by it, with their `main`; `simt.exec` runs them."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from simt.errors import CompileError, ToolkitError

LEAST_ARCH = 75
"""nvcc 13 compiles for sm_75 and later. Older GPUs execute the code that an older ptxas makes of its PTX, and
PTX as if they were sm_75."""


def find_nvcc() -> Path:
    """nvcc from NVIDIA's wheels for CUDA 13, where simt's Makefile puts them or installed; otherwise from the
    PATH. Raises ToolkitError.
    """
    for place in (Path(sys.prefix) / "nvcc", *map(Path, sys.path)):
        if (path := place / "nvidia" / "cu13" / "bin" / "nvcc").is_file():
            return path
    if found := shutil.which("nvcc"):
        return Path(found)
    raise ToolkitError(
        "nvcc, which compiles programs with their main, is not installed: pip install nvidia-cuda-nvcc "
        "nvidia-cuda-runtime nvidia-cuda-crt nvidia-nvvm nvidia-cuda-cccl"
    )


def command_for(arch: int, scratch: Path) -> list[str | Path]:
    """The command, without its sources, that makes a program for an architecture such as 80 as simt runs it:
    PTX and machine code, and a shared runtime. scratch: a folder of which it may use `lib`.

    Raises ToolkitError if there is no nvcc.
    """
    nvcc = find_nvcc()
    target = f"-gencode=arch=compute_{arch},code=[compute_{arch},sm_{arch}]"
    return [nvcc, "-O3", "-cudart", "shared", target, f"-L{_library_folder(nvcc, scratch)}"]


def _library_folder(nvcc: Path, scratch: Path) -> Path:
    """A folder with libcudart.so, which the wheels have only under its full name: then, one in `scratch`."""
    own = nvcc.resolve().parents[1] / "lib"
    if (own / "libcudart.so").exists() or not own.is_dir():
        return own
    folder = scratch / "lib"
    folder.mkdir(parents=True, exist_ok=True)
    link, library = folder / "libcudart.so", next(own.glob("libcudart.so.*"), None)
    if library is not None and not link.is_symlink():
        link.symlink_to(library)
    return folder


@contextmanager
def compiled_program(source: Path, arch: int) -> Iterator[Path]:
    """A program made of one source file for an architecture such as 80; it is gone after the block.

    Raises:
        ToolkitError: there is no nvcc.
        CompileError: nvcc refuses the source; the message is nvcc's.
    """
    with tempfile.TemporaryDirectory(prefix="simt-nvcc-") as scratch:
        program = Path(scratch) / source.stem
        command = [*command_for(arch, Path(scratch)), "-lineinfo", source, "-o", program]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        if done.returncode:
            said = (done.stderr or done.stdout).strip()
            raise CompileError(f"{source}: nvcc does not compile it for sm_{arch}\n{said}")
        yield program
