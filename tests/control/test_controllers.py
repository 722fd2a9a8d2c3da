"""Controllers: what they observe of a launch, and how their decisions take effect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simt.control import GO_ON, Controller, Decision, Interval, LaunchView, Predict, Projection, Skip, Stop
from simt.errors import ControlError, SimulationError
from simt.result import LaunchResult, Result, report
from simt.simulate import simulate
from simt.spec import load_spec
from simt.trace.generate import generate
from simt.trace.writer import Warp
from support.tiny import GLOBAL, dependent, write_kernel

GPU = "a100"
SMALL = {"sm.count": 4}


class Recorder(Controller):
    """Observes everything, and decides as instructed."""

    method = "recorder"

    def __init__(
        self,
        decide: Callable[[Interval], Decision] | None = None,
        first: Decision = GO_ON,
        interval: int = 100,
        warps: bool = True,
        blocks: bool = True,
    ) -> None:
        self.interval, self.warps, self.blocks = interval, warps, blocks
        self._decide, self._first = decide, first
        self.views: list[LaunchView] = []
        self.seen: list[tuple[int, Interval]] = []
        self.results: list[LaunchResult] = []

    def begin(self, launch: LaunchView) -> Decision:
        self._launch = launch
        self.views.append(launch)
        return self._first

    def observe(self, interval: Interval) -> Decision:
        self.seen.append((self._launch.index, interval))
        return self._decide(interval) if self._decide else GO_ON

    def end(self, launch: LaunchView, result: LaunchResult) -> None:
        self.results.append(result)


def once(cycle: int, decision: Decision) -> Callable[[Interval], Decision]:
    """Decides at the end of the interval that ends there, otherwise continues."""
    return lambda interval: decision if interval.end == cycle else GO_ON


def looping(loads: int, seed: int) -> Warp:
    """A loop whose body loads, then a barrier and a tail: blocks of 1, 3, 1 and 2 instructions."""
    warp = Warp()
    warp.op("MOV", 2)
    for i in range(loads):
        warp.pc = 16
        warp.memory("LDG.E", [GLOBAL + 4096 * (97 * seed + i) + 4 * k for k in range(32)], 4, 8, (2,))
        warp.op("FFMA", 9, (8, 2, 9))
        warp.op("BRA")
    warp.op("BAR.SYNC")
    warp.op("FADD", 9, (9, 9))
    return warp


def loops(folder: Path) -> Path:
    """Three launches of 60 CTAs of two warps that wait for each other."""
    for number in (1, 2, 3):
        ctas = [[looping(2 + c % 3 + w, number * 200 + 2 * c + w) for w in range(2)] for c in range(60)]
        write_kernel(folder, ctas, number, sm=80)
    return folder


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("traces")
    return {
        "gather": generate("gather", folder / "gather", sm=80, size=1024, compression="none").parent,
        "gemm": generate("gemm", folder / "gemm", sm=80, size=128, compression="none").parent,
        "all": generate(
            ["gemm", "gather", "stencil"], folder / "all", sm=80, size=64, compression="none"
        ).parent,
        "loops": loops(folder / "loops"),
    }


@pytest.fixture(scope="module")
def uniform(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """100 CTAs of two warps of 300 dependent instructions."""
    return write_kernel(tmp_path_factory.mktemp("uniform"), [[dependent(300)] * 2] * 100, sm=80)


def whole(result: Result) -> list[dict[str, Any]]:
    """All values, except those that show that a controller observed."""
    return [replace(x, sampled=None).to_json(detail=True) for x in result.launches]


@pytest.mark.parametrize("kind", ["gather", "gemm", "all"])
def test_looking_on_changes_nothing(kind: str, traces: dict[str, Path]) -> None:
    recorder = Recorder()
    observed = simulate(traces[kind], GPU, set=SMALL, controller=recorder)
    full = simulate(traces[kind], GPU, set=SMALL)
    assert whole(observed) == whole(full)
    assert [x.sampled.decision for x in observed.launches if x.sampled] == ["full"] * len(full.launches)
    assert recorder.results == list(observed.launches)
    assert observed.provenance.method.startswith("recorder") and full.provenance.method == "full"


@pytest.mark.parametrize("kind", ["gather", "loops"])
def test_intervals_add_up_to_the_launch(kind: str, traces: dict[str, Path]) -> None:
    recorder = Recorder()
    launch = simulate(traces[kind], GPU, set=SMALL, controller=recorder).launches[0]
    intervals = [i for index, i in recorder.seen if index == 0]
    assert [i.index for i in intervals] == list(range(len(intervals)))
    assert [(i.begin, i.end) for i in intervals] == [(100 * k, 100 * k + 100) for k in range(len(intervals))]
    body = launch.cycles - launch.launch_latency
    if kind == "gather":  # the launch ends when its last stores are acknowledged, after its last CTA
        assert len(intervals) <= body // 100
        assert intervals[-1].counters["ctas_finished"] < launch.engine["ctas_finished"]
    else:
        assert len(intervals) in (body // 100, body // 100 + 1)
    for name, total in launch.engine.items():
        at = [i.counters[name] for i in intervals]
        assert at == sorted(at) and at[-1] <= total
        assert at[-1] == sum(i.difference[name] for i in intervals)
    last = intervals[-1].counters
    assert last["l2.global_read.miss"] <= launch.l2["global_read"]["miss"]
    assert last["stalls.selected"] <= sum(launch.stalls["selected"])
    assert last["warp_instructions"] > 0.9 * launch.warp_instructions


def test_finished_warps(uniform: Path) -> None:
    recorder = Recorder(interval=50)
    launch = simulate(uniform, GPU, set=SMALL, controller=recorder).launches[0]
    warps = np.concatenate([i.warps for _, i in recorder.seen])
    for _, interval in recorder.seen:
        assert np.all((interval.warps["end"] > interval.begin) & (interval.warps["end"] <= interval.end))
    assert np.all(np.diff(warps["end"].astype(np.int64)) >= 0)
    body = launch.cycles - launch.launch_latency
    assert np.all(warps["begin"] >= 1) and np.all(warps["end"] <= body)
    pairs = set(zip(warps["cta"].tolist(), warps["warp"].tolist(), strict=True))
    left = {(cta, warp) for cta in range(100) for warp in range(2)} - pairs
    assert len(pairs) == len(warps)
    assert all(launch.cycles - launch.launch_latency > recorder.seen[-1][1].end for _ in left)
    # Each warp issues 301 instructions; dependent ones are one fixed-latency result apart.
    assert np.all((warps["end"] - warps["begin"]).astype(np.int64) >= 300 * 4)


@pytest.mark.parametrize("interval", [0, 1, 8, 500])
def test_warps_of_a_cta_start_one_after_the_other(interval: int, tmp_path: Path) -> None:
    """The first in the cycle after the dispatch. A CTA in the same place follows the last warp's end."""
    folder = write_kernel(tmp_path / "t", [[dependent(20)] * 4] * 3, sm=80)  # one warp on each sub-core
    one = {
        "sm.count": 1,
        "sm.max_ctas": 1,
        "sm.front_end.instruction_cache.perfect": True,
        "launch.warp_start_interval": interval,
    }
    recorder = Recorder()
    simulate(folder, GPU, set=one, controller=recorder)
    warps = np.concatenate([i.warps for _, i in recorder.seen])
    place_free = 0
    for cta in range(2):  # the last may end after the last observation
        of_cta = np.sort(warps[warps["cta"] == cta], order="warp")
        begin, first_end = int(of_cta["begin"][0]), int(of_cta["end"][0])
        assert begin == place_free + 1
        assert of_cta["begin"].tolist() == [begin] * 4, "counted from the CTA's begin"
        assert of_cta["end"].tolist() == [first_end + interval * i for i in range(4)]
        # `end` is the cycle after the last.
        place_free = int(of_cta["end"][-1]) - 1 + load_spec(GPU).launch.dispatch_latency


