"""Programs over other software that uses CUDA: clang, cuda-python, cuda.core, numba-cuda, Triton, CuPy.

Packages are looked for in the interpreters of the environment variable SIMT_CLIENT_PYTHON (separated by ":"),
as not all can be installed together, and in this one.
"""

from __future__ import annotations

import functools
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
SMALL = ["--set", "sm.count=4"]
CLIENTS = {  # requirements on the interpreter, and what to install for them
    "cuda_python": ("import cuda.bindings.nvrtc", "cuda-python"),
    "cuda_core": ("import cuda.core", "cuda-core"),
    "numba_kernels": ("import numba.cuda.cudadrv.driver, cuda.core", "numba-cuda[cu12]"),
    "numba_grids": (
        "import numba.cuda.cudadrv.driver, cuda.core; from cuda.bindings import nvjitlink as linker; "
        "linker.version()",
        "numba-cuda[cu12]",
    ),
    "triton_autotune": ("import triton, cuda.bindings.driver", "triton cuda-python"),
    "cupy_arrays": (
        "from importlib.metadata import version; version('cupy-cuda12x')",
        "cupy-cuda12x, in an environment of its own (docs/exec.md)",
    ),
}
FATBINARY = r"""#!/bin/sh
for option; do
  shift
  set -- "$@" "$(printf %s "$option" |
    sed 's/^--image=profile=sm_/--image3=kind=elf,sm=/; s/^--image=profile=compute_/--image3=kind=ptx,sm=/')"
done
exec TOOL "$@"
"""
"""What takes clang's options of fatbinary (up to clang 20) to those of CUDA 13."""


def run(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [Path(sys.executable).with_name("simt"), "exec", "-q", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=280, env={**ENVIRONMENT, **environment}
    )


def succeeds(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("ok\n")
    assert "private tables" not in done.stderr


@functools.cache
def interpreter(check: str) -> str | None:
    """The first Python that a statement succeeds in."""
    for python in (*os.environ.get("SIMT_CLIENT_PYTHON", "").split(":"), sys.executable):
        command = [python, "-c", check]
        if python and subprocess.run(command, capture_output=True, env=ENVIRONMENT).returncode == 0:
            return python
    return None


@pytest.mark.slow
@pytest.mark.parametrize("timed", [False, True], ids=["functional", "timed"])
@pytest.mark.parametrize("name", CLIENTS)
def test_python_clients(name: str, timed: bool) -> None:
    check, packages = CLIENTS[name]
    python = interpreter(check)
    if python is None:
        pytest.skip(f"needs {packages}: pip install")
    # CuPy's wheel finds NVIDIA's libraries in the dynamic linker's path.
    libraries = sorted(Path(python).parents[1].glob("lib/python*/site-packages/nvidia/*/lib"))
    done = run(
        *(SMALL if timed else ["--functional"]),
        "--",
        python,
        HERE / "clients" / f"{name}.py",
        *(["timed"] if timed else []),
        **({"LD_LIBRARY_PATH": ":".join(map(str, libraries))} if name == "cupy_arrays" else {}),
    )
    succeeds(done)


@pytest.fixture(scope="session")
def clang(toolkit: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command that compiles CUDA C++ with clang: NVIDIA's wheels as the toolkit that it expects."""
    compiler = next(
        filter(None, map(shutil.which, ("clang++", *(f"clang++-{n}" for n in range(20, 15, -1))))), None
    )
    parts = [
        folder
        for place in sys.path
        if all((folder := Path(place) / "nvidia" / name).is_dir() for name in ("cuda_nvcc", "cuda_runtime"))
    ]
    if compiler is None or not parts:
        pytest.skip("needs clang 16 or later, and pip install nvidia-cuda-nvcc-cu12 nvidia-cuda-runtime-cu12")
    runtime, nvcc = parts[0], parts[0].with_name("cuda_nvcc")
    root = tmp_path_factory.mktemp("clang")
    for folder in ("bin", "lib64", "include"):
        (root / folder).mkdir()
    for header in (*(runtime / "include").iterdir(), *(nvcc / "include").iterdir()):
        (root / "include" / header.name).unlink(missing_ok=True)
        (root / "include" / header.name).symlink_to(header)
    (root / "include" / "curand_mtgp32_kernel.h").touch()  # clang includes it; cuRAND is not required
    (root / "nvvm").symlink_to(nvcc / "nvvm")
    (root / "bin" / "ptxas").symlink_to(nvcc / "bin" / "ptxas")
    fatbinary = root / "bin" / "fatbinary"
    fatbinary.write_text(FATBINARY.replace("TOOL", str(toolkit / "bin" / "fatbinary")))
    fatbinary.chmod(fatbinary.stat().st_mode | stat.S_IXUSR)
    (root / "lib64" / "libcudart.so").symlink_to(runtime / "lib" / "libcudart.so.12")
    options = [
        "-std=c++17",
        "-O1",
        "-Wno-unknown-cuda-version",
        f"--cuda-path={root}",
        "--cuda-gpu-arch=sm_75",
    ]
    return [compiler, *options, f"-L{root}/lib64", "-lcudart", "-x", "cuda"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["vector_add", "streams", "events", "graphs", "shared_memory", "symbols", "threads"]
)
def test_clang(name: str, clang: list[str], tmp_path: Path) -> None:
    program = tmp_path / name
    source = HERE / "cuda" / f"{name}.cu"
    done = subprocess.run([*clang, str(source), "-o", str(program)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    succeeds(run("--functional", "--", program))
    if name == "vector_add":
        succeeds(run(*SMALL, "--", program, "timed"))


@pytest.mark.slow
def test_machine_code_of_nvjitlink_runs(tmp_path: Path) -> None:
    check = CLIENTS["numba_kernels"][0] + "; from cuda.bindings import nvjitlink; nvjitlink.version()"
    python = interpreter(check)
    if python is None:
        pytest.skip("needs numba-cuda with nvJitLink: pip install numba-cuda[cu12]")
    script = (
        (HERE / "clients" / "numba_kernels.py").read_text().replace('"lineinfo": True', '"lineinfo": False')
    )
    (tmp_path / "plain.py").write_text(script)
    done = run("--functional", "--", python, tmp_path / "plain.py")
    succeeds(done)
