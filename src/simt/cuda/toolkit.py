"""Locates NVIDIA's compilers and headers installed by pip."""

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
    """The parts of one major version of CUDA that are installed from wheels."""

    major: int
    nvrtc: Path | None
    ptxas: Path | None
    include: tuple[Path, ...]
    """Folders of headers: the run time's, the compiler's (`crt/`) and CCCL's (CUB, libcu++)."""
    versions: tuple[str, ...]
    """Of the wheels, which tell one set of headers from another."""


def toolkits() -> tuple[Toolkit, ...]:
    """The installed toolkits, CUDA 12 first because it is the last whose compiler supports Volta.

    The wheels of CUDA 12 have a folder for each part (`nvidia/cuda_nvrtc`), those of CUDA 13 one for all
    (`nvidia/cu13`).
    """
    return _find(tuple(sys.path))


def need_nvrtc() -> tuple[Toolkit, ...]:
    """The toolkits that have NVRTC and the CUDA headers.

    Raises:
        ToolkitError: there is none.
    """
    found = tuple(toolkit for toolkit in toolkits() if toolkit.nvrtc is not None)
    if not found:
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


def _versions(major: int) -> tuple[str, ...]:
    suffix = "-cu12" if major == 12 else ""
    versions = []
    for part in ("nvrtc", "nvcc", "crt", "runtime", "cccl"):
        with suppress(metadata.PackageNotFoundError):
            versions.append(f"{part} {metadata.version(f'nvidia-cuda-{part}{suffix}')}")
    return tuple(versions)


def _first(folders: list[Path], name: str) -> Path | None:
    return next((folder / name for folder in folders if (folder / name).is_file()), None)
