"""The rates of waves of CTAs, and the interval that they give, on hand-made signals."""

from __future__ import annotations

import math

import pytest
from scipy import stats

from simt.control.controller import Previewed
from simt.control.waves import Waves, too_few
from support.signals import intervals, view


def watched(
    ipc: list[float], ctas: int = 100, each: int = 100, largest: float | None = 0, order_matters: bool = False
) -> Waves:
    """A wave of ten CTAs ends in each interval of 500 cycles.

    largest: instructions of the largest previewed CTA; None: there was no preview.
    """
    previewed = None if largest is None else Previewed(each, max(each, largest), ctas)
    waves = Waves(view(ctas=ctas, order_matters=order_matters), previewed)
    finished = [10 * i for i in range(1, len(ipc) + 1)]
    for interval in intervals(ipc, finished, ctas=ctas, cta_instructions=each):
        waves.add(interval)
    return waves


def test_the_first_wave_does_not_count() -> None:
    waves = watched([1.0, 2.0, 2.0])
    assert waves.seen == 2 and waves.begin == 500
    window, cycles = waves.window()
    assert (window["warp_instructions"], cycles) == (2000, 1000)
    # 2,500 of 10,000 instructions are over after 1,500 cycles; a CTA takes 500 cycles.
    assert waves.cycles(10_000) == pytest.approx(1500 + 7500 / 2 + 500 / 4)
    assert math.isinf(watched([1.0]).half_width(10_000))


def test_of_many_waves_the_later_half_counts() -> None:
    assert watched([2.0] * 6).begin == 1000  # four waves
    assert watched([2.0] * 13).begin == 3500  # six of twelve
    long = watched([2.0] * 200, ctas=10_000)
    assert 16 <= long.seen <= 64 and 40_000 <= long.begin <= 60_000
    assert long.half_width(1_000_000) < watched([2.0] * 13, ctas=10_000).half_width(1_000_000)


def test_even_waves_are_uncertain_by_what_waves_of_other_launches_deviate() -> None:
    waves = watched([2.0, 2.0, 2.0], ctas=100, each=100)
    left, total = 7000 / 2, 1500 + 7000 / 2 + 500 / 4
    assert waves.cycles(10_000) == total
    spread = stats.t.ppf(0.975, 5) * 0.05 * math.sqrt(4 / 5) * math.sqrt(1 / 2 + 1 / 7)
    assert waves.half_width(10_000) == pytest.approx((left * spread + 500 / 4) / total)
    # CTAs that finished executed twice as much as the launch's do in the mean.
    other = watched([2.0, 2.0, 2.0], ctas=100, each=200)
    assert other.half_width(10_000) - waves.half_width(10_000) == pytest.approx(
        left / total * 0.5 * math.log(2)
    )


@pytest.mark.parametrize("ipc", [[2.0, 2.0, 2.4, 1.6, 2.0], [2.0, 1.7, 1.9, 2.1, 2.3]])
def test_waves_that_differ_widen_the_interval(ipc: list[float]) -> None:
    assert watched(ipc).half_width(10_000) > 1.5 * watched([2.0] * 5).half_width(10_000)


def test_what_was_forgotten_does_not_count() -> None:
    waves = Waves(view(), None)
    for interval in intervals([9.0, 9.0, 1.0, 2.0, 2.0], [10, 20, 30, 40, 50]):
        waves.add(interval)
        if interval.index == 1:
            waves.forget()
            assert waves.seen == 0
    assert waves.seen == 2 and waves.begin == 1500
    assert waves.window()[0]["warp_instructions"] == 2000


def test_the_largest_cta_may_be_the_last() -> None:
    even, uneven = watched([2.0] * 3), watched([2.0] * 3, largest=300)
    # A CTA takes 500 cycles; the largest takes 1000 more, half of which is added.
    difference = uneven.half_width(10_000) - even.half_width(10_000)
    assert difference == pytest.approx(500 / even.cycles(10_000))
    unknown = watched([2.0] * 3, largest=None)
    assert unknown.half_width(10_000) == pytest.approx(watched([2.0] * 3, largest=200).half_width(10_000))


def test_a_preview_does_not_say_how_large_ctas_become_that_influence_each_other() -> None:
    even, twice, thrice = (watched([2.0] * 3, largest=most).half_width(10_000) for most in (100, 200, 300))
    assert even < twice < thrice
    assert watched([2.0] * 3, order_matters=True).half_width(10_000) == twice
    assert watched([2.0] * 3, largest=300, order_matters=True).half_width(10_000) == thrice


def test_nothing_is_left_out_after_the_last_cta_was_dispatched() -> None:
    """Ten CTAs are resident: after eight of ten waves, the last one waits; after nine, it runs."""
    assert watched([2.0] * 8).undecided(10_000, 0.08) == ""
    assert watched([2.0] * 9).undecided(10_000, 0.08) == "all CTAs had been dispatched"


def test_what_is_too_uncertain_is_not_left_out() -> None:
    assert watched([2.0]).undecided(10_000, 0.08) == "fewer than two waves of CTAs had finished"
    waves = watched([2.0] * 4)
    half = waves.half_width(10_000)
    assert waves.undecided(10_000, half) == ""
    assert waves.undecided(10_000, 0.99 * half) == f"the cycles would have been uncertain by {half:.1%}"


def test_fewer_than_eight_waves_are_too_few() -> None:
    assert too_few(view(ctas=80)) == ""
    assert too_few(view(ctas=79)) == "it has 7.90 waves of CTAs: fewer than 8 leave nothing out"
    assert too_few(view(ctas=3))
    assert too_few(view(ctas=79), 5) == ""


def test_the_largest_of_all_ctas_exceeds_that_of_a_sample() -> None:
    # Of 1,000 CTAs, log 1,000 / log 10 = 3 times what it is of ten.
    assert Previewed(100.0, 150.0, 10).unequal(1000) == pytest.approx(1.5)
    assert Previewed(100.0, 150.0, 10).unequal(10) == pytest.approx(0.5)
    assert Previewed(100.0, 100.0, 10).unequal(1000) == 0
    assert Previewed(100.0, 100.0, 1).unequal(1000) == 1
