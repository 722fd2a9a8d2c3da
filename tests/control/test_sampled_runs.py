"""Sampled simulations end to end: traces and executed programs, plans, verification, what-if."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

from simt.control import PKP, FirstInstructions, TBPointRegions, sweep, what_if
from simt.control.accuracy import choose, cut_short, verification, with_accuracy
from simt.control.registry import make
from simt.errors import ControlError, PlanError, ResultError, SimtError
from simt.gpu import GPU
from simt.result import Result
from simt.sampling.plan import LAUNCH_COLUMNS, STRATUM_COLUMNS, Plan
from simt.simulate import _followed, simulate
from simt.trace.writer import Warp
from support.tiny import GLOBAL, dependent, write_kernel

SMALL = {"sm.count": 2}
QUICK = {"window": 400, "interval": 100}


def looping(rounds: int) -> Warp:
    """A loop of five instructions, and EXIT."""
    warp = Warp()
    for _ in range(rounds):
        warp.pc = 0
        for _ in range(4):
            warp.op("FFMA", 8, (8, 2, 8))
        warp.op("BRA")
    return warp


def pairs(length: int, ctas: int) -> list[list[Warp]]:
    """CTAs of two warps."""
    return [[dependent(length)] * 2] * ctas


@pytest.fixture(scope="module")
def even(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three launches of many equal CTAs whose lengths differ from launch to launch."""
    folder = tmp_path_factory.mktemp("even")
    for number, length in ((1, 60), (2, 40), (3, 60)):
        write_kernel(folder, pairs(length, 1500), number, sm=80)
    return folder


@pytest.fixture(scope="module")
def full(even: Path) -> Result:
    return simulate(even, "a100", set=SMALL, timeline=100)


def plan_of(population: Sequence[tuple[int, str, int]], chosen: Sequence[int]) -> Plan:
    """A plan of one stratum. population: id, name and time of each launch."""
    times = {number: time for number, _, time in population}
    names = {number: name for number, name, _ in population}
    weight = len(population) / len(chosen)
    rows = [
        {"launch": n, "name": names[n], "stratum": 0, "draws": 1, "weight": weight, "time_ns": times[n]}
        for n in chosen
    ]
    spread = np.array(list(times.values()), float)
    stratum = {
        "stratum": 0,
        "name": "all",
        "launches": len(population),
        "draws": len(chosen),
        "time_ns": float(spread.sum()),
        "cov": float(spread.std() / spread.mean()),
        "why": "",
    }
    return Plan(
        method="test",
        parameters={},
        seed=0,
        launches=pl.DataFrame(rows, schema=LAUNCH_COLUMNS),
        strata=pl.DataFrame([stratum], schema=STRATUM_COLUMNS),
        population=len(population),
        population_ns=float(spread.sum()),
    )


def loads(address: int, count: int) -> Warp:
    """A warp that reads `count` consecutive lines."""
    warp = Warp()
    for i in range(count):
        warp.memory("LDG.E", [address + 128 * i + 4 * k for k in range(32)], 4, 4, (2,))
    return warp


def test_a_planned_launch_finds_the_l2_that_launches_left_out_leave(tmp_path: Path) -> None:
    """The third launch reads what the first has read, and what nobody has; the second reads other lines."""
    folder = tmp_path / "t"
    write_kernel(folder, [[loads(GLOBAL, 8)]] * 4, 1, sm=80)
    write_kernel(folder, [[loads(GLOBAL + (1 << 20), 8)]], 2, sm=80)
    write_kernel(folder, [[loads(GLOBAL, 8), loads(GLOBAL + (1 << 24), 8)]], 3, sm=80)
    full = simulate(folder, "a100", set=SMALL)
    plan = plan_of([(n, "tiny", 1) for n in range(3)], [2])
    planned = simulate(folder, "a100", set=SMALL, plan=plan)
    assert planned.launches[0].l2["global_read"] == full.launches[2].l2["global_read"]
    assert planned.launches[0].l2["global_read"]["hit"] == 32
    assert simulate(folder, "a100", set=SMALL, kernels="3").launches[0].l2["global_read"]["hit"] == 0
    for threads in (1, 2):
        again = simulate(folder, "a100", set=SMALL, plan=plan, threads=threads)
        assert again.launches == planned.launches


