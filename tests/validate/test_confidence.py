"""How sure a time is: intervals hold as often as they say, and where nothing is near, nothing is claimed."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from simt.result import Result
from simt.validate.confidence import LEAST, distance, interval, leave_out, nearest, why_not_enough
from simt.validate.row_errors import ErrorRow, RunFeatures, error_rows

HERE = RunFeatures("h100", 90, "ptx", 5000.0, 10000.0, {"long_scoreboard": 1.0})


def row(ratio: float, features: RunFeatures = HERE, program: str = "p") -> ErrorRow:
    return ErrorRow(features, "s", program, "r", ratio)


def test_intervals_of_like_values_hold_in_nine_of_ten() -> None:
    draw = random.Random(1)
    held = 0
    for _ in range(2000):
        ratios = [math.exp(draw.gauss(0.1, 0.2)) for _ in range(25)]
        low, high = interval([row(ratio) for ratio in ratios[:-1]], HERE.gpu)
        held += low <= ratios[-1] <= high
    assert 0.9 <= held / 2000 <= 0.97  # they are widened


def test_far_rows_say_nothing() -> None:
    """Nor do those of one other GPU only; of several, the interval is wider than of the same GPU."""
    other = replace(HERE, gpu="a100", sm_version=80)
    far = [row(1.0, replace(HERE, cycles=5e8))] * 20
    assert len(nearest(HERE, [*far, *[row(1.0)] * 5])) == 5 < LEAST
    ratios = [0.9 + k / 100 for k in range(20)]
    others = [row(ratio, other) for ratio in ratios]
    assert "compared on a100 only" in why_not_enough(nearest(HERE, others), "h100")
    two = [*others[:10], *(row(ratio, replace(other, gpu="l4")) for ratio in ratios[10:])]
    assert why_not_enough(nearest(HERE, two), "h100") == ""
    own = interval([row(ratio) for ratio in ratios], "h100")
    wider = interval(two, "h100")
    assert wider[0] < own[0] < own[1] < wider[1]
    like = replace(HERE, waits={"long_scoreboard": 0.9, "wait": 0.1})
    assert distance(HERE, like) == pytest.approx(0.1)
    assert distance(HERE, replace(HERE, cycles=50000.0)) == pytest.approx(1, abs=1e-3)


def test_intervals_hold_for_programs_that_were_left_out() -> None:
    held, claimed, unknown = leave_out(error_rows(), lambda row: row.program)
    assert claimed > 100 and held / claimed >= 0.88, (held, claimed, unknown)


@pytest.mark.parametrize("what", ["gpu", "sm_version"])
def test_intervals_hold_for_gpus_and_generations_that_were_left_out(what: str) -> None:
    held, claimed, unknown = leave_out(error_rows(), lambda row: str(getattr(row.features, what)))
    assert claimed > 50 and held / claimed >= 0.88, (held, claimed, unknown)


def result_on(gpu: str, **options: object) -> Result:
    import numpy as np

    import simt

    device = simt.GPU(gpu, **options)  # type: ignore[arg-type]
    code = 'extern "C" __global__ void k(float* x) { x[threadIdx.x] = 1; }'
    device.compile(code).k[1, 32](np.zeros(32, "f4"))
    return device.result()


@pytest.mark.parametrize("gpu", ["r9nano", "a100-accelsim", "titan", "rtx5090"])
def test_a_gpu_that_no_compared_one_is_like_is_unknown(gpu: str) -> None:
    result = result_on(gpu)
    found = result.confidence
    assert not found.is_known and "is unknown" in str(found)
    assert result.to_json()["confidence"]["interval"] is None
    assert found.code == "PTX" and "MHz core" in found.conditions
    assert Result.from_json(result.to_json()).confidence == found


def test_a_gpu_that_does_not_exist_is_unknown() -> None:
    """Other values make a GPU that was never compared; clocks and cold caches are conditions."""
    changed = result_on("h100-pcie", set={"sm.count": 4}).confidence
    assert "no real GPU is this one (sm.count=4)" in changed.sentence
    known = result_on("h100-pcie", set={"launch.cold_caches": True, "clock.core_mhz": 1500}).confidence
    assert known.is_known and "1,500 MHz core" in known.conditions and "cold caches" in known.conditions


def test_how_sure_is_said_wherever_a_result_is_shown() -> None:
    result = result_on("h100-pcie")
    from simt.result.report import page

    sentence = result.confidence.sentence
    assert sentence.startswith("In 9 of 10 such runs the true time is ")
    for shown in (repr(result), result._repr_html_(), page(result)):
        assert sentence in shown
    assert "What ran: PTX" in repr(result) and '["ran","PTX"]' in page(result)
