"""The regimes of a launch that systematic sampling knows, each by numbers: on each side of its boundary."""

from __future__ import annotations

from math import isclose

import numpy as np
import pytest

from simt.control.systematic import courses
from simt.control.systematic.beginning import share_of_cold_beginning, swings
from simt.control.systematic.dram import elasticity_of_time, elasticity_shown, use_of_dram
from simt.control.systematic.phases import is_other_phase, other_work, traffic_not_seen
from simt.control.systematic.rates import Rates
from simt.control.systematic.settling import drift, samples_between, settled
from simt.control.systematic.windows import Floats


def array(*values: float) -> Floats:
    return np.array(values, np.float64)


def rates(*by_window: float, sectors: Floats | None = None, elasticity: float = 0.0) -> Rates:
    of_all = np.ones(len(by_window))
    return Rates(array(*by_window), of_all if sectors is None else sectors, elasticity * of_all)


# --- the first waves swing ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cold", "first", "found"),
    [
        (93, 90, False),  # 3 % of the usual 100
        (93.05, 90, True),
        (107, 110, False),
        (106.95, 110, True),
        (110, 97, False),  # the usual rate is 3 % above the first window
        (110, 96.9, True),
        (90, 97, False),  # on different sides of it
        (110, 105, False),
    ],
)
def test_first_waves_swing_if_the_first_window_differs_on_one_side(
    cold: float, first: float, found: bool
) -> None:
    assert swings(cold, first, 100) == found


# --- a cold beginning decays --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("waves", "share"), [(1, 0.5), (2, (0.5 + 0.25) / 2), (3, (0.5 + 0.25 + 0.125) / 3), (100, 0.01)]
)
def test_a_cold_beginning_decays_geometrically(waves: float, share: float) -> None:
    """The difference to later windows is 40, 20, and then 10, 5, ... in the gap."""
    found = share_of_cold_beginning(140, 120, 100, waves)
    assert found is not None and isclose(found, share, rel_tol=1e-9)


@pytest.mark.parametrize(
    ("cold", "first", "decays"),
    [
        (200, 180, True),  # by a fifth from wave to wave
        (200, 181, False),
        (200, 98, False),  # on the other side
        (200, 101, False),  # within the usual spread: it is over
        (200, 101.1, True),
        (101, 50, False),  # it never was cold
        (60, 80, True),  # a beginning that is faster
        (60, 101.1, False),
    ],
)
def test_a_beginning_that_does_not_decay_fast_is_none(cold: float, first: float, decays: bool) -> None:
    assert (share_of_cold_beginning(cold, first, 100, 2) is not None) == decays


# --- windows after a gap settle -----------------------------------------------------------------------------


def test_windows_without_a_gap_between_them_are_one_sample() -> None:
    assert samples_between([]) == [[0]]
    assert samples_between([True, False, False, True]) == [[0], [1, 2, 3], [4]]
    assert samples_between([False, True]) == [[0, 1], [2]]


@pytest.mark.parametrize(("first", "counts"), [(110, True), (110.1, False), (90, True), (89.9, False)])
def test_the_first_window_after_a_gap_counts_if_it_is_as_the_next(first: float, counts: bool) -> None:
    found = settled(rates(150, first, 100), [[0], [1, 2]])
    assert found.tolist() == ([0, 1, 2] if counts else [0, 2])


def test_windows_before_a_gap_or_alone_count() -> None:
    assert settled(rates(150, 100, 200), [[0, 1], [2]]).tolist() == [0, 1, 2]


def test_drift_is_the_mean_change_within_a_sample_after_a_gap() -> None:
    """By -10 after the first gap, by +4 after the second one; not by what lies before and between them."""
    found = rates(500, 300, 110, 100, 100, 107, 104)
    assert isclose(drift(found, [[0, 1], [2, 3], [4, 5, 6]]), 3)
    assert drift(found, [[0, 1], [2], [3]]) == 0


