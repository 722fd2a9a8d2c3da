"""Binaries of nvcc under the checker: streams that are ordered, or not, and the programs of `cuda/`."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import simt

from .conftest import Compile, MadeOnce
from .test_cuda_programs import NAMES, compiled

__all__ = ["compiled"]

AT_FAULT = {
    "failures": "its kernel writes to a null pointer",
    "host_and_device": "copies write the flag that its kernels wait for, and read what they write",
    "residency": "it sums up memory that nobody has written",
}
"""Programs of `cuda/` that do what the checker reports, by what it is."""
SOURCE = Path(__file__).parent / "checked" / "streams.cu"


@pytest.fixture(scope="session")
def program(toolkit: Path, made_once: MadeOnce, tmp_path_factory: pytest.TempPathFactory) -> Path:
    libraries = tmp_path_factory.mktemp("libraries")
    (libraries / "libcudart.so").symlink_to(toolkit / "lib" / "libcudart.so.13")

    def compile(program: Path) -> None:
        command = [toolkit / "bin" / "nvcc", "-cudart", "shared", f"-L{libraries}", "-lineinfo", SOURCE]
        subprocess.run([*command, "-gencode", "arch=compute_80,code=compute_80", "-o", program], check=True)

    return made_once("checked/streams", compile)


@pytest.mark.slow
@pytest.mark.parametrize("case", ["event", "buffers", "legacy", "pool", "graph"])
def test_streams(case: str, program: Path) -> None:
    right = simt.exec.run([program, case], gpu="a100", functional=True, check=True)
    assert (right.status, right.findings) == (0, ())
    wrong = simt.exec.run([program, case, "fault"], gpu="a100", functional=True, check=True)
    assert wrong.status == 0
    assert {finding.kind for finding in wrong.findings} == {"race-launch"}
    assert {Path(finding.file).name for finding in wrong.findings if finding.file} <= {SOURCE.name}


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if name not in AT_FAULT])
def test_nothing_is_found_in_programs(name: str, compiled: Compile) -> None:
    """Apart from memory that they leave to the system."""
    checks = "race,init,sync,memory"
    finished = simt.exec.run([compiled(name)], gpu="h100", functional=True, check=checks)
    assert (finished.status, finished.findings) == (0, ())
