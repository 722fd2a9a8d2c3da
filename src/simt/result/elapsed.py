"""Total time of launches that may run concurrently."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

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
    if all(before[1] <= after[0] for before, after in pairwise(intervals)):  # one after the other
        return [float(end - start) for start, end in intervals]
    import numpy as np  # few runs need it, and it takes a tenth of a command's start

    # Arrays: a run may have hundreds of thousands of launches.
    bounds = np.array(intervals, np.int64)
    moments, places = np.unique(bounds, return_inverse=True)
    starts, ends = places.reshape(bounds.shape).T
    change = np.zeros(len(moments), np.int64)
    np.add.at(change, starts, 1)
    np.add.at(change, ends, -1)
    under_way = np.cumsum(change)[:-1]
    # The part of an interval that had run all the time, at each moment.
    passed = np.zeros(len(moments))
    np.cumsum(np.where(under_way > 0, np.diff(moments) / np.maximum(under_way, 1), 0.0), out=passed[1:])
    own: list[float] = (passed[ends] - passed[starts]).tolist()
    return own
