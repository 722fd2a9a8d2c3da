"""Baselines: a planted slowdown is found, with its reason; what has not changed is silent."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

import simt
from simt.errors import SimtError
from simt.result import LaunchResult
from simt.testing.baseline import Kept, changes, kept, load, save
from simt.testing.budgets import Budget
from support.launches import launch

BEFORE = [launch(0, "gemm", ctas=4)]


def compared(after: object, tolerance: float = 0.01) -> list[tuple[str, str]]:
    return changes(msgspec.convert(kept(BEFORE), list[Kept]), [after], tolerance)  # type: ignore[list-item]


def test_a_slowdown_of_three_percent_is_found_and_named() -> None:
    first = BEFORE[0]
    counts = first.engine | {"shared_bank_conflicts": first.engine["shared_bank_conflicts"] + 4}
    slower = replace(first, end_cycle=first.start_cycle + round(1.03 * first.cycles), engine=counts)
    ((text, _),) = compared(slower)
    assert text.startswith("gemm (launch 1): 3 % more cycles (4,500 to 4,635): 4 more shared-memory passes")
    assert compared(slower, tolerance=0.04) == []


WORK = """
extern "C" __global__ void work(float* x, int rounds) {
  float v = x[threadIdx.x];
  for (int i = 0; i < rounds; ++i) v = v * v + 1;
  x[threadIdx.x] = v;
}
"""


def worked(rounds: int) -> LaunchResult:
    """The kernel's launch on a GPU of its own, as a test of a repository has it."""
    gpu = simt.GPU("gtx1650", set={"sm.count": 1})
    done = gpu.compile(WORK).work[1, 64](np.zeros(64, np.float32), rounds)
    assert done is not None
    return done


@pytest.mark.slow
def test_simulated_a_planted_slowdown_is_found_and_a_thousand_repetitions_say_nothing() -> None:
    """3 % more cycles of a loop; nothing at a tolerance of 0 where nothing changed."""
    first = worked(200)
    before = msgspec.convert(kept([first]), list[Kept])
    slower = next(x for x in map(worked, range(201, 260)) if x.cycles >= 1.03 * first.cycles)
    assert slower.cycles < 1.04 * first.cycles
    ((text, place),) = changes(before, [slower], 0.01)
    assert "more warp instructions at line" in text and place.endswith(":4")
    assert all(changes(before, [worked(200)], 0.0) == [] for _ in range(1000))


def test_other_launches_are_said() -> None:
    ((text, _),) = compared(launch(0, "add", ctas=4))
    assert text == "other launches than in the baseline: add; before gemm"


def test_tests_that_were_not_run_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "baseline.json"
    save(file, {"a": kept(BEFORE)})
    save(file, {"b": kept(BEFORE)})
    assert sorted(load(file)) == ["a", "b"] and load(file)["a"][0].cycles == 4500
    file.write_text("{}")
    with pytest.raises(SimtError, match=r"not a baseline of schema simt\.baseline/1"):
        load(file)


@pytest.mark.parametrize(
    ("text", "kept_"),
    [
        ("gemm <= 4500 cycles", True),
        ("gemm < 4500 cycles", False),
        ("<= 4.5 us", True),
        ("g* <= 4_499 cycles", False),
        ("gemm <= 1e9 smsp__inst_executed.sum", True),
    ],
)
def test_budgets(text: str, kept_: bool) -> None:
    assert (Budget.read(text).problem(BEFORE) == "") is kept_


def test_budgets_that_say_nothing_are_refused() -> None:
    with pytest.raises(SimtError, match="expected KERNEL <= NUMBER UNIT"):
        Budget.read("gemm is fast")
    with pytest.raises(SimtError, match="unknown unit 'parsecs'"):
        Budget.read("gemm <= 12 parsecs").problem(BEFORE)
