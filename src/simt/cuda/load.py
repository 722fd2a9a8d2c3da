"""Reads the PTX of a program in any form, which is recognised by its content."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

from simt.errors import PtxError
from simt.files import require_regular

from .fatbin import read_fatbins
from .nvrtc import compile_cuda
from .ptx_module import PtxModule, is_ptx, runs_on

_HEAD = 4096


def load(program: str | PathLike[str], arch: str, *, fmad: bool = True, **options: Any) -> list[PtxModule]:
    """The PTX modules of a program: one, or one per translation unit of a compiled program.

    Args:
        program: a file (CUDA C++, PTX, a fat binary, or a program, library or object made by nvcc), or the
            text itself of CUDA C++ or PTX. A `str` is text if it has more than one line or names no file but
            holds `__global__` or `.version`.
        arch: the device, such as "sm_90a".
        fmad: contract products and sums without a rounding modifier to fma, as with nvcc's `--fmad`.
        options: for CUDA C++, those of `compile_cuda`; the folder of the file is searched for headers first.

    Raises:
        PtxError: the file cannot be read, holds no PTX, or none that runs on this device.
        CompileError, ToolkitError: as `compile_cuda`.
    """
    modules = _load(program, arch, {"fmad": fmad, **options})
    return modules if fmad else [module.without_contraction() for module in modules]


def _load(program: str | PathLike[str], arch: str, options: dict[str, Any]) -> list[PtxModule]:
    if isinstance(program, str) and _is_text(program):
        return [_from_text(program, options.pop("name", None), arch, options)]
    path = Path(program)
    try:
        require_regular(path)
        with path.open("rb") as file:
            binary = b"\0" in file.read(_HEAD)
        if binary:
            return read_fatbins(path, arch)
        text = _source(path)
    except OSError as error:
        raise PtxError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise PtxError(
            f"{path}: neither text in UTF-8 nor a program: byte {error.start}: {error.reason}"
        ) from None
    options.setdefault("name", str(path))
    options["include"] = [path.parent, *options.get("include", ())]
    return [_from_text(text, options.pop("name"), arch, options)]


def _source(path: Path) -> str:
    """The text of a file. C++ sources from before UTF-8 have names and signs in Latin-1."""
    raw = path.read_bytes()
    try:
        return raw.decode()
    except UnicodeDecodeError:
        if path.suffix not in (".cu", ".cuh"):
            raise
        return raw.decode("latin-1")


def _is_text(program: str) -> bool:
    return "\n" in program or "__global__" in program or ".version" in program


def _from_text(text: str, name: str | None, arch: str, options: dict[str, Any]) -> PtxModule:
    if not is_ptx(text):
        return compile_cuda(text, name=name or "kernel.cu", arch=arch, **options)
    module = PtxModule.from_text(text, name or "kernel.ptx")
    if not runs_on(module.arch, arch):
        raise PtxError(f"{module.name}: PTX for {module.arch} does not run on {arch}")
    return module
