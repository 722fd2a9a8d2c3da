"""Principal Kernel Projection: when it stops, with hand-made signals."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from simt.control import PKP, Stop
from simt.errors import ParameterError
from support.signals import intervals, stop_of, view


def pkp(**settings: Any) -> PKP:
    """The rule alone, with the signal that is easiest to construct by hand."""
    return PKP(**{"signal": "instantaneous", "threshold": 5.0, "trend": None, **settings})


MANY = [40] * 100  # far more than a wave has finished


def cov(values: list[float]) -> float:
    return 100 * float(np.std(values, ddof=1) / np.mean(values))


def test_a_constant_signal_stops_when_the_window_is_full() -> None:
    stop = stop_of(pkp(), view(), intervals([2.0] * 20, MANY[:20]))
    assert stop is not None and stop.index == 5  # six intervals of 500 cycles


def test_a_window_has_as_many_intervals_as_fit() -> None:
    stop = stop_of(pkp(window=2500), view(), intervals([2.0] * 20, MANY[:20]))
    assert stop is not None and stop.index == 4


def test_the_spread_has_to_fall_below_the_threshold_not_reach_it() -> None:
    ipc = [1.0, 1.2, 0.8, 1.0, 1.1, 0.9]
    exactly = cov(ipc)
    signal = [*ipc, *ipc]
    assert stop_of(pkp(threshold=exactly), view(), intervals(ipc, MANY[:6])) is None
    above = pkp(threshold=math.nextafter(exactly, 100))
    stop = stop_of(above, view(), intervals(signal, MANY[:12]))
    assert stop is not None and stop.index == 5


def test_an_interval_before_the_window_does_not_count_and_one_in_it_does() -> None:
    # The disturbed interval 3 leaves the window of six at interval 9.
    ipc = [2.0, 2.0, 2.0, 8.0, *[2.0] * 10]
    stop = stop_of(pkp(), view(), intervals(ipc, MANY[: len(ipc)]))
    assert stop is not None and stop.index == 9


def test_a_changing_signal_never_stops() -> None:
    ipc = [1.0, 3.0] * 20
    assert stop_of(pkp(), view(), intervals(ipc, MANY[:40])) is None


def test_nothing_executed_is_not_stable() -> None:
    assert stop_of(pkp(), view(), intervals([0.0] * 20, MANY[:20])) is None


def test_threshold_zero_makes_stopping_impossible() -> None:
    assert stop_of(pkp(threshold=0), view(), intervals([2.0] * 20, MANY[:20])) is None


def test_the_standard_deviation_is_absolute() -> None:
    ipc = [100.0, 101.0, 99.0, 100.0, 101.0, 99.0]
    deviation = float(np.std(ipc, ddof=1))
    assert cov(ipc) < 1 < deviation + 0.2
    for threshold, index in ((deviation - 1e-6, None), (deviation + 1e-6, 5)):
        stop = stop_of(pkp(metric="std", threshold=threshold), view(), intervals(ipc, MANY[:6]))
        assert (stop.index if stop else None) == index


def test_the_cumulative_signal_is_the_average_since_the_first_dispatch() -> None:
    ipc = [1.0, 3.0] * 100
    running = [float(np.mean(ipc[: i + 1])) for i in range(len(ipc))]
    expected = next(i for i in range(5, 200) if cov(running[i - 5 : i + 1]) < 0.25)
    stop = stop_of(pkp(signal="cumulative", threshold=0.25), view(), intervals(ipc, [40] * 200))
    assert stop is not None and stop.index == expected


def test_thread_instructions_are_another_signal() -> None:
    signal = list(intervals([2.0] * 12, MANY[:12]))
    for i, interval in enumerate(signal):  # half of the lanes in every second interval
        interval.difference["thread_instructions"] //= 1 + i % 2  # type: ignore[index]
    assert stop_of(pkp(unit="thread"), view(), iter(signal)) is None
    assert stop_of(pkp(unit="warp"), view(), iter(signal)) is not None


@pytest.mark.parametrize(("waves", "needed"), [(1.0, 10), (2.5, 25), (0.0, 1)])
def test_the_wave_rule_at_its_boundary(waves: float, needed: int) -> None:
    finished = [0] * 8 + [needed - 1] * 4 + [needed] * 4
    stop = stop_of(pkp(waves=waves), view(), intervals([2.0] * 16, finished))
    assert stop is not None and stop.index == 12


def test_a_launch_of_exactly_a_wave_never_stops_by_that_rule() -> None:
    signal = intervals([2.0] * 16, [9] * 15 + [10], ctas=10)
    assert stop_of(pkp(), view(ctas=10), signal) is None


@pytest.mark.parametrize(("below_wave", "index"), [("ignore", 5), (0.3, 8)])
def test_the_rule_below_a_wave(below_wave: str | float, index: int) -> None:
    # 9 CTAs, where 10 would fit: 0.3 * 9 = 2.7, so the third CTA to finish satisfies the condition.
    finished = [1, 1, 1, 1, 2, 2, 2, 2, 3, 3]
    controller = pkp(below_wave=below_wave)  # type: ignore[arg-type]
    stop = stop_of(controller, view(ctas=9), intervals([2.0] * 10, finished, ctas=9))
    assert stop is not None and stop.index == index


def test_without_a_finished_cta_it_needs_the_instructions_of_the_launch() -> None:
    signal = list(intervals([2.0] * 10, [0] * 10, ctas=9))
    assert stop_of(pkp(), view(ctas=9), iter(signal)) is None
    known = view(ctas=9, warp_instructions=50_000)
    stop = stop_of(pkp(), known, iter(signal))
    assert stop is not None and stop.index == 5


def test_the_papers_projection_needs_a_finished_cta_even_so() -> None:
    known = view(ctas=9, warp_instructions=50_000)
    signal = list(intervals([2.0] * 10, [0] * 8 + [1] * 2, ctas=9))
    controller = pkp(projection="ctas")
    stop = stop_of(controller, known, iter(signal))
    assert stop is not None and stop.index == 8
    assert controller.project(known, stop).cycles == 4500 * 9


def test_both_conditions_at_once_or_each_at_some_time() -> None:
    # Stable until interval 6, a wave has finished from interval 8 on, and from there on it is unstable.
    ipc = [2.0] * 7 + [1.0, 5.0] * 5
    finished = [0] * 8 + [20] * 9
    assert stop_of(pkp(), view(), intervals(ipc, finished)) is None
    stop = stop_of(pkp(latched=True), view(), intervals(ipc, finished))
    assert stop is not None and stop.index == 8


def test_all_ctas_finished_leaves_nothing_to_project() -> None:
    finished = [40] * 5 + [100] * 5
    assert stop_of(pkp(), view(), intervals([2.0] * 10, finished)) is None


def test_the_artifact_preset() -> None:
    artifact = PKP(**PKP.presets["artifact"])
    expected = ("cumulative", "cov", 0.25, 0.3, True)
    found = (artifact.signal, artifact.metric, artifact.threshold, artifact.below_wave, artifact.latched)
    assert found == expected
    paper = PKP(**PKP.presets["paper"])
    assert (paper.signal, paper.metric, paper.threshold, paper.below_wave, paper.latched) == (
        "instantaneous",
        "std",
        0.25,
        "ignore",
        False,
    )


def test_one_controller_serves_launch_after_launch() -> None:
    controller = pkp(latched=True)
    for _ in range(2):
        stop = stop_of(controller, view(), intervals([2.0] * 20, MANY[:20]))
        assert stop is not None and stop.index == 5


@pytest.mark.parametrize(
    "wrong",
    [
        {"threshold": -1},
        {"window": 900},
        {"interval": 0},
        {"signal": "smooth"},
        {"metric": "mad"},
        {"below_wave": 1.5},
        {"waves": -0.1},
        {"unit": "lane"},
        {"projection": "guess"},
        {"latched": 1},
    ],
)
def test_parameters_without_sense_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        PKP(**wrong).start()  # type: ignore[arg-type]


@given(
    st.lists(st.floats(0.5, 5), min_size=6, max_size=30),
    st.floats(0.1, 50),
    st.integers(0, 30),
)
def test_where_it_stops_the_rule_holds_and_nowhere_before(
    ipc: list[float], threshold: float, wave_at: int
) -> None:
    finished = [15 if i >= wave_at else 0 for i in range(len(ipc))]
    signal = list(intervals(ipc, finished, cycles=1000))
    stop = stop_of(pkp(threshold=threshold, window=6000, interval=1000), view(), iter(signal))
    measured = [interval.difference["warp_instructions"] / 1000 for interval in signal]
    holds = [
        i >= 5 and finished[i] >= 10 and cov(measured[i - 5 : i + 1]) < threshold for i in range(len(ipc))
    ]
    assert (stop.index if stop else None) == (holds.index(True) if True in holds else None)


@pytest.mark.parametrize(
    ("rate", "ctas", "per_cycle"),
    [("window", 9, 2.0), ("settled", 9, 3.0), ("auto", 9, 3.0), ("auto", 1000, 2.0)],
)
def test_what_stands_for_the_rest(rate: Any, ctas: int, per_cycle: float) -> None:
    # A first window of 1 instruction per cycle, then 4, and 2 in the window at whose end it stops.
    ipc = [1.0] * 6 + [4.0] * 6 + [2.0] * 6
    launch = view(ctas=ctas, warp_instructions=100_000)
    finished = [0] * 18 if ctas == 9 else [0] * 17 + [20]
    controller = pkp(rate=rate, threshold=1e-6)
    signal = list(intervals(ipc, finished, ctas=ctas))
    controller = controller.for_launch(launch)  # type: ignore[assignment]
    controller.begin(launch)
    for interval in signal:
        controller.observe(interval)
    now = signal[-1]
    left = 100_000 - now.counters["warp_instructions"]
    extra = controller.tail if ctas == 1000 else 0
    cycles = controller.project(launch, now).cycles
    assert cycles >= 9000 + round(left / per_cycle)
    if not extra:
        assert cycles == 9000 + round(left / per_cycle)


def test_a_stop_in_the_first_window_projects_from_all_there_is() -> None:
    launch = view(ctas=9, warp_instructions=50_000)
    signal = list(intervals([2.0] * 10, [0] * 10, ctas=9))
    controller = pkp(rate="settled")
    stop = stop_of(controller, launch, iter(signal))
    assert stop is not None and stop.end == 3000
    assert controller.project(launch, stop).cycles == 25_000


WAVES = [5 * i for i in range(1, 21)]  # a wave of ten CTAs finishes in two intervals


def changing(name: str, before: float, after: float, at: int) -> Any:
    """A constant signal during which a counter's rate, per cycle, changes."""
    sums, counters = 0, dict.fromkeys(("active_warp_cycles", "dram_reads", "l1_accesses"), 0)
    for interval in intervals([2.0] * 20, WAVES, active_warp_cycles=64, l2_accesses=1):
        sums += round(500 * (before if interval.index < at else after))
        yield replace(interval, counters={**counters, **interval.counters, name: sums})


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [("active_warp_cycles", 64, 50), ("dram_reads", 0.0, 0.5), ("l2_hits", 0.5, 0.8)],
)
def test_a_trend_refuses_a_decision(name: str, before: float, after: float) -> None:
    """A wave takes two intervals, and the first one does not count. The rate changes after the second wave.
    Of six waves, the last four count, all of them after the change."""
    launch = view(dram_bytes_per_cycle=64)
    assert stop_of(pkp(), launch, changing(name, before, after, at=4)).index == 5  # type: ignore[union-attr]
    controller = pkp(trend=0.1, error=9.0)
    late = stop_of(controller, launch, changing(name, before, after, at=4))
    assert late is not None and late.index in (10, 11)  # the limit is reached when a part of one half differs
    assert stop_of(controller, launch, changing(name, before, after, at=6)).index == 5  # type: ignore[union-attr]


