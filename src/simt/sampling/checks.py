"""Checks for samplers, including user-written ones."""

from __future__ import annotations

import numpy as np
import polars as pl
from threadpoolctl import threadpool_limits

from simt.errors import PlanError
from simt.methods import clone
from simt.methods.checks import check_parameters, expect
from simt.profile import Profile
from simt.sampling.plan import Plan
from simt.sampling.sampler import Sampler

# Counters of `example_profile`, with the spread of each within one kernel.
_COUNTERS = {
    "smsp__inst_executed.sum": 0.3,
    "smsp__thread_inst_executed_per_inst_executed.ratio": 0.01,
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": 0.3,
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": 0.3,
    "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum": 0.2,
    "smsp__inst_executed_op_global_ld.sum": 0.3,
    "smsp__inst_executed_op_global_st.sum": 0.3,
    "smsp__inst_executed_op_local_ld.sum": 0.2,
    "smsp__inst_executed_op_shared_ld.sum": 0.1,
    "smsp__inst_executed_op_shared_st.sum": 0.1,
    "smsp__sass_inst_executed_op_global_atom.sum": 0.5,
}


def example_profile(launches: int = 240, kernels: int = 6, seed: int = 0, same: bool = False) -> Profile:
    """A synthetic profile with every column that simt's samplers read.

    Launch ids are not consecutive. With `same`, all launches have the same kernel, time and counters.
    """
    random = np.random.default_rng(seed)
    kernel = random.integers(0, 1 if same else kernels, launches)
    scale = 10.0 ** random.uniform(3, 6, (1 if same else kernels,))[kernel]
    spread = 0.0 if same else 1.0
    counters = {
        name: np.round(scale * np.exp(spread * sigma * random.standard_normal(launches)))
        for name, sigma in _COUNTERS.items()
    }
    lanes = "smsp__thread_inst_executed_per_inst_executed.ratio"
    counters[lanes] = np.clip(32 - spread * random.integers(0, 8, launches), 1, 32)
    return Profile(
        pl.DataFrame(
            {
                "launch": 3 + 2 * np.arange(launches),
                "name": [f"void kernel_{k}<float>(float*, int)" for k in kernel],
                "grid_x": 1 + kernel * 10 + (0 if same else random.integers(0, 4, launches)),
                "grid_y": np.ones(launches, np.int64),
                "grid_z": np.ones(launches, np.int64),
                "block_x": 64 * (1 + kernel % 3),
                "block_y": np.ones(launches, np.int64),
                "block_z": np.ones(launches, np.int64),
                "registers": 16 + 8 * (kernel % 4),
                "shared_bytes": 1024 * (kernel % 2),
                "stream": np.zeros(launches, np.int64),
                "device": np.zeros(launches, np.int64),
                "start_ns": np.arange(launches) * 1e6,
                "duration_ns": np.round(scale * np.exp(spread * 0.2 * random.standard_normal(launches))),
                **counters,
            }
        ),
        gpu="made up",
        source="example",
    )


