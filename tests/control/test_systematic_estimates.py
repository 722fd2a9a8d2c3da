"""What systematic sampling makes of windows and of what it leaves out, on a GPU of which everything is known:
CTAs are dispatched one after the other, each when the one before has had its time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pytest

from simt.control import Interval, LaunchView, Skip, Systematic
from simt.control.projection import Projection

WAVE, CTAS = 100, 4000
PEAK = 32.0  # bytes per core cycle: one sector

Of = Callable[[int], float]  # by CTA


@dataclass
class Counted(Mapping[str, int]):
    """Counters that are zero unless given."""

    given: dict[str, int]

    def __getitem__(self, name: str) -> int:
        return self.given[name]

    def __iter__(self):  # type: ignore[no-untyped-def]
        return iter(self.given)

    def __len__(self) -> int:
        return len(self.given)


@dataclass(frozen=True)
class Found:
    """left_out: CTAs, as numbers. added: core cycles for them. half: relative half width of the cycles."""

    left_out: list[int]
    added: float
    half: float
    projection: Projection


def sample(cycles: Of, instructions: Of, sectors: Of, tags: Of, after: float = 1.0, slow: int = 0) -> Found:
    """Runs the launch. tags: the sectors that what is left out seems to exchange. After something has been
    left out, CTAs take and exchange `after` times as much; the next `slow` CTAs take 1.3 times as long."""
    view = LaunchView(
        index=0,
        id=1,
        name="k",
        grid=(CTAS, 1, 1),
        block=(32, 1, 1),
        warps_per_cta=1,
        ctas_per_sm=WAVE,
        sm_count=1,
        l2_lines=1 << 20,
        dram_bytes_per_cycle=PEAK,
    )
    controller = Systematic()
    controller.begin(view)
    following: list[int] = list(range(CTAS))
    left_out: list[int] = []
    seen = {"ctas": 0, "ctas_finished": 0, "warp_instructions": 0, "dram_reads": 0, "dram_writes": 0}
    skipped = np.zeros(4)
    work = moved = clock = 0.0
    disturbed = 0

    def interval(end: int) -> Interval:
        return Interval(
            0,
            0,
            end,
            Counted(dict(seen)),
            {},
            skipped_ctas=int(skipped[0]),
            skipped_warp_instructions=int(skipped[1]),
            skipped_thread_instructions=int(32 * skipped[1]),
            skipped_dram_sectors=int(skipped[2]),
        )

    def observe() -> bool:
        """Whether CTAs are left out, of which there is then another observation."""
        nonlocal following, left_out, skipped
        decision = controller.observe(interval(round(clock)))
        if not isinstance(decision, Skip):
            return False
        gone, following = following[: decision.ctas], following[decision.ctas :]
        left_out += gone
        skipped += [len(gone), sum(map(instructions, gone)), sum(map(tags, gone)), 0]
        return True

    while following:
        cta = following.pop(0)
        seen["ctas"] += 1
        seen["ctas_finished"] = max(0, seen["ctas"] - WAVE)
        seen["warp_instructions"], seen["dram_reads"] = round(work), round(moved)
        if controller.awaited_cta is not None and cta >= controller.awaited_cta:
            while observe():
                disturbed = slow
        factor = after if left_out else 1.0
        clock += factor * cycles(cta) * (1.3 if disturbed else 1.0)
        disturbed = max(0, disturbed - 1)
        work += instructions(cta)
        moved += factor * sectors(cta)
    seen["ctas_finished"] = seen["ctas"]
    seen["warp_instructions"], seen["dram_reads"] = round(work), round(moved)
    end = interval(round(clock))
    projection = controller.project(view, end)
    return Found(left_out, projection.cycles - end.end, projection.half_widths["cycles"], projection)


def steady(value: float) -> Of:
    return lambda cta: value


def test_an_even_launch_is_estimated_exactly() -> None:
    found = sample(steady(100), steady(1000), steady(10), steady(10))
    assert found.added == pytest.approx(100 * len(found.left_out), rel=1e-3)
    assert len(found.left_out) % WAVE == 0 and len(found.left_out) >= 0.8 * CTAS
    # Two windows that agree: 2.45 (Student, 6 degrees of freedom) times what is left of 1 % by the four
    # degrees of freedom of the prior, the root of 2/3, by the root of two windows; and the allowance.
    share = len(found.left_out) / CTAS
    spread = 2.447 * 0.01 * (4 / 6) ** 0.5
    allowance = 0.08 * (len(found.left_out) / WAVE) ** 0.5 * WAVE / CTAS
    assert spread * share / 2**0.5 <= found.half - allowance <= spread * share


def test_windows_that_exchange_less_with_dram_than_what_is_left_out_are_scaled() -> None:
    """DRAM is in use all the time. CTAs exchange a fifth less after a gap, and take a fifth less time; those
    left out exchange 96 sectors, by the L2's tags."""
    found = sample(steady(100), steady(1000), steady(96), steady(96), after=0.8)
    assert found.added == pytest.approx(100 * len(found.left_out), rel=2e-3)