def test_a_change_as_large_as_the_limit_is_none() -> None:
    launch = view(dram_bytes_per_cycle=32)  # a read per cycle is all of it
    signal = lambda: changing("dram_reads", 0.0, 0.5, at=4)  # noqa: E731
    assert stop_of(pkp(trend=0.5, error=9.0), launch, signal()).index == 5  # type: ignore[union-attr]
    assert stop_of(pkp(trend=0.499, error=9.0), launch, signal()).index > 5  # type: ignore[union-attr]


def test_nothing_is_decided_before_two_waves() -> None:
    slow = [5 * ((i + 3) // 2) for i in range(20)]  # the second wave has finished at the end of interval 5
    found = stop_of(pkp(trend=0.1, error=9.0, window=1000), view(), intervals([2.0] * 20, slow))
    assert found is not None and found.index == 5


def test_uncertain_waves_refuse_a_decision() -> None:
    ipc = [2.0, 2.0, 2.2, 2.2, 1.8, 1.8, *[2.0] * 34]
    launch = view(ctas=200, warp_instructions=40_000)
    signal = lambda: intervals(ipc, [5 * i for i in range(1, 41)], ctas=200)  # noqa: E731
    controller = pkp(trend=0.1, error=0.1, threshold=100.0)
    early = stop_of(pkp(trend=0.1, error=9.0, threshold=100.0), launch, signal())
    late = stop_of(controller, launch, signal())
    assert early is not None and late is not None and early.index == 5 < late.index
    assert controller.project(launch, late).half_widths["cycles"] <= 0.1
    assert stop_of(pkp(trend=0.1, error=0.01, threshold=100.0), launch, signal()) is None


def test_nothing_is_left_out_of_the_last_wave() -> None:
    """The IPC has been steady since six intervals when 85 or 90 of 100 CTAs have finished, ten at a time."""
    before = [1.0, 3.0, 1.0, 3.0, 1.0, 3.0, 1.0, 3.0, 1.0, 3.0, 1.0]
    controller = pkp(trend=0.1, error=9.0)
    stop = stop_of(controller, view(), intervals(before + [2.0] * 9, WAVES))
    assert stop is not None and stop.index == 16
    assert stop_of(controller, view(), intervals(before + [3.0] + [2.0] * 8, WAVES)) is None
    assert controller.why_full == "never stable: all CTAs had been dispatched"


def test_of_fewer_than_eight_waves_nothing_is_left_out() -> None:
    for ctas, wave, decides in ((8, 10, False), (79, 10, False), (80, 10, True)):
        launch = view(ctas=ctas, wave=wave, warp_instructions=20_000)
        controller = pkp(trend=0.1, error=9.0)
        stop = stop_of(controller, launch, intervals([2.0] * 20, WAVES, ctas=ctas))
        assert (stop is not None) == decides
        if not decides:
            assert controller.why_full.endswith("waves of CTAs: fewer than 8 leave nothing out")
    # As published it stops, and says so.
    published, launch = pkp(), view(ctas=8, warp_instructions=20_000)
    stop = stop_of(published, launch, intervals([2.0] * 20, [0] * 20, ctas=8))
    assert stop is not None
    decision = published.observe(stop)
    assert isinstance(decision, Stop) and "as published, without an interval" in decision.reason


def test_the_interval_is_stated() -> None:
    launch, controller = view(warp_instructions=20_000), pkp(trend=0.1, error=9.0)
    stop = stop_of(controller, launch, intervals([2.0] * 20, WAVES, cta_instructions=200))
    # Two waves count; 14,000 instructions are left. A CTA takes 1,000 cycles, of which a quarter is added for
    # the end. Of CTAs of which nothing is known, the largest is taken to be twice as large as the mean.
    assert stop is not None and stop.end == 3000
    found = controller.project(launch, stop)
    spread = stats.t.ppf(0.975, 5) * 0.05 * math.sqrt(4 / 5) * math.sqrt(1 / 2 + 1 / 7)
    half = (7000 * spread + 250 + 500) / 10_250
    assert found.half_widths == {"cycles": pytest.approx(half)}
    assert found.reason.endswith(f"cycles ± {half:.1%}")
