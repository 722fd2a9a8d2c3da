"""STEM and ROOT: the papers' formulas where they are correct, and the effect of the printed ones."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simt.errors import PlanError
from simt.profile import Profile
from simt.sampling import Root, Sampler, Stem, check_sampler
from simt.sampling.allocation import kkt_sizes, quantile, stem_size
from simt.sampling.splits import Spread


def profile(**times: list[float]) -> Profile:
    """One kernel per argument."""
    names = [name for name, values in times.items() for _ in values]
    values = [value for kernel in times.values() for value in kernel]
    return Profile(pl.DataFrame({"launch": range(len(names)), "name": names, "duration_ns": values}))


def clusters(rows: list[tuple[int, float, float]]) -> list[Spread]:
    """From count, mean and standard deviation."""
    return [Spread(n, mean, deviation**2 * (n - 1)) for n, mean, deviation in rows]


def variance(rows: list[Spread], m: list[float]) -> float:
    """Of the estimated total, with replacement."""
    return sum((x.count * x.deviation) ** 2 / k for x, k in zip(rows, m, strict=True))


def bound(rows: list[Spread], error: float, z: float) -> float:
    return (error * sum(x.total for x in rows) / z) ** 2


def test_quantiles_are_those_of_the_normal_distribution() -> None:
    assert quantile(0.95) == pytest.approx(1.959964)
    assert quantile(0.99) == pytest.approx(2.575829)


@pytest.mark.parametrize(("deviation", "m"), [(1.0, 1537), (0.1, 16), (0.01, 1), (0.0, 1)])
def test_stem_sizes_by_hand(deviation: float, m: int) -> None:
    """CoV 1 at 5 %: (1.96 / 0.05)^2 = 1536.6."""
    assert stem_size(7.0, 7.0 * deviation, 0.05, quantile(0.95)) == m


def test_kkt_by_hand() -> None:
    """Two clusters: mu 1 and 4, sigma 1 and 2, N 100 each; error 0.1, z 2.

    sqrt(a b) = 100 and 400, c = (0.1 * 500 / 2)^2 = 625, m = 500/625 * (100/1, 200/2) = 80 and 80.
    """
    rows = clusters([(100, 1.0, 1.0), (100, 4.0, 2.0)])
    assert kkt_sizes(rows, 0.1, 2.0) == pytest.approx([80, 80])


@given(
    st.lists(
        st.tuples(st.integers(2, 10**6), st.floats(0.1, 1e6), st.floats(0.01, 1e5)), min_size=2, max_size=12
    )
)
def test_kkt_meets_the_bound_with_equality_and_the_printed_formula_breaks_it(
    rows: list[tuple[int, float, float]],
) -> None:
    spreads = clusters(rows)
    m = kkt_sizes(spreads, 0.05, 1.96)
    limit = bound(spreads, 0.05, 1.96)
    assert variance(spreads, m) == pytest.approx(limit, rel=1e-9)
    # The paper's sqrt(sum a b) instead of sum sqrt(a b).
    roots = [math.sqrt(x.mean) * x.count * x.deviation for x in spreads]
    printed = math.sqrt(sum(root * root for root in roots)) / sum(roots)
    assert variance(spreads, [k * printed for k in m]) > limit


def test_kkt_is_the_cheapest_of_many_feasible_sizes() -> None:
    random = np.random.default_rng(0)
    spreads = clusters([(50, 10.0, 5.0), (400, 3.0, 2.0), (900, 1.0, 1.0)])
    means = np.array([x.mean for x in spreads])
    m = np.array(kkt_sizes(spreads, 0.05, 1.96))
    for factors in np.exp(random.normal(0, 0.5, (200, 3))):
        other = m * factors
        other *= variance(spreads, other.tolist()) / bound(spreads, 0.05, 1.96)  # scaled to the bound
        assert np.sum(other * means) >= np.sum(m * means) * (1 - 1e-12)


def test_stem_takes_thirty_where_the_printed_minimum_would_take_one() -> None:
    random = np.random.default_rng(1)
    kernel = random.normal(1000, 10, 5000).round().tolist()
    plan = Stem().fit_plan(profile(kernel=kernel))
    assert plan.strata["draws"].to_list() == [30]
    assert Stem(gaussian=True).fit_plan(profile(kernel=kernel)).strata["draws"].to_list() == [1]


def test_stem_takes_small_clusters_whole_where_its_artifact_draws_thirty_from_two() -> None:
    two = profile(kernel=[100.0, 110.0])
    whole = Stem().fit_plan(two)
    assert whole.profile_error == 0
    assert whole.launches["draws"].to_list() == [1, 1]
    artifact = Stem(fidelity="artifact").fit_plan(two)
    assert artifact.launches["draws"].sum() == 30
    assert artifact.speedup < 0.1
    assert artifact.replacement


def test_the_artifact_merges_kernels_that_differ_behind_a_parenthesis() -> None:
    names = {f"void (anonymous namespace)::{kernel}(int)": [10.0] * 5 for kernel in "ab"}
    assert len(Stem().fit_plan(profile(**names)).strata) == 2
    assert Stem(fidelity="artifact").fit_plan(profile(**names)).strata["name"].to_list() == ["void "]


def test_stem_splits_until_fifty_are_enough() -> None:
    peaks = [100.0, 110.0] * 500 + [900.0, 910.0] * 500
    plan = Stem().fit_plan(profile(kernel=peaks))
    assert plan.strata["launches"].to_list() == [1000, 1000]
    assert plan.profile_error < 0.01


@pytest.mark.parametrize("allocation", ["leaf", "name", "global"])
def test_root_splits_two_points_and_leaves_a_narrow_peak_whole(allocation: str) -> None:
    mixture = Root(allocation=allocation).fit_plan(profile(kernel=[100.0, 900.0] * 50))
    assert mixture.strata["launches"].to_list() == [50, 50]
    assert mixture.profile_error == 0
    random = np.random.default_rng(2)
    peak = Root(allocation=allocation).fit_plan(
        profile(kernel=random.normal(1e5, 1e2, 5000).round().tolist())
    )
    assert len(peak.strata) == 1


def test_root_ends_on_a_wide_peak_and_its_leaves_meet_the_bound() -> None:
    random = np.random.default_rng(3)
    wide = profile(kernel=random.normal(1e5, 2e4, 20000).round().clip(1).tolist())
    for allocation in ("leaf", "name", "global"):
        plan = Root(allocation=allocation).fit_plan(wide)
        assert 1 < len(plan.strata) < 200
        assert plan.fitted["half_width"] <= 0.05


def test_root_finds_three_peaks_that_a_split_in_two_does_not_pay_for() -> None:
    """Two parts of three equal peaks cost as much as the whole: only the sweep over k finds the gain."""
    times = profile(kernel=[100.0, 110.0, 120.0] * 100)
    assert len(Root().fit_plan(times).strata) == len(Root(children=(2, 3)).fit_plan(times).strata)
    far = profile(kernel=[1.0] * 40 + [1000.0] * 40 + [2000.0] * 40)
    assert Root(children=(2, 3)).fit_plan(far).strata["launches"].to_list() == [40, 40, 40]


@pytest.mark.parametrize("sampler", [Stem(gaussian=True), Root(), Root(allocation="global")])
def test_equal_times_need_one_launch_a_kernel(sampler: Sampler) -> None:
    plan = sampler.fit_plan(profile(a=[3.0] * 9, b=[5.0], c=[0.0] * 4))
    assert plan.launches["name"].to_list() == ["a", "b", "c"]
    assert plan.profile_error == 0
    assert plan.launches["weight"].sum() == 14


@pytest.mark.slow
@pytest.mark.parametrize(
    "sampler",
    [
        Stem(),
        Stem(fidelity="artifact", gaussian=True),
        Root(),
        Root(allocation="leaf", children=(2, 3, 4)),
        Root(allocation="global", replacement=True),
    ],
)
def test_they_are_samplers(sampler: Sampler) -> None:
    check_sampler(sampler)


@pytest.mark.parametrize(
    ("sampler", "words"),
    [
        (Stem(error=0), "error"),
        (Stem(confidence=1.0), "confidence"),
        (Root(children=(5,)), "children"),
        (Root(allocation="tree"), "allocation"),  # type: ignore[arg-type]
    ],
)
def test_senseless_parameters_are_named(sampler: Sampler, words: str) -> None:
    with pytest.raises(PlanError, match=words):
        sampler.fit(profile(a=[1.0, 2.0]))
