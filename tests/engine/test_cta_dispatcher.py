"""The CTA dispatcher in isolation: which CTA goes where, and in which cycle."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simt._engine import testing
from simt.spec import load_spec

LATENCY = 10  # launch.dispatch_latency


def dispatcher(sms: int = 4, launch_slots: int = 1, **overrides: Any) -> testing.Dispatcher:
    known = {"sm.count": sms, "launch.dispatch_latency": LATENCY}
    return testing.Dispatcher(load_spec("qv100-accelsim", {**known, **overrides}).native(), launch_slots)


def test_each_sm_gets_one_cta_a_cycle_in_turn() -> None:
    d = dispatcher(sms=3)
    d.begin(0, ctas=8, first_dispatch=100, ctas_per_sm=4)
    placed = d.dispatch(1000)
    assert [(cycle, sm, cta) for cycle, sm, _, _, _, cta in placed] == [
        (100 + i // 3, i % 3, i) for i in range(8)
    ]
    assert [slot for _, _, slot, *_ in placed] == [0, 0, 0, 1, 1, 1, 2, 2]
    # The next launch continues after the SM that was served last.
    d.begin(0, ctas=2, first_dispatch=2000, ctas_per_sm=4)
    assert [sm for _, sm, *_ in d.dispatch(3000)] == [2, 0]


def test_only_cycles_below_the_limit_are_decided() -> None:
    d = dispatcher(sms=2)
    d.begin(0, ctas=6, first_dispatch=5, ctas_per_sm=8)
    assert d.next_event() == 5
    assert d.dispatch(5) == []
    assert [cta for *_, cta in d.dispatch(6)] == [0, 1]
    assert d.next_cta() == 2
    assert [cta for *_, cta in d.dispatch(100)] == [2, 3, 4, 5]
    assert d.next_event() == 2**64 - 1


def test_a_place_is_used_again_after_the_dispatch_latency() -> None:
    d = dispatcher(sms=2)
    d.begin(0, ctas=4, ctas_per_sm=1)
    assert len(d.dispatch(50)) == 2
    d.release(1, 0, 60)
    d.release(0, 0, 75)
    assert d.next_event() == 60 + LATENCY
    assert [(cycle, sm) for cycle, sm, *_ in d.dispatch(200)] == [(60 + LATENCY, 1), (75 + LATENCY, 0)]


def test_ends_that_are_known_can_be_moved_forward() -> None:
    d = dispatcher(sms=2)
    d.begin(0, ctas=4, ctas_per_sm=1)
    d.dispatch(1)
    d.release(0, 0, 500)
    d.release(1, 0, 40)
    d.release_no_later(0, [90, 90])
    assert [(cycle, sm) for cycle, sm, *_ in d.dispatch(1000)] == [(40 + LATENCY, 1), (90 + LATENCY, 0)]


def test_what_an_sm_has_limits_its_ctas() -> None:
    """64 warps, 32 CTAs, 65,536 registers and 96 KB of shared memory per SM."""
    for what, each in (
        ({"warps": 16}, 4),
        ({"warps": 64}, 1),
        ({"warps": 1}, 32),
        ({"registers": 20000}, 3),
        ({"shared_bytes": 40 * 1024}, 2),
        ({"ctas_per_sm": 7}, 7),
        ({"shared_bytes": 200 * 1024, "ctas_per_sm": 1, "overcommits": True}, 1),
    ):
        d = dispatcher(sms=2)
        d.begin(0, ctas=1000, **what)
        assert Counter(sm for _, sm, *_ in d.dispatch(5000)) == {0: each, 1: each}, what


def test_a_cta_takes_the_lowest_run_of_free_warp_slots() -> None:
    d = dispatcher(sms=1, launch_slots=3)
    d.begin(0, ctas=4, warps=16, ctas_per_sm=8)
    assert [first for *_, first, _, _ in d.dispatch(10)] == [0, 16, 32, 48]
    d.release(0, 1, 20)
    d.begin(1, ctas=2, warps=8, first_dispatch=20, ctas_per_sm=8)
    placed = d.dispatch(100)
    assert [(slot, first) for _, _, slot, first, _, _ in placed] == [(1, 16), (4, 24)]
    # 24 warps need contiguous slots; 32 free ones in two fragments are not enough.
    d.release(0, 0, 100)
    d.release(0, 2, 100)
    d.begin(2, ctas=1, warps=24, first_dispatch=200, ctas_per_sm=8)
    assert d.dispatch(300) == []
    d.release(0, 1, 300)
    assert [first for *_, first, _, _ in d.dispatch(400)] == [0]


def test_the_launch_that_was_served_last_goes_first() -> None:
    d = dispatcher(sms=1, launch_slots=3)
    for slot in (0, 1, 2):
        d.begin(slot, ctas=2, warps=1, first_dispatch=10 if slot == 1 else 20, ctas_per_sm=8)
    assert [slot for *_, slot, _ in d.dispatch(100)] == [1, 1, 2, 2, 0, 0]


def test_launches_fill_what_others_leave() -> None:
    d = dispatcher(sms=2, launch_slots=2)
    d.begin(0, ctas=100, warps=32, ctas_per_sm=1)
    d.begin(1, ctas=100, warps=8, ctas_per_sm=100)
    counts = Counter((slot, sm) for _, sm, _, _, slot, _ in d.dispatch(100))
    assert counts == {(0, 0): 1, (0, 1): 1, (1, 0): 4, (1, 1): 4}


def test_skipped_ctas_are_not_dispatched() -> None:
    d = dispatcher(sms=2)
    d.begin(0, ctas=10, ctas_per_sm=8)
    assert [cta for *_, cta in d.dispatch(1)] == [0, 1]
    d.skip_to(0, 7)
    assert [cta for *_, cta in d.dispatch(100)] == [7, 8, 9]


@pytest.mark.slow
@given(
    ctas=st.integers(1, 40),
    warps=st.integers(1, 40),
    limit=st.integers(1, 6),
    cuts=st.lists(st.integers(1, 60), max_size=8),
    length=st.integers(1, 50),
)
def test_places_never_overlap_and_windows_change_nothing(
    ctas: int, warps: int, limit: int, cuts: list[int], length: int
) -> None:
    """CTAs of fixed length, released as they are placed: the result does not depend on the order of calls."""

    def run(ends: list[int]) -> list[tuple[int, ...]]:
        d = dispatcher(sms=3)
        d.begin(0, ctas=ctas, warps=warps, ctas_per_sm=limit)
        placed: list[tuple[int, ...]] = []
        for end in ends:
            for p in d.dispatch(end):
                placed.append(p)
                d.release(p[1], p[2], p[0] + length)
        return placed

    # A CTA that is placed and ends within one call would be released too late.
    step = min(length + LATENCY, 60)
    total = ctas * (length + LATENCY) + 1
    whole = run(list(range(step, total + step, step)))
    ends = sorted({sum(cuts[:i]) for i in range(1, len(cuts) + 1)} | set(range(step, total + step, step)))
    assert run(ends) == whole
    assert [cta for *_, cta in whole] == list(range(ctas))
    for cycle, sm, slot, first, _, cta in whole:
        assert first + warps <= 64
        others = [p for p in whole if p[1] == sm and p[5] != cta]
        same_time = [p for p in others if p[0] <= cycle < p[0] + length + LATENCY]
        assert len(same_time) < limit
        assert all(p[2] != slot and (p[3] + warps <= first or first + warps <= p[3]) for p in same_time)
