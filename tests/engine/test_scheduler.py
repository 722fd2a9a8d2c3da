"""Warp schedulers: which of several ready warps issues."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simt._engine import testing

ALL = 0b1111


def choices(policy: str, ready: list[int], ages: list[int] | None = None, **how: object) -> list[int]:
    return testing.scheduler_choices(policy, ages or [0, 1, 2, 3], ready, **how)


def test_lrr_goes_round() -> None:
    assert choices("lrr", [ALL] * 5) == [0, 1, 2, 3, 0]
    assert choices("lrr", [ALL, 0b1000, ALL, ALL]) == [0, 3, 0, 1]


def test_gto_stays_then_takes_the_oldest() -> None:
    assert choices("gto", [0b1100, 0b1101, 0b1001, 0b1001, 0b1000], ages=[7, 6, 5, 4]) == [3, 3, 3, 3, 3]
    assert choices("gto", [0b0100, 0b1011, 0b1011], ages=[7, 6, 5, 4]) == [2, 3, 3]


def test_oldest_never_stays() -> None:
    assert choices("oldest", [0b1000, 0b1100, 0b1111], ages=[0, 1, 2, 3]) == [3, 2, 0]


def test_cggty_stays_then_takes_the_highest_slot() -> None:
    """In a CTA, the youngest; a warp of an older CTA may be before it."""
    for ages in ([0, 1, 2, 3], [2, 3, 0, 1]):
        assert choices("cggty", [0b0010, 0b1111, 0b1101, 0b0111], ages=ages) == [1, 1, 3, 2]


def test_two_level_keeps_to_its_active_set() -> None:
    """Two active warps: 0 and 1 take turns; when 1 waits for memory, 2 takes its place."""
    waits = [0, 0, 0b0010, 0, 0]
    ready = [ALL, ALL, 0b1101, ALL, ALL]
    assert choices("two_level", ready, waits=waits, active_warps=2) == [0, 1, 2, 0, 2]


def test_none_ready_issues_none() -> None:
    for policy in ("lrr", "gto", "oldest", "two_level", "cggty"):
        assert choices(policy, [0, 0b0001, 0]) == [-1, 0, -1]


@pytest.mark.parametrize("policy", ["lrr", "gto", "oldest", "cggty"])
@given(ready=st.lists(st.integers(0, 255), max_size=60), ages=st.permutations(range(8)))
def test_chosen_warps_are_ready_and_nothing_is_lost(policy: str, ready: list[int], ages: list[int]) -> None:
    for mask, chosen in zip(ready, testing.scheduler_choices(policy, list(ages), ready), strict=True):
        assert (chosen == -1) == (mask == 0)
        if chosen >= 0:
            assert mask >> chosen & 1


@given(st.lists(st.integers(1, 255), max_size=60))
def test_lrr_against_a_slow_reference(ready: list[int]) -> None:
    last, expected = 7, []
    for mask in ready:
        last = next(w for w in ((last + 1 + i) % 8 for i in range(8)) if mask >> w & 1)
        expected.append(last)
    assert testing.scheduler_choices("lrr", list(range(8)), ready) == expected
