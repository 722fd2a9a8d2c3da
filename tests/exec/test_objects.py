"""Driver API programs: textures, pools, virtual memory, linked programs, registered memory, ..."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "name",
    [
        "textures",
        "pools",
        "linking",
        "virtual_memory",
        "stream_values",
        "registered",
        "large_copies",
        "handles",
        "static_objects",
    ],
)
def test_program_passes(compiled: Callable[[str], Path], name: str) -> None:
    """It compares the results of kernels with its own, and exits with status 0 if they agree."""
    start = "from simt.cli import main; main()"
    command = [sys.executable, "-c", start, "exec", "--functional", "--", str(compiled(name))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "passed\n"), done.stdout + done.stderr


@pytest.mark.parametrize("name", ["two_devices", "handles"])
def test_two_devices(compiled: Callable[[str], Path], name: str) -> None:
    start = "from simt.cli import main; main()"
    options = ["--functional", "--gpu", "qv100,h100"]
    command = [sys.executable, "-c", start, "exec", *options, "--", str(compiled(name))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "passed\n"), done.stdout + done.stderr
