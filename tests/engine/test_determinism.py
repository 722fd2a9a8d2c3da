"""Results are bit-for-bit the same for any number of threads, any window, and any division into slices."""

from pathlib import Path
from typing import Any

import pytest

from simt import _engine
from simt.spec import load_spec
from simt.trace import open_trace
from simt.trace.generate import generate
from simt.trace.writer import Warp
from support.tiny import GLOBAL, MOST_CYCLES, dependent, finished, run, warp_of, write_kernel


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("traces")
    kinds = {"gemm": 64, "stencil": 64, "gather": 512, "streaming": 4096}
    return {
        "all": generate(list(kinds), folder / "all", sm=80, size=64, compression="none").parent,
        **{k: generate(k, folder / k, sm=80, size=n, compression="none").parent for k, n in kinds.items()},
    }


GPUS = ["qv100-accelsim", "rtx3070-accelsim", "a100"]


@pytest.mark.slow
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("kind", ["gemm", "stencil", "gather", "streaming", "all"])
def test_threads_and_windows_change_nothing(gpu: str, kind: str, traces: dict[str, Path]) -> None:
    def result(**how: Any) -> list[dict[str, Any]]:
        return run(traces[kind], gpu, timeline=500, **how)

    reference = result()
    assert reference[0]["counters"]["warp_instructions"] > 0
    assert len(reference[0]["timeline"]["cycle"]) >= 2
    for how in ({"threads": 2}, {"threads": 4, "window": 3}, {"window": 1}, {"window": 5}):
        assert result(**how) == reference, how


@pytest.mark.parametrize("gpu", GPUS)
def test_cutting_the_run_changes_nothing(gpu: str, traces: dict[str, Path]) -> None:
    reference = run(traces["all"], gpu, timeline=300)
    assert run(traces["all"], gpu, timeline=300, slices=lambda i: 1 + 97 * (i % 5)) == reference


def test_running_twice_changes_nothing(traces: dict[str, Path]) -> None:
    assert run(traces["gather"], "h100") == run(traces["gather"], "h100")


def test_streams_overlap_the_same_way_for_any_window(tmp_path: Path) -> None:
    for number, stream in enumerate((1, 2, 1, 3), start=1):
        warps = [
            warp_of(lambda w: [w.op("FFMA", 8, (8, 2, 8)) for _ in range(200)] and None) for _ in range(4)
        ]
        write_kernel(tmp_path / "t", [warps] * 12, number, stream=stream)
    settings = {"launch.max_concurrent_kernels": 4}
    reference = run(tmp_path / "t", "a100", settings)
    by_id = {r["id"]: r for r in reference}
    assert by_id[2]["start_cycle"] < by_id[1]["end_cycle"], "different streams overlap"
    assert by_id[3]["start_cycle"] >= by_id[1]["end_cycle"], "one stream is in order"
    for how in ({"threads": 3}, {"window": 1}, {"window": 7}):
        assert run(tmp_path / "t", "a100", settings, **how) == reference, how


@pytest.mark.parametrize("gpu", ["a100", "qv100-accelsim"])
def test_stores_that_outlast_their_warps_end_the_same_way(gpu: str, tmp_path: Path) -> None:
    """Each launch ends with stores under way, and its CTAs with warps that start while others store."""

    def body(w: Warp) -> None:
        for i in range(6):
            w.memory("STG.E.SYS", [GLOBAL + 4096 * i + 640 * lane for lane in range(32)], 4, None, (2, 8))
            w.memory("RED.E.ADD", [GLOBAL + 64 * lane for lane in range(32)], 4, None, (2, 8))
            w.op("FFMA", 8, (8, 2, 8))

    for number, stream in enumerate((1, 2, 1), start=1):
        write_kernel(tmp_path / "t", [[warp_of(body)] * 6] * 30, number, stream=stream, sm=80)
    settings = {
        "sm.count": 3,
        "sm.max_ctas": 2,
        "launch.max_concurrent_kernels": 4,
        "launch.warp_start_interval": 13,
    }
    reference = run(tmp_path / "t", gpu, settings, timeline=300)
    for how in ({"threads": 2}, {"window": 1}, {"threads": 3, "window": 5}):
        assert run(tmp_path / "t", gpu, settings, timeline=300, **how) == reference, how
    assert run(tmp_path / "t", gpu, settings, timeline=300, slices=lambda i: 1 + 7 * (i % 9)) == reference


