"""Sieve: tiers, representatives, instruction weights, and the splits of tier 3."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simt.errors import PlanError
from simt.profile import Profile
from simt.sampling import Sieve, check_sampler
from simt.sampling.sieve import _minima

INSTRUCTIONS = "smsp__inst_executed.sum"


def profile(name: str, counts: list[float], blocks: list[int] | None = None, **more: list[float]) -> Profile:
    n = len(counts)
    block = blocks or [128] * n
    dimensions = {"block_x": block, "block_y": [1] * n, "block_z": [1] * n}
    dimensions |= {"grid_x": [2] * n, "grid_y": [1] * n, "grid_z": [1] * n}
    columns = {"launch": range(n), "name": list(name), INSTRUCTIONS: counts, **dimensions, **more}
    return Profile(pl.DataFrame(columns))


def test_tiers_and_instruction_weights_by_hand() -> None:
    # a: all 100. b: 90, 110, 130 (CoV 0.148). c: 10, 12, 1000, 1100 (CoV 0.98), split between 12 and 1000.
    p = profile("abcabcacbc", [100.0, 90, 10, 100, 110, 12, 100, 1000, 130, 1100])
    sampler = Sieve().fit(p)
    plan = sampler.plan_
    assert sampler.tiers_.tolist() == [1, 2, 3, 3]
    assert sampler.labels_.tolist() == [0, 1, 2, 0, 1, 2, 0, 3, 1, 3]
    assert plan.launches["launch"].to_list() == [0, 1, 2, 7]
    assert plan.launches["weight"].to_list() == pytest.approx([300 / 100, 330 / 90, 22 / 10, 2100 / 1000])
    counts = p.column(INSTRUCTIONS)
    assert plan.launches["weight"].to_numpy() @ counts[[0, 1, 2, 7]] == pytest.approx(counts.sum())
    assert plan.fitted["tier_3"] == {"strata": 2, "launches": 4}


def test_the_estimate_is_the_weighted_harmonic_mean_of_ipc() -> None:
    cycles = [50.0, 10.0, 80.0, 20.0]
    p = profile("aabb", [100.0, 120.0, 300.0, 310.0], duration_ns=cycles)
    plan = Sieve().fit_plan(p)
    # IPC of a's representative is 2, of b's 3.75; shares of instructions 220/830 and 610/830.
    ipc = 1 / (220 / 830 / 2 + 610 / 830 / 3.75)
    assert plan.estimated_ns == pytest.approx(830 / ipc)


def test_the_dominant_cta_size_represents() -> None:
    p = profile("aaaaa", [100.0, 110.0, 120.0, 120.0, 130.0], [64, 256, 128, 256, 128])
    # 256 and 128 are equally frequent; 256 comes first.
    assert Sieve().fit_plan(p).launches["launch"].to_list() == [1]
    # Tier 1 takes the first launch, regardless of its size.
    same = profile("aaa", [100.0] * 3, [64, 256, 256])
    assert Sieve().fit_plan(same).launches["launch"].to_list() == [0]


def test_the_artifact_takes_the_most_frequent_count_and_the_median() -> None:
    p = profile("aaaaa", [100.0, 110.0, 120.0, 120.0, 130.0], [64, 256, 128, 128, 256])
    # Total threads: 256 of launches 1 and 4 come first at equal frequency... 128 * 2 of 2 and 3 as well.
    assert Sieve().fit_plan(p).launches["launch"].to_list() == [1]
    assert Sieve(fidelity="artifact").fit_plan(p).launches["launch"].to_list() == [1]
    more = profile("aaaaaa", [100.0, 110.0, 120.0, 120.0, 130.0, 110.0], [64, 256, 128, 128, 256, 128])
    assert Sieve(fidelity="artifact").fit_plan(more).launches["launch"].to_list() == [2]
    # Tier 3: 1, 2 and 3 stay together (minima of the density lie between 3 and 1000), the median is 2.
    wide = profile("aaaaa", [3.0, 1.0, 2.0, 1000.0, 1000.0])
    assert Sieve(fidelity="artifact").fit_plan(wide).launches["launch"].to_list() == [2, 3]


def test_a_bandwidth_of_one_instruction_degenerates() -> None:
    # Two groups that the exact split finds. The two middle grid points between them have equal density, so
    # the density has no minimum there.
    counts = [1e6, 1e6 + 10, 1e6 + 20, 9e6, 9e6 + 10, 9e6 + 20]
    assert Sieve().fit(profile("aaaaaa", counts)).plan_.strata["launches"].to_list() == [3, 3]
    assert _minima(np.array(counts)) == []
    # Counts at equal steps have a minimum wherever a grid point falls between two of them.
    steady = profile("a" * 60, (np.arange(1.0, 61.0) * 1e5).tolist())
    assert len(Sieve(kde="artifact").fit(steady).tiers_) == 11
    assert len(Sieve().fit(steady).tiers_) < 11


@pytest.mark.slow
@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=60), st.sampled_from([0.1, 0.4, 1.0]))
def test_parts_keep_to_theta_and_equal_counts_together(counts: list[int], theta: float) -> None:
    values = np.sort(np.array(counts, float))
    labels = Sieve(theta).fit(profile("a" * len(counts), values.tolist())).labels_
    assert (np.diff(labels) >= 0).all()
    ends = [*(np.flatnonzero(np.diff(labels)) + 1).tolist(), len(values)]
    assert ends == sorted(set(ends)) and ends[-1] == len(values)
    for part in np.split(values, ends[:-1]):
        assert part[0] == part[-1] or part.std() < theta * part.mean()
    for end in ends[:-1]:
        assert values[end - 1] < values[end]


@pytest.mark.slow
@given(st.lists(st.integers(1, 10**6), min_size=2, max_size=40, unique=True))
def test_the_first_cut_leaves_the_least_squares(counts: list[int]) -> None:
    values = np.sort(np.array(counts, float))
    logs = np.log1p(values)

    def squares(cut: int) -> float:
        return sum(float(((part - part.mean()) ** 2).sum()) for part in (logs[:cut], logs[cut:]))

    theta = 0.999 * float(values.std() / values.mean())  # at least one cut
    labels = Sieve(theta).fit(profile("a" * len(counts), values.tolist())).labels_
    best = min(squares(cut) for cut in range(1, len(values)))
    assert min(squares(cut) for cut in np.flatnonzero(np.diff(labels)) + 1) == pytest.approx(best, abs=1e-9)


def test_representatives_without_instructions_stand_for_their_launches() -> None:
    plan = Sieve().fit_plan(profile("aaab", [0.0, 0.0, 0.0, 5.0]))
    assert plan.launches["weight"].to_list() == [3.0, 1.0]


def test_another_column_may_stand_for_instructions() -> None:
    p = profile("aab", [1.0, 1.0, 1.0], [64, 128, 32])
    plan = Sieve(instructions="launch__thread_count").fit_plan(p)
    assert plan.launches["weight"].to_list() == pytest.approx([(128 + 256) / 128, 1.0])


@pytest.mark.parametrize(
    ("sampler", "words"),
    [
        (Sieve(0.0), "theta is 0.0, expected a number above 0"),
        (Sieve(kde="log"), "kde is 'log', expected one of exact, artifact"),  # type: ignore[arg-type]
        (Sieve(fidelity="both"), "fidelity is 'both'"),  # type: ignore[arg-type]
        (Sieve(instructions=3), "instructions is 3, expected the name of a column"),  # type: ignore[arg-type]
    ],
)
def test_senseless_parameters_are_named(sampler: Sieve, words: str) -> None:
    with pytest.raises(PlanError, match=words):
        sampler.fit(profile("a", [1.0]))


def test_without_instructions_it_says_what_it_needs() -> None:
    with pytest.raises(PlanError, match=r"Sieve needs warp instructions: `smsp__inst_executed\.sum`"):
        Sieve().fit(Profile(pl.DataFrame({"launch": [1], "name": ["a"]})))


@pytest.mark.parametrize("sampler", [Sieve(), Sieve(0.05), Sieve(fidelity="artifact")], ids=str)
def test_sieve_passes_the_common_check(sampler: Sieve) -> None:
    check_sampler(sampler)
