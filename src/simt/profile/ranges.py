"""Finds the innermost range of the CPU timeline at a point in time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Times = npt.NDArray[np.float64] | npt.NDArray[np.int64]


def innermost(
    thread: npt.NDArray[np.int64],
    start: Times,
    end: Times,
    at_thread: npt.NDArray[np.int64],
    at: Times,
) -> npt.NDArray[np.int64]:
    """For each time `at` on `at_thread`, the index of the latest-started range that contains it; -1 for none.

    Ranges include their ends. If ranges start together, the shorter counts as started later. Ranges need not
    be properly nested. The algorithm makes one pass over ranges and times in chronological order, with a
    stack per thread.
    """
    found = np.full(len(at), -1, np.int64)
    threads = np.unique(at_thread)
    of_range = np.flatnonzero(np.isin(thread, threads))
    of_range = of_range[np.lexsort((-end[of_range], start[of_range], thread[of_range]))]
    moments = np.lexsort((at, at_thread))
    range_bounds = (
        np.searchsorted(thread[of_range], threads, "left"),
        np.searchsorted(thread[of_range], threads, "right"),
    )
    at_sorted = at_thread[moments]
    moment_bounds = np.searchsorted(at_sorted, threads, "left"), np.searchsorted(at_sorted, threads, "right")
    for r0, r1, m0, m1 in zip(*range_bounds, *moment_bounds, strict=True):
        indices = of_range[r0:r1].tolist()
        starts, ends = start[of_range[r0:r1]].tolist(), end[of_range[r0:r1]].tolist()
        stack: list[
            int
        ] = []  # positions of ranges in order of start; ended ones are dropped when encountered
        position, count = 0, len(indices)
        answers = []
        for moment in at[moments[m0:m1]].tolist():
            while position < count and starts[position] <= moment:
                while stack and ends[stack[-1]] < starts[position]:
                    stack.pop()
                stack.append(position)
                position += 1
            while stack and ends[stack[-1]] < moment:
                stack.pop()
            answers.append(indices[stack[-1]] if stack else -1)
        found[moments[m0:m1]] = answers
    return found
