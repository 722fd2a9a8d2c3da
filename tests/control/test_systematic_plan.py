"""How many windows systematic sampling plans, and how much it leaves out before the next one."""

from __future__ import annotations

import pytest

from simt.control import GO_ON, Interval, Skip, Systematic
from simt.control.systematic.plan import (
    Agreement,
    follows_at_once,
    waves_of_gap,
    windows_for,
    windows_to_come,
    windows_wanted,
)
from support.signals import view

FAR = Agreement(1, 1)


def wanted(
    waves: float = 20,
    done: int = 2,
    use: float = 0.0,
    planned: int = 3,
    last_pair: Agreement = FAR,
    last_few: Agreement = FAR,
) -> int:
    return windows_wanted(waves, done, use, planned, last_pair, last_few)


def test_windows_agree_within_a_share_of_the_first() -> None:
    assert Agreement(2, 100).within(0.02) and not Agreement(2.01, 100).within(0.02)


@pytest.mark.parametrize(("waves", "found"), [(16, 3), (127.9, 3), (128, 4), (320, 10)])
def test_long_launches_get_a_window_for_every_32_waves(waves: float, found: int) -> None:
    assert wanted(waves, done=1) == found == wanted(waves, done=2)


def test_more_may_be_planned() -> None:
    assert wanted(planned=7) == 7 and wanted(320, planned=11) == 11


def test_launches_below_16_waves_need_two_windows_or_one_as_the_cold_one() -> None:
    assert wanted(15.9) == 2 and wanted(15.9, planned=7) == 2
    assert wanted(15.9, done=1, last_pair=Agreement(2, 100)) == 1
    assert wanted(15.9, done=1, last_pair=Agreement(2.01, 100)) == 2
    assert wanted(15.9, done=2, last_pair=Agreement(0, 100)) == 2
    assert wanted(16, done=1, last_pair=Agreement(0, 100)) == 3


def test_two_windows_that_agree_are_enough_at_little_use_of_dram() -> None:
    assert wanted(last_pair=Agreement(0.5, 100)) == 2 and wanted(last_pair=Agreement(0.51, 100)) == 3
    assert wanted(done=1, last_pair=Agreement(0.5, 100)) == 3  # one of the two is cold
    assert wanted(use=0.45, last_pair=Agreement(0.5, 100)) == 2


def test_five_windows_or_three_that_agree_are_enough_at_much_use_of_dram() -> None:
    assert wanted(use=0.451, last_pair=Agreement(0, 100)) == 5 == wanted(use=0.94)
    assert wanted(320, use=0.5) == 10
    assert wanted(use=0.5, done=4, last_few=Agreement(2, 100)) == 4
    assert wanted(use=0.5, done=4, last_few=Agreement(2.01, 100)) == 5


def test_two_windows_are_enough_if_dram_alone_sets_the_pace() -> None:
    assert wanted(use=0.941) == 2 == wanted(320, use=1.0)
    assert wanted(done=1, use=0.941) == 3


@pytest.mark.parametrize(
    ("waves", "done", "use", "after_gap", "found"),
    [
        (16, 2, 0.46, True, True),
        (15.9, 2, 0.46, True, False),
        (16, 1, 0.46, True, False),
        (16, 2, 0.45, True, False),
        (16, 2, 0.94, True, True),
        (16, 2, 0.941, True, False),
        (16, 2, 0.46, False, False),
    ],
)
def test_another_window_follows_at_once_where_the_time_of_a_wave_varies(
    waves: float, done: int, use: float, after_gap: bool, found: bool
) -> None:
    assert follows_at_once(waves, done, use, after_gap) == found


def test_windows_for_an_error() -> None:
    """Half of the half width needs four times as many of the windows that count."""
    assert windows_for(0.05, 0.05, alike=2, done=2) == 2
    assert windows_for(0.05, 0.051, alike=2, done=2) == 3
    assert windows_for(0.05, 0.1, alike=2, done=2) == 8
    assert windows_for(0.05, 0.1, alike=1, done=2) == 5


def test_windows_to_come() -> None:
    assert windows_to_come(1, wanted=3, needed=9, waves_left=20) == 2  # the first alone says nothing
    assert windows_to_come(2, wanted=3, needed=9, waves_left=20) == 7
    assert windows_to_come(4, wanted=3, needed=2, waves_left=20) == 0


def test_windows_that_leave_nothing_out_do_not_come_unless_needed() -> None:
    """Two of them take three waves; one is to be left out."""
    assert windows_to_come(3, wanted=5, needed=3, waves_left=4) == 2
    assert windows_to_come(3, wanted=5, needed=3, waves_left=3.9) == 0
    assert windows_to_come(3, wanted=5, needed=4, waves_left=3.9) == 2


def test_gaps_share_what_windows_leave() -> None:
    """The last gap is half as long as the others; windows take a wave and a half each."""
    assert waves_of_gap(28, 2) == 10  # 10, a window, 10, a window, 5
    assert waves_of_gap(28.9, 2) == 10 and waves_of_gap(29, 2) == 11  # 26 / 2.5
    assert waves_of_gap(3.9, 2) == 0 and waves_of_gap(4, 2) == 1
    assert waves_of_gap(2, 3) == 0
    assert waves_of_gap(254, 1) == 169  # 252.5 / 1.5
    assert waves_of_gap(7, 0) >= 7  # all that is left


# --- the controller -----------------------------------------------------------------------------------------


def test_five_waves_are_the_fewest() -> None:
    for ctas, awaited in ((50, 10), (49, None)):
        controller = Systematic()
        controller.begin(view(ctas=ctas, wave=10))
        assert controller.awaited_cta == awaited


def test_a_gap_is_left_out_in_steps_after_a_first_wave() -> None:
    """Of 56 waves, 53 are left after the first window. Two more are planned, with gaps of 50 / 2.5 = 20
    waves, a fifth of which are four. Half a wave after the gap, the next window begins."""
    controller = Systematic()
    controller.begin(view(ctas=560, wave=10))
    skipped = 0

    def at(wave: int) -> Interval:
        counters = {"ctas": 10 * wave, "warp_instructions": 100 * wave, "thread_instructions": 3200 * wave}
        counters |= {"dram_reads": 0, "dram_writes": 0}
        work = {"skipped_warp_instructions": 10 * skipped, "skipped_thread_instructions": 320 * skipped}
        return Interval(0, 0, 1000 * wave, counters, {}, skipped_ctas=skipped, **work)

    assert controller.observe(at(1)) == controller.observe(at(2)) == GO_ON
    steps = []
    while isinstance(decision := controller.observe(at(3)), Skip):
        steps.append(decision.ctas // 10)
        skipped += decision.ctas
    assert steps == [1, 4, 4, 4, 4, 3]
    assert controller.awaited_cta == 30 + 200 + 5
