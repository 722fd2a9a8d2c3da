"""simulate: feeding, slices, selection, limits, Ctrl-C, resuming. With the fake engine."""

from __future__ import annotations

import signal
import sys
import time
from typing import Any

import pytest

import simt
import simt.run.slices
from simt.errors import DeadlockError, Interrupted, ResultError, SimtError
from simt.progress import Progress
from support.fake_gpu import COMMANDS, CTA_CYCLES, FakeGpu, Kernel, installed


def engine() -> Any:
    return sys.modules["simt._engine"]


def interrupt_after(cycle: int) -> Any:
    def before_run(gpu: FakeGpu) -> None:
        if gpu.cycle >= cycle:
            signal.raise_signal(signal.SIGINT)

    return before_run


def test_everything_runs_in_order() -> None:
    with installed() as gpus:
        result = simt.simulate("input", threads=2, window=7, timeline=100)
    assert [(x.index, x.id, x.start_cycle, x.end_cycle) for x in result.launches] == [
        (0, 1, 0, 4500),
        (1, 2, 4500, 13000),
        (2, 3, 13000, 15500),
        (3, 4, 15500, 17000),
    ]
    assert result.status == "complete" and result.unfinished == () and result.warnings == ()
    assert gpus[0].copies == [(0x1000, 4096), (0x2000, 64)]
    assert (gpus[0].threads, gpus[0].window, gpus[0].timeline_interval) == (2, 7, 100)


def test_selection_keeps_copies() -> None:
    with installed() as gpus:
        result = simt.simulate("input", kernels="gemm*")
    assert [x.id for x in result.launches] == [2, 3]
    assert gpus[0].copies == [(0x1000, 4096), (0x2000, 64)]
    assert result.provenance.kernels == "gemm*"


def test_max_cycles_stops_exactly() -> None:
    with installed() as gpus:
        result = simt.simulate("input", max_cycles=13_000)
        assert gpus[0].cycle == 13_000
        short = simt.simulate("input", max_cycles=12_999)
    assert [x.id for x in result.launches] == [1, 2]
    assert result.status == "max_cycles" and result.unfinished == (2, 3)
    assert result.warnings == ("unfinished: 2 of 4 launches, max_cycles reached",)
    assert [x.id for x in short.launches] == [1]


def test_max_cycles_beyond_the_end_is_complete() -> None:
    with installed():
        assert simt.simulate("input", max_cycles=17_000).status == "complete"


def test_results_do_not_depend_on_the_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    with installed():
        whole = simt.simulate("input", timeline=100)
        monkeypatch.setattr(simt.run.slices.time, "monotonic", lambda: time.perf_counter() * 1e6)
        sliced = simt.simulate("input", timeline=100)
    assert sliced.launches == whole.launches


def test_few_launches_are_queued_ahead() -> None:
    many = [Kernel(i, f"k{i}", (1, 1, 1)) for i in range(1, 1201)]
    most = 0

    def watch(gpu: FakeGpu) -> None:
        nonlocal most
        most = max(most, len(gpu._queue) - gpu._done())

    with installed(many):
        engine().before_run = watch
        result = simt.simulate("input")
    assert len(result.launches) == 1200
    assert result.totals.cycles == 1200 * (500 + CTA_CYCLES)
    assert most <= 4


def test_launches_with_the_same_id_are_kept_apart() -> None:
    with installed([Kernel(1, "a", (1, 1, 1)), Kernel(1, "b", (2, 1, 1), stream=5)]):
        result = simt.simulate("input")
    assert [(x.index, x.id, x.name, x.cycles) for x in result.launches] == [
        (0, 1, "a", 1500),
        (1, 1, "b", 2500),
    ]


def test_ctrl_c_gives_what_is_finished() -> None:
    handler = signal.getsignal(signal.SIGINT)
    with installed([*COMMANDS, Kernel(5, "long", (1000, 1, 1))]):
        engine().before_run = interrupt_after(4500)
        with pytest.raises(Interrupted) as caught:
            simt.simulate("input")
    result = caught.value.result
    assert isinstance(caught.value, KeyboardInterrupt)
    assert result.status == "interrupted"
    assert result.launches and [x.index for x in result.launches] + list(result.unfinished) == [0, 1, 2, 3, 4]
    assert result.warnings == (f"unfinished: {len(result.unfinished)} of 5 launches, interrupted",)
    assert signal.getsignal(signal.SIGINT) is handler


