"""Selections of kernels by id, range and name."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simt.errors import SelectionError
from simt.selection import Selection, canonical, select


@dataclass(frozen=True)
class Kernel:
    id: int
    name: str


KERNELS = [
    Kernel(1, "vecadd"),
    Kernel(2, "gemm_128x64"),
    Kernel(3, "gemm_64,64"),
    Kernel(7, "reduce(float*, int)"),
    Kernel(12, "vecadd"),
    Kernel(13, "_Z7softmaxPf"),
    Kernel(14, "_ZN1a4scanIiLi3EEEvPT_i"),
]


@pytest.mark.parametrize(
    ("selection", "positions"),
    [
        (None, [0, 1, 2, 3, 4, 5, 6]),
        (7, [3]),
        ("3-7,12", [2, 3, 4]),
        ("7-", [3, 4, 5, 6]),
        ("-2", [0, 1]),
        ([12, "2-3"], [1, 2, 4]),
        ("vecadd", [0, 4]),
        ("gemm*", [1, 2]),
        ("GEMM*", None),
        ("*64", [1, 2]),
        ("/gemm_\\d+x/", [1]),
        ("/64,64/", [2]),
        ("/^reduce/ , 1", [0, 3]),
        ("3,3,1", [0, 2]),
        ("softmax", [5]),
        ("softmax(float*)", [5]),
        ("_Z7softmaxPf", [5]),
        ("/^softmax$/", [5]),
        ("reduce", [3]),
        ("reduce(float*, int),vecadd", [0, 3, 4]),
        ("a::scan<int, 3>(int*, int),1", [0, 6]),
        ("a::scan,vecadd", [0, 4, 6]),
        ("scan", [6]),
    ],
)
def test_selection(selection: Selection, positions: list[int] | None) -> None:
    if positions is None:
        with pytest.raises(SelectionError, match="matches none of the 7 kernels"):
            select(KERNELS, selection)
    else:
        assert select(KERNELS, selection) == positions


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        (
            "99",
            r"'99' matches none of the 7 kernels \(ids 1 to 14, names vecadd, gemm_128x64, gemm_64,64, ...\)",
        ),
        ("7-3", "range '7-3' ends before it begins"),
        ("/(/", "'/\\(/' is not a regular expression"),
        ("", "nothing selected by ''"),
        (" , ", "nothing selected"),
        ([], "nothing selected"),
    ],
)
def test_refusals(selection: Selection, message: str) -> None:
    with pytest.raises(SelectionError, match=message):
        select(KERNELS, selection)


@given(st.sets(st.integers(0, 40), min_size=1), st.integers(0, 40), st.integers(0, 40))
def test_ranges_hold_both_ends(ids: set[int], a: int, b: int) -> None:
    kernels = [Kernel(i, "k") for i in sorted(ids)]
    low, high = min(a, b), max(a, b)
    expected = [i for i, kernel in enumerate(kernels) if low <= kernel.id <= high]
    if expected:
        assert select(kernels, f"{low}-{high}") == expected
    else:
        with pytest.raises(SelectionError):
            select(kernels, f"{low}-{high}")


@given(st.text(max_size=20))
def test_any_text_selects_or_is_refused(text: str) -> None:
    try:
        found = select(KERNELS, text)
    except SelectionError:
        return
    assert found and found == sorted(set(found)) and found[-1] < len(KERNELS)


def test_canonical_form() -> None:
    assert canonical(None) is None
    assert canonical(["2-3", 7]) == "2-3,7"