def test_drift_is_taken_at_the_same_traffic() -> None:
    """Time in proportion to traffic: 100 for 10 and 110 for 11 sectors is no drift."""
    assert isclose(drift(rates(1, 100, 110, sectors=array(10, 10, 11), elasticity=1), [[0], [1, 2]]), 0)


# --- DRAM sets the pace -------------------------------------------------------------------------------------


def test_use_of_dram() -> None:
    assert use_of_dram(75, 100, 32) == 0.75  # 2400 bytes in 100 cycles
    assert use_of_dram(75, 100, 0) == 0  # an unknown peak
    assert use_of_dram(75, 0, 32) == 0


def test_time_follows_traffic_between_80_and_90_percent_of_the_peak() -> None:
    found = elasticity_of_time(array(0.5, 0.8, 0.85, 0.9, 1.0), 0.9, 0)
    assert found.tolist() == pytest.approx([0, 0, 0.5, 1, 1])


def test_what_the_windows_show_is_the_least_for_those_with_nearly_as_much_use_as_the_last() -> None:
    found = elasticity_of_time(array(0.4, 0.405, 0.84, 0.88), 0.5, 0.6)
    assert found.tolist() == pytest.approx([0, 0.6, 0.6, 0.8])  # from 80 % of the last one's use on


def shown(times: Floats, sectors: Floats, pairs: tuple[bool, bool] = (True, True), use: float = 0.5) -> float:
    return elasticity_shown(times, sectors, np.array(pairs), use)


def test_windows_show_how_time_follows_traffic() -> None:
    """Both differ by 0.1 and -0.1 of the last window: 0.02 / (0.02 + 0.003)."""
    assert isclose(shown(array(100, 110, 100), array(10, 11, 10)), 0.02 / 0.023)
    assert isclose(shown(array(100, 105, 100), array(10, 11, 10)), 0.01 / 0.023)
    assert (
        shown(array(100, 150, 100), array(10, 15, 10)) == 0.9
    )  # 0.5 / 0.503, of which that much is relied on
    assert shown(array(100, 90, 100), array(10, 11, 10)) == 0  # against the traffic


def test_windows_show_nothing_with_little_use_of_dram_or_few_steady_pairs() -> None:
    times, sectors = array(100, 110, 100), array(10, 11, 10)
    assert shown(times, sectors, use=0.45) > 0 and shown(times, sectors, use=0.449) == 0
    assert shown(times, sectors, (True, False)) == 0


def test_rates_are_scaled_to_traffic_within_a_fifth() -> None:
    def at(sectors: float, elasticity: float = 1.0) -> float:
        found = rates(100, sectors=array(10), elasticity=elasticity)
        return float(found.at(np.array([0]), array(sectors))[0])

    assert isclose(at(11), 110) and isclose(at(11, 0.5), 105) and at(11, 0) == 100
    assert isclose(at(12.6), 126) and at(12.7) == 100  # 2.6 of 12.6 are 20.6 %, 2.7 of 12.7 are 21.3 %
    assert isclose(at(8.3), 83) and at(8.2) == 100  # 1.7 of 8.3 are 20.5 %, 1.8 of 8.2 are 22 %


def test_windows_without_traffic_are_not_scaled() -> None:
    assert rates(100, sectors=array(0), elasticity=1).at(np.array([0]), array(0)).tolist() == [100]


def test_differences_and_squares_are_taken_at_the_same_traffic() -> None:
    even = rates(100, 110, sectors=array(10, 11), elasticity=1)
    assert even.differences.tolist() == pytest.approx([0]) and isclose(even.squares(0, 2), 0, abs_tol=1e-20)
    unscaled = rates(100, 110, sectors=array(10, 11))
    assert unscaled.differences.tolist() == [10] and unscaled.squares(0, 2) == 50


# --- changes of phase ---------------------------------------------------------------------------------------


def test_other_work_is_relative_to_what_was_left_out_last() -> None:
    assert isclose(other_work(100, 105), 0.05) and isclose(other_work(100, 80), 0.2)
    assert other_work(100, None) == 0 and other_work(0, 100) == 0


