"""What systematic sampling makes of windows and gaps: their spread, their shares and their courses."""

from __future__ import annotations

from math import hypot, isclose, sqrt

import numpy as np
import pytest

from control.test_systematic_regimes import array, rates
from simt.control import Interval
from simt.control.systematic import courses
from simt.control.systematic.observations import Observations
from simt.control.systematic.projection import LaunchTotals
from simt.control.systematic.shares import divide
from simt.control.systematic.spread import allowance, half_width, student, usual_spread
from simt.control.systematic.windows import SkippedCtas, Window
from support.signals import view

# Student's t at 95 %, two-sided, by degrees of freedom: as in printed tables.
T4, T6, T8 = 2.776, 2.447, 2.306


def half(*by_window: float, steady: tuple[bool, ...], wave: int = 100, lost: int = 0) -> float:
    return half_width(rates(*by_window), np.array(steady, np.bool_), wave, 0.95, lost)


@pytest.mark.parametrize(("freedom", "t"), [(4, T4), (6, T6), (8, T8)])
def test_student(freedom: int, t: float) -> None:
    assert isclose(student(0.95, freedom), t, rel_tol=2e-4)


def test_windows_of_few_ctas_vary_more() -> None:
    assert usual_spread(100) == 0.01 == usual_spread(1000)
    assert isclose(usual_spread(25), 0.02) and usual_spread(99) > 0.01


def test_equal_windows_shrink_the_usual_spread() -> None:
    assert isclose(half(100, 100, steady=(True,)), T6 * sqrt(4 / 6), rel_tol=1e-3)
    assert isclose(half(100, 100, steady=(True,), wave=25), 2 * T6 * sqrt(4 / 6), rel_tol=1e-3)
    assert isclose(half(100, steady=()), T4, rel_tol=1e-3)


def test_spread_of_successive_windows() -> None:
    """A pair that differs by 2: a variance of 2, of two degrees of freedom, and the usual one of 1.01**2."""
    assert isclose(half(100, 102, steady=(True,)), T6 * sqrt((2 * 2 + 4 * 1.01**2) / 6), rel_tol=1e-3)


def test_spread_about_the_mean_if_it_is_larger() -> None:
    """Twice +2: 8 about the mean, 4 by successive differences."""
    expected = T8 * sqrt((2 * 8 + 4 * 1.02**2) / 8)
    assert isclose(half(100, 102, 104, steady=(True, True)), expected, rel_tol=1e-3)


def test_windows_that_the_launch_goes_over_between_have_no_spread() -> None:
    assert isclose(half(100, 200, steady=(False,)), 1.5 * T4, rel_tol=1e-3)


def test_a_pair_that_an_elasticity_was_fitted_to_says_nothing() -> None:
    assert isclose(half(100, 100, steady=(True,), lost=1), T4, rel_tol=1e-3)


def test_allowance_grows_with_the_root_of_what_is_left_out() -> None:
    assert isclose(allowance(0.08, 25, 100, 4000), 0.08 * 5 / 40)


def test_gaps_are_divided_between_the_windows_beside_them() -> None:
    """100 instructions between two windows, 60 after the second one."""
    gaps = [
        (array(100), courses.in_equal_parts(array(1))),
        (array(60), courses.as_before(array(1))),
    ]
    found = divide(gaps, [[0], [1]], [0, 1])
    assert found.total(rates(1, 2)) == 50 + 2 * 110
    assert isclose(found.spread, hypot(50, 110) / 160)


def test_windows_that_follow_each_other_have_equal_parts_if_they_count() -> None:
    gaps = [
        (array(100), courses.in_equal_parts(array(1))),
        (array(), courses.as_before(array())),
        (array(60), courses.as_before(array(1))),
    ]
    assert divide(gaps, [[0], [1, 2]], [0, 1, 2]).total(rates(1, 10, 100)) == 50 + (25 + 30) * 110
    assert divide(gaps, [[0], [1, 2]], [0, 2]).total(rates(1, 10, 100)) == 50 + 110 * 100


