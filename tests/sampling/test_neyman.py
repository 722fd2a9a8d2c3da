"""Neyman: allocation and pruning against slow references, and its claims on real profiles."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simt.errors import PlanError
from simt.profile import Profile, read_profile
from simt.sampling import Neyman, Root, Sampler, check_sampler
from simt.sampling.allocation import Strata, quantile, ranks, whole_sizes
from simt.sampling.pruning import SplitTree
from simt.sampling.splits import TimeOrder

Z = quantile(0.95)


def variance(sizes: np.ndarray, deviations: np.ndarray, m: np.ndarray) -> float:
    return float(np.sum(sizes**2 * deviations**2 * (1 / m - 1 / sizes)))


@given(
    st.lists(
        st.tuples(st.integers(1, 6), st.floats(1, 100), st.one_of(st.just(0.0), st.floats(0.01, 50))),
        min_size=1,
        max_size=4,
    ),
    st.floats(0, 1),
    st.integers(1, 2),
)
@settings(max_examples=150)
def test_whole_sizes_keep_the_limit_at_nearly_the_least_cost(
    rows: list[tuple[int, float, float]], share: float, minimum: int
) -> None:
    sizes, costs, deviations = (np.array(column, float) for column in zip(*rows, strict=True))
    deviations[sizes == 1] = 0
    lowest = np.minimum(sizes, minimum)
    limit = share * variance(sizes, deviations, lowest)
    m = whole_sizes(sizes, costs, deviations, limit, minimum)
    assert (m >= lowest).all() and (m <= sizes).all()
    assert variance(sizes, deviations, m) <= limit * (1 + 1e-9) + 1e-9
    every = product(*(range(int(low), int(n) + 1) for low, n in zip(lowest, sizes, strict=True)))
    least = min(
        float(np.dot(costs, other))
        for other in every
        if variance(sizes, deviations, np.array(other)) <= limit * (1 + 1e-9) + 1e-9
    )
    # A knapsack: a greedy answer may miss the optimum by one launch.
    assert np.dot(costs, m) <= least + costs.max() + 1e-9


def test_whole_sizes_of_nothing_varied_are_the_minimum() -> None:
    sizes = np.array([5.0, 1.0])
    assert whole_sizes(sizes, np.array([0.0, 2.0]), np.zeros(2), 0.0, 2).tolist() == [2, 1]


def test_the_pruning_is_the_cheapest_of_all() -> None:
    """Every pruning of a small tree with every sample size, at a limit whose answer is on the hull."""
    times = np.array([1, 2, 3, 50, 52, 55, 200, 260.0])
    order = TimeOrder(np.zeros(8, int), times)
    tree = SplitTree(order, 0.0, 1, 0.0)

    def prunings(lo: int, hi: int) -> list[list[tuple[int, int]]]:
        cut = order.best_cut(lo, hi, "neyman") if order.size(lo, hi) > 1 else None
        if cut is None:
            return [[(lo, hi)]]
        return [[(lo, hi)], *(a + b for a in prunings(lo, cut) for b in prunings(cut, hi))]

    points = []
    for ranges in prunings(0, 8):
        strata = Strata.of(order, ranges)
        for m in product(*(range(1, int(n) + 1) for n in strata.sizes)):
            points.append((strata.variance(np.array(m)), strata.cost(np.array(m))))
    for limit in (0.0, 100.0, 2000.0, 1e4, 1e5):
        least = min(cost for v, cost in points if v <= limit + 1e-9)
        found = tree.within_variance(limit)
        assert found.variance <= limit + 1e-9
        assert found.cost <= 1.1 * least
        assert found.cost == pytest.approx(found.strata.cost(found.m))
        budget = tree.within_time(found.cost)
        assert budget.cost <= found.cost + 1e-9


@given(st.integers(1, 50), st.integers(1, 60), st.sampled_from(["random", "systematic", "midpoint"]))
def test_ranks_are_distinct_and_in_range(size: int, m: int, kind: str) -> None:
    drawn = ranks(3, 5, size, m, kind)
    assert len(set(drawn.tolist())) == len(drawn) == min(m, size)
    assert drawn.min() >= 0 and drawn.max() < size and (np.diff(drawn) > 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["random", "systematic"])
def test_each_rank_is_drawn_equally_often(kind: str) -> None:
    counts = np.bincount(np.concatenate([ranks(seed, 0, 7, 3, kind) for seed in range(7000)]), minlength=7)
    assert abs(counts - 3000).max() < 5 * np.sqrt(7000 * 3 / 7 * 4 / 7)


def test_a_larger_random_sample_contains_the_smaller() -> None:
    assert set(ranks(1, 2, 100, 20, "random")) <= set(ranks(1, 2, 100, 21, "random"))


def mixture(launches: int, seed: int = 0) -> Profile:
    """Eight kernels with one to three peaks each and a heavy tail."""
    random = np.random.default_rng(seed)
    kernel = random.integers(0, 8, launches)
    peak = random.integers(0, 1 + kernel % 3)
    times = 1000.0 * 3.0**kernel * (1 + peak) * random.lognormal(0, 0.02 * (1 + kernel), launches)
    return Profile(
        pl.DataFrame(
            {
                "launch": range(launches),
                "name": [f"kernel_{k}" for k in kernel],
                "grid_x": 1 + peak,
                "duration_ns": times.round(),
            }
        )
    )


@pytest.mark.slow
@pytest.mark.parametrize("aim", ["time", "balanced", "error"])
def test_plans_keep_the_bound_and_cost_no_more_than_root(aim: str) -> None:
    profile = mixture(5000)
    plan = Neyman(aim=aim, seed=1).fit_plan(profile)
    root = Root(allocation="global").fit_plan(profile)
    assert plan.claimed_error <= 0.05
    assert plan.launches["weight"].sum() == pytest.approx(len(profile))
    assert plan.fitted["design_effect"] < 0.1
    if aim == "time":
        assert plan.speedup > 1.3 * root.speedup
    else:
        # Expected times: those of the drawn launches differ slightly.
        assert plan.speedup > 0.97 * root.speedup
        assert plan.fitted["half_width"] <= root.fitted["half_width"]


@pytest.mark.slow
def test_two_samples_a_stratum_pooling_and_launch_shapes() -> None:
    profile = mixture(3000)
    plan = Neyman(aim="time", min_samples=2, draw="random").fit_plan(profile)
    drawn = plan.strata
    assert all(d >= min(2, n) for d, n in drawn.select("draws", "launches").iter_rows())
    pooled = Neyman(aim="time", pool=0.05).fit_plan(profile)
    rare = pooled.strata.filter(pl.col("name").str.contains("rare kernels"))
    assert 0 < rare["time_ns"].sum() <= 0.05 * profile.total_ns
    shapes = Neyman(group="launch").fit_plan(profile)
    assert shapes.fitted["groups"] == profile.launches.select("name", "grid_x").n_unique()


@pytest.mark.slow
def test_midpoints_do_not_depend_on_the_seed() -> None:
    profile = mixture(1000)
    plans = [Neyman(draw="midpoint", seed=seed).fit_plan(profile) for seed in (1, 2)]
    assert plans[0].launches.equals(plans[1].launches)


def test_skewed_times_are_claimed_wider_than_the_normal_distribution_says() -> None:
    """6 % of the launches take three times as long. A draw is off by 1.88 / 1.12 if it contains one."""
    times = np.where(np.arange(5000) % 50 < 3, 3000.0, 1000.0)
    strata = Strata.of(order := TimeOrder(np.zeros(5000, int), times), [(0, 2)])
    assert strata.simulated_half_width(order, np.array([1]), 0.95) == pytest.approx(1.88 / 1.12)
    # z * 2 * sqrt(0.06 * 0.94) / 1.12
    assert strata.half_width(np.array([1]), Z) == pytest.approx(0.8312, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(
    "sampler",
    [
        Neyman(),
        Neyman(aim="time", pool=0.05, group="launch", draw="random"),
        Neyman(aim="error", min_samples=2, draw="midpoint"),
    ],
)
def test_it_is_a_sampler(sampler: Sampler) -> None:
    check_sampler(sampler)


@pytest.mark.parametrize(
    ("sampler", "words"),
    [
        (Neyman(pool=1.0), "pool"),
        (Neyman(min_samples=0), "min_samples"),
        (Neyman(aim="speed"), "aim"),  # type: ignore[arg-type]
        (Neyman(draw="all"), "draw"),  # type: ignore[arg-type]
    ],
)
def test_senseless_parameters_are_named(sampler: Sampler, words: str) -> None:
    with pytest.raises(PlanError, match=words):
        sampler.fit(mixture(20))


def errors_over_seeds(strata: Strata, order: TimeOrder, m: np.ndarray, seeds: int) -> np.ndarray:
    """Relative errors of the total for simple random samples, all seeds at once."""
    random = np.random.default_rng(7)
    times = np.repeat(order.values, order.counts)
    estimate = np.zeros(seeds)
    for (lo, hi), k in zip(strata.ranges, m, strict=True):
        inside = times[order.first[lo] : order.first[hi]]
        n = len(inside)
        if k == n:
            estimate += inside.sum()
        elif k == 1:
            estimate += inside[(random.random(seeds) * n).astype(int)] * n
        else:
            picks = random.random((seeds, n)).argpartition(k - 1)[:, :k]
            estimate += inside[picks].mean(axis=1) * n
    return np.abs(estimate / times.sum() - 1)


@pytest.mark.slow
@pytest.mark.parametrize("file", ["a100_cloverleaf.nsys.sqlite.gz", "h100_2gpu_llm_training.nsys.sqlite.gz"])
def test_claims_cover_real_profiles_and_root_takes_longer(shared_data: Path, file: str) -> None:
    """All traces are covered by docs/records/scripts/samplers_stratified.py."""
    profile = read_profile(shared_data / "profiles" / file).kernels()
    order = TimeOrder(profile.name_codes, profile.column("duration_ns"))
    root, root_m, _ = Root(allocation="global").design(order, Z)
    for aim in ("time", "balanced"):
        found, claimed = Neyman(aim=aim).design(order, Z)
        errors = errors_over_seeds(found.strata, order, found.m, 300)
        assert np.mean(errors <= claimed) >= 0.93
        assert claimed <= 0.05
        assert found.cost < root.cost(root_m)
    assert np.mean(errors_over_seeds(root, order, root_m, 300) <= 0.05) >= 0.93