def test_executed_blocks(tmp_path: Path) -> None:
    folder = write_kernel(tmp_path / "t", [[looping(3, c), looping(3, c + 50)] for c in range(8)], sm=80)
    recorder = Recorder(interval=50)
    launch = simulate(folder, GPU, set=SMALL, controller=recorder).launches[0]
    view = recorder.views[0]
    assert view.code is not None
    first = view.code.blocks.first.tolist()
    assert view.code.blocks.length.tolist() == [1, 3, 1, 2], "a jump leads to the loop's body"
    blocks = np.concatenate([i.blocks for _, i in recorder.seen])
    by_warp = {w: blocks[blocks["warp"] == w] for w in np.unique(blocks["warp"]).tolist()}
    assert set(by_warp) <= set(range(16))
    counted = np.zeros(len(first), int)
    for rows in by_warp.values():
        assert rows["begin"].tolist()[1:] == rows["end"].tolist()[:-1], "one block follows the other"
        counted += np.bincount(rows["block"], minlength=len(first))
    preview = view.code.preview(1.0)
    assert preview.complete and launch.warp_instructions == int(
        (preview.counts.sum(axis=0) * view.code.blocks.length).sum()
    )
    assert np.all(counted <= preview.counts.sum(axis=0)) and counted.sum() > 0