def test_tags_that_see_far_less_than_windows_scale_nothing() -> None:
    found = sample(steady(100), steady(1000), steady(96), steady(40))
    assert found.added == pytest.approx(100 * len(found.left_out), rel=1e-3)


def test_traffic_below_dram_s_bandwidth_scales_nothing() -> None:
    found = sample(steady(100), steady(1000), steady(30), steady(33))
    assert found.added == pytest.approx(100 * len(found.left_out), rel=1e-3)


def test_a_cold_beginning_decays() -> None:
    """The first waves take 1.4, 1.2, 1.1, 1.05, ... times as long as later ones."""

    def cycles(cta: int) -> float:
        return 100 * (1 + 0.4 * 0.5 ** (cta // WAVE))

    found = sample(cycles, steady(1000), steady(10), steady(10))
    true = sum(map(cycles, found.left_out))
    assert found.added == pytest.approx(true, rel=2e-3)


@pytest.mark.parametrize("change", [900, 1730, 2650, 2700, 3500])
def test_ctas_with_more_instructions_are_as_the_window_that_has_them(change: int) -> None:
    """From some CTA on, CTAs have half as many instructions, and each takes 1.5 times as long."""
    found = sample(
        lambda cta: 100 if cta < change else 75,
        lambda cta: 1000 if cta < change else 500,
        steady(10),
        steady(10),
    )
    true = sum(100 if cta < change else 75 for cta in found.left_out)
    if change < 3000:  # later, no window follows in which they could be seen
        assert found.added == pytest.approx(true, rel=0.02)
    assert abs(found.added - true) <= found.half * found.projection.cycles


def test_a_change_of_traffic_tells_how_much_is_as_each_window() -> None:
    """From CTA 1,500 on, write-backs double the traffic to DRAM, which sets the pace."""

    def cycles(cta: int) -> float:
        return 60 if cta < 1500 else 100

    def sectors(cta: int) -> float:
        return 48 if cta < 1500 else 96

    found = sample(cycles, steady(1000), sectors, sectors)
    assert found.added == pytest.approx(sum(map(cycles, found.left_out)), rel=0.02)


def test_windows_that_vary_are_more_and_state_more() -> None:
    """Every second wave takes a fifth longer."""
    even = sample(steady(100), steady(1000), steady(10), steady(10))
    found = sample(lambda cta: 120 if cta // WAVE % 2 else 100, steady(1000), steady(10), steady(10))
    true = sum(120 if cta // WAVE % 2 else 100 for cta in found.left_out)
    assert len(found.left_out) < len(even.left_out)
    assert found.half > even.half
    assert abs(found.added - true) <= found.half * found.projection.cycles


def test_what_comes_right_after_a_gap_may_be_part_of_the_warm_up() -> None:
    """A wave and a half after each gap take longer, while two thirds of DRAM's bandwidth are in use:
    windows that follow each other at once tell."""
    found = sample(steady(100), steady(1000), steady(66), steady(66), slow=3 * WAVE // 2)
    assert found.added == pytest.approx(100 * len(found.left_out), rel=1e-3)


def test_the_first_two_waves_may_swing() -> None:
    found = sample(lambda cta: {1: 130, 2: 70}.get(cta // WAVE, 100), steady(1000), steady(10), steady(10))
    assert found.added == pytest.approx(100 * len(found.left_out), rel=1e-3)


@pytest.mark.parametrize(("waves_of_their_own", "windows"), [((1,), 3), ((1, 2), 5)])
def test_three_windows_without_the_cold_one_have_to_agree_at_much_use_of_dram(
    waves_of_their_own: tuple[int, ...], windows: int
) -> None:
    """Three fifths of DRAM's peak. The cold window alone takes 3 % longer, or also the first one after it."""
    found = sample(
        lambda cta: 103 if cta // WAVE in waves_of_their_own else 100, steady(1000), steady(60), steady(60)
    )
    assert int(found.projection.reason.split()[0]) == windows