def check_sampler(sampler: Sampler, profile: Profile | None = None, exact: bool = True) -> None:
    """Checks what every sampler must satisfy. Raises AssertionError with the violated condition.

    sampler: with the parameters to be checked; it is cloned, not fitted.
    profile: a profile of at least 20 launches with the required columns, if `example_profile` lacks one.
    exact: whether the weights of identical launches add up to their number. They do not if the estimate
        varies by design with the number drawn (Horvitz-Thompson weights).

    The parameters survive `clone` and are not changed by `fit`; neither is the profile. The Plan is
    reproducible, independent of the order of rows and the number of threads, and survives JSON. Every launch
    is in one stratum, every stratum has launches, weights are finite. Profiles with one launch, two launches,
    equal times, times of zero, one name, and as many names as launches work. An empty profile and invalid
    parameters are refused.
    """
    profile = example_profile() if profile is None else profile
    example = example_profile(30)
    check_parameters(sampler, lambda one: one.fit(example))
    before, parameters = profile.launches.clone(), repr(clone(sampler).get_params())
    fitted = clone(sampler)
    expect(fitted.fit(profile) is fitted, "fit does not return the sampler")
    expect(profile.launches.equals(before), "fit changes the profile")
    expect(repr(fitted.get_params()) == parameters, "fit changes the parameters")
    text = fitted.plan_.to_json()
    expect(fitted.fit(profile).plan_.to_json() == text, "a second fit returns a different plan")
    expect(clone(sampler).fit_plan(profile).to_json() == text, "a clone makes a different plan")

    order = np.random.default_rng(1).permutation(len(profile))
    shuffled = Profile(before[order], profile.gpu, profile.source, profile.left_out, profile.warnings)
    expect(clone(sampler).fit_plan(shuffled).to_json() == text, "the plan depends on the order of rows")
    for threads in (1, 2):
        with threadpool_limits(threads):
            again = clone(sampler).fit_plan(profile).to_json()
        expect(again == text, f"the plan differs with {threads} thread(s)")

    for what, case in _cases(profile).items():
        _check_choice(sampler, case, what)
    alike = Profile(before[[0] * 20].with_columns(launch=pl.Series(range(20))), source="20 launches alike")
    _check_choice(sampler, alike, "alike launches")
    weights = float(clone(sampler).fit_plan(alike).launches["weight"].sum())
    if exact:
        expect(abs(weights - 20) < 1e-6, f"the weights of 20 launches that are alike add up to {weights}")

    try:
        clone(sampler).fit(profile.take(np.zeros(len(profile), bool)))
    except PlanError:
        return
    raise AssertionError("an empty profile is not refused with a PlanError")


def _cases(profile: Profile) -> dict[str, Profile]:
    """Edge cases, made from `profile`."""
    frame = profile.launches
    few = min(20, len(frame))
    cases = {
        "the profile itself": frame,
        "one launch": frame[:1],
        "two launches": frame[:2],
        "one name": frame.with_columns(name=pl.lit("kernel")),
        "as many names as launches": frame[:few].with_columns(name=pl.Series([f"k{i}" for i in range(few)])),
    }
    if profile.has("duration_ns"):
        cases["equal times"] = frame.with_columns(duration_ns=pl.lit(5.0))
        cases["times of zero"] = frame.with_columns(duration_ns=pl.lit(0.0))
    return {what: Profile(case, source=what) for what, case in cases.items()}


def _check_choice(sampler: Sampler, profile: Profile, what: str) -> None:
    """Choice and Plan are complete and agree with each other."""
    try:
        choice = clone(sampler).choose(profile)
        plan = clone(sampler).fit_plan(profile)
    except Exception as error:
        raise AssertionError(f"{what}: {error!r}") from error
    n, strata = len(profile), len(choice.names)
    expect(choice.strata.shape == (n,), f"{what}: {choice.strata.shape} strata for {n} launches")
    used = np.unique(choice.strata)
    expect(
        bool((used == np.arange(strata)).all()),
        f"{what}: strata are {used}, expected all of 0 to {strata - 1}",
    )
    expect(len(choice.why) == strata, f"{what}: {len(choice.why)} reasons for {strata} strata")
    expect(len(choice.rows) > 0, f"{what}: nothing is chosen")
    expect(len(set(choice.rows.tolist())) == len(choice.rows), f"{what}: a launch is chosen twice")
    expect(bool((choice.draws >= 1).all()), f"{what}: a chosen launch has no draw")
    weights = choice.weights
    expect(
        bool((np.isfinite(weights) & (weights >= 0)).all()), f"{what}: a weight is not a number of 0 or more"
    )
    expect(choice.replacement or bool((choice.draws == 1).all()), f"{what}: drawn twice without replacement")
    expect(plan.population == n == int(plan.strata["launches"].sum()), f"{what}: launches are lost")
    expect(
        int(plan.strata["draws"].sum()) == int(plan.launches["draws"].sum()), f"{what}: draws do not add up"
    )
    again = Plan.from_json(plan.to_json())
    expect(again.to_json() == plan.to_json(), f"{what}: the plan changes on its way through JSON")