def test_what_scaling_changes_is_doubted_unless_dram_alone_sets_the_pace() -> None:
    gaps = [(array(100), courses.as_before(array(11)))]
    shares = divide(gaps, [[0]], [0])
    for elasticity, total, doubted in ((0.5, 105, 5), (1, 110, 0), (0, 100, 0)):
        of = rates(1, sectors=array(10), elasticity=elasticity)
        assert isclose(shares.total(of), total) and isclose(shares.scaled(of), doubted)


# --- observations ------------------------------------------------------------------------------------------

WAVE = 10
Step = tuple[int, int]  # instructions and sectors of a CTA


def interval(cycles: float, work: float, sectors: float) -> Interval:
    counters = {
        "warp_instructions": round(work),
        "thread_instructions": round(32 * work),
        "dram_reads": round(sectors),
        "dram_writes": 0,
    }
    return Interval(0, 0, round(cycles), counters, {})


def observed(
    windows: list[tuple[int, int, int]], gaps: list[list[Step]], by_warps: bool = True
) -> Observations:
    """windows: cycles, instructions and sectors of each, the cold one first; gaps: after each but that, by
    step of a wave. DRAM moves a sector a cycle."""
    seen = Observations(view(ctas=1000, wave=WAVE, dram_bytes_per_cycle=32.0))
    for i, window in enumerate(windows):
        seen.add(Window(interval(0, 0, 0), interval(*window)))
        for work, sectors in gaps[i - 1] if i else []:
            warp = WAVE * work if by_warps else 0
            seen.gaps[-1].append(SkippedCtas(WAVE, warp, WAVE * work * 32, WAVE * sectors))
    return seen


def test_what_is_left_out_lies_between_two_observations() -> None:
    def at(ctas: int) -> Interval:
        return Interval(
            0,
            0,
            0,
            {},
            {},
            skipped_ctas=ctas,
            skipped_warp_instructions=2 * ctas,
            skipped_thread_instructions=60 * ctas,
            skipped_dram_sectors=8 * ctas,
        )

    found = SkippedCtas.between(at(10), at(14))
    assert found == SkippedCtas(4, 8, 240, 32)
    assert found.work_per_cta("warp_instructions") == 2 and found.work_per_cta("thread_instructions") == 60
    assert found.sectors_per_cta == 8


EVEN = (1000, 10_000, 100)


def test_work_is_measured_by_warps_if_all_of_them_are_counted() -> None:
    assert observed([EVEN, EVEN], [[(1000, 10)]]).measure == "warp_instructions"
    assert observed([EVEN, EVEN], [[(1000, 10)]], by_warps=False).measure == "thread_instructions"


def test_first_waves_that_swing_are_one_window() -> None:
    """1300 and 900 cycles, and then 1000."""
    seen = observed([(1300, 10_000, 100), (900, 10_000, 100), EVEN], [[(1000, 10)], []])
    # Both windows begin at cycle 0 here, so that the two together are the first one.
    assert seen.sampled[0].begin is seen.windows[0].begin
    even = observed([EVEN, EVEN, EVEN], [[(1000, 10)], []])
    assert even.sampled[0] is even.windows[1]


def parts(windows: list[tuple[int, int, int]], gaps: list[list[Step]]) -> list[float]:
    return observed(windows, gaps).course(0).part.tolist()


def test_the_course_of_a_gap_is_by_traffic_where_dram_sets_the_pace_whatever_the_work() -> None:
    """950 sectors in 1000 cycles. 0.065, 0.13 and 0.19 an instruction; the CTAs' work halves, too."""
    busy = (1000, 10_000, 950)
    steps: list[Step] = [(1000, 65), (500, 65), (500, 95)]
    assert parts([EVEN, busy, busy], [steps, [(500, 95)]]) == pytest.approx([0, 0.52, 1])


