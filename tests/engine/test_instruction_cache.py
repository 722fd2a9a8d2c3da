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
