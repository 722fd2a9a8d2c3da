"""Exact splits of time-ordered launches, against slow references."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simt.sampling.splits import TimeOrder

LAUNCHES = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 12)), min_size=1, max_size=20)
REAL = st.lists(
    st.tuples(st.integers(0, 2), st.floats(0, 1e9, allow_subnormal=False)), min_size=1, max_size=20
)


def order_of(launches: list[tuple[int, float]]) -> TimeOrder:
    codes = np.unique([code for code, _ in launches], return_inverse=True)[1]
    return TimeOrder(codes, np.array([time for _, time in launches], float))


def launches_in(order: TimeOrder, lo: int, hi: int) -> np.ndarray:
    return np.repeat(order.values[lo:hi], order.counts[lo:hi])


def squares(order: TimeOrder, lo: int, hi: int) -> float:
    times = launches_in(order, lo, hi)
    return float(np.sum((times - times.mean()) ** 2))


def neyman(order: TimeOrder, lo: int, hi: int, noise: float) -> float:
    times = launches_in(order, lo, hi)
    spread = times.var(ddof=1) if len(times) > 1 else 0.0
    return float(len(times) * np.sqrt((spread + (noise * times.mean()) ** 2) * times.mean()))


@pytest.mark.slow
@given(st.one_of(LAUNCHES, REAL))
def test_the_order_is_by_group_time_and_launch(launches: list[tuple[int, float]]) -> None:
    order = order_of(launches)
    expected = sorted(range(len(launches)), key=lambda i: (*launches[i], i))
    longest = max(time for _, time in launches)
    times = np.array([launches[i][1] for i in order.order])
    assert np.allclose(np.repeat(order.values, order.counts), times, rtol=0, atol=longest * 2.0**-39)
    if all(float(time).is_integer() for _, time in launches):
        assert order.order.tolist() == expected
    assert [lo for lo, _ in order.groups][1:] == [hi for _, hi in order.groups][:-1]
    strata = order.strata(order.groups)
    assert strata.tolist() == np.unique([code for code, _ in launches], return_inverse=True)[1].tolist()


@given(LAUNCHES)
@settings(max_examples=60)
def test_cuts_are_as_good_as_the_best_of_all(launches: list[tuple[int, float]]) -> None:
    order = order_of(launches)
    for lo, hi in order.groups:
        cut = order.best_cut(lo, hi)
        if hi - lo < 2:
            assert cut is None
            continue
        for parts in (2, 3, 4):
            cuts = order.best_cuts(lo, hi, parts)
            if hi - lo < parts:
                assert cuts is None
                continue

            def total(cuts: tuple[int, ...], lo: int = lo, hi: int = hi) -> float:
                return sum(squares(order, a, b) for a, b in zip((lo, *cuts), (*cuts, hi), strict=True))

            best = min(total(c) for c in combinations(range(lo + 1, hi), parts - 1))
            assert total(tuple(cuts)) == pytest.approx(best, abs=1e-9)
        for noise in (0.0, 0.1):
            costs = [neyman(order, lo, c, noise) + neyman(order, c, hi, noise) for c in range(lo + 1, hi)]
            cut = order.best_cut(lo, hi, "neyman", noise)
            assert costs[cut - lo - 1] == pytest.approx(min(costs), abs=1e-6)


def test_ranges_inside_a_group_are_cut_by_their_own_statistics() -> None:
    """The prefix sums begin at the group: a range in its middle subtracts what precedes it."""
    random = np.random.default_rng(0)
    times = np.round(random.lognormal(9, 1, 4000))
    order = TimeOrder(np.repeat([0, 1], 2000), times)
    for lo, hi in ((700, 900), (order.groups[1][0], order.groups[1][0] + 150)):
        by_squares = [squares(order, lo, c) + squares(order, c, hi) for c in range(lo + 1, hi)]
        assert order.best_cut(lo, hi) == lo + 1 + int(np.argmin(by_squares))
        by_cost = [neyman(order, lo, c, 0.0) + neyman(order, c, hi, 0.0) for c in range(lo + 1, hi)]
        assert by_cost[order.best_cut(lo, hi, "neyman") - lo - 1] == pytest.approx(min(by_cost), rel=1e-6)


def test_many_parts_of_many_times_are_close_to_the_optimum() -> None:
    """With more than 512 distinct times, cuts start from candidates; three distant groups are still found
    exactly.
    """
    random = np.random.default_rng(1)
    times = np.concatenate([random.normal(mean, 1000, 3000) for mean in (1e5, 2e5, 9e5)]).round()
    order = TimeOrder(np.zeros(len(times), int), times)
    assert len(order.values) > 512
    cuts = order.best_cuts(0, len(order.values), 3)
    assert [order.size(a, b) for a, b in zip((0, *cuts), (*cuts, len(order.values)), strict=True)] == [
        3000
    ] * 3


def test_a_spread_of_a_ten_millionth_of_the_mean_is_kept() -> None:
    times = 1e9 + np.tile([0.0, 100.0], 500)
    spread = TimeOrder(np.zeros(1000, int), times).spread(0, 2)
    assert spread.mean == 1e9 + 50
    assert spread.squares == 1000 * 50.0**2


@pytest.mark.parametrize("groups", [1, 2, 5000])
def test_keys_hold_any_number_of_groups_and_long_times(groups: int) -> None:
    """Keys and positions of 5000 groups, with times up to 2^50 ns, do not fit into 64 bits together."""
    random = np.random.default_rng(2)
    codes = np.concatenate([np.arange(groups), random.integers(0, groups, 2000)])
    times = random.integers(0, 1 << 50, len(codes)).astype(float)
    order = TimeOrder(codes, times)
    assert len(order.groups) == groups
    assert order.order.tolist() == np.lexsort((np.arange(len(codes)), times, codes)).tolist()
    assert np.repeat(order.values, order.counts).tolist() == times[order.order].tolist()