def test_otherwise_it_is_by_work_then_by_the_cold_beginning_then_by_traffic() -> None:
    less: list[Step] = [(1000, 10), (500, 10)]
    assert parts([EVEN, EVEN, EVEN], [less, [(500, 10)]]) == [0, 1]
    cold = [(1400, 10_000, 100), (1200, 10_000, 100), EVEN]
    assert parts(cold, [less, [(500, 10)]]) == [0, 1]
    more: list[Step] = [(1000, 10), (1000, 20)]
    assert parts(cold, [more, []]) == pytest.approx([1 - 0.375] * 2)  # of two waves: (0.5 + 0.25) / 2
    assert parts([EVEN, EVEN, (1000, 10_000, 200)], [more, []]) == [0, 1]


def test_otherwise_it_is_in_equal_parts_and_after_the_last_window_as_before() -> None:
    seen = observed([EVEN, EVEN, EVEN], [[(1000, 10)] * 2, [(1000, 10)]])
    assert seen.course(0).part.tolist() == [0.5, 0.5]
    assert seen.course(1).part.tolist() == [0]


def test_a_change_of_phase_after_the_last_window() -> None:
    """At a use of 0.1 and a wave of 1000 cycles: 5 sectors a CTA are five percent of DRAM's peak."""
    for step, changed in (((1000, 15), False), ((1000, 16), True), ((960, 10), False), ((950, 10), True)):
        seen = observed([EVEN, EVEN, EVEN], [[(1000, 10)], [step]])
        assert seen.phase_changed() == changed, step


def test_windows_agree_at_the_same_traffic() -> None:
    """DRAM alone sets the pace: 10 % more traffic takes 10 % more time."""
    seen = observed([EVEN, (1000, 10_000, 1000), (1100, 10_000, 1100)], [[], []])
    assert seen.agreement(2).within(1e-9)
    assert not observed([EVEN, EVEN, (1100, 10_000, 110)], [[], []]).agreement(2).within(0.05)


def test_share_of_the_l2_that_a_wave_replaces() -> None:
    """100 sectors are 25 lines."""
    seen = Observations(view(ctas=1000, wave=WAVE, dram_bytes_per_cycle=32.0, l2_lines=50))
    seen.add(Window(interval(0, 0, 0), interval(*EVEN)))
    assert seen.l2_turnover == 0.5
    seen.add(Window(interval(0, 0, 0), interval(1000, 10_000, 1000)))
    assert seen.l2_turnover == 1


# --- totals -------------------------------------------------------------------------------------------------


def test_half_of_the_difference_between_the_windows_beside_a_gap_is_uncertain() -> None:
    """20,000 instructions in two waves, half of them at 0.1 cycles each, half at 0.11."""
    launch = view(ctas=1000, wave=WAVE, dram_bytes_per_cycle=32.0)
    seen = observed([EVEN, EVEN, (1100, 10_000, 110)], [[(1000, 10)] * 2, []])
    totals = LaunchTotals(seen, launch, dispatched=980, confidence=0.95, bias=0.08)
    cycles, relative = totals.by_rates("cycles", 5000)
    assert isclose(cycles, 5000 + 2100)
    windows = 20_000 * half(0.1, 0.11, steady=(True,), wave=WAVE) * sqrt(0.5)
    allowed = 0.08 * sqrt(2) * 0.01 * cycles
    assert isclose(relative * cycles, windows + allowed + 0.5 * 0.01 * 20_000)


def test_counters_of_the_program_grow_with_its_instructions() -> None:
    """The usual spread, with the prior's four degrees of freedom, of the fifth that was left out."""
    launch = view(ctas=1000, wave=WAVE, dram_bytes_per_cycle=32.0)
    seen = observed([EVEN, EVEN, EVEN], [[(1000, 10)] * 2, []])
    totals = LaunchTotals(seen, launch, dispatched=980, confidence=0.95, bias=0.08)
    loads, relative = totals.by_instructions(400, instructions=80_000)
    assert loads == 500 and isclose(relative, 0.2 * 0.01 * T4, rel_tol=1e-3)
