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


def test_a_launch_starts_at_the_first_sm_where_the_specification_says_so() -> None:
    d = dispatcher(sms=3, launch_slots=2, **{"launch.from_first_sm": True})
    d.begin(0, ctas=2, first_dispatch=100, ctas_per_sm=4)
    assert [sm for _, sm, *_ in d.dispatch(200)] == [0, 1]
    d.begin(1, ctas=5, first_dispatch=300, ctas_per_sm=4)
    assert [sm for _, sm, *_ in d.dispatch(300)] == []
    assert [sm for _, sm, *_ in d.dispatch(400)] == [0, 1, 2, 0, 1]


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


def test_how_many_warps_it_had_does_not_matter_to_a_place() -> None:
    d = dispatcher(sms=1, **{"launch.warp_start_interval": 3})
    d.begin(0, ctas=3, warps=5, ctas_per_sm=1)
    d.dispatch(50)
    d.release(0, 0, 60)
    assert [cycle for cycle, *_ in d.dispatch(200)] == [60 + LATENCY]
    d.release(0, 0, 300)
    d.release_no_later(0, [250])
    assert [cycle for cycle, *_ in d.dispatch(400)] == [250 + LATENCY]


def test_places_that_become_free_after_their_launch_do_not_count_for_the_next() -> None:
    """The launch ends at 60, and its slot has the next launch before its places are free."""
    d = dispatcher(sms=1)
    d.begin(0, ctas=1, ctas_per_sm=1)
    d.dispatch(50)
    d.release(0, 0, 60)
    d.end(0)
    d.begin(0, ctas=3, first_dispatch=62, ctas_per_sm=1)
    assert [cycle for cycle, *_ in d.dispatch(100)] == [62]
    d.release(0, 1, 150)
    assert [cycle for cycle, *_ in d.dispatch(200)] == [150 + LATENCY]


def starts(ctas: int, windows: list[int], **rates: int) -> list[int]:
    """Cycles in which CTAs start on 8 SMs that have places for all, from cycle 100 on."""
    d = dispatcher(sms=8, **{f"launch.{name}": value for name, value in rates.items()})
    d.begin(0, ctas=ctas, first_dispatch=100, ctas_per_sm=32)
    found, end = [], 0
    for window in windows:
        end += window
        found += [cycle for cycle, *_ in d.dispatch(end)]
        if len(found) < ctas and found:
            assert d.next_event() < 2**64 - 1, "CTAs that wait for the rate are an event"
    return found


def test_the_gpu_starts_ctas_at_a_rate() -> None:
    # 1,500 in 1,000 cycles: 666.67 thousandths apart, rounded up to 667.
    assert starts(6, [1000], peak_dispatch_rate=1500) == [100, 100, 101, 102, 102, 103]
    assert starts(3, [1000], peak_dispatch_rate=500) == [100, 102, 104]
    # Four more than the rate permits, then one in four cycles.
    assert starts(8, [1000], dispatch_rate=250, dispatch_burst=4) == [100] * 5 + [104, 108, 112]
    # Both: one a cycle until the burst is used up.
    both = {"peak_dispatch_rate": 1000, "dispatch_rate": 250, "dispatch_burst": 3}
    assert starts(8, [1000], **both) == [100, 101, 102, 103, 104, 108, 112, 116]


@given(
    st.integers(0, 3000),
    st.integers(0, 3000),
    st.integers(0, 20),
    st.lists(st.integers(1, 60), min_size=1, max_size=30),
)
def test_rates_hold_in_any_windows(peak: int, rate: int, burst: int, windows: list[int]) -> None:
    rates = {"peak_dispatch_rate": peak, "dispatch_rate": rate, "dispatch_burst": burst}
    whole = starts(100, [5_000_000], **rates)
    assert starts(100, [*windows, 5_000_000], **rates) == whole
    for first in range(0, 100, 9):
        for last in range(first, 100, 7):
            cycles, count = whole[last] - whole[first], last - first
            if peak:
                assert count <= (cycles + 1) * peak / 1000
            if rate:
                assert count <= burst + (cycles + 1) * rate / 1000


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


@pytest.mark.parametrize("rate", ["peak_dispatch_rate", "dispatch_rate"])
def test_a_rate_leaves_nothing_to_wait_for_once_all_ctas_are_placed(rate: str) -> None:
    """A hundred CTAs in 1,000 cycles: after one in cycle 5, the next may start in cycle 15."""
    never = 2**64 - 1
    for ctas in (1, 2, 3):
        d = dispatcher(**{f"launch.{rate}": 100, "launch.dispatch_burst": 0})
        d.begin(0, ctas=ctas, first_dispatch=5, ctas_per_sm=4)
        assert [cycle for cycle, *_ in d.dispatch(1000)] == [5, 15, 25][:ctas]
        assert d.next_event() == never
    d = dispatcher(sms=1, **{f"launch.{rate}": 100, "launch.dispatch_burst": 0})
    d.begin(0, ctas=9, first_dispatch=5, ctas_per_sm=1)
    assert len(d.dispatch(7)) == 1
    assert d.next_event() == 15  # as far as is known: there may be a place by then
    assert d.dispatch(1000) == [] and d.next_event() == never
    d.begin(0, ctas=9, first_dispatch=1005, ctas_per_sm=9)
    assert len(d.dispatch(1010)) == 1
    d.end(0)  # a controller has stopped it
    assert d.dispatch(2000) == [] and d.next_event() == never


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
