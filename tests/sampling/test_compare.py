"""Comparison of methods over seeds and across profiles."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from simt.errors import PlanError
from simt.profile import Profile
from simt.sampling import Adaptive, Choice, FirstN, Neyman, Random, Root, Sampler, Stem, compare
from simt.sampling.checks import example_profile


class Claims(Sampler):
    """One random launch represents all."""

    method = "claims"

    def __init__(self, error: float = 0.25, seed: int = 0) -> None:
        self.error = error
        self.seed = seed

    def choose(self, profile: Profile) -> Choice:
        n = len(profile)
        return Choice(
            strata=np.zeros(n, np.int64),
            rows=np.array([self.seed % n]),
            draws=np.ones(1, np.int64),
            weights=np.array([float(n)]),
            names=["all"],
            why=["one"],
            claimed_error=self.error,
        )


def profile(times: list[float], names: str = "aabb", source: str = "ours") -> Profile:
    return Profile(
        pl.DataFrame({"launch": [1, 2, 3, 4], "name": list(names), "duration_ns": times}), source=source
    )


def test_errors_speedups_and_coverage_by_hand() -> None:
    found = compare(profile([1.0, 2.0, 2.0, 5.0]), [Claims()], seeds=4)
    # Total 10; the launches represent 4, 8, 8 and 20.
    assert found.runs["error"].to_list() == pytest.approx([0.6, 0.2, 0.2, 1.0])
    assert found.runs["speedup"].to_list() == [10, 5, 5, 2]
    summary = found.summary.to_dicts()[0]
    assert summary["mean_error"] == pytest.approx(0.5) and summary["worst_error"] == 1.0
    assert summary["p95_error"] == pytest.approx(0.6 + 0.85 * 0.4)
    assert summary["speedup_hmean"] == pytest.approx(4 / (0.1 + 0.2 + 0.2 + 0.5))
    assert summary["speedup_gmean"] == pytest.approx(500 ** (1 / 4))
    assert summary["coverage"] == 0.5
    assert summary["coverage_se"] == pytest.approx((0.5 * 0.5 / 4) ** 0.5)


def test_the_truth_is_another_profiles_times() -> None:
    found = compare(profile([1.0] * 4), [Claims()], 4, profile([1.0, 2.0, 2.0, 5.0], source="theirs"))
    assert found.runs["error"].to_list() == pytest.approx([0.6, 0.2, 0.2, 1.0])
    assert found.alignment is not None and len(found.alignment) == 4
    assert found.truth_source == "theirs"


def test_samplers_that_cannot_be_used_are_named_and_the_unseeded_run_once() -> None:
    some = profile([1.0, 2.0, 2.0, 5.0])
    found = compare(some, [Random(p=0.5), FirstN(), Random(p=1.0)], seeds=5)
    assert found.summary["method"].to_list() == ["random", "random p=1.0"]
    assert "instructions" in found.left_out["first-n"]
    counted = some.with_columns({"smsp__thread_inst_executed.sum": [1.0, 2.0, 3.0, 4.0]})
    assert compare(counted, [FirstN(5.0)], seeds=5).summary["seeds"].to_list() == [1]
    with pytest.raises(PlanError, match="no method could be used"):
        compare(some, [FirstN()])
    with pytest.raises(PlanError, match="labels"):
        compare(some, [Random(), Random()])
    with pytest.raises(PlanError, match="0 seeds"):
        compare(some, [Random()], 0)


@pytest.mark.parametrize("suffix", ["json", "csv", "parquet"])
def test_runs_are_saved(suffix: str, tmp_path: Path) -> None:
    found = compare(profile([1.0, 2.0, 2.0, 5.0]), [Claims(), Random(p=0.5)], seeds=3)
    path = found.save(tmp_path / f"runs.{suffix}")
    if suffix == "json":
        data = json.loads(path.read_text())
        assert data["schema"] == "simt.comparison/1"
        assert len(data["runs"]) == 6 and [x["method"] for x in data["summary"]] == ["claims", "random"]
    else:
        read = pl.read_csv(path) if suffix == "csv" else pl.read_parquet(path)
        assert read["error"].to_list() == found.runs["error"].to_list()
    with pytest.raises(PlanError, match=r"\.parquet"):
        found.save(tmp_path / "runs.txt")


@pytest.mark.slow
def test_the_adaptive_method_measures_in_the_truth() -> None:
    ours = example_profile(400)
    random = np.random.default_rng(0)
    times = ours.column("duration_ns") * 2 * np.exp(0.1 * random.standard_normal(400))
    found = compare(ours, [Adaptive(error=0.05), Random()], 8, ours.with_columns({"duration_ns": times}))
    summary = {row["method"]: row for row in found.summary.to_dicts()}
    assert summary["adaptive"]["mean_error"] < 0.05 and summary["adaptive"]["claimed_error"] <= 0.05
    assert "second profile" in compare(ours, [Adaptive(), Random()], 2).left_out["adaptive"]
    cycles = compare(ours, [Adaptive(metrics=("cycles",)), Random()], 2, ours)
    assert "judged by duration_ns" in cycles.left_out["adaptive"]


@pytest.mark.slow
def test_another_seed_draws_again_from_the_same_strata_as_a_new_sampler() -> None:
    profile = example_profile(600)
    other = example_profile(600, seed=1)
    for make in (Stem, Root, Neyman):
        kept = make()
        for seed, population in ((0, profile), (1, profile), (1, other), (2, profile)):
            expected = make(seed=seed).fit_plan(population).to_json()
            assert kept.set_params(seed=seed).fit_plan(population).to_json() == expected
        expected = make(error=0.2).fit_plan(profile).to_json()
        assert kept.set_params(seed=0, error=0.2).fit_plan(profile).to_json() == expected


def test_progress_is_told() -> None:
    told: list[tuple[str, int, int]] = []
    compare(profile([1.0] * 4), [Random(), Claims()], 2, advance=lambda *x: told.append(x))
    assert told == [("random", 0, 4), ("random", 1, 4), ("claims", 2, 4), ("claims", 3, 4)]