def test_stop_has_the_counters_of_its_moment(traces: dict[str, Path]) -> None:
    recorder = Recorder()
    simulate(traces["gather"], GPU, set=SMALL, controller=recorder)
    at = recorder.seen[9][1]

    class Plain(Recorder):
        def project(self, launch: LaunchView, now: Interval) -> Projection:
            return Projection(2 * now.end, {name: 2.0 * n for name, n in now.counters.items()})

    controller = Plain(once(1000, Stop("enough")))
    launch = simulate(traces["gather"], GPU, set=SMALL, controller=controller).launches[0]
    sampled = launch.sampled
    assert sampled is not None
    assert (sampled.decision, sampled.reason, sampled.at_cycle) == ("stop", "enough", 1000)
    assert sampled.cycles == 1000 + launch.launch_latency
    assert sampled.warp_instructions == at.counters["warp_instructions"]
    assert sampled.ctas == at.counters["ctas_finished"]
    assert launch.cycles == 2000 + launch.launch_latency
    assert launch.engine == {name: 2 * at.counters[name] for name in launch.engine}


def test_a_stopped_launch_releases_the_gpu(traces: dict[str, Path]) -> None:
    """The next launch starts soon afterwards in the engine, but after the projected end in the Result."""
    full = simulate(traces["all"], GPU, set=SMALL)
    controller = Recorder(once(500, Stop("early")))
    result = simulate(traces["all"], GPU, set=SMALL, controller=controller)
    assert [x.sampled.decision for x in result.launches if x.sampled] == ["stop"] * 3
    for before, after in zip(result.launches, result.launches[1:], strict=False):
        assert after.start_cycle >= before.end_cycle
    assert result.totals.cycles == sum(x.cycles for x in result.launches)
    assert all(
        x.sampled.cycles <= y.cycles for x, y in zip(result.launches, full.launches, strict=True) if x.sampled
    )


def test_stop_at_the_beginning_simulates_nothing(uniform: Path) -> None:
    class Known(Recorder):
        def project(self, launch: LaunchView, now: Interval) -> Projection:
            assert now.end == 0 and not any(now.counters.values())
            assert launch.warp_instructions is not None
            return Projection(launch.warp_instructions, dict.fromkeys(now.counters, 1.0))

    launch = simulate(uniform, GPU, set=SMALL, controller=Known(first=Stop("not this one"))).launches[0]
    assert launch.sampled is not None and launch.sampled.at_cycle == 0
    assert launch.sampled.warp_instructions == 0
    assert launch.cycles == launch.launch_latency + 100 * 2 * 301