def test_ctrl_c_in_the_last_slice_loses_nothing() -> None:
    with installed([Kernel(1, "only", (1, 1, 1))]):
        engine().before_run = lambda gpu: gpu.cycle >= 1000 and signal.raise_signal(signal.SIGINT)
        with pytest.raises(Interrupted) as caught:
            simt.simulate("input")
    assert caught.value.result.status == "complete" and len(caught.value.result.launches) == 1


def test_resume_goes_on_where_it_stopped() -> None:
    with installed() as gpus:
        first = simt.simulate("input", max_cycles=13_000, timeline=500)
        second = simt.simulate("input", resume=first, timeline=500)
        third = simt.simulate("input", resume=second, timeline=500)
        whole = simt.simulate("input", timeline=500)
    assert gpus[1].cycle == 4000  # launches 3 and 4 only
    assert second.status == "complete"
    assert second.launches[:2] == first.launches
    assert [(x.start_cycle, x.end_cycle) for x in second.launches] == [
        (x.start_cycle, x.end_cycle) for x in whole.launches
    ]
    assert second.to_polars("timeline")["cycle"].to_list() == whole.to_polars("timeline")["cycle"].to_list()
    assert second.provenance.resumed_after == 2
    assert len(second.warnings) == 1 and second.warnings[0].startswith("resumed after 2 launches: the caches")
    assert second.provenance.identity != whole.provenance.identity
    assert third.launches == second.launches and third.warnings == second.warnings
    assert third.provenance.resumed_after == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"set": ["sm.count=2"]}, "another GPU specification"),
        ({"kernels": "1-3"}, "another selection of kernels"),
        ({"timeline": 100}, "another timeline interval"),
    ],
)
def test_resume_refuses_another_run(options: dict[str, Any], message: str) -> None:
    with installed():
        first = simt.simulate("input", max_cycles=5000)
        with pytest.raises(ResultError, match=message):
            simt.simulate("input", resume=first, **options)


def test_resume_refuses_another_input() -> None:
    with installed():
        first = simt.simulate("input", max_cycles=5000)
    with installed(COMMANDS[1:]), pytest.raises(ResultError, match="another input"):
        simt.simulate("input", resume=first)


def test_deadlock_carries_what_is_finished() -> None:
    with installed():
        engine().deadlock_at = 9000
        with pytest.raises(DeadlockError, match="warp 3 of CTA 0 waits for barrier 1") as caught:
            simt.simulate("input")
    assert [x.id for x in caught.value.result.launches] == [1]
    assert caught.value.result.status == "deadlock"


def test_progress_reaches_the_end() -> None:
    seen: list[Progress] = []
    with installed():
        simt.simulate("input", progress=seen.append)
    assert {p.phase for p in seen} == {"reading", "simulating"}
    fractions = [p.fraction for p in seen if p.phase == "simulating"]
    assert fractions == sorted(fractions) and fractions[-1] == 1.0
    assert seen[-1].launches_done == seen[-1].launches_total == 4
    assert seen[-1].cycle == 17_000
    assert "gemm_128x64" in {name for p in seen for name in p.running}


def test_time_left() -> None:
    assert Progress("simulating", 0.25, 10.0, 0, 1).seconds_left == pytest.approx(30)
    assert Progress("simulating", 0.0, 10.0, 0, 1).seconds_left is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threads": 0}, "threads is 0, expected 1 or more"),
        ({"timeline": 0}, "timeline is 0"),
        ({"max_cycles": -1}, "max_cycles is -1"),
        ({"set": ["sm.count"]}, "override 'sm.count': expected KEY=VALUE"),
        ({"kernels": "99"}, "matches none"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with installed(), pytest.raises(SimtError, match=message):
        simt.simulate("input", **options)
