"""Instruction fetch: requests that the L1 cannot accept are retried."""

from __future__ import annotations

from pathlib import Path

import pytest

from simt.trace.writer import Warp
from support.tiny import run, write_kernel

LINES, WARPS = 6, 4
"""Lines of 128 bytes of each warp's code, of eight instructions each; EXIT is the last one."""


def at(first_line: int) -> Warp:
    w = Warp()
    w.pc = 128 * first_line
    for _ in range(8 * LINES - 1):
        w.op("FFMA", 8, (4, 5))
    return w


@pytest.mark.parametrize("entries", [1, 2, 16])
def test_every_line_is_fetched_whatever_the_misses_under_way(entries: int, tmp_path: Path) -> None:
    """Warps of four sub-cores miss in different lines at once: those without an MSHR wait."""
    trace = write_kernel(tmp_path / "t", [[at(16 * i) for i in range(WARPS)]])
    cache = "sm.front_end.instruction_cache."
    settings = {cache + "prefetch_lines": 0, cache + "l1.mshr_entries": entries}
    record = run(trace, "qv100", settings)[0]
    assert sum(record["l2"]["instruction_read"].values()) == 4 * LINES * WARPS  # sectors


def test_code_is_in_the_l2_when_it_is_first_launched(tmp_path: Path) -> None:
    """Kernels with the same addresses have code of their own; launched again, it is where it was."""
    one = write_kernel(tmp_path / "t", [[at(0)]], name="one")
    write_kernel(one, [[at(0)]], 2, name="other")
    write_kernel(one, [[at(0)]], 3, name="one")

    def look_ups(code_in_l2: bool) -> list[dict[str, int]]:
        cache = "sm.front_end.instruction_cache."
        settings = {"sm.count": 1, cache + "prefetch_lines": 0, cache + "code_in_l2": code_in_l2}
        found = [record["l2"]["instruction_read"] for record in run(one, "qv100", settings)]
        return [{outcome: count for outcome, count in each.items() if count} for each in found]

    assert look_ups(True) == [{"hit": 4 * LINES}, {"hit": 4 * LINES}, {}]
    assert look_ups(False)[0].keys() != {"hit"} and look_ups(False)[1:] == [{}, {}]


def straight(lines: int) -> Warp:
    """Independent instructions, one a cycle; EXIT is the last one."""
    w = Warp()
    for i in range(8 * lines - 1):
        w.op("FFMA", 8 + i % 4, (4, 5))
    return w


def launches(folder: Path, lines: int, overrides: dict[str, object] | None = None) -> list[int]:
    """Cycles of two launches of one warp on an RTX 3060, one after the other."""
    trace = write_kernel(folder, [[straight(lines)]])
    write_kernel(trace, [[straight(lines)]], 2)
    found = run(trace, "rtx3060", overrides or {})
    return [r["end_cycle"] - r["start_cycle"] - r["launch_latency"] for r in found]


def test_straight_line_code_comes_from_the_l2_as_fast_as_on_silicon(tmp_path: Path) -> None:
    """An RTX 3060 takes 17.82 cycles for four FFMAs, half a line, that come from the L2, and 4 if the launch
    before has executed them (YKTian-x2b/AmpereArchViaMicroBenchMark, res_I-CacheSize.txt).
    """
    few, many = launches(tmp_path / "few", 200), launches(tmp_path / "many", 400)
    assert (many[0] - few[0]) / 200 == pytest.approx(2 * 17.82, rel=0.005)
    within_l0 = launches(tmp_path / "within", 240)
    assert within_l0[1] - few[1] == 8 * 40
    beyond_l1 = launches(tmp_path / "beyond", 1100)  # 137.5 KB, as often as one likes
    assert beyond_l1[1] == beyond_l1[0]


def test_the_line_behind_those_that_come_with_a_miss_waits_for_the_prefetch(tmp_path: Path) -> None:
    latency = "sm.front_end.instruction_cache.prefetch_latency"
    found = {
        (lines, cycles): launches(tmp_path / f"{lines}-{cycles}", lines, {latency: cycles})[0]
        for lines in (8, 9, 10)
        for cycles in (285, 286)
    }
    assert found[9, 285] - found[8, 285] == 8
    assert found[9, 286] == found[9, 285] and found[10, 286] == found[10, 285] + 1


def test_the_next_launch_finds_its_code_where_the_last_one_ran(tmp_path: Path) -> None:
    first, second = launches(tmp_path / "same", 30)
    assert second < first - 200
    first, second = launches(tmp_path / "other", 30, {"launch.from_first_sm": False})
    assert second >= first
