"""The end-to-end time of launches that overlap: schedules by hand, and full simulation as the reference."""

from __future__ import annotations

import json
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import simt
from simt.errors import PlanError, ProfileError
from simt.profile import Profile, read_profile
from simt.profile.order import LaunchOrder
from simt.result import Result
from simt.result.sampling_summary import sampling_sentences
from simt.sampling import Choice, Neyman, Plan, Sampler
from simt.sampling.makespan import longest_chain, schedule
from simt.sampling.plan_tables import estimate_rows

MACHINE = {"sm.count": 4}
SOURCE = """
extern "C" __global__ void spin(float* a, int rounds) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float x = a[i];
  for (int k = 0; k < rounds; ++k) x = x * 1.0001f + 0.5f;
  a[i] = x;
}
extern "C" __global__ void add(const float* a, float* b, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i < n) b[i] = a[i] + 1;
}
"""


class Some(Sampler):
    """These launches; a stratum for each kernel name."""

    method = "some"

    def __init__(self, rows: list[int]) -> None:
        self.rows = rows

    def choose(self, profile: Profile) -> Choice:
        strata, rows = profile.name_codes.astype(np.int64), np.array(self.rows)
        sizes = np.bincount(strata)
        weights = sizes / np.maximum(np.bincount(strata[rows], minlength=len(sizes)), 1)
        ones = np.ones(len(rows), np.int64)
        return Choice(strata, rows, ones, weights[strata[rows]], list(profile.names), [""] * len(sizes))


