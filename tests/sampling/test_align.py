"""Pairing the launches of two profiles."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simt.errors import ProfileError
from simt.profile import Profile
from simt.sampling.align import align


def profile(
    names: list[str], annotations: list[str] | None = None, times: list[float] | None = None
) -> Profile:
    n = len(names)
    columns = {"launch": np.arange(n) * 2 + 5, "name": names, "duration_ns": times or [1.0] * n}
    if annotations is not None:
        columns["annotation"] = annotations
    return Profile(pl.DataFrame(columns), source="first")


def longest(a: str, b: str) -> int:
    """Length of a longest common subsequence, by the textbook's table."""
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            table[i + 1][j + 1] = table[i][j] + 1 if x == y else max(table[i][j + 1], table[i + 1][j])
    return table[-1][-1]


def test_equal_names_pair_launch_by_launch_whatever_the_ids() -> None:
    found = align(profile(list("abca")), profile(list("abca")))
    assert found.rows.tolist() == found.truth_rows.tolist() == [0, 1, 2, 3]
    assert found.how == "launch by launch"


@given(st.text("abc", min_size=1, max_size=25), st.text("abc", min_size=1, max_size=25))
def test_names_pair_by_a_longest_common_sequence(a: str, b: str) -> None:
    a, b = a + "abc", b + "abc"  # every name occurs in both: the same kind of GPU
    found = align(profile(list(a)), profile(list(b)), threshold=0)
    assert len(found) == longest(a, b)
    assert [a[i] for i in found.rows] == [b[j] for j in found.truth_rows]
    assert (np.diff(found.rows) > 0).all() and (np.diff(found.truth_rows) > 0).all()


def test_long_equal_stretches_with_gaps() -> None:
    random = np.random.default_rng(0)
    a = [f"k{i}" for i in random.integers(0, 9, 5000)]
    keep = np.sort(random.permutation(5000)[:4900])
    found = align(profile(a), profile([a[i] for i in keep]))
    assert len(found) == 4900
    assert found.truth_share == 1.0 and found.share == 0.98


def test_other_kernels_pair_by_runs_of_operators_of_equal_length() -> None:
    ours = profile(list("abcdef"), ["conv", "conv", "mm", "mm", "add", "add"], [1, 1, 4, 2, 1, 1])
    theirs = profile(list("uvwxy"), ["conv", "conv", "mm", "add", "add"])
    found = align(ours, theirs, threshold=0.3)  # two launches for the product on one GPU, one on the other
    assert found.rows.tolist() == [0, 1, 4, 5]
    assert found.truth_rows.tolist() == [0, 1, 3, 4]
    assert (found.share, found.truth_share) == (0.4, 0.8)


def test_other_programs_are_refused_with_the_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simt.sampling.align.MAX_EDITS", 200)
    with pytest.raises(
        ProfileError, match=r"only 1 launches pair .* expected two profiles of the same program"
    ):
        align(profile(list("aabbc")), profile(list("cddee")))
    random = np.random.default_rng(1)
    a, b = (profile([f"k{i}" for i in random.integers(0, 40, 600)]) for _ in range(2))
    with pytest.raises(ProfileError, match="more than 200"):
        align(a, b)
