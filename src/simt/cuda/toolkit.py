"""Locates NVIDIA's compilers and headers."""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from pathlib import Path

from simt.errors import ToolkitError
from simt.extras import install

INSTALL = install("cuda")


@dataclass(frozen=True)
class Toolkit:
    """The parts of one major version of CUDA that are installed."""

    major: int
    nvrtc: Path | None
    ptxas: Path | None
    include: tuple[Path, ...]
    """Folders of headers: the run time's, the compiler's (`crt/`) and CCCL's (CUB, libcu++)."""
    versions: tuple[str, ...]
    """Such as "nvrtc 12.9.86": what distinguishes one compiler and set of headers from another."""


def toolkits() -> tuple[Toolkit, ...]:
    """The toolkits installed by pip, CUDA 12 first because it is the last whose compiler supports Volta.

    The wheels of CUDA 12 have a folder for each part (`nvidia/cuda_nvrtc`), those of CUDA 13 one for all
    (`nvidia/cu13`).
    """
    # Not cuda-pathfinder: it prefers CUDA 13, and misses wheels on paths from .pth files or PYTHONPATH, for
    # which it may return a CUDA of the system.
    return _find(tuple(sys.path))


def need_nvrtc() -> Toolkit:
    """The toolkit whose NVRTC is used: from pip, otherwise from conda or the system.

    Raises:
        ToolkitError: there is none.
    """
    found = (
        next((toolkit for toolkit in toolkits() if toolkit.nvrtc is not None), None) or _find_outside_pip()
    )
    if found is None:
        raise ToolkitError(f"NVRTC, which compiles CUDA C++, is not installed: {INSTALL}")
    return found


@lru_cache(maxsize=8)
def _find(search_path: tuple[str, ...]) -> tuple[Toolkit, ...]:
    roots = [root for entry in search_path if (root := Path(entry or ".") / "nvidia").is_dir()]
    parts = ("cuda_nvrtc", "cuda_nvcc", "cuda_runtime", "cuda_cccl")
    layouts = {12: [root / part for part in parts for root in roots], 13: [root / "cu13" for root in roots]}
    found = []
    for major, folders in layouts.items():
        nvrtc = _first(folders, f"lib/libnvrtc.so.{major}")
        ptxas = _first(folders, "bin/ptxas")
        if nvrtc or ptxas:
            headers = [folder / "include" for folder in folders]
            include = (*headers, *(folder / "cccl" for folder in headers))
            found.append(Toolkit(major, nvrtc, ptxas, tuple(filter(Path.is_dir, include)), _versions(major)))
    return tuple(found)


@lru_cache(maxsize=1)
def _find_outside_pip() -> Toolkit | None:
    try:
        from cuda import pathfinder

        nvrtc = Path(pathfinder.load_nvidia_dynamic_lib("nvrtc").abs_path).resolve()
    except (ModuleNotFoundError, RuntimeError):  # pathfinder's DynamicLibNotFoundError is one
        return None
    major = int(nvrtc.name.partition(".so.")[2].partition(".")[0])
    headers = map(pathfinder.find_nvidia_header_directory, ("cudart", "nvcc", "cccl"))
    include = dict.fromkeys(Path(folder) for folder in headers if folder is not None)
    return Toolkit(major, nvrtc, None, tuple(include), (f"{nvrtc} of {nvrtc.stat().st_mtime_ns}",))


def _versions(major: int) -> tuple[str, ...]:
    suffix = "-cu12" if major == 12 else ""
    versions = []
    for part in ("nvrtc", "nvcc", "crt", "runtime", "cccl"):
        with suppress(metadata.PackageNotFoundError):
            versions.append(f"{part} {metadata.version(f'nvidia-cuda-{part}{suffix}')}")
    return tuple(versions)


def _first(folders: list[Path], name: str) -> Path | None:
    return next((folder / name for folder in folders if (folder / name).is_file()), None)