def half(n: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.full((n, 1), 0.5)


# --- schedules by hand ------------------------------------------------------------------------------------


def test_independent_launches_overlap_as_far_as_there_is_room() -> None:
    before: list[list[int]] = [[], [], []]
    assert schedule([3.0, 5.0, 4.0], before, np.full((3, 1), 1 / 3)) == 5
    assert schedule([3.0, 5.0, 4.0], before, half(3)) == 7  # the third begins when the first has ended
    assert schedule([3.0, 5.0, 4.0], before, np.ones((3, 1))) == 12


def test_each_resource_is_limited() -> None:
    shares = np.array([[0.1, 0.8], [0.1, 0.3], [0.1, 0.2]])
    # The first two need 1.1 of the second resource; the third runs beside either.
    assert schedule([3.0, 5.0, 4.0], [[], [], []], shares) == 8


def test_a_launch_waits_for_those_before_it() -> None:
    """0 before 1 and 2, both before 3: 2 + max(3, 4) + 1 with room for both, 2 + 3 + 4 + 1 without."""
    before = [[], [0], [0], [1, 2]]
    assert schedule([2.0, 3.0, 4.0, 1.0], before, half(4)) == 7
    assert schedule([2.0, 3.0, 4.0, 1.0], before, np.ones((4, 1))) == 10
    assert longest_chain([2.0, 3.0, 4.0, 1.0], before) == [0, 2, 3]


# --- the order of a program -------------------------------------------------------------------------------


def test_the_order_by_streams_and_events() -> None:
    """Stream 1: launches 0 and 3, and between them a copy; stream 2: launch 1, then 2 after the copy."""
    order = LaunchOrder()
    for number, stream, after, launch in [
        (1, 1, [], 0),
        (2, 2, [], 1),
        (3, 1, [1], None),
        (4, 2, [2, 3], 2),
        (5, 1, [3], 3),
        (6, 3, [4, 5], 4),
    ]:
        order.submitted(number, stream, after)
        if launch is not None:
            order.begins(number)
            order.launched(launch)
    assert order.resolved() == {0: (1, []), 1: (2, []), 2: (2, [0]), 3: (1, []), 4: (3, [2, 3])}


def test_what_the_host_has_waited_for_comes_first() -> None:
    order = LaunchOrder()
    for number, stream in ((1, 1), (2, 2), (3, 3), (4, 1)):
        order.submitted(number, stream, [1] if number == 4 else [])
        order.begins(number)
        order.launched(number - 1)
        if number == 2:
            order.waited([1])
    assert order.resolved()[2] == (3, [0])
    assert order.live == (1, 2, 3, 4)
    order.waited()
    assert order.live == ()
    order.submitted(5, 4, [])
    order.begins(5)
    order.launched(4)
    assert order.resolved()[4] == (4, [1, 2, 3])


# --- estimates by hand ------------------------------------------------------------------------------------


def profile(streams: list[int] | None, after: list[list[int]] | None, ctas: int = 1) -> Profile:
    count = 4
    columns: dict[str, Any] = {
        "launch": range(count),
        "name": ["a", "b", "a", "b"],
        "duration_ns": [10.0, 20.0, 10.0, 20.0],
        "grid_x": [ctas] * count,
        "grid_y": [1] * count,
        "grid_z": [1] * count,
    }
    if streams is not None:
        columns["stream"] = streams
    frame = pl.DataFrame(columns)
    if after is not None:
        frame = frame.with_columns(pl.Series("after", after, pl.List(pl.UInt64)))
    return Profile(frame)


def measured(ctas: int, dram: float = 1.0) -> dict[int, dict[str, float]]:
    """On 4 SMs of 2 places for CTAs each."""
    return {
        launch: {
            "cycles": cycles,
            "launch__waves_per_multiprocessor": ctas / 8,
            "sm__cycles_active.sum": cycles * min(ctas, 4),
            "sm__cycles_active.avg": cycles * min(ctas, 4) / 4,
            "dram__throughput.avg.pct_of_peak_sustained_elapsed": dram,
            "lts__t_sectors.avg.pct_of_peak_sustained_elapsed": 1.0,
            "smsp__issue_active.avg.pct_of_peak_sustained_active": 10.0,
            "smsp__issue_active.avg.pct_of_peak_sustained_elapsed": 2.0,
        }
        for launch, cycles in enumerate([100.0, 200.0, 100.0, 200.0])
    }


STREAMS, AFTER = [1, 2, 1, 2], [[], [], [], [2]]


def test_small_launches_overlap() -> None:
    """Stream 1: 100, 100. Stream 2: 200, then 200 after both: 400, by a tenth more or less."""
    plan = Some([0, 1, 2, 3]).fit_plan(profile(STREAMS, AFTER))
    found = plan.estimate(measured(1), ["cycles"])
    x = found.makespan["cycles"]
    assert (x.total, x.chain, x.sum) == (400, 400, 600)
    assert (x.low, x.high) == pytest.approx((360, 440))
    assert found["cycles"]["total"] == found["cycles"]["high"] == 600
    assert json.loads(found.to_json())["makespan"]["cycles"]["total"] == 400
    rows = [row[:3] + row[5:7] for row in estimate_rows(found, 0)[1]]
    assert rows[1] == ["cycles", "end to end", "400", "360", "440"]
    assert "cycles, end to end: 400 (360 to 440)" in repr(found)


def test_launches_that_fill_the_gpu_may_take_the_sum() -> None:
    plan = Some([0, 1, 2, 3]).fit_plan(profile(STREAMS, AFTER, ctas=8))
    x = plan.estimate(measured(8), ["cycles"]).makespan["cycles"]
    assert (x.total, x.high) == (600, 600)
    assert x.low == pytest.approx(360)


def test_launches_that_all_need_the_memory_take_its_time() -> None:
    """Nine tenths of 80 % of 600 cycles are more than those of the longest chain, and no two of them have
    enough side by side."""
    plan = Some([0, 1, 2, 3]).fit_plan(profile(STREAMS, AFTER))
    x = plan.estimate(measured(1, dram=80.0), ["cycles"]).makespan["cycles"]
    assert (x.low, x.high) == pytest.approx((432, 600))


def test_launches_that_all_issue_take_its_time() -> None:
    """70 % of 600 cycles; instructions are the same beside others."""
    plan = Some([0, 1, 2, 3]).fit_plan(profile(STREAMS, AFTER))
    values = measured(1)
    for launch in values.values():
        launch["smsp__issue_active.avg.pct_of_peak_sustained_elapsed"] = 70.0
        launch["smsp__issue_active.avg.pct_of_peak_sustained_active"] = 70.0
    x = plan.estimate(values, ["cycles"]).makespan["cycles"]
    assert (x.low, x.high) == pytest.approx((420, 600))


def test_without_counters_the_interval_is_from_the_chain_to_the_sum() -> None:
    plan = Some([0, 1, 2, 3]).fit_plan(profile(STREAMS, AFTER))
    only = {launch: {"cycles": values["cycles"]} for launch, values in measured(1).items()}
    x = plan.estimate(only).makespan["cycles"]
    assert (x.low, x.total, x.high) == pytest.approx((360, 600, 600))


def test_launches_left_out_take_the_time_of_their_stratum() -> None:
    plan = Some([0, 1]).fit_plan(profile(STREAMS, AFTER))
    seen = {launch: measured(1)[launch] for launch in (0, 1)}
    x = plan.estimate(seen, ["cycles"]).makespan["cycles"]
    assert (x.total, x.chain, x.sum) == (400, 400, 600)


def test_what_is_not_measured_widens_the_interval() -> None:
    """Launches of `a` differ, so the one of `b` that is left out may: 100, 130, then 200 after both."""
    plan = Some([0, 1, 2]).fit_plan(profile(STREAMS, AFTER))
    seen = {launch: measured(1)[launch] for launch in (0, 1, 2)}
    seen[2]["cycles"] = 130
    x = plan.estimate(seen, ["cycles"]).makespan["cycles"]
    assert (x.total, x.sum) == pytest.approx((430, 630))
    assert x.low < 0.85 * 430 and x.high > 1.15 * 430


@pytest.mark.parametrize(
    ("streams", "after"), [([1] * 4, None), ([1] * 4, [[]] * 4), ([1, 2, 1, 2], [[], [0], [1], [2]])]
)
def test_one_after_another_is_the_sum(streams: list[int], after: list[list[int]] | None) -> None:
    plan = Some([0, 1]).fit_plan(profile(streams, after))
    found = plan.estimate({0: {"cycles": 100.0}, 1: {"cycles": 230.0}})
    x, row = found.makespan["cycles"], found["cycles"]
    assert (x.total, x.low, x.high, x.sum) == (row["total"], row["low"], row["high"], row["total"])
    assert len(estimate_rows(found, 0)[1]) == 1 and not any("overlap" in note for note in found.notes)


@pytest.mark.parametrize(
    ("streams", "words"), [(None, "in which streams"), (STREAMS, "in 2 streams, and the profile does not")]
)
def test_an_unknown_order_is_said(streams: list[int] | None, words: str) -> None:
    found = Some([0, 1]).fit_plan(profile(streams, None)).estimate({0: {"cycles": 1.0}, 1: {"cycles": 2.0}})
    (note,) = (note for note in found.notes if "overlap" in note)
    assert words in note and not found.makespan
    plan = Some([0]).fit_plan(profile(streams, None))
    assert not any("overlap" in note for note in plan.estimate({0: {"dram__bytes.sum": 1.0}}).notes)


def test_plans_keep_the_order() -> None:
    plan = Some([0, 1]).fit_plan(profile(STREAMS, AFTER))
    again = Plan.from_json(plan.to_json())
    assert again.streams == 2 and again.order is not None and plan.order is not None
    assert again.order.equals(plan.order)
    assert again.order["after"].to_list() == AFTER
    assert Some([0]).fit_plan(profile([3] * 4, AFTER)).order is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"after": [[], [], [3], []]}, "not before it"),
        ({"after": [[], [], [7], []]}, "not before it"),
        ({"launch": [0, 1, 2, 2]}, "each of the 4 launches once"),
        ({"stratum": [0, 1, 0, 5]}, "stratum that does not exist"),
        ({"stream": [1, 2, None, 1]}, "each of the 4 launches once"),
    ],
)
def test_an_order_that_contradicts_itself_is_refused(change: dict[str, Any], words: str) -> None:
    data = json.loads(Some([0, 1]).fit_plan(profile(STREAMS, AFTER)).to_json())
    for name, values in change.items():
        for row, value in zip(data["order"], values, strict=True):
            row[name] = value
    with pytest.raises(PlanError, match=words if "stream" not in change else "order"):
        Plan.from_json(json.dumps(data))


