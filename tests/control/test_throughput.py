"""Little's law on hand-made intervals, CTAs from warps, and contention that eases."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simt import _engine
from simt.control import Interval
from simt.control.controller import BLOCK, WARP
from simt.control.photon.cta_times import CtaTimes
from simt.control.photon.throughput import Throughput

eased_cycles = _engine.testing.eased_cycles


def interval(
    index: int,
    instructions: int,
    warps: int = 10,
    ctas: int = 5,
    blocks: list[tuple[int, int, int, int]] | None = None,
    of_sms: tuple[list[int], list[int]] = ([0, 0], [0, 0]),
) -> Interval:
    difference = {"warp_instructions": instructions, "active_warp_cycles": 100 * warps}
    return Interval(
        index,
        100 * index,
        100 * (index + 1),
        {"ctas": 50, "ctas_finished": 50 - ctas},
        difference,
        blocks=np.array(blocks or [], BLOCK),
        sm_instructions=np.array(of_sms[0], np.uint64),
        sm_warp_cycles=np.array(of_sms[1], np.uint64),
    )


def filled(instructions: list[int], **known: int) -> Throughput:
    t = Throughput()
    for i, n in enumerate(instructions):
        t.add(interval(i, n, **known), 2)
    return t


def test_eight_intervals_of_like_quarters_are_steady() -> None:
    assert not filled([100] * 7).steady(0.03, 1)
    assert filled([100] * 8).steady(0.03, 1)
    # The last quarter takes 3 % more cycles per instruction than the one before; then slightly more.
    assert filled([1, 2, 3, 4, 103, 103, 100, 100]).steady(0.0301, 1)
    assert not filled([1, 2, 3, 4, 103, 103, 100, 100]).steady(0.0299, 1)
    assert not filled([0] * 8).steady(0.03, 1)


def test_warps_in_step_have_to_go_round_eight_times() -> None:
    in_step = [150, 50] * 4
    assert not filled(in_step).steady(0.03, 7.9)
    assert filled(in_step).steady(0.03, 8)


def test_a_long_launch_keeps_few_moments_and_says_the_same() -> None:
    t = Throughput()
    for i in range(5000):
        t.add(interval(i, 50 if i < 4000 else 100), 2)
        assert len(t._sums) == len(t._of_blocks) == len(t._of_sms) <= 514
        assert t._sums[-1][0] == 100 * (i + 1)
    # The last quarter is 1000 intervals of 100 and 250 of 50 instructions.
    assert t._sums[-1][3] == 4000 * 50 + 1000 * 100
    assert t._rate(0.2, 0.0) == pytest.approx(10, rel=0.01)
    assert t._rate(0.5, 0.25) == pytest.approx(20, rel=0.01)
    gaps = np.diff([s[0] for s in t._sums])
    assert gaps[:-1].max() == gaps[:-1].min() == 1600
    assert t.steady(0.03, 1) is False


def test_times_are_residents_over_what_they_get_done() -> None:
    t = filled([1] * 4 + [50] * 4, warps=12, ctas=5)
    # Of the later half: 5 CTAs over 400 cycles, 200 instructions; a CTA of 40 instructions.
    assert t.cta_cycles(40) == pytest.approx(5 * 400 / 200 * 40)
    # On average, two of the three warps of each CTA are resident: 12 of 15.
    assert t.waiting(3) == pytest.approx(15 / 12)
    assert t.waiting(2) == 1


def test_blocks_that_ended_are_scaled_to_all() -> None:
    t = Throughput()
    # Block 0 of 10 instructions takes 40 cycles; 10 warps with 50 instructions in 100 cycles: 20 cycles each.
    for i in range(8):
        ended = [(0, 0, 100 * i, 100 * i + 40)] * 4 + [(1, 0, 0, 100 * i + 90)]
        t.add(interval(i, 50, blocks=ended), 2)
    lengths = np.array([10, 2], np.uint32)
    each = np.array([40.0, 640.0])
    assert t.block_scale(lengths, each, np.array([True, False])) == pytest.approx(20 / 4)
    # With block 1, too: 160 + 640 cycles for 42 instructions.
    assert t.block_scale(lengths, each, np.array([True, True])) == pytest.approx(20 / ((160 + 640) / 42))
    # Times that are half of those that were observed need twice the factor.
    assert t.block_scale(lengths, each / 2, np.array([True, False])) == pytest.approx(20 / 2)
    # Blocks that ended contain less than half of the instructions.
    assert math.isnan(t.block_scale(np.array([5, 2], np.uint32), each, np.array([True, False])))


def test_sms_with_more_warps_take_longer() -> None:
    t = Throughput()
    for i in range(8):
        n = i + 1
        t.add(interval(i, 60, of_sms=([20 * n, 20 * n, 20 * n], [400 * n, 400 * n, 800 * n])), 2)
    mean = 1600 / 60
    found = t.contention(2.0, False)
    assert found.sm_warps.tolist() == [4, 4, 8]
    assert found.sm_scale.tolist() == pytest.approx([20 / mean, 20 / mean, 40 / mean])


def test_sms_that_do_nothing_have_no_pace() -> None:
    executed = [[20, 20, 10, 0]] * 8
    t = Throughput()
    for i, n in enumerate(np.cumsum(executed, axis=0).tolist()):
        t.add(interval(i, 50, of_sms=(n, [400 * (i + 1)] * 3 + [0])), 2)
    assert t.contention(2.0, False).sm_scale.tolist() == pytest.approx([1] * 4)


def test_a_cta_begins_with_its_first_warp_and_ends_with_its_last() -> None:
    c = CtaTimes(2)
    begin, end = c.add(np.array([(7, 0, 10, 50), (8, 1, 12, 60)], WARP))
    assert len(begin) == len(end) == 0
    begin, end = c.add(np.array([(9, 0, 5, 70), (9, 1, 6, 80), (8, 0, 11, 90), (7, 1, 9, 100)], WARP))
    assert begin.tolist() == [5, 11, 9]
    assert end.tolist() == [80, 90, 100]


@given(st.integers(1, 5), st.lists(st.integers(1, 100), min_size=1, max_size=40), st.randoms())
def test_ctas_do_not_depend_on_where_intervals_end(warps: int, ends: list[int], random: object) -> None:
    rows = sorted(
        ((c, w, 0, 10 * e + w) for c, e in enumerate(ends) for w in range(warps)), key=lambda row: row[3]
    )
    whole = CtaTimes(warps).add(np.array(rows, WARP))[1].tolist()
    cut = random.randint(0, len(rows))  # type: ignore[attr-defined]
    parts = CtaTimes(warps)
    found = [*parts.add(np.array(rows[:cut], WARP))[1], *parts.add(np.array(rows[cut:], WARP))[1]]
    assert found == whole == [10 * e + warps - 1 for e in sorted(ends)]


def test_warps_get_faster_as_others_end() -> None:
    # Four equal warps, measured with four resident: contention stays the same until they all end.
    assert eased_cycles([100] * 4, 4, 10, False) == 100
    # Two of four are left: twice as fast, but not faster than a single warp.
    assert eased_cycles([100] * 2, 4, 10, False) == 50
    assert eased_cycles([100] * 2, 4, 1.5, False) == pytest.approx(100 / 1.5)
    # The first ends after 50 cycles at the measured rate; the other's remaining 50 then take half the time.
    assert eased_cycles([100, 50], 2, 10, False) == 75
    assert eased_cycles([], 2, 10, False) == 0
    # With more warps than were measured, they are not slower.
    assert eased_cycles([100] * 8, 4, 10, False) == 100


def test_warps_in_turn_leave_a_last_one() -> None:
    # Two at a time run twice as fast, the third waits for the first.
    assert eased_cycles([100] * 3, 4, 2, True) == 100
    assert eased_cycles([100] * 2, 4, 2, True) == 50
    assert eased_cycles([60, 100, 100], 4, 2, True) == 80


@given(st.lists(st.floats(0, 1e6), max_size=30), st.floats(1, 64), st.floats(1, 16))
def test_easing_keeps_between_the_longest_warp_alone_and_the_longest_as_measured(
    left: list[float], resident: float, fastest: float
) -> None:
    found = eased_cycles(left, resident, fastest, False)
    longest = max(left, default=0.0)
    assert longest / fastest * (1 - 1e-9) <= found <= longest * (1 + 1e-9)
    assert found >= sum(left) / max(resident, len(left), 1) * (1 - 1e-9)
