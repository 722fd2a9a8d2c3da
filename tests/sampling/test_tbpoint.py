"""TBPoint: weighted Ward clustering against scikit-learn's, and the choice of threshold."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import AgglomerativeClustering

from simt.errors import PlanError
from simt.profile import Profile
from simt.sampling import TBPoint, check_sampler
from simt.sampling import tbpoint as tbpoint_module
from simt.sampling import ward as ward_module
from simt.sampling.checks import example_profile
from simt.sampling.ward import Ward

INSTRUCTIONS = "smsp__inst_executed.sum"


def same_partition(a: np.ndarray, b: np.ndarray) -> bool:
    pairs = set(zip(a.tolist(), b.tolist(), strict=True))
    return len(pairs) == len(set(a.tolist())) == len(set(b.tolist()))


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32 - 1), st.integers(2, 40), st.integers(1, 3), st.floats(0.02, 3.0))
def test_weighted_points_cluster_as_their_copies_do(seed: int, n: int, d: int, threshold: float) -> None:
    random = np.random.default_rng(seed)
    points, weights = random.standard_normal((n, d)), random.integers(1, 5, n)
    copies = np.repeat(np.arange(n), weights)
    if len(copies) < 2:
        return
    full = AgglomerativeClustering(None, distance_threshold=threshold, linkage="ward").fit(points[copies])
    for height in (threshold, 2 * threshold):  # what is not asked for does not change the answer
        labels = Ward(points, weights.astype(float), height).labels(threshold)
        assert same_partition(labels[copies], full.labels_)


def test_one_large_neighbourhood_gives_the_same_as_many(monkeypatch: pytest.MonkeyPatch) -> None:
    points = np.random.default_rng(1).standard_normal((400, 2))
    weights = np.ones(400)
    labels = Ward(points, weights, 0.2).labels(0.2)
    monkeypatch.setattr(ward_module, "_MOST_PAIRS", 0)
    assert same_partition(Ward(points, weights, 0.2).labels(0.2), labels)
    expected = AgglomerativeClustering(None, distance_threshold=0.2, linkage="ward").fit(points)
    assert same_partition(labels, expected.labels_)


def profile(x: list[float], times: list[float], counts: list[float]) -> Profile:
    n = len(x)
    return Profile(
        pl.DataFrame(
            {"launch": range(n), "name": ["k"] * n, "x": x, "duration_ns": times, INSTRUCTIONS: counts}
        )
    )


# Standard deviation of x is 5: in units of it, the distances are 0.02 and 2.
PAIRS = profile([0.0, 0.1, 10.0, 10.1], [1.0, 2.0, 30.0, 40.0], [10.0, 30.0, 100.0, 100.0])


def test_representatives_stand_for_instructions() -> None:
    sampler = TBPoint([0.1], ["x"]).fit(PAIRS)
    # Both launches of a pair are equally close to its centre, so the first is used: 40/10 and 200/100.
    assert sampler.plan_.launches["launch"].to_list() == [0, 2]
    assert sampler.plan_.launches["weight"].to_list() == pytest.approx([4.0, 2.0])
    # T = sum of instructions / IPC: 40 / (10 / 1) + 200 / (100 / 30) = 64.
    assert sampler.plan_.estimated_ns == pytest.approx(64.0)
    assert sampler.errors_ == pytest.approx([9 / 73])
    by_launches = TBPoint([0.1], ["x"], weight="launches").fit_plan(PAIRS)
    assert by_launches.launches["weight"].to_list() == [2.0, 2.0]


def test_the_largest_good_threshold_is_taken_else_the_best() -> None:
    good = TBPoint([0.001, 0.1], ["x"], error=0.05).fit(PAIRS)
    assert good.threshold_ == 0.001 and good.n_clusters_ == 4
    assert good.errors_ == pytest.approx([9 / 73, 0.0], abs=1e-12)
    assert TBPoint([0.001, 0.1], ["x"], error=0.2).fit(PAIRS).threshold_ == 0.1


def test_the_launch_nearest_to_the_centre_represents() -> None:
    # Centre 2 of 0, 1, 2, 5; another cluster is far away.
    p = profile([0.0, 1.0, 2.0, 5.0, 1000.0], [1.0] * 5, [7.0] * 5)
    assert TBPoint([0.2], ["x"]).fit_plan(p).launches["launch"].to_list() == [2, 4]


def test_thresholds_are_pkas() -> None:
    sampler = TBPoint(error=0.0).fit(example_profile())
    assert sampler.plan_.fitted["thresholds"] == pytest.approx(np.arange(20, 0, -1) / 100)


def test_the_originals_features() -> None:
    p = example_profile()
    sampler = TBPoint(fidelity="tbpoint").fit(p)
    names = ["thread instructions", "warp instructions", "memory requests"]
    assert sampler.plan_.fitted["features"] == names
    assert "cta_instructions_cov" in sampler.plan_.warnings[-1]
    with_cov = p.with_columns({"cta_instructions_cov": np.linspace(0, 1, len(p))})
    assert TBPoint(fidelity="tbpoint").fit(with_cov).plan_.fitted["features"] == [
        *names,
        "cta_instructions_cov",
    ]
    with pytest.raises(PlanError, match="TBPoint's own features are"):
        TBPoint(fidelity="tbpoint").fit(PAIRS)


def test_too_many_different_launches_are_refused_unless_rounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tbpoint_module, "MOST_UNIQUE", 50)
    random = np.random.default_rng(2)
    x = np.repeat([1.0, 5.0, 9.0], 40) * (1 + 1e-4 * random.standard_normal(120))
    p = profile(x.tolist(), x.tolist(), x.tolist())
    with pytest.raises(PlanError, match=r"more than 50 different feature vectors.*quantise"):
        TBPoint(features=["x"]).fit(p)
    sampler = TBPoint(features=["x"], quantise=0.01).fit(p)
    assert sampler.n_clusters_ == 3 and sampler.plan_.fitted["unique_vectors"] < 50
    assert sampler.labels_.tolist() == [0] * 40 + [1] * 40 + [2] * 40


@pytest.mark.parametrize(
    ("sampler", "words"),
    [
        (TBPoint([]), r"thresholds is \[\]"),
        (TBPoint([0.1, -1.0]), "thresholds is -1.0, expected a number above 0"),
        (TBPoint("paper"), "thresholds is 'paper'"),  # type: ignore[arg-type]
        (TBPoint(quantise=-1), "quantise is -1"),
        (TBPoint(weight="time"), "weight is 'time'"),  # type: ignore[arg-type]
        (TBPoint(features="paper"), "features is 'paper'"),  # type: ignore[arg-type]
    ],
)
def test_senseless_parameters_are_named(sampler: TBPoint, words: str) -> None:
    with pytest.raises(PlanError, match=words):
        sampler.fit(PAIRS)


@pytest.mark.slow
@pytest.mark.parametrize("sampler", [TBPoint(), TBPoint(fidelity="tbpoint", quantise=0.02)], ids=str)
def test_tbpoint_passes_the_common_check(sampler: TBPoint) -> None:
    check_sampler(sampler)
