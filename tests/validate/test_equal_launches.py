"""The controller for rows of equal launches, against full detail."""

from __future__ import annotations

from pathlib import Path

import pytest

import simt
from simt.control import Controller
from simt.control.registry import make
from simt.result import LaunchResult

CODE = """extern "C" __global__ void sums(const float* x, float* y) {
  float sum = 0;
  for (int i = 0; i < 64; ++i) sum += x[(blockIdx.x * 64 + i) * blockDim.x + threadIdx.x];
  y[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}"""
DIFFERENCE = 0.01
GRIDS = (80, 80, 40, 80, 400, 400)


def launches(controller: Controller | None) -> list[LaunchResult]:
    set_ = {"sm.count": 10, "launch.cold_caches": True}
    gpu = simt.GPU("qv100", set=set_, controller=controller)
    kernel = gpu.compile(CODE).sums
    x, y = gpu.empty(64 * 256 * 400, "f4"), gpu.empty(256 * 400, "f4")
    return [kernel[grid, 256](x, y) for grid in GRIDS]


@pytest.fixture
def equal(monkeypatch: pytest.MonkeyPatch) -> Controller:
    """The controller, as `--sample` names it at the root of a checkout."""
    monkeypatch.chdir(Path(__file__).parents[2])
    return make("validation.equal_launches:EqualLaunches")


def test_the_first_of_equal_launches_stands_for_the_others(equal: Controller) -> None:
    whole, found = launches(None), launches(equal)
    decisions = [each.sampled.decision for each in found if each.sampled]
    assert decisions == ["full", "predict", "full", "predict", "predict", "predict"]
    assert found[0].cycles == whole[0].cycles
    assert found[2].cycles == pytest.approx(whole[2].cycles, rel=DIFFERENCE)
    for i in (1, 3):
        sampled = found[i].sampled
        assert sampled is not None and sampled.reason == f"as launch {found[0].id}"
        assert sampled.half_widths["cycles"] == DIFFERENCE
        assert found[i].cycles == found[0].cycles == pytest.approx(whole[i].cycles, rel=DIFFERENCE)
        assert found[i].warp_instructions == whole[i].warp_instructions
        assert found[i].counters["dram__sectors_read.sum"] == pytest.approx(
            whole[i].counters["dram__sectors_read.sum"], rel=0.01
        )


def test_launches_of_many_waves_are_estimated_once(equal: Controller) -> None:
    whole, found = launches(None)[-1], launches(equal)[-2:]
    first, second = (each.sampled for each in found)
    assert first is not None and second is not None
    assert first.total_ctas == second.total_ctas == 400 > first.ctas
    half = second.half_widths["cycles"]
    assert half == pytest.approx(first.half_widths["cycles"] + DIFFERENCE)
    assert found[1].cycles == found[0].cycles == pytest.approx(whole.cycles, rel=half)
