"""Total time of launches that may run concurrently."""

from __future__ import annotations

from collections.abc import Sequence

Interval = tuple[int, int]  # half open


def covered(intervals: Sequence[Interval]) -> int:
    """Length of the union of the intervals."""
    total, reached = 0, 0
    for start, end in sorted(intervals):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total


def shares(intervals: Sequence[Interval]) -> list[float]:
    """The part of `covered` that each interval accounts for: time covered by several is divided evenly."""
    moments = sorted({moment for interval in intervals for moment in interval})
    change = dict.fromkeys(moments, 0)
    for start, end in intervals:
        change[start] += 1
        change[end] -= 1
    until, under_way, before = {}, 0, 0
    passed = 0.0  # the part of one that ran all the time
    for moment in moments:
        if under_way:
            passed += (moment - before) / under_way
        until[moment] = passed
        under_way, before = under_way + change[moment], moment
    return [until[end] - until[start] for start, end in intervals]
