"""Estimates from measurements of a Plan: by hand, over many seeds, and with missing launches."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy.stats import t as student

from simt.errors import PlanError
from simt.profile import Profile
from simt.sampling import Choice, Neyman, Plan, Random, Root, Sampler


class Fixed(Sampler):
    """Strata and rows as given; equal weights within a stratum."""

    method = "fixed"

    def __init__(self, strata: list[int], rows: list[int]) -> None:
        self.strata = strata
        self.rows = rows

    def choose(self, profile: Profile) -> Choice:
        strata, rows = np.array(self.strata), np.array(self.rows)
        sizes = np.bincount(strata)
        weights = sizes / np.maximum(np.bincount(strata[rows], minlength=len(sizes)), 1)
        names = [str(profile.launches["name"][int(np.argmax(strata == h))]) for h in range(len(sizes))]
        return Choice(
            strata, rows, np.ones(len(rows), np.int64), weights[strata[rows]], names, [""] * len(sizes)
        )


def profile(names: list[str], times: list[float]) -> Profile:
    return Profile(pl.DataFrame({"launch": range(len(names)), "name": names, "duration_ns": times}))


def plan_of(names: list[str], times: list[float], strata: list[int], rows: list[int]) -> Plan:
    return Fixed(strata, rows).fit_plan(profile(names, times))


def test_a_stratified_total_by_hand() -> None:
    """Four of eight launches of equal time: values 1, 2, 3, 6 have mean 3 and variance 14/3.

    The kernel's own spread is that of the stratum: relative 14/3 / 9, as all draws weigh the same. Both
    agree, so the variance is 64 * (14/3) / 4 * (1 - 4/8) with 3 + 2 degrees of freedom.
    """
    plan = plan_of(["k"] * 8, [5.0] * 8, [0] * 8, [0, 2, 4, 6])
    got = plan.estimate({0: {"v": 1}, 2: {"v": 2}, 4: {"v": 3}, 6: {"v": 6}}, estimator="expansion")["v"]
    assert got["total"] == 24
    half = float(student.ppf(0.975, 5)) * np.sqrt(64 * (14 / 3) / 4 * 0.5)
    assert got["half_width"] == pytest.approx(half)
    assert 24 - half < 1 + 2 + 3 + 6  # which were measured: the total of counts is not below that
    assert (got["low"], got["high"]) == pytest.approx((12, 24 + half))


def test_a_kernel_measured_once_varies_as_the_mean_kernel_does() -> None:
    """Not as the one with the most time: values per time of `long` vary by 0.5 %, of `short` by 50 %, with
    relative variances of 2 * 0.005^2 and 2 * 0.5^2 from two draws each."""
    names, times = ["long"] * 4 + ["short"] * 4 + ["once"] * 4, [1e4] * 4 + [1.0] * 4 + [1e2] * 4
    plan = plan_of(names, times, [0] * 4 + [1] * 4 + [2] * 4, [0, 1, 4, 5, 8])
    values = {0: 0.995e4, 1: 1.005e4, 4: 0.5, 5: 1.5, 8: 1e2}
    got = plan.estimate({i: {"v": v} for i, v in values.items()}, estimator="expansion")
    (row,) = got.table.filter(pl.col("name") == "once").iter_rows(named=True)
    assert row["total"] == 400
    relative = np.sqrt((2 * 0.005**2 + 2 * 0.5**2) / 2 * (1 - 1 / 4))
    assert row["half_width"] == pytest.approx(float(student.ppf(0.975, 2)) * 400 * relative)


def test_lower_bounds_of_metrics_with_negative_values_are_as_computed() -> None:
    plan = plan_of(["k"] * 8, [5.0] * 8, [0] * 8, [0, 2, 4, 6])
    got = plan.estimate({0: {"v": 1}, 2: {"v": 2}, 4: {"v": -3}, 6: {"v": 6}}, estimator="expansion")["v"]
    assert got["low"] == pytest.approx(got["total"] - got["half_width"])
    assert got["low"] < 0


def test_what_is_measured_whole_has_no_error() -> None:
    plan = plan_of(["a", "a", "b"], [1.0, 2.0, 3.0], [0, 0, 1], [0, 1, 2])
    got = plan.estimate({0: {"v": 4.0}, 1: {"v": 9.0}, 2: {"v": 5.0}})
    assert (got["v"]["total"], got["v"]["half_width"]) == (18, 0)
    names = {row["name"]: row["total"] for row in got.table.iter_rows(named=True)}
    assert names == {None: 18, "a": 13, "b": 5}


def test_the_profiled_time_helps_where_values_follow_it() -> None:
    """Values are exactly three times the profiled time: the ratio estimator gives the exact total."""
    random = np.random.default_rng(0)
    times = random.lognormal(8, 1, 400).round()
    plan = Random(size=20).fit_plan(profile(["k"] * 400, times.tolist()))
    values = {int(i): {"v": 3 * times[int(i)]} for i in plan.launches["launch"]}
    got = plan.estimate(values)
    assert got.estimators == {"v": "ratio"}
    assert got["v"]["total"] == pytest.approx(3 * times.sum())
    assert got["v"]["relative"] < 1e-6
    plain = plan.estimate(values, estimator="expansion")["v"]
    assert plain["relative"] > 0.1


@pytest.mark.slow
@pytest.mark.parametrize(
    "sampler", [Neyman(aim="time", draw="random"), Random(size=60), Root(replacement=True)]
)
def test_intervals_cover_another_machine(sampler: Sampler) -> None:
    """The other machine is faster by a factor specific to each kernel, with 10 % noise."""
    random = np.random.default_rng(1)
    kernel = random.integers(0, 5, 1000)
    times = (1000.0 * 4.0**kernel * random.lognormal(0, 0.3, 1000)).round()
    other = times * np.array([0.4, 0.5, 0.6, 0.7, 0.8])[kernel] * random.lognormal(0, 0.1, 1000)
    base = profile([f"kernel_{k}" for k in kernel], times.tolist())
    frame = pl.DataFrame({"launch": range(1000), "v": other})
    covered = 0
    for seed in range(40):
        plan = sampler.set_params(seed=seed).fit_plan(base)
        row = plan.estimate(frame, ["v"])["v"]
        covered += row["low"] <= other.sum() <= row["high"]
    # 95 % of 40 are 38; the variance itself is estimated from a few launches of each kernel.
    assert covered >= 34


def test_missing_launches_are_named_and_stood_for() -> None:
    plan = plan_of(["a"] * 4 + ["b"] * 4, [2.0] * 4 + [6.0] * 4, [0] * 4 + [1] * 4, [0, 1, 4])
    got = plan.estimate({0: {"v": 10.0}})
    assert got.missing == (1, 4)
    # Launch 0 stands for all of a; b took three times the time of a, and is taken to have as much of v.
    assert got["v"]["total"] == pytest.approx(40 + 120)
    assert any("2 of 3 chosen launches are missing (1, 4)" in note for note in got.notes)
    assert got.table["measured"].to_list() == [1, 1, 0]


def test_single_draws_take_their_spread_from_the_profile() -> None:
    """Two strata of a kernel, one launch each, whose values per time agree: times vary by 10 %."""
    times = [90.0, 110.0] * 2 + [900.0, 1100.0] * 2
    plan = plan_of(["k"] * 8, times, [0] * 4 + [1] * 4, [0, 4])
    got = plan.estimate({0: {"v": 90.0}, 4: {"v": 900.0}}, estimator="expansion")
    # The normal distribution would give z sqrt(360^2 + 3600^2) 0.1 sqrt(1 - 1/4) * sqrt(4/3).
    least = 1.96 * np.hypot(360, 3600) * 0.1 * np.sqrt(0.75)
    assert got["v"]["half_width"] > least
    assert any("2 strata have one draw" in note for note in got.notes)


def test_two_equal_draws_do_not_make_expected_times_exact() -> None:
    """The spread that the plan assumed counts as two draws, until there are many."""
    plan = plan_of(["k"] * 100, [10.0] * 100, [0] * 100, [3, 60])
    values = {3: {"v": 7.0}, 60: {"v": 7.0}}
    assert plan.estimate(values)["v"]["half_width"] == 0
    got = replace(plan, expected=True).estimate(values)
    # Two of three degrees of freedom of the kernel's variance are 5 %, and again of the stratum's; t(3).
    relative = 3.182 * 0.05 * np.sqrt(2 / 3 * 2 / 3 * (1 / 2 - 1 / 100))
    assert got["v"]["relative"] == pytest.approx(relative, rel=1e-3)
    assert any("spread of 5 %" in note for note in got.notes)
    many = plan_of(["k"] * 100, [10.0] * 100, [0] * 100, list(range(50)))
    few = replace(many, expected=True).estimate({i: {"v": 7.0} for i in range(50)})["v"]["relative"]
    assert few < relative / 30


def test_profiles_frames_and_mappings_are_results() -> None:
    base = profile(["a", "a", "b"], [1.0, 2.0, 3.0])
    plan = Fixed([0, 0, 1], [0, 1, 2]).fit_plan(base)
    measured = base.with_columns({"dram__bytes.sum": [1.0, 2.0, 4.0], "sm__throughput.avg.pct": [1.0, 1, 1]})
    got = plan.estimate(measured)
    assert set(got.estimators) == {"duration_ns", "dram__bytes.sum"}
    assert got["dram__bytes.sum"]["total"] == 7
    assert plan.estimate(measured.launches, ["duration_ns"])["duration_ns"]["total"] == 6
    empty = measured.launches.with_columns(pl.lit(None, pl.Float64).alias("lts__t_sectors.sum"))
    assert set(plan.estimate(empty).estimators) == {"duration_ns", "dram__bytes.sum"}
    data = json.loads(got.to_json())
    assert data["schema"] == "simt.estimate/1" and len(data["totals"]) == 6
    assert "dram__bytes.sum: 7" in repr(got)


@pytest.mark.parametrize(
    ("results", "metrics", "words"),
    [
        ({7: {"v": 1.0}}, None, "none of the plan's launches"),
        ({0: {"v": 1.0}}, ["w"], "no metric 'w'"),
        ({0: {"x.pct": 1.0}}, ["x.pct"], "not a sum over launches"),
        ({0: {"v": 1.0}}, "v", "names of metrics"),
        (pl.DataFrame({"id": [1]}), None, "no column `launch`"),
        (pl.DataFrame({"launch": [0, 0], "v": [1, 2]}), None, "launch 0 occurs twice"),
        (3, None, "int"),
        ({"a": {"v": 1.0}}, None, "launch ids"),
    ],
)
def test_senseless_results_are_refused(results: object, metrics: object, words: str) -> None:
    plan = plan_of(["k"] * 2, [1.0, 2.0], [0, 0], [0])
    with pytest.raises(PlanError, match=words):
        plan.estimate(results, metrics)  # type: ignore[arg-type]


def test_a_profile_without_times_is_estimated_by_counts() -> None:
    base = Profile(pl.DataFrame({"launch": range(10), "name": ["k"] * 10}))
    plan = Random(size=4).fit_plan(base)
    got = plan.estimate({int(i): {"v": 2.0} for i in plan.launches["launch"]})["v"]
    assert (got["total"], got["half_width"]) == (20, 0)


def test_ctas_are_known_by_the_grids_of_all_launches() -> None:
    names = ["a", "a", "a", "b", "b"]
    frame = profile(names, [1.0, 2.0, 3.0, 4.0, 5.0]).launches.with_columns(
        grid_x=pl.Series([10, 20, 30, 7, 9]), grid_y=pl.Series([1, 1, 2, 1, 1]), grid_z=pl.Series([1] * 5)
    )
    plan = Fixed([0, 0, 0, 1, 1], [0, 4]).fit_plan(Profile(frame))
    assert plan.ctas == {"a": 90, "b": 16}
    read = Plan.from_json(plan.to_json())
    values = {0: {"sm__ctas_launched.sum": 10, "cycles": 5}, 4: {"sm__ctas_launched.sum": 9, "cycles": 7}}
    for one in (plan, read):
        found = one.estimate(values)
        row = found["sm__ctas_launched.sum"]
        assert row["total"] == row["low"] == row["high"] == 106 and row["half_width"] == 0
        of_kernels = found.table.filter(
            pl.col("metric") == "sm__ctas_launched.sum", pl.col("name").is_not_null()
        )
        assert of_kernels["total"].to_list() == [90, 16] and of_kernels["half_width"].sum() == 0
        without = replace(one, ctas=None).estimate(values)
        assert without["sm__ctas_launched.sum"]["total"] != 106
        assert without["cycles"] == found["cycles"]
    assert plan_of(names, [1.0] * 5, [0, 0, 0, 1, 1], [0, 4]).ctas is None
