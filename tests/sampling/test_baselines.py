"""First-N-instructions and random sampling."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from simt.errors import PlanError
from simt.profile import Profile
from simt.sampling import FirstN, Random, SingleIteration, check_sampler
from simt.sampling.columns import LANES, THREAD_INSTRUCTIONS, WARP_INSTRUCTIONS


def profile(**columns: list[float]) -> Profile:
    n = len(next(iter(columns.values())))
    return Profile(pl.DataFrame({"launch": range(n), "name": ["k"] * n, **columns}))


TIMES = [10.0, 20.0, 30.0, 40.0]
WARPS = {"duration_ns": TIMES, WARP_INSTRUCTIONS[0]: [100.0, 100.0, 200.0, 600.0]}


@pytest.mark.parametrize(
    ("limit", "weights"),
    [
        (50, [1000 / 50 * 0.5]),  # half of the first launch
        (100, [10.0]),  # exactly the first
        (250, [4.0, 4.0, 4.0 * 0.25]),  # 50 of the 200 instructions of the third
        (1000, [1.0] * 4),
        (1e9, [1.0] * 4),  # more than there are: all launches
    ],
)
def test_first_n_cuts_inside_a_launch(limit: float, weights: list[float]) -> None:
    sampler = FirstN(limit, "warp").fit(profile(**WARPS))
    assert sampler.plan_.launches["weight"].to_list() == pytest.approx(weights)
    # The prefix's IPC is the program's: cycles = instructions / IPC.
    shares = np.ones(len(weights))
    shares[-1] = sampler.fraction_
    prefix_ns = float((shares * TIMES[: len(weights)]).sum())
    assert sampler.plan_.estimated_ns == pytest.approx(1000 / (min(limit, 1000) / prefix_ns))
    assert sampler.plan_.fitted["cut_fraction"] == sampler.fraction_


def test_thread_instructions_are_warp_instructions_times_lanes_unless_counted() -> None:
    lanes = profile(**WARPS, **{LANES[0]: [32.0, 16.0, 8.0, 4.0]})
    plan = FirstN(100 * 32 + 800).fit_plan(lanes)
    assert plan.fitted["cut_fraction"] == 0.5
    assert plan.fitted["instructions"] == 3200 + 1600 + 1600 + 2400
    counted = lanes.with_columns({THREAD_INSTRUCTIONS[0]: [1.0, 1.0, 1.0, 1.0]})
    assert FirstN(2).fit_plan(counted).launches["weight"].to_list() == [2.0, 2.0]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"duration_ns": TIMES}, "needs thread instructions: `smsp__thread_inst_executed.sum`"),
        (WARPS, "per_inst_executed.ratio"),
        ({THREAD_INSTRUCTIONS[0]: [1.0, None, 2.0]}, "1 of 3 launches have no usable .* launch 1 with nan"),
        ({THREAD_INSTRUCTIONS[0]: [0.0, 0.0]}, "no launch executes"),
    ],
)
def test_first_n_without_instructions_says_what_it_needs(columns: dict[str, list[float]], words: str) -> None:
    with pytest.raises(PlanError, match=words):
        FirstN().fit(profile(**columns))


def test_random_draws_with_the_chance_asked_for_and_each_launch_alike() -> None:
    big = profile(duration_ns=[1.0] * 20_000)
    plan = Random(0.1, seed=3).fit_plan(big)
    assert abs(len(plan) - 2000) < 4.5 * np.sqrt(20_000 * 0.09)
    assert plan.launches["weight"].unique().to_list() == [20_000 / len(plan)]
    assert Random(0.1, weight="horvitz-thompson", seed=3).fit_plan(big).launches["weight"][0] == 10.0
    fixed = Random(size=50, seed=3).fit_plan(big)
    assert len(fixed) == 50 and fixed.launches["weight"][0] == 400.0
    assert len(Random(size=50).fit_plan(profile(duration_ns=TIMES))) == 4


@pytest.mark.slow
@pytest.mark.parametrize("weight", ["ratio", "horvitz-thompson"])
def test_random_is_unbiased(weight: str) -> None:
    times = 10.0 ** np.random.default_rng(0).uniform(0, 2, 300)
    few = profile(duration_ns=times.tolist())
    sampler = Random(0.2, weight=weight)  # type: ignore[arg-type]
    estimates = [sampler.set_params(seed=seed).fit_plan(few).estimated_ns for seed in range(400)]
    error = (np.mean(estimates) - times.sum()) / (np.std(estimates) / 20)
    assert abs(error) < 4


def test_an_empty_random_sample_becomes_one_launch() -> None:
    plan = Random(1e-12, weight="horvitz-thompson").fit_plan(profile(duration_ns=TIMES))
    assert len(plan) == 1 and plan.launches["weight"].to_list() == [4.0]


def test_a_launchs_draw_does_not_depend_on_the_others() -> None:
    whole = profile(duration_ns=[1.0] * 500)
    drawn = set(Random(0.1).fit_plan(whole).launches["launch"].to_list())
    half = whole.take(np.arange(500) % 2 == 0)
    assert set(Random(0.1).fit_plan(half).launches["launch"].to_list()) == {i for i in drawn if i % 2 == 0}


@pytest.mark.parametrize(
    ("sampler", "words"),
    [
        (FirstN(0), "instructions is 0, expected a number above 0"),
        (FirstN(unit="lane"), "unit is 'lane', expected one of thread, warp"),  # type: ignore[arg-type]
        (Random(0.0), "p is 0.0, expected a number above 0 up to 1"),
        (Random(1.5), "p is 1.5"),
        (Random(size=0), "size is 0, expected a whole number of 1 or more"),
        (Random(seed=1.5), "seed is 1.5, expected a whole number"),  # type: ignore[arg-type]
    ],
)
def test_senseless_parameters_are_named(sampler: FirstN | Random, words: str) -> None:
    with pytest.raises(PlanError, match=words):
        sampler.fit(profile(**WARPS))


@pytest.mark.parametrize(
    "sampler", [FirstN(), FirstN(1e6, "warp"), Random(), Random(0.1, seed=7), Random(size=9)], ids=str
)
def test_baselines_pass_the_common_check(sampler: FirstN | Random) -> None:
    check_sampler(sampler)


def test_horvitz_thompson_passes_the_common_check() -> None:
    check_sampler(Random(0.37, weight="horvitz-thompson"), exact=False)
    with pytest.raises(AssertionError, match="20 launches that are alike add up to"):
        check_sampler(Random(0.37, weight="horvitz-thompson"))


def launches(names: str, **columns: list[float]) -> Profile:
    n = len(names)
    given = {"duration_ns": [float(i + 1) for i in range(n)], **columns}
    return Profile(pl.DataFrame({"launch": range(n), "name": list(names), **given}))


@pytest.mark.parametrize(
    ("names", "loop", "rows", "weights"),
    [
        ("xabcabcabcy", (3, 1, 10), [0, 1, 2, 3, 10], [1, 3, 3, 3, 1]),
        ("abbbabbbabbb", (4, 0, 12), [0, 1, 2, 3], [3, 3, 3, 3]),  # the outer of two loops
        ("aaaa", (1, 0, 4), [0], [4]),  # of several periods, the shortest
        ("ababa", (2, 0, 5), [0, 1], [3, 2]),  # an iteration that is not complete
        ("abcd", (0, 0, 0), [0, 1, 2, 3], [1, 1, 1, 1]),
        ("a", (0, 0, 0), [0], [1]),
    ],
)
def test_one_iteration_stands_for_all(
    names: str, loop: tuple[int, int, int], rows: list[int], weights: list[int]
) -> None:
    sampler = SingleIteration().fit(launches(names))
    assert (sampler.period_, sampler.begin_, sampler.end_) == loop
    assert sampler.plan_.launches["launch"].to_list() == rows
    assert sampler.plan_.launches["weight"].to_list() == weights


def test_another_iteration_and_launches_of_another_size() -> None:
    second = SingleIteration(iteration=1).fit_plan(launches("xabcabcabcy"))
    assert second.launches["launch"].to_list() == [0, 4, 5, 6, 10]
    assert second.estimated_ns == 1 + 3 * (5 + 6 + 7) + 11
    sizes = launches("aaaaaa", grid_x=[1, 2, 1, 2, 1, 2])
    assert SingleIteration().fit(sizes).period_ == 2
    assert SingleIteration(longest=1).fit(sizes).period_ == 0
    with pytest.raises(PlanError, match="iteration is 3, expected one of 0 to 2"):
        SingleIteration(iteration=3).fit(launches("xabcabcabcy"))
    check_sampler(SingleIteration())
