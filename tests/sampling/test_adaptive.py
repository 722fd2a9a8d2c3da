"""Adaptive: rounds, nested plans, and half widths that are met."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from simt.errors import PlanError
from simt.profile import Profile
from simt.sampling import Adaptive, Neyman, Random, Root, check_sampler


def two_machines(launches: int, noise: float, seed: int = 0) -> tuple[Profile, np.ndarray]:
    """A profile, and values of every launch on another machine, which times predict only within `noise`."""
    random = np.random.default_rng(seed)
    kernel = random.integers(0, 6, launches)
    times = (1000.0 * 2.0**kernel * random.lognormal(0, 0.1, launches)).round()
    values = times * (0.4 + 0.1 * kernel) * random.lognormal(0, noise, launches)
    frame = pl.DataFrame(
        {"launch": range(launches), "name": [f"kernel_{k}" for k in kernel], "duration_ns": times}
    )
    return Profile(frame), values


@pytest.mark.slow
def test_half_widths_hold_on_another_machine() -> None:
    profile, values = two_machines(1000, 0.3)
    covered = 0
    for seed in range(20):
        adaptive = Adaptive(metrics=("v",), seed=seed)
        found = adaptive.run(profile, lambda ids: {i: {"v": float(values[i])} for i in ids})["v"]
        assert found["relative"] == pytest.approx(0.05)
        covered += abs(found["total"] - values.sum()) <= found["half_width"]
    assert covered >= 17


@pytest.mark.slow
def test_half_widths_hold_where_a_tenth_of_the_launches_is_faster() -> None:
    """Samples that miss the faster ones look alike and stop early, with half widths below 1 %."""
    covered = 0
    for seed in range(30):
        random = np.random.default_rng(seed)
        kernel = random.integers(0, 24, 3000)
        times = (1000 * 1.3**kernel * random.lognormal(0, 0.1, 3000)).round()
        fast = (random.random(3000) < 0.1) & (kernel % 2 == 1)
        values = times * random.lognormal(0, 0.01, 3000) * np.where(fast, 0.75, 1.0)
        names = [f"kernel_{k}" for k in kernel]
        profile = Profile(pl.DataFrame({"launch": range(3000), "name": names, "duration_ns": times}))
        adaptive = Adaptive(metrics=("v",), error=0.02, seed=seed)

        def measure(ids: list[int], values: np.ndarray = values) -> dict[int, dict[str, float]]:
            return {i: {"v": float(values[i])} for i in ids}

        found = adaptive.run(profile, measure)["v"]
        assert found["relative"] == pytest.approx(0.02)
        assert adaptive.rounds_[-1]["half_widths"]["v"] <= 0.02
        covered += abs(found["total"] - values.sum()) <= found["half_width"]
    assert covered >= 28


@pytest.mark.slow
def test_plans_grow_until_every_metric_holds_twice() -> None:
    profile, values = two_machines(3000, 0.3)
    adaptive = Adaptive(metrics=("v", "w"), error=0.04, sampler=Neyman(aim="time", draw="random"))
    adaptive.fit(profile)
    plan, before = adaptive.plan_, set()
    assert len(plan) >= 30
    while plan is not None:
        chosen = set(plan.launches["launch"].to_list())
        assert before < chosen
        assert plan.launches["weight"].sum() == pytest.approx(len(profile))
        new = sorted(chosen - before)
        before = chosen
        plan = adaptive.refine({i: {"v": values[i], "w": float(i % 7)} for i in new})
    last = adaptive.rounds_[-2:]
    assert all(width <= 0.04 for round_ in last for width in round_["half_widths"].values())
    assert last[0]["launches"] < last[1]["launches"]
    # 3000 launches with a metric of 0 to 6 that is independent of their times need a few hundred samples.
    assert 100 < len(before) < 1500


@pytest.mark.slow
def test_noise_takes_more_launches() -> None:
    sizes = []
    for noise in (0.02, 0.4):
        profile, values = two_machines(2000, noise)
        adaptive = Adaptive(metrics=("v",))
        adaptive.run(profile, lambda ids, values=values: {i: {"v": values[i]} for i in ids})
        sizes.append(len(adaptive.plan_))
    assert sizes[1] > 2 * sizes[0]


def test_it_ends_with_all_launches_or_at_its_limit() -> None:
    profile, values = two_machines(60, 1.0)
    adaptive = Adaptive(metrics=("v",), error=0.001)
    found = adaptive.run(profile, lambda ids: {i: {"v": values[i]} for i in ids})["v"]
    assert (found["total"], found["half_width"]) == pytest.approx((values.sum(), 0))
    limited = Adaptive(metrics=("v",), error=0.001, limit=0.6)
    limited.run(profile, lambda ids: {i: {"v": values[i]} for i in ids})
    assert any("gave up" in warning for warning in limited.plan_.warnings)


def test_missing_values_and_replacement_are_refused() -> None:
    profile, _ = two_machines(200, 0.1)
    adaptive = Adaptive(metrics=("v",)).fit(profile)
    first = int(adaptive.plan_.launches["launch"][0])
    with pytest.raises(PlanError, match="were not measured"):
        adaptive.refine({first: {"v": 1.0}})
    with pytest.raises(PlanError, match="no metric 'v'"):
        adaptive.refine({first: {"w": 1.0}})
    with pytest.raises(PlanError, match="replacement"):
        Adaptive(sampler=Root(replacement=True)).fit(profile)
    with pytest.raises(PlanError, match="add up"):
        Adaptive(metrics=("sm__throughput.avg.pct",)).fit(profile)


@pytest.mark.slow
@pytest.mark.parametrize("sampler", [Adaptive(), Adaptive(sampler=Random(p=0.1))])
def test_it_is_a_sampler(sampler: Adaptive) -> None:
    check_sampler(sampler)