def test_predicted_warps_take_their_time(uniform: Path) -> None:
    """Two CTAs per wave and SM, 1000 cycles each: the last of 100 CTAs ends when the occupancy rules say."""
    how = {**SMALL, "sm.max_ctas": 2}
    controller = Recorder(first=Predict(warp_cycles=1000.0))
    launch = simulate(uniform, GPU, set=how, controller=controller).launches[0]
    assert not controller.seen, "nothing is simulated in detail"
    waves = -(-100 // (4 * 2))
    body = launch.cycles - launch.launch_latency
    reuse = load_spec(GPU).launch.dispatch_latency
    # A wave takes 1000 cycles plus the delay until a slot is reused.
    assert waves * 1000 <= body <= waves * (1000 + reuse + 100)
    full = simulate(uniform, GPU, set=how).launches[0]
    mean = (full.cycles - full.launch_latency) / waves
    same = simulate(
        uniform, GPU, set=how, controller=Recorder(first=Predict(warp_cycles=mean - reuse))
    ).launches[0]
    assert same.cycles == pytest.approx(full.cycles, rel=0.05)


def test_prediction_from_the_middle(uniform: Path) -> None:
    how = {**SMALL, "sm.max_ctas": 4}
    recorder = Recorder(interval=100)
    full = simulate(uniform, GPU, set=how, controller=recorder).launches[0]
    warps = np.concatenate([i.warps for _, i in recorder.seen])
    length = float(np.mean((warps["end"] - warps["begin"]).astype(float)))
    controller = Recorder(once(2000, Predict(warp_cycles=length, reason="known")))
    launch = simulate(uniform, GPU, set=how, controller=controller).launches[0]
    assert launch.sampled is not None and launch.sampled.decision == "predict"
    assert launch.sampled.at_cycle == 2000 and launch.sampled.reason == "known"
    assert 0 < launch.sampled.ctas < 100
    assert launch.cycles == pytest.approx(full.cycles, rel=0.05)
    assert launch.engine["warp_instructions"] == full.engine["warp_instructions"]
    # The controller is called until the resident warps have ended, and no longer.
    assert 2000 < controller.seen[-1][1].end <= 2000 + 2 * length


def test_blocks_predict_what_they_took(tmp_path: Path) -> None:
    """Warps of two lengths: summing over blocks distinguishes them."""
    ctas = [[dependent(200)], [dependent(600)]] * 30
    folder = write_kernel(tmp_path / "t", ctas, sm=80)
    how = {**SMALL, "sm.max_ctas": 2}
    full = simulate(folder, GPU, set=how).launches[0]

    class ByBlock(Recorder):
        def begin(self, launch: LaunchView) -> Decision:
            super().begin(launch)
            assert launch.code is not None
            n = len(launch.code.blocks)
            return Predict(block_cycles=np.full(n, 500.0))

    launch = simulate(folder, GPU, set=how, controller=ByBlock()).launches[0]
    assert full.cycles != launch.cycles
    blocks = ByBlock()
    assert simulate(folder, GPU, set=how, controller=blocks).launches[0].cycles == launch.cycles


def test_predicted_launch(traces: dict[str, Path]) -> None:
    controller = Recorder(first=Predict(launch_cycles=12345.0))
    result = simulate(traces["all"], GPU, set=SMALL, controller=controller)
    for launch in result.launches:
        assert launch.cycles == launch.launch_latency + 12345
        assert launch.sampled is not None and launch.sampled.ctas == 0
    starts = [x.start_cycle for x in result.launches]
    assert starts == sorted(starts) and starts[1] >= result.launches[0].end_cycle


def test_skipped_ctas_are_left_out(uniform: Path) -> None:
    how = {**SMALL, "sm.max_ctas": 2}

    class Skipping(Recorder):
        def project(self, launch: LaunchView, now: Interval) -> Projection:
            return Projection(now.end + 7, {name: float(n) for name, n in now.counters.items()})

    controller = Skipping(once(1000, Skip(60)))
    launch = simulate(uniform, GPU, set=how, controller=controller).launches[0]
    full = simulate(uniform, GPU, set=how).launches[0]
    assert launch.sampled is not None and launch.sampled.decision == "skip" and launch.sampled.ctas == 40
    assert launch.engine["warp_instructions"] == 0.4 * full.engine["warp_instructions"]
    assert 0.35 < (launch.cycles - launch.launch_latency) / (full.cycles - full.launch_latency) < 0.45


class Awaiting(Controller):
    """Observes only where CTAs 30 and 50 begin, and leaves out 10 twice, one right after the other."""

    method = "awaiting"
    interval = 1 << 40

    def __init__(self) -> None:
        self.seen: list[Interval] = []

    def begin(self, launch: LaunchView) -> Decision:
        self.awaited_cta = 30
        return GO_ON

    def observe(self, interval: Interval) -> Decision:
        self.seen.append(interval)
        self.awaited_cta = 50 if len(self.seen) == 1 else None if len(self.seen) > 3 else 1000
        return Skip(10) if len(self.seen) in (2, 3) else GO_ON

    def project(self, launch: LaunchView, now: Interval) -> Projection:
        return Projection(now.end, {name: float(n) for name, n in now.counters.items()})


def test_observed_where_a_cta_begins_and_where_ctas_were_left_out(uniform: Path) -> None:
    how = {**SMALL, "sm.max_ctas": 2}
    fine = Recorder(interval=1, warps=False, blocks=False)
    simulate(uniform, GPU, set=how, controller=fine)
    awaiting = Awaiting()
    simulate(uniform, GPU, set=how, controller=awaiting)
    first, second, left_out, again = awaiting.seen
    for seen, cta in ((first, 30), (second, 50)):
        same = next(x for _, x in fine.seen if x.counters["ctas"] > cta)
        assert (seen.end, dict(seen.counters)) == (same.end, dict(same.counters))
    assert second.end < left_out.end == again.end
    assert [x.skipped_ctas for x in awaiting.seen] == [0, 0, 10, 20]
    assert dict(left_out.counters) == dict(again.counters)


class Everything(Controller):
    """Uses every feature: previews, blocks, warps, a new prediction at every interval, a stop."""

    method = "everything"

    def __init__(self) -> None:
        self.interval, self.warps, self.blocks = 70, True, True
        self.log: list[Any] = []

    def begin(self, launch: LaunchView) -> Decision:
        self._launch = launch
        assert launch.code is not None
        self._n = len(launch.code.blocks)
        self._sum, self._count = np.zeros(self._n), np.zeros(self._n)
        self.log.append((launch.index, launch.code.preview(0.1).counts.tolist()))
        return GO_ON

    def observe(self, interval: Interval) -> Decision:
        blocks = interval.blocks
        np.add.at(self._sum, blocks["block"], (blocks["end"] - blocks["begin"]).astype(float))
        np.add.at(self._count, blocks["block"], 1)
        self.log.append((interval.end, dict(interval.counters), interval.warps.tolist(), blocks.tolist()))
        finished = interval.counters["ctas_finished"]
        if self._launch.index == 2 and finished > 2:
            return Stop("enough")
        if finished < 4:
            return GO_ON
        return Predict(block_cycles=self._sum / np.maximum(1, self._count), reason="blocks")


@pytest.mark.parametrize("gpu", ["a100", "qv100-accelsim"])
def test_threads_and_windows_have_no_influence(gpu: str, traces: dict[str, Path]) -> None:
    def run(**how: Any) -> tuple[Any, Any]:
        controller = Everything()
        small = {"sm.count": 2, "sm.max_ctas": 2}
        result = simulate(traces["loops"], gpu, set=small, controller=controller, timeline=1000, **how)
        return [x.to_json(detail=True) for x in result.launches], controller.log

    reference = run()
    decisions = [x["sampled"]["decision"] for x in reference[0]]
    assert "predict" in decisions and "stop" in decisions
    for how in ({"window": 1}, {"threads": 2}, {"threads": 4, "window": 3}):
        assert run(**how) == reference, how


def test_launches_that_overlap_have_their_own_state(tmp_path: Path) -> None:
    for number, stream in ((1, 1), (2, 2), (3, 1)):
        write_kernel(
            tmp_path / "t",
            [[dependent(400)] * 2] * 30,
            number,
            stream=stream,
            sm=80,
        )
    how = {"sm.count": 4, "sm.max_ctas": 3, "launch.max_concurrent_kernels": 4}

    def run(**more: Any) -> tuple[Any, Any]:
        recorder = Recorder(once(400, Predict(warp_cycles=900.0)), interval=200)
        result = simulate(tmp_path / "t", "a100", set=how, controller=recorder, **more)
        return [x.to_json() for x in result.launches], recorder.seen

    launches, seen = run()
    assert launches[1]["start_cycle"] < launches[0]["end_cycle"] <= launches[2]["start_cycle"]
    for index in range(3):
        own = [interval for launch, interval in seen if launch == index]
        assert [i.index for i in own] == list(range(len(own)))
        assert own[-1].counters["ctas"] < 30
    assert run(window=1)[0] == launches and run(threads=3)[0] == launches


def test_an_error_in_a_controller_ends_the_simulation(traces: dict[str, Path]) -> None:
    class Broken(Recorder):
        def observe(self, interval: Interval) -> Decision:
            if self._launch.index == 1:
                raise ZeroDivisionError("by a user")
            return GO_ON

    with pytest.raises(
        SimulationError, match=r"controller recorder, launch \d+ \(.+\): observe: ZeroDivisionError: by"
    ):
        simulate(traces["all"], GPU, set=SMALL, controller=Broken())
    try:
        simulate(traces["all"], GPU, set=SMALL, controller=Broken())
    except SimulationError as error:
        assert len(error.result.launches) == 1 and error.result.status == "failed"
        assert isinstance(error.__cause__, ControlError)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "it answered None, expected GO_ON"),
        (Predict(), "Predict with nothing, expected one of"),
        (Predict(warp_cycles=1.0, launch_cycles=1.0), "warp_cycles and launch_cycles"),
        (Predict(warp_cycles=float("nan")), "not finite"),
        (Predict(block_cycles=np.ones(99)), "99 block_cycles"),
        (Skip(0), "Skip of 0 CTAs"),
    ],
)
def test_answers_that_make_no_sense(uniform: Path, answer: Any, message: str) -> None:
    with pytest.raises(SimulationError, match=message):
        simulate(uniform, GPU, set=SMALL, controller=Recorder(first=answer))


def test_results_round_trip(traces: dict[str, Path], tmp_path: Path) -> None:
    controller = Recorder(once(1000, Predict(warp_cycles=500.0, reason="why not")))
    result = simulate(traces["gather"], GPU, set=SMALL, controller=controller)
    for place in (tmp_path / "r.json", tmp_path / "folder"):
        result.save(place)
        assert Result.load(place).launches == result.launches


def test_what_is_not_known_is_shown_as_such(tmp_path: Path) -> None:
    """A launch predicted with nothing to extrapolate from: no table or page shows a figure."""
    write_kernel(tmp_path / "t", [[dependent(10)] for _ in range(4)], sm=80)
    result = simulate(tmp_path / "t", GPU, controller=Recorder(first=Predict(launch_cycles=1000.0)))
    launch = result.launches[0]
    assert np.isnan(launch.engine["dram_reads"])
    assert f"~{launch.cycles:,}" in repr(result)
    page = report.page(result)
    assert "predicted by recorder" in page and "NaN" not in page
    assert launch.to_json()["engine"]["dram_reads"] is None