# --- full simulation --------------------------------------------------------------------------------------


def main(gpu: simt.GPU, ctas: int, side: str) -> None:
    """Twelve rounds of two streams, which meet every fourth. side: a second kernel of the first one."""
    module = gpu.compile(SOURCE)
    n = 1 << 16
    a, b, c, d = (gpu.zeros(n) for _ in range(4))
    first, second = gpu.stream(), gpu.stream()
    for i in range(12):
        module.spin[ctas, 128](a, 200 + 5 * (i % 3), stream=first)
        module.spin[ctas, 128](b, 200 + 5 * (i % 3), stream=second)
        if side:
            module.add[n // 128, 128](c, d, n, stream=first)
        if i % 4 == 3:
            second.wait(first.record())
    gpu.synchronize()


def simulated(ctas: int, side: str, **options: Any) -> Result:
    gpu = simt.GPU("qv100", set=MACHINE, **options)
    main(gpu, ctas, side)
    return gpu.result()


@pytest.mark.parametrize(
    ("ctas", "side", "overlap"),
    [(2, "", "all"), (128, "", "little"), (2, "add", "some"), (8, "add", "some")],
)
def test_the_interval_covers_the_full_simulation(ctas: int, side: str, overlap: str) -> None:
    functional = simt.GPU("qv100", functional=True, set=MACHINE)
    with functional.profiled() as executed:
        main(functional, ctas, side)
    plan = Neyman().fit_plan(executed.profile())
    assert plan.streams == 2 and len(plan) <= 6
    result, full = simulated(ctas, side, plan=plan), simulated(ctas, side)
    found = plan.estimate(result, ["cycles"])
    x, truth = found.makespan["cycles"], full.totals.cycles
    assert x.low <= truth <= x.high and abs(x.total - truth) < 0.2 * truth
    if overlap == "all":
        assert x.high < 0.7 * x.sum and abs(x.total - truth) < 0.1 * truth
    if overlap == "little":  # the chain of a stream is half of it
        assert x.low > 1.3 * x.chain
    assert result.sampling is not None and result.sampling["plan"]["makespan"]["total"] == x.total
    assert any(
        line.startswith("From end to end, as launches of several streams")
        for line in sampling_sentences(result)
    )


GATHER = """
extern "C" __global__ void gather(const float* a, float* b, int step, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i < n) b[i] += a[(long long)i * step % n];
}
"""


def random_program(gpu: simt.GPU, seed: int) -> None:
    """Two to four streams of one to three kernels each, of 1 to 200 CTAs, and some that wait for others."""
    rng = random.Random(seed)
    module = gpu.compile(SOURCE + GATHER)
    n = 1 << 15
    streams = [gpu.stream() for _ in range(rng.randint(2, 4))]
    arrays = [(gpu.zeros(n), gpu.zeros(n)) for _ in streams]
    kernels = [
        [
            (
                rng.choice(["spin", "gather", "add"]),
                rng.choice([1, 2, 3, 4, 8, 16, 64, 200]),
                rng.choice([50, 400]),
            )
            for _ in range(rng.randint(1, 3))
        ]
        for _ in streams
    ]
    for _ in range(rng.randint(6, 14)):
        for stream, (a, b), chosen in zip(streams, arrays, kernels, strict=True):
            for name, ctas, rounds in chosen:
                if name == "spin":
                    module.spin[ctas, 128](a, rounds, stream=stream)
                elif name == "add":
                    module.add[ctas, 128](a, b, 128 * ctas, stream=stream)
                else:
                    module.gather[ctas, 128](a, b, 33, 128 * ctas, stream=stream)
        if rng.random() < 0.3:
            one, other = rng.sample(streams, 2)
            one.wait(other.record())
    gpu.synchronize()


@pytest.mark.parametrize("seed", range(8))
def test_the_interval_covers_random_programs(seed: int) -> None:
    functional = simt.GPU("qv100", functional=True, set=MACHINE)
    with functional.profiled() as executed:
        random_program(functional, seed)
    plan = Neyman().fit_plan(executed.profile())
    part, full = (simt.GPU("qv100", set=MACHINE, **options) for options in ({"plan": plan}, {}))
    for gpu in (part, full):
        random_program(gpu, seed)
    x = plan.estimate(part.result(), ["cycles"]).makespan["cycles"]
    assert x.low <= full.result().totals.cycles <= x.high


def test_launches_of_a_plan_with_several_streams_run_alone() -> None:
    functional = simt.GPU("qv100", functional=True, set=MACHINE)
    with functional.profiled() as executed:
        main(functional, 128, "")
    every = Some(list(range(24))).fit_plan(executed.profile())
    launches = simulated(128, "", plan=every).launches
    for before, launch in pairwise(launches):
        assert before.end_cycle <= launch.start_cycle


def test_launches_that_wait_for_the_host_do_not_overlap() -> None:
    gpu = simt.GPU("qv100", functional=True, set=MACHINE)
    with gpu.profiled() as executed:
        module = gpu.compile(SOURCE)
        a = gpu.zeros(256)
        first, second = gpu.stream(), gpu.stream()
        module.spin[2, 128](a, 1, stream=first)
        module.spin[2, 128](a, 1, stream=second)
        gpu.synchronize()
        module.spin[2, 128](a, 1, stream=second)
        module.spin[2, 128](a, 1)
        module.spin[2, 128](a, 1, stream=first)
    rows = executed.profile().launches.select("stream", "after").rows()
    # The one without a stream may overlap the one before it; the last waits for both.
    assert rows == [(1, []), (2, []), (2, [0]), (0, [0, 1]), (1, [2, 3])]


def test_profiles_in_files_keep_the_order(tmp_path: Path) -> None:
    place = profile(STREAMS, AFTER).save(tmp_path / "p.parquet")
    assert read_profile(place).launches["after"].to_list() == AFTER
    (tmp_path / "p.csv").write_text("launch,name,duration_ns,after\n0,a,1,2\n")
    with pytest.raises(ProfileError, match="column `after` holds String, expected lists of launch ids"):
        read_profile(tmp_path / "p.csv")


def test_a_gpu_that_runs_one_launch_at_a_time_has_one_stream() -> None:
    gpu = simt.GPU("qv100", functional=True, set={**MACHINE, "launch.max_concurrent_kernels": 1})
    with gpu.profiled() as executed:
        main(gpu, 2, "")
    assert Neyman().fit_plan(executed.profile()).streams == 1
