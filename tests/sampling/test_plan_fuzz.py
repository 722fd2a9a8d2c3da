"""Plans that no sampler has written: a SimtError, or a Plan with which everything works.

SIMT_FUZZ_SECONDS=1200 for as long as that.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from simt.errors import SimtError
from simt.profile import Profile
from simt.sampling import Plan, exports, plan_tables
from simt.sampling.neyman import Neyman
from support.hostile import attempts, damaged, mutant


def made() -> Plan:
    chance = np.random.default_rng(1)
    times = chance.lognormal(3, 0.5, 60)
    names = ["a", "b", "c"] * 20
    return Neyman(error=0.1, seed=1).fit_plan(
        Profile(pl.DataFrame({"launch": range(60), "name": names, "duration_ns": times}))
    )


def use(plan: Plan) -> None:
    """Every operation on a Plan alone."""
    str(plan)
    plan._repr_html_()
    plan_tables.facts(plan)
    exports.to_csv(plan)
    Plan.from_json(plan.to_json())
    values = plan.launches.select("launch", pl.col("time_ns").alias("cycles"))
    plan.estimate(values)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["tree", "bytes"])
def test_hostile_plans(tmp_path: Path, form: str) -> None:
    text = made().to_json()
    use(made())
    chance, file = random.Random(form), tmp_path / "plan.json"
    seen, good = 0, 0
    for seen in attempts(1500):
        hostile = (
            damaged(text.encode(), chance)
            if form == "bytes"
            else json.dumps(mutant(json.loads(text), chance)).encode()
        )
        file.write_bytes(hostile)
        try:
            plan = Plan.load(file)
        except SimtError as error:
            assert str(file) in str(error) or str(error).startswith("plan: ")
            continue
        good += 1
        try:
            use(plan)
        except SimtError:
            continue
        except Exception as error:
            kept = tmp_path / "hostile-plan.json"
            kept.write_bytes(hostile)
            raise AssertionError(f"mutant {seen}, kept in {kept}: {error!r}") from error
    print(f"{form}: {seen} mutants, {good} loaded")
    assert seen > good
