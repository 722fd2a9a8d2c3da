"""Profile and Plan: order of rows, types, omitted fields, JSON."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from simt.errors import PlanError, ProfileError
from simt.profile import Profile
from simt.sampling import Choice, Plan, Sampler


class Thirds(Sampler):
    """Every third launch, weight 3."""

    method = "thirds"

    def __init__(self, offset: int = 0) -> None:
        self.offset = offset

    def choose(self, profile: Profile) -> Choice:
        rows = np.arange(self.offset, len(profile), 3)
        return Choice(
            strata=np.zeros(len(profile), np.int64),
            rows=rows,
            draws=np.ones(len(rows), np.int64),
            weights=np.full(len(rows), len(profile) / len(rows)),
            names=["all"],
            why=["every third"],
        )


def frame() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "launch": [4, 1, 2, 3, 7, 9],
            "name": ["b", "a", "ncclKernel", "b", "Memcpy HtoD", "a"],
            "duration_ns": [10.0, 20.0, 40.0, 30.0, 50.0, 50.0],
        }
    )


def test_rows_are_put_in_launch_order_and_names_are_coded_in_lexical_order() -> None:
    profile = Profile(frame())
    assert profile.launches["launch"].to_list() == [1, 2, 3, 4, 7, 9]
    assert profile.names == ("Memcpy HtoD", "a", "b", "ncclKernel")
    assert profile.name_codes.tolist() == [1, 3, 2, 2, 0, 1]


def test_copies_and_communication_are_left_out_with_their_share() -> None:
    kernels = Profile(frame()).kernels()
    assert kernels.launches["launch"].to_list() == [1, 3, 4, 9]
    assert kernels.names == ("a", "b")
    assert [(x.kind, x.launches, x.share) for x in kernels.left_out] == [
        ("copy", 1, 0.25),
        ("communication", 1, 0.2),
    ]


@pytest.mark.parametrize(
    ("column", "values", "words"),
    [
        ("launch", [1, 1, 2, 3, 4, 5], "occurs twice"),
        ("duration_ns", [1.0, 2.0, -3.0, 4.0, 5.0, 6.0], "-3.0 ns"),
        ("name", [None, "a", "b", "c", "d", "e"], "no name"),
    ],
)
def test_senseless_columns_are_refused(column: str, values: list[object], words: str) -> None:
    with pytest.raises(ProfileError, match=words):
        Profile(frame().with_columns(pl.Series(column, values)))


def test_a_plan_survives_json_and_knows_its_error_and_speedups() -> None:
    plan = Thirds().fit(Profile(frame()).kernels()).plan_
    # Of times 20, 30, 10 and 50, launches 1 and 9 are drawn, with weight 2 each.
    assert plan.estimated_ns == 140.0
    assert plan.profile_error == pytest.approx(30 / 110)
    assert plan.speedup == pytest.approx(110 / 70)
    assert plan.makespan_speedup == pytest.approx(110 / 50)
    again = Plan.from_json(plan.to_json())
    assert again.to_json() == plan.to_json()
    assert again.launches.equals(plan.launches)


def test_a_plan_is_the_same_for_any_order_of_rows() -> None:
    plan = Thirds(1).fit(Profile(frame())).plan_
    assert plan.to_json() == Thirds(1).fit(Profile(frame().reverse())).plan_.to_json()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": "simt.plan/1"}', "nan", '{"schema": 3}'])
def test_what_is_no_plan_is_refused(text: str) -> None:
    with pytest.raises(PlanError, match="here"):
        Plan.from_json(text, "here")
