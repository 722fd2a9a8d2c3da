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
