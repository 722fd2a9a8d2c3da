"""Which range is innermost, against a slow search."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from simt.profile.ranges import innermost

RANGE = st.tuples(st.integers(0, 2), st.integers(0, 20), st.integers(0, 10))


@given(st.lists(RANGE, max_size=12), st.lists(st.tuples(st.integers(0, 3), st.integers(0, 30)), max_size=12))
def test_latest_started_range_that_holds_the_moment(
    ranges: list[tuple[int, int, int]], moments: list[tuple[int, int]]
) -> None:
    thread = np.array([r[0] for r in ranges], np.int64)
    start = np.array([r[1] for r in ranges], np.float64)
    end = start + np.array([r[2] for r in ranges], np.float64)
    found = innermost(
        thread,
        start,
        end,
        np.array([m[0] for m in moments], np.int64),
        np.array([m[1] for m in moments], np.float64),
    )
    for (of, at), index in zip(moments, found.tolist(), strict=True):
        holding = [i for i in range(len(ranges)) if thread[i] == of and start[i] <= at <= end[i]]
        if not holding:
            assert index == -1
            continue
        best = max((start[i], -end[i]) for i in holding)
        assert index in holding
        assert (start[index], -end[index]) == best