def test_only_the_end_of_a_long_stretch_is_followed() -> None:
    kernels = [SimpleNamespace(counts={"instructions": n, "ctas": 100}) for n in (50, 400, 90, 10, 1000, 7)]
    session = SimpleNamespace(spec=SimpleNamespace(l2_lines=25))  # 400 instructions
    assert _followed(session, kernels, [3, 5]) == {2: 0, 1: 22, 4: 60}  # type: ignore[arg-type]
    assert _followed(session, kernels, [0, 1]) == {}  # type: ignore[arg-type]


# --- PKP ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_pkp_cuts_an_even_launch_short_and_is_right(even: Path, full: Result) -> None:
    result = simulate(even, "a100", set=SMALL, controller=PKP(**QUICK, tail=0))
    for found, truth in zip(result.launches, full.launches, strict=True):
        assert found.sampled is not None and found.sampled.decision == "stop"
        assert found.sampled.warp_instructions < truth.warp_instructions / 2
        assert found.warp_instructions == truth.warp_instructions  # the trace knows
        assert found.engine["ctas"] == truth.engine["ctas"] == 1500
        assert found.cycles == pytest.approx(truth.cycles, rel=0.03)
        assert found.engine["thread_instructions"] == pytest.approx(truth.thread_instructions, rel=0.03)
    assert result.totals.cycles == pytest.approx(full.totals.cycles, rel=0.03)
    assert result.provenance.method.startswith("pkp(")
    assert "Sampled by pkp: 3 launches, 3 stopped and projected" in str(result)


@pytest.mark.slow
def test_thresholds_that_make_sampling_impossible_give_the_full_simulation(even: Path, full: Result) -> None:
    result = simulate(even, "a100", set=SMALL, controller=PKP(threshold=0, **QUICK))
    for found, truth in zip(result.launches, full.launches, strict=True):
        assert found.sampled is not None and found.sampled.decision == "full"
        assert replace(found, sampled=None) == replace(truth, timeline=None)
        assert found.sampled.reason.startswith("never stable: the cumulative IPC varied by ")
    assert "all values are those of full detail" in str(result)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["pkp", "tbpoint", "first-n"])
def test_threads_and_windows_have_no_influence(method: str, even: Path) -> None:
    settings = {"pkp": ["interval=100", "window=400"], "tbpoint": ["interval=100"], "first-n": []}[method]
    if method == "first-n":
        settings = ["instructions=3e5", "unit=warp", "interval=100"]
    results = [
        simulate(even, "a100", set=SMALL, threads=threads, window=window, controller=make(method, settings))
        for threads, window in ((1, None), (2, None), (1, 1))
    ]
    assert any(cut_short(x) for x in results[0].launches)
    assert results[1].launches == results[0].launches == results[2].launches


# --- first-N --------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_first_instructions_cut_inside_a_launch_and_project_the_rest(even: Path, full: Result) -> None:
    n = full[1].warp_instructions + full[2].warp_instructions // 2
    controller = FirstInstructions(n, unit="warp", interval=100)
    result = simulate(even, "a100", set=SMALL, controller=controller)
    first, cut, later = result.launches
    assert [x.sampled.decision for x in result.launches if x.sampled] == ["full", "stop", "stop"]
    assert first.cycles == full[1].cycles
    assert cut.sampled is not None and later.sampled is not None
    executed = first.warp_instructions + cut.sampled.warp_instructions
    assert n <= executed < n * 1.1 and later.sampled.warp_instructions == 0
    # Everything after the cut continues at the IPC of the part before it.
    at = cut.sampled.at_cycle
    assert at is not None
    ipc = executed / (first.cycles - first.launch_latency + at)
    assert later.cycles - later.launch_latency == pytest.approx(later.warp_instructions / ipc, abs=1)
    left = cut.warp_instructions - cut.sampled.warp_instructions
    assert cut.cycles - cut.launch_latency == pytest.approx(at + left / ipc, abs=1)
    assert later.warp_instructions == full[3].warp_instructions


