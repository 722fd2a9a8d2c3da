"""The convolution algorithms compute what NumPy does; what they cannot compute is refused."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import simt
from simt.cuda import toolkit
from simt.errors import LaunchError
from simt.examples.convolution import ALGORITHMS, DIRECTIONS, Algorithm, Convolution

SMALL = Convolution(n=2, c=3, h=9, w=17, k=5, r=3, s=3, pad_h=1, pad_w=0)
LARGER = (
    Convolution(n=3, c=9, h=13, w=10, k=34, r=3, s=3, pad_h=0, pad_w=2),
    Convolution(n=2, c=17, h=20, w=37, k=19, r=5, s=5, pad_h=2, pad_w=1),
    Convolution(n=1, c=70, h=7, w=24, k=66, r=3, s=3, pad_h=3, pad_w=3),
    Convolution(n=9, c=5, h=33, w=31, k=9, r=3, s=2, pad_h=1),
    Convolution(n=2, c=3, h=11, w=12, k=5, r=3, s=3, pad_h=1, pad_w=1, stride=2),
    Convolution(n=2, c=4, h=10, w=9, k=3, r=2, s=5, pad_h=1, pad_w=4, stride=3),
    Convolution(n=1, c=33, h=1, w=1, k=2, r=1, s=1),
)
# Winograd's transforms lose digits, the more the larger their integers.
TOLERANCES = {name: 5e-5 if name == "winograd_nonfused" else 3e-6 for name in ALGORITHMS}


@pytest.fixture(scope="module")
def gpu() -> simt.GPU:
    if not toolkit.toolkits():
        pytest.skip("NVRTC's wheel is not installed")
    return simt.GPU("qv100", functional=True)


def largest_error(algorithm: Algorithm, problem: Convolution, direction: str) -> float:
    """Relative to the largest expected value."""
    x, w, dy = problem.inputs()
    given = {"forward": (x, w), "backward_data": (dy, w), "backward_filter": (x, dy)}[direction]
    expected = getattr(problem, direction)(*given)
    found = getattr(algorithm, direction)(*given).numpy()
    assert found.shape == expected.shape and found.dtype == np.float32
    return float(abs(found - expected).max() / abs(expected).max())


@pytest.mark.slow
@pytest.mark.parametrize("name", ALGORITHMS)
def test_values_are_those_of_numpy(gpu: simt.GPU, name: str) -> None:
    algorithm = ALGORITHMS[name](gpu, SMALL)
    for direction in DIRECTIONS:
        assert largest_error(algorithm, SMALL, direction) < TOLERANCES[name], direction


@pytest.mark.slow
@pytest.mark.parametrize("problem", LARGER, ids=str)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_values_of_larger_problems(gpu: simt.GPU, name: str, problem: Convolution) -> None:
    if not ALGORITHMS[name].can_compute(problem):
        with pytest.raises(LaunchError, match=f"{name}: cannot compute .* it supports"):
            ALGORITHMS[name](gpu, problem)
        return
    algorithm = ALGORITHMS[name](gpu, problem)
    for direction in DIRECTIONS:
        assert largest_error(algorithm, problem, direction) < TOLERANCES[name], direction


@st.composite
def problems(draw: st.DrawFn) -> Convolution:
    r, s = draw(st.sampled_from([(3, 3), (5, 5), (2, 2), (1, 3)]))
    size = {name: draw(st.integers(1, most)) for name, most in (("n", 3), ("c", 20), ("k", 40))}
    pad_h, pad_w = draw(st.integers(0, r)), draw(st.integers(0, s))
    h, w = (draw(st.integers(max(1, side - 2 * pad), 40)) for side, pad in ((r, pad_h), (s, pad_w)))
    stride = draw(st.sampled_from([1, 1, 2]))
    return Convolution(**size, h=h, w=w, r=r, s=s, pad_h=pad_h, pad_w=pad_w, stride=stride)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(problem=problems())
def test_values_of_any_problem(gpu: simt.GPU, problem: Convolution) -> None:
    for name, kind in ALGORITHMS.items():
        if kind.can_compute(problem):
            algorithm = kind(gpu, problem)
            for direction in DIRECTIONS:
                error = largest_error(algorithm, problem, direction)
                assert error < TOLERANCES[name], (name, direction)


def test_the_reference_is_the_definition() -> None:
    """Against loops over every index; gradients against the definition of a derivative."""
    z = Convolution(n=2, c=2, h=4, w=5, k=3, r=2, s=3, pad_h=1, pad_w=1, stride=2)
    x, w, dy = z.inputs()
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))).astype(float)
    y = np.zeros(z.y_shape)
    for n, k, p, q in np.ndindex(z.y_shape):
        y[n, k, p, q] = (padded[n, :, 2 * p : 2 * p + 2, 2 * q : 2 * q + 3] * w[k]).sum()
    assert np.allclose(z.forward(x, w), y)
    direction_x, direction_w, _ = z.inputs(seed=1)
    slope = (z.forward(direction_x, w) * dy).sum()  # y is linear in x, and in w
    assert np.isclose((z.backward_data(dy, w) * direction_x).sum(), slope)
    slope = (z.forward(x, direction_w) * dy).sum()
    assert np.isclose((z.backward_filter(x, dy) * direction_w).sum(), slope)


@pytest.mark.parametrize(
    ("name", "problem", "supports"),
    [
        ("direct", Convolution(1, 1, 9, 9, 1, 8, 8), "filters of up to 49 elements"),
        ("winograd_fused", Convolution(1, 1, 9, 9, 1, 5, 5), "filters of 3 x 3 with stride 1"),
        ("winograd_nonfused", Convolution(1, 1, 9, 9, 1, 3, 3, stride=2), "square filters of 2 x 2 to 5 x 5"),
        ("fft", Convolution(1, 1, 63, 63, 1, 3, 3), "added, up to 65"),
        ("tiled_fft", Convolution(1, 1, 63, 63, 1, 17, 3), "at most 16 x 16 with stride 1"),
    ],
)
def test_what_is_not_supported_is_refused(
    gpu: simt.GPU, name: str, problem: Convolution, supports: str
) -> None:
    with pytest.raises(LaunchError, match=f"{name}: cannot compute x 1 x 1 x .*; it supports .*{supports}"):
        ALGORITHMS[name](gpu, problem)


def test_impossible_problems_and_arrays_are_refused(gpu: simt.GPU) -> None:
    with pytest.raises(LaunchError, match="stride = 0, expected at least 1"):
        Convolution(1, 1, 9, 9, 1, 3, 3, stride=0)
    with pytest.raises(LaunchError, match="filters of 5 x 3 do not fit into images of 2 x 9"):
        Convolution(1, 1, 2, 9, 1, 5, 3, pad_h=1)
    x, w, _ = SMALL.inputs()
    with pytest.raises(
        LaunchError, match=r"direct: w is float32 of shape \(5, 3, 3\), expected float32 of shape"
    ):
        ALGORITHMS["direct"](gpu, SMALL).forward(x, w[..., 0])


def test_arrays_that_ints_cannot_index_are_refused(gpu: simt.GPU, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simt.examples.convolution.algorithm.MOST_ELEMENTS", 1000)
    x, w, _ = SMALL.inputs()
    with pytest.raises(LaunchError, match=r"direct: x 2 x 3 x .* needs an array of 1,350 elements"):
        ALGORITHMS["direct"](gpu, SMALL).forward(x, w)


@pytest.mark.slow
def test_the_study_writes_tables_and_plots(tmp_path: Path) -> None:
    names = ("direct", "winograd_nonfused")
    given = [text for name in names for text in ("--algorithm", name)]
    given += ["--layer", "tiny", "--direction", "forward", "--timeline", "200", "--output", str(tmp_path)]
    said = subprocess.run(
        [sys.executable, "-m", "simt.examples.convolution", *given],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    found = pl.read_parquet(tmp_path / "summary.parquet")
    assert found["algorithm"].to_list() == list(names)
    launches = pl.read_parquet(tmp_path / "launches.parquet")
    for row in found.iter_rows(named=True):
        own = launches.filter(algorithm=row["algorithm"], direction=row["direction"])
        assert row["launches"] == own.height and row["cycles"] == own["cycles"].sum()
        assert sum(row[name] for name in row if name.startswith("stall_")) == pytest.approx(100)
        assert row["error"] < TOLERANCES[row["algorithm"]]
        assert f"{row['cycles']:,}" in said
    # Inputs come from DRAM.
    assert (found["dram_bytes"] >= 4 * (4 * 14 * 14 + 8 * 4 * 9)).all()
    banks, channels = (pl.read_parquet(tmp_path / f"{name}.parquet") for name in ("dram_banks", "dram"))
    assert banks["bus_cycles"].sum() == channels["dram_bus_cycles"].sum() > 0
    pictures = {f"{name}-forward.png" for name in names} | {"cycles.png", "ipc.png"}
    assert {path.name for path in tmp_path.glob("*.png")} == pictures
    assert all((tmp_path / name).read_bytes().startswith(b"\x89PNG") for name in pictures)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sizes", "1,2,x"], "--sizes 1,2,x: expected n,c,h,w,k,r,s"),
        (["--sizes", "1,1,4,4,1,9,9"], "filters of 9 x 9 do not fit into images of 4 x 4"),
        (["--gpu", "h10"], "h100"),
        (
            ["--algorithm", "winograd_fused", "--layer", "lenet-1"],
            "none of the algorithms can compute this convolution",
        ),
    ],
)
def test_the_study_refuses_bad_arguments(arguments: list[str], message: str) -> None:
    command = [sys.executable, "-m", "simt.examples.convolution", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert re.search(f"error: .*{message}", done.stderr)