def test_tlbs_that_are_too_small_miss_the_same_way(tmp_path: Path) -> None:
    """Five pages of data for two translations, on SMs that share TLBs, and launches that overlap."""

    def body(w: Warp) -> None:
        for i in range(8):
            page = GLOBAL + (i * i % 5 << 20)
            w.memory("LDG.E", [page + 640 * lane for lane in range(32)], 4, 8 + i, (2,))
            w.memory("STG.E", [page + 64 * lane for lane in range(32)], 4, None, (2, 8 + i))
            w.memory("RED.E.ADD", [page + (1 << 19) + 64 * lane for lane in range(32)], 4, None, (2, 8))

    for number, stream in enumerate((1, 2, 1), start=1):
        write_kernel(tmp_path / "t", [[warp_of(body)] * 2] * 12, number, stream=stream, sm=80)
    tlbs = {"tlb.entries": 2, "tlb.entry_mib": 1, "tlb.count": 2, "tlb.miss_latency": 130}
    settings = {"sm.count": 5, "sm.max_ctas": 2, "launch.max_concurrent_kernels": 4, **tlbs}
    reference = run(tmp_path / "t", "a100", settings, timeline=300)
    assert sum(launch["counters"]["tlb_misses"] for launch in reference) > 40
    for how in ({"threads": 2}, {"window": 1}, {"threads": 3, "window": 5}):
        assert run(tmp_path / "t", "a100", settings, timeline=300, **how) == reference, how
    assert run(tmp_path / "t", "a100", settings, timeline=300, slices=lambda i: 1 + 7 * (i % 9)) == reference


@pytest.mark.parametrize("output_buffer", [2, 40, 512])
@pytest.mark.parametrize("gpu", ["a100", "qv100-accelsim"])
def test_requests_that_run_beside_slices_change_nothing(gpu: str, output_buffer: int, tmp_path: Path) -> None:
    """Slices whose buffers are never, sometimes and always nearly full; copies to the L2 between launches."""

    def body(w: Warp) -> None:
        for i in range(10):
            w.memory("LDG.E", [GLOBAL + 8192 * i + 4096 * lane for lane in range(32)], 4, 8 + i, (2,))
            w.memory("RED.E.ADD", [GLOBAL + 128 * (lane + i) for lane in range(32)], 4, None, (2, 8))
            w.op("FFMA", 8, (8, 2, 8))

    for number, stream in enumerate((1, 2, 1), start=1):
        write_kernel(tmp_path / "t", [[warp_of(body)] * 4] * 40, number, stream=stream, sm=80)
    settings = {
        "sm.count": 8,
        "launch.max_concurrent_kernels": 2,
        "interconnect.output_buffer": output_buffer,
    }
    reference = run(tmp_path / "t", gpu, settings, timeline=300)
    assert all(launch["counters"]["network_request_packets"] > 10_000 for launch in reference)
    for how in ({"threads": 2}, {"threads": 4}, {"threads": 3, "window": 5}):
        assert run(tmp_path / "t", gpu, settings, timeline=300, **how) == reference, how
    cut = run(tmp_path / "t", gpu, settings, threads=2, timeline=300, slices=lambda i: 1 + 37 * (i % 9))
    assert cut == reference


def test_a_rehearsal_gives_the_results_and_what_threads_would_take(traces: dict[str, Path]) -> None:
    def rehearsed(threads: int) -> tuple[list[dict[str, Any]], float, float]:
        engine = _engine.Gpu(load_spec("qv100").native(), threads, rehearses=True)
        for command in open_trace(traces["gemm"]).kernels:
            engine.launch(command.source(), command.id)
        assert engine.run(MOST_CYCLES)
        tasks, together, _ = engine.rehearsal()
        return finished(engine), tasks, together

    alone, tasks, together = rehearsed(1)
    assert together == pytest.approx(tasks), "one thread takes all tasks, one after the other"
    for threads in (2, 8):
        result, tasks, together = rehearsed(threads)
        assert result == alone
        assert tasks / threads <= together < tasks


def test_calls_of_the_engine_end_by_time(tmp_path: Path) -> None:
    """However many cycles it may simulate: a call without time takes one window, and changes no result."""
    trace = open_trace(write_kernel(tmp_path, [[dependent(400)] * 4] * 200)).kernels[0]

    def record(seconds: float) -> tuple[int, dict[str, Any]]:
        engine = _engine.Gpu(load_spec("qv100", {"sm.count": 2}).native(), 1)
        engine.launch(trace.source(), 1)
        calls = 1
        while not engine.run(MOST_CYCLES, seconds=seconds):
            calls += 1
        return calls, finished(engine)[0]

    calls, whole = record(float("inf"))
    assert calls == 1
    calls, by_window = record(0.0)
    assert calls > 100 and by_window == whole
