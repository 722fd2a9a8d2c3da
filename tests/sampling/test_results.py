"""Values of a Plan's launches, from all kinds of files."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from simt.errors import PlanError, ProfileError
from simt.profile import Profile
from simt.sampling import Plan, Random
from simt.sampling.checks import example_profile
from simt.sampling.results import read_results


@pytest.fixture
def plan() -> Plan:
    return Random(size=6).fit_plan(example_profile(40))


def measured(plan: Plan, ids: list[int], path: Path) -> Path:
    """The plan's launches as a profile with different numbering, and a counter."""
    frame = plan.launches.select(
        pl.Series("launch", ids), "name", duration_ns=2 * pl.col("time_ns"), dram=pl.col("launch")
    )
    return Profile(frame).save(path)


def test_a_profile_of_everything_is_matched_by_id(plan: Plan, tmp_path: Path) -> None:
    path = example_profile(40).save(tmp_path / "all.parquet")
    total = plan.estimate(read_results(plan, path), ["duration_ns"])["duration_ns"]
    assert total["measured"] == 6


def test_a_profile_of_just_the_plan_is_matched_in_order(plan: Plan, tmp_path: Path) -> None:
    path = measured(plan, [0, 1, 2, 3, 4, 5], tmp_path / "some.parquet")
    for match in ("auto", "order"):
        found = read_results(plan, path, match=match)
        assert found["launch"].to_list() == plan.launches["launch"].to_list()
        assert found["dram"].to_list() == plan.launches["launch"].to_list()
    with pytest.raises(PlanError, match=r"none of the plan|are its ids the plan's"):
        read_results(plan, path, match="id")


def test_tables_by_id(plan: Plan, tmp_path: Path) -> None:
    frame = plan.launches.select("launch", energy=pl.col("time_ns") * 3)
    frame.write_csv(tmp_path / "a.csv")
    frame.write_parquet(tmp_path / "a.parquet")
    for name in ("a.csv", "a.parquet"):
        found = plan.estimate(read_results(plan, tmp_path / name), ["energy"])
        assert found["energy"]["total"] == pytest.approx(3 * plan.population_ns)


def test_other_programs_and_other_numbers_are_refused(plan: Plan, tmp_path: Path) -> None:
    frame = plan.launches.select("launch", name=pl.lit("other"), duration_ns="time_ns")
    path = Profile(frame).save(tmp_path / "other.parquet")
    with pytest.raises(PlanError, match=r"should be|expected"):
        read_results(plan, path)
    with pytest.raises(PlanError, match="expected the 6 of the plan"):
        read_results(plan, example_profile(40).save(tmp_path / "all.parquet"), match="order")
    with pytest.raises(ProfileError):
        read_results(plan, tmp_path / "missing.csv")