def test_more_instructions_than_there_are_is_the_full_simulation(even: Path, full: Result) -> None:
    result = simulate(even, "a100", set=SMALL, controller=FirstInstructions(1e12))
    assert [x.cycles for x in result.launches] == [x.cycles for x in full.launches]


@pytest.mark.slow
def test_equal_sampled_runs_have_equal_json_outside_provenance(even: Path, full: Result) -> None:
    def run(seconds: float) -> tuple[dict[str, Any], Result]:
        slow = replace(full, provenance=replace(full.provenance, wall_seconds=seconds))
        found = simulate(even, "a100", set=SMALL, controller=PKP(**QUICK), verify=1.0)
        compared = with_accuracy(found, full=slow)
        both = replace(compared, sampling={**(found.sampling or {}), **(compared.sampling or {})})
        data = json.loads(json.dumps(both.to_json(detail=True)))
        return data, both

    (one, first), (two, second) = run(9), run(11)
    assert one.pop("provenance") != two.pop("provenance")
    assert one == two and "verification" in one["sampling"] and "against_full" in one["sampling"]
    assert first.provenance.identity == second.provenance.identity
    assert "full detail took 9.0 s" in str(first)


# --- TBPoint --------------------------------------------------------------------------------------------


def test_tbpoint_skips_what_repeats(even: Path, full: Result) -> None:
    result = simulate(even, "a100", set=SMALL, controller=TBPointRegions(interval=100))
    for found, truth in zip(result.launches, full.launches, strict=True):
        assert found.sampled is not None and found.sampled.decision == "skip"
        assert found.sampled.ctas < 1500 and found.engine["ctas"] == 1500
        assert found.cycles == pytest.approx(truth.cycles, rel=0.05)
        assert found.warp_instructions == truth.warp_instructions


def test_tbpoint_says_why_it_simulates_everything(tmp_path: Path) -> None:
    write_kernel(tmp_path / "short", pairs(40, 100), sm=80)
    found = simulate(tmp_path / "short", "a100", set=SMALL, controller="tbpoint").launches[0].sampled
    assert found is not None and found.decision == "full"
    assert found.reason.startswith("no homogeneous region has more than three waves")
    write_kernel(tmp_path / "long", [[dependent(40 + c * c % 61 % 8)] * 2 for c in range(600)], sm=80)
    controller = TBPointRegions(interval=100, tolerance=0)
    found = simulate(tmp_path / "long", "a100", set=SMALL, controller=controller).launches[0].sampled
    assert found is not None and found.decision == "full"
    assert "did not repeat within 0: two differed by" in found.reason


@pytest.mark.slow
def test_tbpoint_simulates_something_of_every_region(tmp_path: Path) -> None:
    # Long CTAs, then short ones: two regions.
    ctas = [[looping(12)] * 2] * 1500 + [[looping(4)] * 2] * 1500
    folder = write_kernel(tmp_path, ctas, 1, sm=80)
    truth = simulate(folder, "a100", set=SMALL).launches[0]
    found = simulate(folder, "a100", set=SMALL, controller=TBPointRegions(interval=100)).launches[0]
    assert found.sampled is not None and found.sampled.decision == "skip"
    assert found.sampled.reason.count("homogeneous region") == 2
    assert found.cycles == pytest.approx(truth.cycles, rel=0.1)


# --- what-if --------------------------------------------------------------------------------------------


