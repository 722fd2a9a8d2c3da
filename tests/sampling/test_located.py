"""From a profile to a plan, a simulation of its launches, and totals, however launches are numbered."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from simt.cli import app
from simt.control import PKP
from simt.errors import PlanError
from simt.gpu import GPU
from simt.profile import Profile, read_profile
from simt.profile.assemble import Findings, assemble
from simt.result import Result
from simt.sampling import Plan, Random
from simt.sampling.located import launches_of, located
from simt.sampling.results import read_results
from simt.simulate import simulate
from support.tiny import dependent, write_kernel

FIRST = 5  # number of the first kernel's file
METRIC = "smsp__inst_executed.sum"
LENGTHS = (30, 60, 40, 60, 30, 40, 60, 30)


def write_trace(folder: Path, positions: range | list[int]) -> Path:
    for n in positions:
        length = LENGTHS[n]
        ctas = [[dependent(length)]] * 10
        write_kernel(folder, ctas, FIRST + n, name=f"k{length}", sm=80)
    return folder


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight launches, the first of which has id 5."""
    return write_trace(tmp_path_factory.mktemp("trace"), range(len(LENGTHS)))


@pytest.fixture(scope="module")
def full(trace: Path) -> Result:
    return simulate(trace, "a100")


def profile(copies: tuple[int, ...] = ()) -> Profile:
    """What a tool would measure for the program; a memory copy precedes the kernels at `copies`."""
    rows = []
    for n, length in enumerate(LENGTHS):
        rows += [{"name": "[CUDA memcpy HtoD]", "duration_ns": 5.0}] * copies.count(n)
        rows.append({"name": f"k{length}", "duration_ns": 10.0 * length})
    return assemble(pl.DataFrame(rows), Findings("test"), order=()).kernels()


def check(plan: Plan, result: Result, full: Result) -> None:
    """The plan's launches correspond to the Result's launches with the same kernel names and positions."""
    found = launches_of(plan, result)
    truth = {x.index: x for x in full.launches}
    rows = list(plan.launches.select("launch", "position", "weight").iter_rows())
    assert [found[launch].name for launch, _, _ in rows] == [truth[at].name for _, at, _ in rows]
    total = plan.estimate(result, [METRIC], estimator="expansion")[METRIC]
    assert total["measured"] == len(plan)
    expected = sum(weight * truth[at].warp_instructions for _, at, weight in rows)
    assert total["total"] == pytest.approx(expected)


@pytest.mark.parametrize("copies", [(), (0, 0, 3)])
def test_a_plan_simulated_and_estimated(
    trace: Path, full: Result, tmp_path: Path, copies: tuple[int, ...]
) -> None:
    plan = Plan.load(Random(size=4, seed=3).fit_plan(profile(copies)).save(tmp_path / "plan.json"))
    ids, positions = plan.launches["launch"].to_list(), plan.launches["position"].to_list()
    assert (ids == positions) == (not copies)
    result = simulate(trace, "a100", plan=plan)
    assert [x.index for x in result.launches] == positions
    assert [x.id for x in result.launches] == [FIRST + n for n in positions]
    loaded = Result.load(result.save(tmp_path / "out"))
    for found in (result, loaded, full):
        check(plan, found, full)
    again = plan.estimate(loaded, ["cycles"])["cycles"]["total"]
    assert result.sampling is not None and result.sampling["plan"]["cycles"] == again


def test_a_profile_of_the_simulator_itself(trace: Path, full: Result, tmp_path: Path) -> None:
    plan = Random(size=4, seed=1).fit_plan(read_profile(full.save(tmp_path / "full")))
    result = simulate(trace, "a100", plan=plan)
    check(plan, result, full)
    assert plan.estimate(result, ["cycles"]).missing == ()


def test_a_trace_of_just_the_plans_launches(full: Result, tmp_path: Path) -> None:
    plan = Random(size=4, seed=3).fit_plan(profile((0,)))
    positions = plan.launches["position"].to_list()
    folder = write_trace(tmp_path / "some", positions)
    result = simulate(folder, "a100", plan=plan)
    assert [x.index for x in result.launches] == [0, 1, 2, 3]
    for found in (result, Result.from_json(result.to_json())):
        check(plan, found, full)


def test_the_command_line(trace: Path, full: Result, tmp_path: Path) -> None:
    saved, plan, out = tmp_path / "full.json", tmp_path / "plan.json", tmp_path / "out"
    full.save(saved)

    def simt(*arguments: str) -> str:
        done = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    simt("sample", str(saved), "-m", "random", "--set", "p=0.5", "--seed", "2", "-o", str(plan), "-q")
    simt("run", str(trace), "--gpu", "a100", "--plan", str(plan), "-o", str(out), "-q")
    text = simt("sample", "estimate", str(plan), str(out), "--metrics", METRIC)
    made = Plan.load(plan)
    check(made, Result.load(out), full)
    measured = read_results(made, out)
    assert measured["launch"].to_list() == made.launches["launch"].to_list()
    totals = [made.estimate(x, [METRIC])[METRIC]["total"] for x in (measured, Result.load(out))]
    assert totals[0] == totals[1] and METRIC in text


SOURCE = """
extern "C" __global__ void k(float* x, int rounds) {
    float v = x[threadIdx.x];
    for (int i = 0; i < rounds; ++i) v = v * 1.5f + 1.0f;
    x[threadIdx.x] = v;
}"""


def test_an_executed_program() -> None:
    plan = Random(size=3, seed=1).fit_plan(
        assemble(
            pl.DataFrame({"name": ["memset", *["k"] * 8], "duration_ns": [1.0, *map(float, LENGTHS)]}),
            Findings("test"),
            order=(),
        ).kernels()
    )
    gpu = GPU("a100", plan=plan, controller=PKP())
    kernel, x = gpu.compile(SOURCE).k, gpu.zeros(64)
    for length in LENGTHS:
        kernel[2, 64](x, length)
    result = gpu.result()
    rows = plan.launches.select("launch", "position").iter_rows()
    found = launches_of(plan, result)
    assert {launch: x.id for launch, x in found.items()} == {launch: at + 1 for launch, at in rows}
    assert plan.estimate(result, ["cycles"])["cycles"]["measured"] == 3


def test_what_is_unfinished_keeps_its_place(full: Result, tmp_path: Path) -> None:
    plan = Random(size=4, seed=3).fit_plan(profile())
    folder = write_trace(tmp_path, plan.launches["position"].to_list())
    whole = simulate(folder, "a100")
    some = simulate(folder, "a100", max_cycles=whole.launches[1].end_cycle + 1)
    assert 0 < len(some.launches) < 4
    found = launches_of(plan, some)
    assert list(found) == plan.launches["launch"].to_list()[: len(some.launches)]
    assert plan.estimate(some, ["cycles"]).missing == tuple(plan.launches["launch"][len(some.launches) :])


def test_other_launches_are_refused(trace: Path) -> None:
    plan = Random(size=4, seed=3).fit_plan(profile())
    with pytest.raises(PlanError, match="belong to the same run"):
        located(plan, dict.fromkeys(range(8), "other"), "the Result")
    # As many launches as in the plan, but chosen independently of it.
    chosen = simulate(trace, "a100", kernels="5-8")
    assert set(launches_of(plan, chosen)) == {n for n in plan.launches["launch"] if n < 4}
    nothing = simulate(
        trace, "a100", kernels=[FIRST + n for n in range(8) if n not in set(plan.launches["launch"])]
    )
    with pytest.raises(PlanError, match="none of the plan's launches"):
        plan.estimate(nothing)
