"""PKS: features, clusters, the choice of K; two-level profiling; the same for any number of threads."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import polars as pl
import pytest
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from simt.errors import PlanError, ProfileError
from simt.profile import Profile
from simt.sampling import PKS, Random, TwoLevel, check_sampler
from simt.sampling import pks as pks_module
from simt.sampling.cells import Cells
from simt.sampling.checks import example_profile
from simt.sampling.features import PAPER, Standard, identical, principal_components


def profile(name: list[str] | None = None, **columns: list[float]) -> Profile:
    n = len(next(iter(columns.values())))
    return Profile(pl.DataFrame({"launch": range(n), "name": name or ["k"] * n, **columns}))


def noisy(n: int, seed: int = 0) -> Profile:
    """Ten kinds of launches whose three counters never repeat exactly."""
    random = np.random.default_rng(seed)
    kind = random.integers(0, 10, n)
    values = {c: random.uniform(1, 100, 10)[kind] * (1 + 0.01 * random.standard_normal(n)) for c in "abc"}
    return profile(duration_ns=(1 + kind + random.uniform(0, 0.1, n)).tolist(), **values)


# Two kinds of launches; of the first kind the first launch is slow (a cold cache), 6 instead of 1.
TWO_KINDS = profile(
    x=[1.0, 1.0, 9.0, 1.0, 9.0, 9.0], duration_ns=[6.0, 1.0, 10.0, 1.0, 10.0, 10.0], registers=[32.0] * 6
)


def test_the_first_launch_of_each_cluster_stands_for_all() -> None:
    sampler = PKS(features=["x"], error=0.0).fit(TWO_KINDS)
    # K = 1: 6 launches of 6 = 36 instead of 38. K = 2: 3 * 6 + 3 * 10 = 48: K = 1 has the smaller error.
    assert sampler.errors_ == pytest.approx([2 / 38, 10 / 38])
    assert sampler.n_clusters_ == 1
    # 2/38 is above 5 % and below 6 %: the first K that is good enough ends the search.
    assert PKS(features=["x"], error=0.06).fit(TWO_KINDS).errors_ == pytest.approx([2 / 38])


def test_the_error_is_relative_to_the_truth_not_to_the_projection() -> None:
    # PKA's artifact prints |true - projected| / projected in places: 10/48, not 10/38.
    two = PKS(features=["x"], error=0.0).fit(TWO_KINDS).errors_[1]
    assert two == pytest.approx(10 / 38) and two != pytest.approx(10 / 48)


@pytest.mark.parametrize(
    ("representative", "rows", "weights"),
    [("first", [0, 2], [4.0, 3.0]), ("centre", [3, 2], [4.0, 3.0])],
)
def test_representatives(representative: str, rows: list[int], weights: list[float]) -> None:
    # The first cluster's centre is at 2; its launches are at 0, 1, 5 and 2.
    spread = profile(x=[0.0, 1.0, 50.0, 2.0, 50.0, 50.0, 5.0], duration_ns=[1.0, 1, 1, 1, 1, 1, 30])
    sampler = PKS(features=["x"], representative=representative, max_clusters=2, error=0.0)  # type: ignore[arg-type]
    sampler.set_params(error=1e-9)
    plan = sampler.fit_plan(spread.with_columns({"duration_ns": [4.0, 4.0, 1.0, 4.0, 1.0, 1.0, 4.0]}))
    assert sampler.n_clusters_ == 2
    assert plan.launches["launch"].to_list() == sorted(rows)
    assert dict(zip(plan.launches["launch"], plan.launches["weight"], strict=True)) == dict(
        zip(rows, weights, strict=True)
    )


def test_random_representatives_are_any_launch_of_the_cluster() -> None:
    drawn = {
        PKS(["x"], representative="random", error=1.0, seed=seed).fit_plan(TWO_KINDS).launches["launch"][0]
        for seed in range(60)
    }
    assert drawn == set(range(6))


def test_identical_features_are_one_cluster() -> None:
    plan = PKS(["registers"]).fit_plan(TWO_KINDS)
    assert plan.fitted["clusters"] == 1 and plan.launches["weight"].to_list() == [6.0]
    assert "registers (the same for all launches)" in plan.warnings[0]


def test_fewer_launches_than_clusters() -> None:
    few = profile(x=[1.0, 2.0, 5.0], duration_ns=[1.0, 10.0, 100.0])
    plan = PKS(["x"]).fit_plan(few)
    assert plan.launches["weight"].to_list() == [1.0, 1.0, 1.0] and plan.profile_error == 0.0


def test_deduplicated_k_means_has_the_objective_of_all_launches() -> None:
    random = np.random.default_rng(4)
    kinds = random.lognormal(0, 1, (30, 4))
    table = kinds[random.integers(0, 30, 900)]
    columns = {f"c{i}": table[:, i].tolist() for i in range(4)}
    names = list(columns)
    p = profile(duration_ns=table[:, 0].tolist(), **columns)
    sampler = PKS(names, variance=1.0, error=1e-12, max_clusters=6).fit(p)
    k = sampler.n_clusters_
    scaled = StandardScaler().fit_transform(table)

    def inertia(labels: np.ndarray) -> float:
        groups = [scaled[labels == label] for label in np.unique(labels)]
        return float(sum(((group - group.mean(axis=0)) ** 2).sum() for group in groups))

    full = KMeans(k, n_init=10, random_state=4).fit(PCA(1.0 - 1e-12).fit_transform(scaled))
    assert inertia(sampler.labels_) <= full.inertia_ * 1.02


def test_components_are_as_many_as_scikit_learns() -> None:
    random = np.random.default_rng(5)
    table = random.standard_normal((500, 3)) @ random.standard_normal((3, 6))
    table += 0.02 * random.standard_normal(table.shape)
    columns = list(np.abs(table).T)
    axes = principal_components(Standard.of(columns, "zscore"), columns, 0.9)
    expected = PCA(0.9).fit(StandardScaler().fit_transform(np.abs(table)))
    assert axes.shape == (6, expected.n_components_)
    assert np.abs(axes.T @ expected.components_.T) == pytest.approx(np.eye(axes.shape[1]), abs=1e-6)


@pytest.mark.slow
def test_many_different_launches_are_clustered_as_well_as_by_scikit_learn() -> None:
    random = np.random.default_rng(6)
    points = np.concatenate([random.normal(c, 0.6, (4000, 3)) for c in random.uniform(-5, 5, (12, 3))])
    points = points.astype(np.float32)
    cells = Cells(points, np.arange(0, len(points), 5), 500)
    assert (np.sort(cells.order) == np.arange(len(points))).all()
    start = KMeans(8, n_init=10, random_state=0).fit(cells.means, sample_weight=cells.counts)
    labels, counts, centres = cells.lloyd(start.cluster_centers_)
    assert (counts == np.bincount(labels, minlength=8)).all()
    inertia = float(cells.distances(labels, centres).sum())
    expected = KMeans(8, n_init=10, random_state=0).fit(points).inertia_
    assert inertia < expected * 1.005
    # Each point belongs to its nearest centre, including points of cells that no border crosses.
    brute = ((points[cells.order, None] - centres) ** 2).sum(axis=2)
    assert (brute[np.arange(len(labels)), labels] <= brute.min(axis=1) * (1 + 1e-4) + 1e-6).all()


@pytest.mark.slow
@pytest.mark.parametrize("representative", ["first", "centre", "random"])
def test_groups_and_single_launches_give_the_same_plan(
    representative: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    p = noisy(3000)
    sampler = PKS(list("abc"), representative=representative, max_clusters=10, error=1e-9)  # type: ignore[arg-type]
    by_group = sampler.fit_plan(p)
    assert by_group.fitted["unique_vectors"] == 3000
    monkeypatch.setattr(pks_module, "_MOST_UNIQUE", 100)
    monkeypatch.setattr(pks_module, "_CELLS", 200)
    by_cell = sampler.fit_plan(p)
    assert by_cell.fitted["unique_vectors"] is None
    assert by_cell.launches.equals(by_group.launches)
    assert by_cell.strata.equals(by_group.strata)


def test_groups_are_exact() -> None:
    random = np.random.default_rng(7)
    columns = [random.integers(0, 5, 2000).astype(float), random.integers(0, 4, 2000) * -0.0 + 1]
    columns.append(random.choice([0.0, -0.0, 1.5], 2000))
    groups = identical(columns)
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    order = list(dict.fromkeys(rows))  # by first occurrence; -0 equals 0
    assert [rows[i] for i in groups.first] == order
    assert groups.code.tolist() == [order.index(row) for row in rows]
    assert groups.size.tolist() == [rows.count(row) for row in order]
    assert identical(columns, len(order) - 1) is None


def test_older_and_newer_names_of_counters_are_found() -> None:
    p = example_profile()
    older = {c: c.replace("smsp__inst_executed_op_", "smsp__sass_inst_executed_op_") for c in p.counters}
    renamed = Profile(p.launches.rename(older), p.gpu, p.source)
    assert PKS().fit_plan(renamed).launches.equals(PKS().fit_plan(p).launches)


def test_absent_features_are_left_out_with_a_warning() -> None:
    p = example_profile()
    plan = PKS().fit_plan(Profile(p.launches.drop(PAPER["thread global atomics"][0])))
    assert "thread global atomics" in plan.warnings[0]
    assert len(plan.fitted["features"]) == 11
    assert (
        len(PKS(features="artifact").fit_plan(p).fitted["features"]) == 9
    )  # without the two that exist only as sass__


def test_the_artifact_tries_one_cluster_less() -> None:
    p = example_profile()
    assert len(PKS(error=0.0, max_clusters=7).fit(p).errors_) == 7
    assert len(PKS(error=0.0, max_clusters=7, fidelity="artifact").fit(p).errors_) == 6


@pytest.mark.parametrize(
    ("sampler", "words"),
    [
        (PKS(), "PKS compares launches by counters of Nsight Compute, of which the profile has none"),
        (PKS("all"), "features is 'all', expected one of paper, artifact, or a list"),
        (PKS([]), r"features is \[\]"),
        (PKS(["x"], scale="log"), "scale is 'log'"),  # type: ignore[arg-type]
        (PKS(["x"], max_clusters=0), "max_clusters is 0"),
        (PKS(["x"], variance=1.1), "variance is 1.1"),
        (PKS(["x"], error=-0.1), "error is -0.1"),
        (TwoLevel(), "of which the profile has none"),
        (TwoLevel(None), "no launch has counters"),
        (TwoLevel(0), "detailed is 0"),
        (TwoLevel(classifier="svm"), "classifier is 'svm'"),  # type: ignore[arg-type]
        (TwoLevel(pks=PKS(error=-1)), "error is -1"),
        (TwoLevel(pks=Random()), "expected a PKS"),  # type: ignore[arg-type]
    ],
)
def test_what_is_missing_or_senseless_is_named(sampler: PKS | TwoLevel, words: str) -> None:
    plain = Profile(TWO_KINDS.launches.drop("x").with_columns(registers=pl.Series([1, 2, 3, 4, 5, 6])))
    with pytest.raises(PlanError, match=words):
        sampler.fit(TWO_KINDS if getattr(sampler, "features", None) == ["x"] else plain)


def test_named_features_must_be_there_and_whole() -> None:
    with pytest.raises(ProfileError, match="no `y`"):
        PKS(["y"]).fit(TWO_KINDS)
    holes = TWO_KINDS.with_columns({"x": [1.0, 1.0, np.nan, 1.0, 1.0, 2.0]})
    with pytest.raises(PlanError, match="1 of 6 launches have no usable `x`, the first is launch 2"):
        PKS(["x"]).fit(holes)
    without_time = Profile(TWO_KINDS.launches.drop("duration_ns"))
    with pytest.raises(PlanError, match="needs the cycles or the time"):
        PKS(["x"]).fit(without_time)


def two_level_profile(counted: int, repeats: int = 40) -> Profile:
    """A program that repeats three kernels, each with one grid; only the first launches have counters."""
    kernels = [("void gemm<float>(int)", 100.0, 10), ("copy", 5.0, 200), ("void norm<4>(float*)", 20.0, 50)]
    rows = kernels * repeats
    n = len(rows)
    x = [time * 7 if i < counted else None for i, (_, time, _) in enumerate(rows)]
    return Profile(
        pl.DataFrame(
            {
                "launch": range(n),
                "name": [name for name, _, _ in rows],
                "grid_x": [grid for _, _, grid in rows],
                "duration_ns": [time for _, time, _ in rows],
                "x": x,
            },
            schema_overrides={"x": pl.Float64},
        )
    )


@pytest.mark.slow
@pytest.mark.parametrize("classifier", ["vote", "sgd", "naive_bayes", "mlp", "lookup+vote"])
@pytest.mark.parametrize("detailed", [60, None])
def test_two_levels_carry_the_groups_of_the_detailed_part_to_all(
    classifier: str, detailed: int | None
) -> None:
    p = two_level_profile(counted=60)
    sampler = TwoLevel(detailed, classifier, PKS(["x"], error=1e-9)).fit(p)  # type: ignore[arg-type]
    assert sampler.plan_.launches["launch"].to_list() == [0, 1, 2]
    assert sampler.plan_.launches["weight"].to_list() == [40.0, 40.0, 40.0]
    assert sampler.plan_.profile_error == pytest.approx(0.0, abs=1e-12)
    assert sampler.accuracy_ == {way: 1.0 for way in sampler.accuracy_} and len(sampler.accuracy_) == 5
    assert sampler.unseen_ == []


@pytest.mark.slow
def test_two_levels_tell_of_kernels_that_the_detailed_part_lacks() -> None:
    p = two_level_profile(counted=60)
    late = p.launches.with_columns(
        pl.when(pl.col("launch") >= 117)
        .then(pl.lit("late"))
        .otherwise(pl.col("name").cast(pl.String))
        .alias("name")
    )
    sampler = TwoLevel(60, pks=PKS(["x"], error=1e-9)).fit(Profile(late))
    assert sampler.unseen_ == ["late"]
    unseen = sampler.plan_.fitted["unseen"]
    assert unseen["launches"] == 3 and unseen["share_of_time"] == pytest.approx(125 / 5000)
    assert "3 launches, 2.5 % of the time, are of 1 kernels" in sampler.plan_.warnings[-1]


def test_tensors_tell_launches_of_one_kernel_apart() -> None:
    # One name and grid; the operator's tensors are of two sizes, in launches without counters as well.
    p = profile(x=[1.0, 9.0, None, None, None], duration_ns=[1.0, 5.0, 1.0, 5.0, 5.0])
    sizes = ["[[8,8],[]]", "[[64,64]]", "[[8,8],[]]", "[[[64,64],[2]]]", "[[64,64]]"]
    shaped = Profile(p.launches.with_columns(pl.Series("tensors", sizes)))
    sampler = TwoLevel(2, pks=PKS(["x"], error=1e-9))
    assert sampler.fit_plan(shaped).launches["weight"].to_list() == [2.0, 3.0]
    assert sampler.fit_plan(p).launches["weight"].to_list() == [4.0, 1.0]
    broken = Profile(p.launches.with_columns(tensors=pl.lit("8 x 8")))
    with pytest.raises(PlanError, match="`tensors` is '8 x 8'"):
        sampler.fit(broken)


def test_a_lookup_takes_the_most_frequent_cluster() -> None:
    # One name and grid, most of whose detailed launches are in the second cluster (x = 9).
    p = profile(x=[1.0, 9.0, 9.0, 9.0, None, None], duration_ns=[1.0, 5.0, 5.0, 5.0, 5.0, 5.0])
    plan = TwoLevel(4, pks=PKS(["x"], error=1e-9)).fit_plan(p)
    assert plan.launches["weight"].to_list() == [1.0, 5.0]


@pytest.mark.slow
@pytest.mark.parametrize(
    "sampler",
    [
        PKS(),
        PKS(scale="log1p+zscore", representative="centre"),
        PKS(representative="random", seed=5, fidelity="artifact"),
        TwoLevel(60),
        TwoLevel(None, "naive_bayes"),
        TwoLevel(60, pks=PKS(scale="log1p+zscore", fidelity="artifact"), seed=3),
    ],
    ids=str,
)
def test_samplers_pass_the_common_check(sampler: PKS | TwoLevel) -> None:
    check_sampler(sampler)


@pytest.mark.slow
def test_plans_do_not_depend_on_the_number_of_threads() -> None:
    script = (
        "import numpy as np, polars as pl\n"
        "from simt.profile import Profile\n"
        "from simt.sampling import PKS, Neyman, Root, Sieve, TBPoint, TwoLevel\n"
        "from simt.sampling.checks import example_profile\n"
        "r = np.random.default_rng(0); n = 30000\n"
        "p = Profile(pl.DataFrame({'launch': range(n), 'name': ['k'] * n, 'duration_ns': r.random(n) + 1,\n"
        "    **{c: r.lognormal(0, 1, n) for c in 'abcd'}}))\n"
        "e = example_profile(3000, 20)\n"
        "for plan in (PKS(list('abcd'), error=1e-9, max_clusters=5).fit_plan(p),\n"
        "             PKS(error=0.0).fit_plan(e), TwoLevel(800, 'vote').fit_plan(e),\n"
        "             TBPoint().fit_plan(e), Sieve().fit_plan(e),\n"
        "             Root().fit_plan(p), Neyman().fit_plan(p)):\n"
        "    print(plan.to_json())\n"
    )
    plans = []
    for threads in ("1", "2"):
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS")
        environment = {**os.environ, **dict.fromkeys(names, threads)}
        done = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
        )
        plans.append(done.stdout)
    assert len(plans[0]) > 1000 and plans[0] == plans[1]