def test_what_if_says_what_the_run_would_do(even: Path, full: Result) -> None:
    # A timeline does not say how large CTAs are, so the interval of a run is narrower.
    controller = PKP(**QUICK, error=9.0)
    found = what_if(full, controller)
    real = simulate(even, "a100", set=SMALL, controller=controller)
    assert found.stopped == 3
    for outcome, launch, truth in zip(found.outcomes, real.launches, full.launches, strict=True):
        assert launch.sampled is not None
        # The timeline's intervals begin at multiples of 100, the controller's with the launch.
        assert abs(outcome.stop_cycle - (launch.sampled.at_cycle or 0)) <= 300
        assert outcome.true_cycles == truth.cycles
        assert outcome.projected_cycles == pytest.approx(launch.cycles, rel=0.05)
        assert outcome.error == pytest.approx(outcome.projected_cycles / truth.cycles - 1)
        assert outcome.speedup == truth.warp_instructions / outcome.simulated_instructions
        assert abs(outcome.errors["warp_instructions"]) == 0
    assert "error.dram_reads" in found.to_polars().columns
    assert found.to_json()["stopped"] == 3


def test_a_sweep_of_thresholds(full: Result) -> None:
    found = sweep(full, [PKP(threshold=t, **QUICK) for t in (0, 0.5, 20)])
    assert [x.stopped for x in found] == [0, 3, 3]
    assert found[0].speedup == 1 and found[0].error == 0
    assert found[2].speedup >= found[1].speedup > 1


def test_what_if_skips_ctas(full: Result) -> None:
    found = what_if(full, TBPointRegions(interval=100))
    assert found.stopped == 3 and found.speedup > 1.2 and abs(found.error) < 0.05


def test_what_if_of_first_instructions(full: Result) -> None:
    n = full[1].warp_instructions
    found = what_if(full, FirstInstructions(n, unit="warp", interval=100))
    assert [x.decision for x in found.outcomes] == ["full", "stop", "stop"]
    assert found.outcomes[2].simulated_instructions == 0


def test_what_if_needs_a_timeline_that_fits(even: Path, full: Result) -> None:
    with pytest.raises(ResultError, match="--timeline"):
        what_if(simulate(even, "a100", set=SMALL, kernels=1), PKP())
    with pytest.raises(ResultError, match="one must divide"):
        what_if(full, PKP(interval=150, window=450))
    sampled = simulate(even, "a100", set=SMALL, kernels=1, timeline=100, controller=PKP(**QUICK))
    with pytest.raises(ResultError, match="sampled itself"):
        what_if(sampled, PKP())
    with pytest.raises(ControlError, match="basic blocks"):
        controller = PKP()
        controller.blocks = True
        what_if(full, controller)


# --- verification and plans -----------------------------------------------------------------------------


def test_verified_launches_are_chosen_by_seed_and_id(even: Path) -> None:
    result = simulate(even, "a100", set=SMALL, controller=PKP(**QUICK))
    assert choose(result, 1.0) == [1, 2, 3]
    few = {tuple(choose(result, 0.05, seed)) for seed in range(20)}
    assert all(len(x) == 2 for x in few) and len(few) == 3
    assert choose(result, 0.05, 7) == choose(result, 0.05, 7)
    with pytest.raises(SimtError, match="verify"):
        choose(result, 1.5)


def test_verify_reports_the_error_seen(even: Path, full: Result) -> None:
    result = simulate(even, "a100", set=SMALL, controller=PKP(**QUICK), verify=1.0)
    assert result.sampling is not None
    seen = result.sampling["verification"]
    for row in seen["launches"]:
        assert row["cycles"] == result[row["id"]].cycles
        assert row["error"] == pytest.approx(row["cycles"] / row["true_cycles"] - 1)
    assert seen["half_width"] == 0 and seen["candidates"] == 3
    assert seen["worst_error"] == max(abs(row["error"]) for row in seen["launches"])
    assert "Verified: 3 of the 3" in str(result)
    with pytest.raises(SimtError, match="needs a controller"):
        simulate(even, "a100", verify=0.5)


