"""Programs whose host and kernels talk with each other while the kernels run."""

from __future__ import annotations

from pathlib import Path

import pytest

from simt.result import Result

from .test_machine_code_programs import Make, make, only, run, succeeds

__all__ = ["make"]  # a fixture
pytestmark = pytest.mark.slow
PTX = "arch=compute_80,code=compute_80"
SMALL = ["--gpu", "a100", "--set", "sm.count=4"]


@pytest.mark.parametrize("mode", [["--functional"], []], ids=["functional", "timed"])
@pytest.mark.parametrize("code", [PTX, only("sm_80")], ids=["ptx", "sass"])
def test_host_and_kernels_talk(code: str, mode: list[str], make: Make) -> None:
    succeeds(run(*SMALL, *mode, "--", make("host_and_device", code)))


def test_queries_advance_simulated_time(make: Make) -> None:
    """By the same steps in every run."""
    outputs = [run(*SMALL, "--", make("host_and_device", PTX), "queries").stdout for _ in range(2)]
    assert outputs[0] == outputs[1] and "not ready: 0" not in outputs[0]


def test_pauses_of_the_host_change_no_cycle(make: Make, tmp_path: Path) -> None:
    results = []
    for pause in ("0", "250"):
        file = tmp_path / f"{pause}.json"
        succeeds(run(*SMALL, "-o", file, "--", make("pauses", PTX), pause))
        results.append(Result.load(file))
    first, second = ([(one.start_cycle, one.cycles) for one in result.launches] for result in results)
    assert first == second and len(first) == 6
    assert not any("ran ahead" in warning for warning in results[1].warnings)
