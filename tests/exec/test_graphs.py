"""CUDA graphs in programs under `simt exec`. The programs check their values and error codes themselves."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Compiled = Callable[[str], Path]

FUNCTIONAL = ("--functional",)
TIMING = ("--set", "sm.count=4")  # a small GPU is simulated faster

pytestmark = pytest.mark.slow


def run(program: Path, options: tuple[str, ...], folder: Path) -> list[str]:
    """The words printed by a program, which must succeed."""
    start = "from simt.cli import main; main()"
    command = [sys.executable, "-c", start, "exec", "--quiet", *options, "--", str(program)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.split()


@pytest.mark.parametrize("options", [FUNCTIONAL, TIMING], ids=["functional", "timing"])
def test_nodes_have_the_effects_and_errors_that_cuda_documents(
    compiled: Compiled, options: tuple[str, ...], tmp_path: Path
) -> None:
    printed = run(compiled("graph_nodes"), options, tmp_path)
    assert printed == ["values", "structure", "memory", "objects_and_text", "children"]


@pytest.mark.parametrize("options", [FUNCTIONAL, TIMING], ids=["functional", "timing"])
def test_capture_takes_or_refuses_what_cuda_documents(
    compiled: Compiled, options: tuple[str, ...], tmp_path: Path
) -> None:
    printed = run(compiled("graph_capture"), options, tmp_path)
    assert printed == ["diamond", "refusals", "modes", "more"]


@pytest.mark.parametrize("options", [FUNCTIONAL, TIMING], ids=["functional", "timing"])
def test_dependencies_order_the_nodes_of_random_graphs(
    compiled: Compiled, options: tuple[str, ...], tmp_path: Path
) -> None:
    assert run(compiled("graph_order"), options, tmp_path) == ["ordered"]


def test_independent_nodes_overlap_in_simulated_time(compiled: Compiled, tmp_path: Path) -> None:
    one, chain, beside = map(float, run(compiled("graph_overlap"), TIMING, tmp_path))
    assert 3.5 * one < chain and beside < 2 * one
