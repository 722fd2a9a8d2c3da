"""An L1 instruction cache that several SMs share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from simt.errors import SpecError
from simt.spec import load_spec
from simt.trace.writer import Warp
from support.tiny import run, write_kernel

LINES = 20
"""Lines of 64 bytes that the straight program below has, of four instructions each; EXIT is the last one."""


def straight() -> Warp:
    w = Warp()
    for _ in range(4 * LINES - 1):
        w.op("FFMA", 8, (4, 5))
    return w


def simulate(folder: Path, ctas: int, overrides: dict[str, Any], **options: Any) -> dict[str, Any]:
    if not folder.exists():
        write_kernel(folder, [[straight()] for _ in range(ctas)])
    prefix = "sm.front_end.instruction_cache."
    chosen = {"sm.count": 8, **{k if k.startswith("sm.") else prefix + k: v for k, v in overrides.items()}}
    return run(folder, "r9nano", chosen, **options)[0]


@pytest.mark.parametrize(("sharers", "caches"), [(1, 8), (2, 4), (4, 2), (8, 1), (64, 1), (3, 3)])
def test_each_line_is_fetched_once_by_each_cache(sharers: int, caches: int, tmp_path: Path) -> None:
    """Eight SMs run the same cold code at once: a request for an outstanding line waits for it."""
    record = simulate(tmp_path / "t", 8, {"l1_shared_by": sharers, "prefetch_lines": 0})
    reads = sum(record["l2"]["instruction_read"].values())
    assert reads == 2 * LINES * caches  # sectors


def test_every_line_costs_the_latency(tmp_path: Path) -> None:
    def cycles(**overrides: Any) -> int:
        record = simulate(tmp_path / "t", 1, {"sm.count": 1, "prefetch_lines": 0, **overrides})
        return int(record["end_cycle"] - record["start_cycle"])

    assert cycles(l1_latency=48) - cycles(l1_latency=32) == 16 * LINES


def test_what_another_sm_has_fetched_is_a_hit(tmp_path: Path) -> None:
    """With one warp per SM, nine CTAs on eight SMs: the last one finds everything cached."""
    record = simulate(
        tmp_path / "t", 9, {"sm.max_ctas": 1, "prefetch_lines": 0, "l0_lines": 1, "l1_shared_by": 8}
    )
    counters = record["counters"]
    assert counters["instruction_cache_misses"] == 8 * LINES
    assert counters["instruction_cache_hits"] >= LINES


@pytest.mark.parametrize("prefetch", [0, 2])
def test_windows_and_threads_change_nothing(prefetch: int, tmp_path: Path) -> None:
    overrides = {"prefetch_lines": prefetch, "l1_shared_by": 3, "l0_lines": 2, "l1.sets": 2}
    first = simulate(tmp_path / "t", 50, overrides)
    for threads, window in ((1, 1), (2, 3), (4, 0)):
        assert simulate(tmp_path / "t", 50, overrides, threads=threads, window=window) == first


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        ("l1_latency", 0, "at least 1 where SMs share"),
        ("l0_lines", 0, "expected a cache where SMs share"),
        ("l1_shared_by", 0, "expected 1 to 64 SMs"),
    ],
)
def test_what_does_not_fit_is_refused(path: str, value: int, reason: str) -> None:
    with pytest.raises(SpecError, match=reason):
        load_spec("r9nano", {f"sm.front_end.instruction_cache.{path}": value})