def test_traffic_that_the_window_or_earlier_ctas_had_is_seen() -> None:
    assert traffic_not_seen(30, [20, 28], 0) == 2 and traffic_not_seen(30, [20], 0) == 10
    assert traffic_not_seen(30, [20], 0.75) == 2.5  # the window tells how long three quarters of it take


@pytest.mark.parametrize(
    ("work", "use", "found"),
    [(0.05, 0.05, False), (0.051, 0, True), (0, 0.051, True)],
)
def test_another_phase_begins_beyond_five_percent(work: float, use: float, found: bool) -> None:
    assert is_other_phase(work, use) == found


# --- how a launch goes over from one window into the next ---------------------------------------------------


def hundredth(sectors: float) -> float:
    """Of DRAM's peak, for each sector per instruction."""
    return abs(sectors) / 100


def test_steps_after_the_last_window_are_as_it() -> None:
    found = courses.as_before(array(10, 20))
    assert found.part.tolist() == [0, 0] and found.doubt == 1 and not found.known


def test_steps_that_nothing_is_known_of_are_half_as_each_window() -> None:
    found = courses.in_equal_parts(array(10, 20))
    assert found.part.tolist() == [0.5, 0.5] and found.doubt == 1 and not found.known
    assert found.sectors_before.tolist() == found.sectors_after.tolist() == [10, 20]


def test_traffic_tells_how_much_of_a_step_is_as_each_window() -> None:
    steps = array(10, 10, 15, 30, 30)
    found = courses.by_traffic(steps, rates(1, 1, sectors=array(10, 30)), hundredth)
    assert found is not None and found.known and found.doubt == 1
    assert found.part.tolist() == [0, 0, 0.25, 1, 1]
    # A quarter of the third step exchanges what the later window does.
    assert found.sectors_before.tolist() == [10, 10, 10, 30, 30]
    assert found.sectors_after.tolist() == [10, 10, 30, 30, 30]


@pytest.mark.parametrize(("last", "changes"), [(15, False), (15.1, True), (5, False), (4.9, True)])
def test_traffic_that_changes_by_five_percent_of_the_peak_is_another(last: float, changes: bool) -> None:
    found = courses.by_traffic(array(10, last), rates(1, 1, sectors=array(10, last)), hundredth)
    assert (found is not None) == changes


@pytest.mark.parametrize(
    ("window", "elasticity", "part"),
    [
        (10, 0, 0.0),  # a tenth of the peak less than the first step
        (9.9, 0, 10.1 / 20.1),
        (9.9, 0.5, 0.0),  # half of which the time of the window tells
    ],
)
def test_a_change_between_a_window_and_the_first_step_counts(
    window: float, elasticity: float, part: float
) -> None:
    seen = rates(1, 1, sectors=array(window, 30), elasticity=elasticity)
    found = courses.by_traffic(array(20, 30), seen, hundredth)
    assert found is not None and found.part.tolist() == pytest.approx([part, 1])


def test_work_tells_which_window_a_step_is_as() -> None:
    found = courses.by_work(array(100, 75, 50), 100, 50, array(1, 2, 3))
    assert found is not None and found.known and found.part.tolist() == [0, 0.5, 1]
    assert found.sectors_before.tolist() == found.sectors_after.tolist() == [1, 2, 3]


@pytest.mark.parametrize(("after", "changes"), [(105, False), (105.1, True), (95, False), (94.9, True)])
def test_work_that_changes_by_five_percent_is_another(after: float, changes: bool) -> None:
    assert (courses.by_work(array(100), 100, after, array(1)) is not None) == changes


@pytest.mark.parametrize(("share", "doubt"), [(0.1, 0.2), (0.49, 0.98), (0.5, 1), (0.9, 1)])
def test_steps_after_a_cold_beginning(share: float, doubt: float) -> None:
    found = courses.after_cold_beginning(share, array(1, 1))
    assert (
        found.part.tolist() == pytest.approx([1 - share] * 2) and isclose(found.doubt, doubt) and found.known
    )
