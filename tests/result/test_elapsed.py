"""Time of overlapping launches: each cycle counts once, wherever a total is shown."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import simt
from simt.result import Result, sentences
from simt.result.elapsed import covered, shares
from support.fake_gpu import installed
from support.launches import MACHINE, launch

_intervals = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 30)).map(lambda x: (x[0], sum(x))))


@given(_intervals)
def test_shares_against_counting_cycle_by_cycle(intervals: list[tuple[int, int]]) -> None:
    running = [[a <= t < b for a, b in intervals] for t in range(100)]
    assert covered(intervals) == sum(map(any, running))
    by_hand = [sum(row[i] / sum(row) for row in running if row[i]) for i in range(len(intervals))]
    assert shares(intervals) == pytest.approx(by_hand)


def test_every_place_shows_the_same_total() -> None:
    # 4,500 cycles each: the second starts 1,000 after the first, the third when nothing runs.
    with installed():
        provenance = simt.simulate("input").provenance
    launches = (launch(0, start=0), launch(1, start=1000), launch(2, start=9000))
    result = Result(launches, MACHINE, provenance)
    assert result.totals.cycles == 5500 + 4500
    for text in (repr(result), " ".join(sentences(result)), result._repr_html_()):
        assert "10,000 cycles" in text and "13,500" not in text
    assert re.search(r"All 3 launches \(10,000 cycles\)", repr(result))
