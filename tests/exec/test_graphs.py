"""CUDA graphs in programs under `simt exec`. The programs check their values and error codes themselves."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from simt.profile import read_profile
from simt.result import Result
from simt.sampling import Neyman

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


def test_the_branches_of_a_graph_overlap_in_the_estimate_of_a_plan(
    compiled: Compiled, tmp_path: Path
) -> None:
    """A graph of one kernel, one of four in a chain, and one of four side by side: of six kernels' time."""
    program = compiled("graph_overlap")
    run(program, (*TIMING, "--profile", "p.parquet"), tmp_path)
    profile = read_profile(tmp_path / "p.parquet")
    after = profile.launches["after"].to_list()
    assert len({*profile.launches["stream"]}) == 4 and after[:6] == [[]] * 6
    assert after[6:] == [[4]] * 3  # the lanes of the last graph begin after the one before it
    plan = Neyman().fit_plan(profile)
    plan.save(tmp_path / "plan.json")
    run(program, (*TIMING, "--plan", "plan.json", "--output", "part"), tmp_path)
    run(program, (*TIMING, "--output", "full"), tmp_path)
    found = plan.estimate(Result.load(tmp_path / "part"), ["cycles"]).makespan["cycles"]
    truth = Result.load(tmp_path / "full").totals.cycles
    assert len(plan) < 9 and found.low <= truth <= found.high < 0.8 * found.sum
    assert found.total == pytest.approx(found.sum * 6 / 9, rel=0.02)