def test_the_confidence_interval_of_the_observed_error(full: Result) -> None:
    # Cochran's variance of a ratio, by hand: cycles 110, 90 of 100, 100 in 4 candidates.
    launches = [
        replace(full.launches[0], id=i, end_cycle=full.launches[0].start_cycle + 100) for i in range(4)
    ]
    sampled = what_if(full, PKP(**QUICK))
    assert sampled.stopped
    mark = simulated_mark(full)
    cut = [
        replace(x, end_cycle=x.start_cycle + c, sampled=mark)
        for x, c in zip(launches, (110, 90, 100, 100), strict=True)
    ]
    found = verification(replace(full, launches=tuple(cut)), replace(full, launches=tuple(launches[:2])))
    assert found.error == 0 and found.mean_error == pytest.approx(0.1)
    spread = 12.706204736 * np.sqrt((10**2 + 10**2) / 1 / 2 * (1 - 2 / 4)) / 100
    assert found.half_width == pytest.approx(spread)


def simulated_mark(full: Result) -> Any:
    from simt.result.sampled import Sampled

    return Sampled("pkp", "stop", "", 50, 60, 1, 1, 1, 2)


def test_a_plan_with_a_controller_gives_totals_and_a_combined_error(even: Path, full: Result) -> None:
    population = [(x.index, x.name, x.cycles) for x in full.launches]
    plan = plan_of(population, [0, 1])
    result = simulate(even, "a100", set=SMALL, plan=plan, controller=PKP(**QUICK), verify=1.0)
    assert [x.id for x in result.launches] == [1, 2]
    assert result.sampling is not None
    found = result.sampling["plan"]
    seen = result.sampling["verification"]
    assert found["population"] == 3 and found["cut_short_share"] == pytest.approx(1)
    assert found["projection_error"] == pytest.approx(abs(seen["error"]) + seen["half_width"])
    assert found["combined_error"] == pytest.approx(found["sampling_error"] + found["projection_error"])
    truth = sum(x.cycles for x in full.launches)
    assert abs(found["cycles"] - truth) / truth <= found["combined_error"] + 0.02
    assert result.provenance.method.startswith("plan(test, 2 of 3 launches, ")
    assert Result.from_json(result.to_json()).sampling == result.sampling
    unverified = simulate(even, "a100", set=SMALL, plan=plan, controller=PKP(**QUICK))
    assert unverified.sampling is not None and unverified.sampling["plan"]["combined_error"] is None
    assert "--verify" in str(unverified)


def test_energy_of_a_plan_and_of_launches_cut_short(even: Path, full: Result) -> None:
    truth = full.energy_by("a100")
    plan = plan_of([(x.index, x.name, x.cycles) for x in full.launches], [0, 1])
    result = simulate(even, "a100", set=SMALL, plan=plan, power=True)
    found = result.energy
    assert found.projected is not None
    # Both chosen launches are simulated whole: what is uncertain is the third.
    both = sum(x.joules for x in found.launches)
    assert both == pytest.approx(sum(x.joules for x in truth.launches[:2]))
    error = abs(found.projected.joules - sum(x.joules for x in truth.launches)) / truth.joules
    assert error <= found.projected.relative < 1
    assert f"± {100 * found.projected.relative:.2f} %" in str(result)
    assert Result.from_json(result.to_json()).energy.projected == found.projected
    cut = simulate(even, "a100", set=SMALL, controller=PKP(**QUICK), power=True).energy
    for ours, theirs in zip(cut.launches, truth.launches, strict=True):
        assert ours.missing == ()
        assert ours.joules == pytest.approx(theirs.joules, rel=0.03)


def test_a_trace_of_just_the_plans_launches(even: Path) -> None:
    plan = plan_of([(i, "tiny", 10) for i in range(300)], [5, 70, 200])
    result = simulate(even, "a100", set=SMALL, plan=plan)
    assert result.sampling is not None
    assert result.sampling["plan"]["population"] == 300
    total = sum(x.cycles for x in result.launches)
    assert result.sampling["plan"]["cycles"] == pytest.approx(100 * total)


def test_a_plan_of_another_program_is_refused(even: Path) -> None:
    with pytest.raises(PlanError, match="launch 9 "):
        simulate(even, "a100", plan=plan_of([(9, "tiny", 1)], [9]))
    with pytest.raises(PlanError, match="belong to the same run"):
        simulate(even, "a100", plan=plan_of([(1, "gemm", 1)], [1]))


