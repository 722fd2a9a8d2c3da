"""Host arrays as arguments: what the kernel sees, and what is copied back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import simt
from simt.errors import LaunchError

SOURCE = """
extern "C" __global__ void add(int* o, const int* x, const int* y, int n) {
  for (int i = 0; i < n; ++i) o[i] = 3 * x[i] + y[i];
}
extern "C" __global__ void look(const int* x, int* sum, int n) {
  for (int i = 0; i < n; ++i) *sum += x[i];
}
extern "C" __global__ void set_bytes(unsigned char* p, int n, int value) {
  for (int i = 0; i < n; ++i) p[i] = value;
}
"""


@pytest.fixture(scope="module")
def module() -> Any:
    return simt.GPU("qv100", functional=True).compile(SOURCE)


def add(o: Any, x: Any, y: Any) -> None:
    """What the kernel does, applied to the host's memory as it is."""
    for i in range(o.size):
        o.flat[i] = 3 * x.flat[i] + y.flat[i]


def test_views_without_gaps_share_one_buffer(module: Any) -> None:
    x = np.arange(16, dtype=np.int32)
    expected = x.copy()
    add(expected[8:], expected[:8], expected[4:12])
    module.add[1, 1](x[8:], x[:8], x[4:12], 8)
    assert (x == expected).all()

    o, x = np.zeros(8, np.int32), np.arange(16, dtype=np.int32)
    module.add[1, 1](o, x[:8], x, 8)  # the smaller one first
    assert (o == 4 * x[:8]).all()
    # Other types over the same bytes.
    module.set_bytes[1, 1](x.view(np.uint8)[4:8], 4, 255)
    module.add[1, 1](x[:1], x.view(np.uint8)[4:8], x[:1], 1)
    assert x[:2].tolist() == [-3, -1]


def test_a_view_with_gaps_is_a_copy_without(module: Any) -> None:
    o, x = np.zeros(16, np.int32), np.arange(16, dtype=np.int32)
    module.add[1, 1](o[:8], x, x[::2], 8)
    assert (o[:8] == 3 * x[:8] + x[::2]).all()
    square = x.reshape(4, 4)
    module.add[1, 1](o, square, square.T, 16)
    assert (o == (3 * square + square.T).ravel()).all()
    before = x.copy()
    module.add[1, 1](x[::2], x[1::2], x[1::2], 8)  # interleaved, without shared elements
    assert (x[::2] == 4 * before[1::2]).all() and (x[1::2] == before[1::2]).all()
    fortran = np.asfortranarray(before.reshape(4, 4))
    module.add[1, 1](o, fortran, np.zeros(16, np.int32), 16)
    assert (o == 3 * before).all()


def test_writing_what_another_view_shows_with_gaps_is_refused(module: Any) -> None:
    x = np.arange(16, dtype=np.int32)
    for o, y in ((x[:8], x[::2]), (x[::2], x[:8]), (x[::-1][:8], x[4:12]), (x[::3][:4], x[::2][:4])):
        with pytest.raises(
            LaunchError, match=r"`add` has written to argument 1, which shares memory with arg"
        ):
            module.add[1, 1](o, np.ones(8, np.int32), y, min(o.size, y.size))
        assert (x == np.arange(16)).all()
    window = np.lib.stride_tricks.as_strided(x, (4, 4), (4, 4))
    with pytest.raises(LaunchError, match="argument 1, which shows the same memory more than once"):
        module.add[1, 1](window, np.ones(16, np.int32), np.ones(16, np.int32), 16)
    assert (x == np.arange(16)).all()
    sums = np.zeros(1, np.int32)
    module.look[1, 1](window, sums, 16)  # reads are correct
    assert sums[0] == window.sum()


