"""Reads the PTX of a program in any form, which is recognised by its content."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

from simt.errors import ImageError, PtxError
from simt.files import AMD_CODE, is_amd_code, require_regular

from .cubin_module import CubinModule
from .fatbin import Buffer, images_in, is_cubin, mapped, read_fatbins
from .image import Image
from .nvrtc import compile_cuda
from .ptx_module import PtxModule, is_ptx, runs_on

_HEAD = 4096
_BINARY = (".cubin", ".fatbin")


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


def load_images(
    program: str | PathLike[str] | bytes, arch: str, *, code: str = "ptx", **options: Any
) -> list[Image]:
    """As `load`, of programs that may hold machine code, also as bytes in memory.

    A cubin is taken as it is. code: "ptx" takes the PTX of other binary files, and machine code where there
    is no PTX for this device; "sass" machine code, and PTX where there is none.

    Raises:
        ImageError: the program cannot be read, or holds nothing for this device.
        CompileError, ToolkitError: as `compile_cuda` and `Cubin.parse`.
    """
    if isinstance(program, bytes):
        name = str(options.pop("name", "program"))
        if b"\0" in program.rstrip(b"\0")[:_HEAD]:
            return _images(program, name, arch, code)
        try:
            text = program.rstrip(b"\0").decode()
        except UnicodeDecodeError as error:
            raise PtxError(f"{name}: neither text in UTF-8 nor a program: {error.reason}") from None
        return [*load(f"{text}\n", arch, name=name, **options)]
    if not (isinstance(program, str) and _is_text(program)) and _is_binary(Path(program)):
        with mapped(Path(program)) as data:
            return _images(data[:] if is_cubin(data) else data, str(program), arch, code)
    return [*load(program, arch, **options)]


def _images(data: Buffer, name: str, arch: str, code: str) -> list[Image]:
    if is_amd_code(data[:24]):
        raise ImageError(f"{name}: is {AMD_CODE}")
    if is_cubin(data):
        return [CubinModule.parse(bytes(data), name)]
    return images_in(data, name, arch, code)


def _is_binary(path: Path) -> bool:
    try:
        require_regular(path)
        with path.open("rb") as file:
            return b"\0" in file.read(_HEAD)
    except OSError as error:
        raise PtxError(f"{path}: cannot be read: {error.strerror}") from None


def _load(program: str | PathLike[str], arch: str, options: dict[str, Any]) -> list[PtxModule]:
    if isinstance(program, str) and _is_text(program):
        return [_from_text(program, options.pop("name", None), arch, options)]
    path = Path(program)
    if _is_binary(path):
        return read_fatbins(path, arch)
    if path.suffix in _BINARY:
        raise PtxError(f"{path}: holds text, expected machine code or a fat binary")
    try:
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