SOURCE = """
extern "C" __global__ void step(float* x, int n, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = x[i % n];
    for (int k = 0; k < rounds; ++k) v = v * 1.0001f + 0.5f;
    if (i < n) x[i] = v;
}
"""
LAUNCHES = 10_000


def program(gpu: GPU) -> np.ndarray[Any, Any]:
    """Ten thousand small launches of three sizes, each of which reads what earlier ones wrote."""
    step = gpu.compile(SOURCE).step
    x = gpu.zeros(256)
    for i in range(LAUNCHES):
        step[4 + 4 * (i % 3), 64](x, 256, 4 + 4 * (i % 3))
    return np.asarray(x)


@pytest.mark.slow
def test_a_program_of_ten_thousand_launches() -> None:
    expected = program(GPU("a100", functional=True))
    population = [(i, "step", 100 + 10 * (i % 3)) for i in range(LAUNCHES)]
    plan = plan_of(population, list(range(0, LAUNCHES, 997)))
    gpu = GPU("a100", plan=plan, controller=PKP(**QUICK))
    assert np.array_equal(program(gpu), expected)
    result = gpu.result()
    assert [x.index for x in result.launches] == list(plan.launches["launch"])
    assert result.sampling is not None
    found = result.sampling["plan"]
    assert found["population"] == LAUNCHES
    cycles = np.mean([x.cycles for x in result.launches])
    assert found["cycles"] == pytest.approx(LAUNCHES * cycles, rel=0.05)
    # Verified in the same way as by `simt run --verify`: the program runs again, with these launches in full.
    some = [x.id for x in result.launches[:3]]
    again = GPU("a100", plan=some)
    assert np.array_equal(program(again), expected)
    assert [x.id for x in again.result().launches] == some


def test_a_result_of_chosen_launches_says_that_it_is_one() -> None:
    gpu = GPU("a100", set=SMALL, plan=[2])
    step = gpu.compile(SOURCE).step
    x = gpu.zeros(256)
    assert step[1, 64](x, 256, 1) is None
    step[1, 64](x, 256, 1)
    result = gpu.result()
    assert [launch.id for launch in result.launches] == [2]
    assert result.provenance.method.startswith("launches(1 chosen, ")
    assert result.sampling is None


def test_a_plan_for_another_program_is_refused_at_its_launch() -> None:
    plan = plan_of([(1, "gemm", 1)], [1])
    gpu = GPU("a100", plan=plan)
    step = gpu.compile(SOURCE).step
    x = gpu.zeros(256)
    assert step[1, 64](x, 256, 1) is None
    with pytest.raises(PlanError, match="is 'gemm'"):
        step[1, 64](x, 256, 1)


@pytest.mark.slow
def test_sampled_memory_is_that_of_the_full_run() -> None:
    values = []
    for controller in (None, PKP(**QUICK), TBPointRegions(interval=100), FirstInstructions(2e5)):
        gpu = GPU("a100", set=SMALL, controller=controller)
        x = gpu.array(np.arange(131072, dtype=np.float32))
        step = gpu.compile(SOURCE).step
        for _ in range(2):
            step[512, 256](x, 131072, 40)
        values.append(np.asarray(x).copy())
        if controller is not None:
            assert any(cut_short(launch) for launch in gpu.result().launches), controller.label()
    assert all(np.array_equal(values[0], other) for other in values[1:])


def test_comparison_with_the_full_result(even: Path, full: Result) -> None:
    result = simulate(even, "a100", set=SMALL, controller=PKP(**QUICK))
    compared = with_accuracy(result, full=replace(full, provenance=replace(full.provenance, wall_seconds=9)))
    assert compared.sampling is not None
    seen = compared.sampling["against_full"]
    truth = sum(x.cycles for x in full.launches)
    assert seen["total_error"] == pytest.approx(sum(x.cycles for x in result.launches) / truth - 1)
    assert "Error against the full simulation" in str(compared)
    other = replace(full, launches=tuple(replace(x, name="other") for x in full.launches))
    with pytest.raises(ControlError, match="other"):
        with_accuracy(result, full=other)
