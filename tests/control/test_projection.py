"""Projection: totals extrapolated from a part, against values computed by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simt.control import PKP, Interval
from simt.control.projection import Projection, apply, cycles_left, project
from simt.errors import ControlError
from simt.result.sampled import Sampled
from support.fake_gpu import fake_launch
from support.signals import intervals, stop_of, view


def at(cycles: int, **counters: int) -> Interval:
    """An observation from the first dispatch to `cycles`."""
    return Interval(0, 0, cycles, counters, counters)


# 40 CTAs of 1,000 instructions have finished and 5 resident ones are half done: 42,500 instructions.
NOW = at(
    1000, warp_instructions=42_500, finished_instructions=40_000, ctas=45, ctas_finished=40, dram_reads=850
)
WINDOW = {"warp_instructions": 20_000, "dram_reads": 100}  # of the last 400 cycles: 50 a cycle


def test_work_left_at_the_rate_of_the_window() -> None:
    # 100 CTAs are 100,000 instructions, so 57,500 are left: 1,150 cycles.
    found = project(view(), NOW, WINDOW, 400)
    assert found.cycles == 2150
    assert found.counters["warp_instructions"] == 100_000
    assert found.counters["dram_reads"] == pytest.approx(850 + 1150 * 100 / 400)
    assert found.rates == {"warp_instructions": 50, "dram_reads": 0.25}


def test_ctas_and_warps_are_exact() -> None:
    found = project(view(), NOW, WINDOW, 400)
    assert (found.counters["ctas"], found.counters["ctas_finished"]) == (100, 100)
    assert found.projected["ctas"].startswith("exact")


def test_known_instructions_are_taken_instead_of_the_mean() -> None:
    found = project(view(warp_instructions=62_500), NOW, WINDOW, 400)
    assert found.cycles == 1000 + 400  # 20,000 left
    assert found.counters["warp_instructions"] == 62_500
    assert found.projected["warp_instructions"].startswith("exact")


def test_the_papers_and_the_artifacts_formula() -> None:
    assert cycles_left(view(), NOW, WINDOW, 400, "ctas") == 60 * 1000 / 40
    assert cycles_left(view(), NOW, WINDOW, 400, "artifact") == pytest.approx(1000 * 100 / 41 - 1000)


def test_the_tail_is_a_share_of_how_long_a_cta_stays() -> None:
    # At 50 instructions per cycle, a CTA of 1,000 ends every 20 cycles; the 5 resident ones stay for 100
    # cycles.
    assert project(view(), NOW, WINDOW, 400, tail=0.25).cycles == 2150 + 25
    # Below a wave no further CTAs are dispatched.
    few = view(ctas=42, wave=44)
    assert project(few, NOW, WINDOW, 400, tail=0.25) == project(few, NOW, WINDOW, 400)


def test_a_window_in_which_nothing_was_issued_falls_back_to_the_rate_since_the_start() -> None:
    found = project(view(), NOW, {"warp_instructions": 0, "dram_reads": 0}, 400)
    assert found.cycles == 1000 + round(57_500 / 42.5)


def test_peaks_and_what_the_window_lacks_are_not_a_number() -> None:
    now = at(
        1000, warp_instructions=42_500, finished_instructions=40_000, ctas_finished=40, queue_max=7, odd=3
    )
    found = project(view(), now, {"warp_instructions": 20_000, "queue_max": 2}, 400)
    assert math.isnan(found.counters["queue_max"]) and "peak" in found.unprojected["queue_max"]
    assert math.isnan(found.counters["odd"]) and "odd" in found.unprojected


def test_nothing_known_of_what_is_left_is_an_error_that_says_so() -> None:
    now = at(1000, warp_instructions=500, finished_instructions=0, ctas_finished=0)
    with pytest.raises(ControlError, match="no CTA has finished"):
        project(view(), now, {"warp_instructions": 500}, 1000)


@given(
    st.integers(0, 100),
    st.integers(1, 10**6),
    st.integers(0, 10**6),
    st.integers(1, 5000),
    st.integers(0, 10**5),
    st.sampled_from(["work", "ctas", "artifact"]),
    st.one_of(st.none(), st.integers(1, 10**7)),
)
def test_never_below_what_was_simulated(
    finished: int, done: int, window: int, cycles: int, reads: int, by: str, known: int | None
) -> None:
    now = at(
        cycles,
        warp_instructions=done,
        finished_instructions=done * finished // 101,
        ctas=min(100, finished + 5),
        ctas_finished=finished,
        dram_reads=reads,
    )
    rates = {"warp_instructions": min(window, done), "dram_reads": reads // 2}
    launch = view(warp_instructions=known)
    try:
        found = project(launch, now, rates, cycles, by)  # type: ignore[arg-type]
    except ControlError:
        assert (known is None and finished == 0) or by == "ctas"
        return
    assert found.cycles >= cycles
    assert all(found.counters[name] >= n for name, n in now.counters.items())


def test_pkp_projects_from_its_window_alone() -> None:
    # A slow start, then 4 instructions per cycle: the rest is projected at 4.
    ipc = [1.0] * 4 + [4.0] * 6
    controller = PKP(signal="instantaneous", threshold=5, tail=0, trend=None)
    launch = view(warp_instructions=100_000)
    stop = stop_of(controller, launch, intervals(ipc, [20] * 10))
    assert stop is not None and stop.index == 9
    found = controller.project(launch, stop)
    assert found.cycles == 5000 + round((100_000 - 14_000) / 4)
    assert found.rates["warp_instructions"] == 4


def test_pkp_projects_from_the_waves_that_count() -> None:
    # Waves of 2,000 cycles: a slow one, then 2 and 6 instructions per cycle in their halves.
    ipc = [1.0] * 4 + [2.0, 2.0, 6.0, 6.0] * 2
    controller = PKP(signal="instantaneous", threshold=100, window=1000, tail=0, trend=0.5, error=9.0)
    launch = view(warp_instructions=100_000)
    stop = stop_of(controller, launch, intervals(ipc, [2, 5, 7, 10, 12, 15, 17, 20, 22, 25, 27, 30]))
    assert stop is not None and stop.end == 4000
    found = controller.project(launch, stop)
    assert found.cycles == 4000 + (100_000 - 10_000) / 4
    assert found.rates["warp_instructions"] == 4


def test_pkp_whose_window_begins_with_the_launch() -> None:
    controller = PKP(signal="instantaneous", threshold=5, tail=0, trend=None)
    launch = view(warp_instructions=100_000)
    stop = stop_of(controller, launch, intervals([2.0] * 6, [20] * 6))
    assert stop is not None
    assert controller.project(launch, stop).cycles == 50_000


def test_a_perfectly_even_launch_is_projected_exactly() -> None:
    # 100 CTAs of 100 instructions at 2 per cycle take 5,000 cycles.
    finished = [8 + 10 * i for i in range(10)]
    for trend, index in ((None, 1), (0.1, 3)):
        controller, launch = PKP(window=1000, interval=500, tail=0, trend=trend, error=0.2), view()
        stop = stop_of(controller, launch, intervals([2.0] * 10, finished))
        assert stop is not None and stop.index == index
        assert controller.project(launch, stop).cycles == 5000


def _apply(counters: Mapping[str, float], cycles: int = 5000) -> tuple[Projection, object]:
    result = fake_launch(ctas=10)
    projection = Projection(cycles, counters)
    sampled = Sampled("pkp", "stop", "why", 500, 600, 10, 1, 1, 100)
    return projection, apply(result, view(), at(500), projection, sampled)


def test_apply_replaces_totals_and_moves_the_end() -> None:
    result = fake_launch(ctas=10)
    counters = {name: 3 * n for name, n in result.engine.items()}
    counters |= {
        f"{level}.{kind}.{outcome}": 3 * n
        for level in ("l1", "l2")
        for kind, row in getattr(result, level).items()
        for outcome, n in row.items()
    }
    counters |= {f"stalls.{reason}": 3 * sum(row) for reason, row in result.stalls.items()}
    counters |= {f"warp_stalls.{reason}": 3 * n for reason, n in result.warp_stalls.items()}
    sampled = Sampled("pkp", "stop", "why", 500, 600, 10, 1, 1, 30)
    found = apply(result, view(), at(500), Projection(5000, counters), sampled)
    assert found.cycles == found.launch_latency + 5000
    assert found.engine == {name: 3 * n for name, n in result.engine.items()}
    assert found.l2 == {k: {o: 3 * n for o, n in row.items()} for k, row in result.l2.items()}
    assert {r: sum(row) for r, row in found.stalls.items()} == {
        r: 3 * sum(row) for r, row in result.stalls.items()
    }
    assert found.sampled == replace(sampled, projected={}, unprojected={}, rates={})


def test_apply_makes_what_was_not_projected_nan_and_null_in_json() -> None:
    _, found = _apply({"warp_instructions": 10_000})
    assert math.isnan(found.engine["dram_reads"])  # type: ignore[attr-defined]
    assert found.counters["dram__sectors_read.sum"] != found.counters["dram__sectors_read.sum"]  # type: ignore[attr-defined]
    assert "dram_reads" in found.sampled.unprojected  # type: ignore[attr-defined]
    data = found.to_json()  # type: ignore[attr-defined]
    assert data["engine"]["dram_reads"] is None and data["counters"]["dram__sectors_read.sum"] is None