def test_what_a_kernel_writes_is_never_dropped(module: Any) -> None:
    class Copies:
        def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
            return np.arange(8, dtype=np.int32)

    class Shares(Copies):
        def __init__(self) -> None:
            self.values = np.arange(8, dtype=np.int32)

        def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
            return self.values

    one, fixed = np.ones(8, np.int32), np.arange(8, dtype=np.int32)
    fixed.flags.writeable = False
    o, other = np.zeros(8, np.int32), np.zeros(8, np.int32)
    module.add[1, 1](o, fixed, Copies(), 8)  # reads are correct
    assert (o == 4 * fixed).all()
    for target, words in (
        (fixed, "argument 1, which is read-only"),
        (bytes(32), "argument 1, which is read-only"),
        (fixed[::2], "argument 1, which is read-only"),
        (Copies(), "argument 1, which is a copy that Copies.__array__ has made"),
    ):
        with pytest.raises(LaunchError, match=f"`add` has written to {words}: nothing was copied back"):
            module.add[1, 1](target, one, one, 4)
    assert (fixed == np.arange(8)).all()
    shares = Shares()
    module.add[1, 1](shares, one, one, 8)
    assert (shares.values == 4).all()
    # A read-only view of memory that is written through another view.
    whole = np.arange(8, dtype=np.int32)
    part = whole[:4]
    part.flags.writeable = False
    module.add[1, 1](whole[2:6], part, part, 4)
    assert whole.tolist() == [0, 1, 0, 4, 0, 16, 6, 7]
    with pytest.raises(LaunchError, match="argument 1, which is read-only"):
        module.add[1, 1](part, one, other, 4)


def test_only_what_was_written_is_copied_back(module: Any, tmp_path: Path) -> None:
    file = tmp_path / "values"
    np.arange(1024, dtype=np.int32).tofile(file)
    mapped, sums = np.memmap(file, np.int32, "r"), np.zeros(1, np.int32)
    module.look[1, 1](mapped, sums, 1024)
    assert sums[0] == np.arange(1024).sum()


@pytest.mark.parametrize(
    "values",
    [
        np.arange(4, dtype=">i4"),
        np.array(["a", "bc"]),
        np.array([b"a"]),
        np.array([{}, None], object),
        np.array(["2020-01-01"], "datetime64[D]"),
        np.array([1], "timedelta64[s]"),
        np.zeros(2, [("a", "i4"), ("b", ">f4")]),
        np.zeros(2, [("a", "i4"), ("b", object)]),
        np.zeros(2, np.longdouble),
    ],
    ids=lambda values: str(values.dtype),
)
def test_elements_that_no_gpu_has(module: Any, values: np.ndarray) -> None:
    with pytest.raises(LaunchError, match=r"argument 2: elements are .* which a GPU has no type for"):
        module.add[1, 1](np.zeros(8, np.int32), values, np.zeros(8, np.int32), 1)
    with pytest.raises(LaunchError, match=r"elements are .* which a GPU has no type for"):
        module.gpu.array(values)
    with pytest.raises(LaunchError, match=r"elements are .* which a GPU has no type for"):
        module.gpu.empty(3, values.dtype)


SIZE, N = 24, 6


@st.composite
def views(draw: st.DrawFn) -> tuple[int, int, bool]:
    """First element, step, whether it is writable."""
    step = draw(st.sampled_from([1, 1, 1, 2, 3, -1, -2, 0]))
    low, high = sorted((0, (N - 1) * step))
    return draw(st.integers(-low, SIZE - 1 - high)), step, draw(st.integers(0, 7)) > 0


@given(st.tuples(views(), views(), views()))
def test_overlapping_views_are_right_or_refused(
    module: Any, three: tuple[tuple[int, int, bool], ...]
) -> None:
    def arguments(buffer: np.ndarray) -> list[np.ndarray]:
        return [np.lib.stride_tricks.as_strided(buffer[at:], (N,), (4 * step,)) for at, step, _ in three]

    buffer, reference = np.arange(1, SIZE + 1, dtype=np.int32), np.arange(1, SIZE + 1, dtype=np.int32)
    o, x, y = arguments(buffer)
    for view, (_, _, can_be_written) in zip((o, x, y), three, strict=True):
        if not can_be_written:
            view.flags.writeable = False
    _, step, writable = three[0]
    places = [frozenset(range(first, first + N * s, s) if s else (first,)) for first, s, _ in three]
    plain = all(s == 1 for _, s, _ in three)
    apart = step and all(places[0].isdisjoint(other) for other in places[1:])
    try:
        module.add[1, 1](o, x, y, N)
    except LaunchError:
        assert not (writable and (plain or apart)), "this has a right answer"
        assert (buffer == reference).all()
    else:
        add(*arguments(reference))
        assert (buffer == reference).all()
    assert module.gpu.memory.used == 0
