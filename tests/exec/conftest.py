"""What compiles the programs that tests of `simt exec` run."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from simt.errors import ToolkitError
from simt.exec import libraries

Compile = Callable[[str], Path]
MadeOnce = Callable[[str, Callable[[Path], object]], Path]
_PROGRAMS = Path(__file__).parent / "programs"
NVCC = Path(sys.prefix) / "nvcc"


def cuda_headers() -> Path:
    found = importlib.util.find_spec("nvidia.cuda_runtime") if importlib.util.find_spec("nvidia") else None
    if found is None or not found.submodule_search_locations:
        pytest.skip("needs NVIDIA's headers: pip install nvidia-cuda-runtime-cu12")
    return Path(next(iter(found.submodule_search_locations))) / "include"


@pytest.fixture(scope="session")
def compiled(made_once: MadeOnce) -> Compile:
    """Compiles programs/NAME.cpp once, for the driver API. Skips the test if that is not possible."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("needs g++")
    headers = cuda_headers()
    try:
        library = libraries() / "libcuda.so.1"
    except ToolkitError as error:
        pytest.skip(str(error))

    def make(name: str) -> Path:
        def compile(program: Path) -> None:
            source = _PROGRAMS / f"{name}.cpp"
            flags = ["-std=c++20", "-Wall", "-Wextra", "-Werror", "-Wno-deprecated-declarations", "-pthread"]
            subprocess.run(
                [compiler, *flags, "-isystem", headers, source, "-o", program, library], check=True
            )

        return made_once(f"driver_programs/{name}", compile)

    return make


@pytest.fixture(scope="session")
def toolkit() -> Path:
    """The folder of NVIDIA's compiler wheels for CUDA 13: where the Makefile puts them, or installed."""
    for place in (NVCC, *sys.path):
        folder = Path(place) / "nvidia" / "cu13"
        if (folder / "bin" / "nvcc").is_file() and shutil.which("g++"):
            return folder
    pytest.skip(
        f"nvcc is not installed: pip install --target {NVCC} nvidia-cuda-nvcc nvidia-cuda-runtime "
        "nvidia-cuda-crt nvidia-nvvm nvidia-cuda-cccl"
    )
