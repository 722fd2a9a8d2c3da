"""Executed programs that are cut short: instructions and values are those of the full simulation, and CTAs
that wait for each other never cause a hang or failure.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simt.control import GO_ON, PKP, Controller, Decision, Interval, LaunchView, Predict, Skip, Stop
from simt.errors import ControlError
from simt.gpu import GPU
from simt.result import LaunchResult
from simt.simulate import simulate
from support.tiny import dependent, write_kernel

INSTRUCTIONS = ("warp_instructions", "finished_instructions", "thread_instructions")


class Cut(Controller):
    """Decides once, at the end of an interval or (at = -1) before anything is simulated."""

    method = "cut"

    def __init__(self, how: str, at: int, interval: int) -> None:
        self.how, self.at, self.interval = how, at, interval

    def _answer(self, launch: LaunchView) -> Decision:
        assert launch.code is not None
        residents = self.how.endswith("residents")
        if self.how.startswith("blocks"):
            return Predict(block_cycles=np.full(len(launch.code.blocks), 30.0), residents=residents)
        if self.how.startswith("warps"):
            return Predict(warp_cycles=400, residents=residents)
        return Stop("enough") if self.how == "stop" else Skip(4)

    def begin(self, launch: LaunchView) -> Decision:
        self._launch = launch
        return self._answer(launch) if self.at < 0 else GO_ON

    def observe(self, interval: Interval) -> Decision:
        return self._answer(self._launch) if interval.index == self.at else GO_ON


HOW = ("stop", "warps", "warps residents", "blocks", "blocks residents", "skip")

MIXED = """
extern "C" __global__ void mixed(float* x, const int* rounds, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    __shared__ float part[96];
    float v = i < n ? x[i] : 0.0f;
    for (int k = 0; k < rounds[i % 37]; ++k) {
        if ((i + k) % 3 == 0) v = v * 1.25f + 1.0f; else v += 0.5f;
    }
    part[threadIdx.x] = v;
    __syncthreads();
    v += part[95 - threadIdx.x];
    if (v > 1000.0f) return;
    v = __shfl_xor_sync(__activemask(), v, 1) + v / 3.0f;
    if (i < n) x[i] = v;
}"""
CTAS = 150


def run_mixed(controller: Controller | None, **options: Any) -> tuple[LaunchResult, np.ndarray[Any, Any]]:
    gpu = GPU("a100", set={"sm.count": 2}, controller=controller, **options)
    n = 96 * CTAS - 40
    x = gpu.array(np.arange(n, dtype=np.float32) % 50)
    rounds = gpu.array(np.arange(37, dtype=np.int32) * 3 % 41)
    gpu.compile(MIXED).mixed[CTAS, 96](x, rounds, n)
    return gpu.result().launches[0], np.asarray(x).copy()


@pytest.fixture(scope="module")
def mixed() -> tuple[LaunchResult, np.ndarray[Any, Any]]:
    return run_mixed(None)


@pytest.mark.parametrize("at", [-1, 0, 3])
@pytest.mark.parametrize("how", HOW)
def test_instructions_are_those_of_the_full_simulation(
    mixed: tuple[LaunchResult, np.ndarray[Any, Any]], how: str, at: int
) -> None:
    truth, values = mixed
    if how == "stop" and at < 0:
        pytest.skip("nothing says how long it would take: an error of its own")
    # Fetching the first instructions takes most of the first interval.
    found, result = run_mixed(Cut(how, at, 700), threads=2)
    assert np.array_equal(result, values)
    assert found.sampled is not None and found.sampled.decision != "full"
    assert found.sampled.warp_instructions < truth.warp_instructions
    for name in INSTRUCTIONS:
        assert found.engine[name] == truth.engine[name]
        assert found.sampled.projected[name] == "exact: the rest was executed and counted"
    assert found.counters["smsp__thread_inst_executed_pred_on.sum"] == truth.thread_instructions


def test_time_left_comes_from_the_instructions_left(mixed: tuple[LaunchResult, Any]) -> None:
    class Plain(Cut):
        def project(self, launch: LaunchView, now: Interval) -> Any:
            self.seen.append((launch, now))
            return super().project(launch, now)

    controller = Plain("stop", 3, 150)
    controller.seen = []
    found, _ = run_mixed(controller)
    launch, now = controller.seen[0]
    assert launch.warp_instructions == mixed[0].warp_instructions
    done = now.counters["warp_instructions"]
    expected = now.end * launch.warp_instructions / done
    assert found.cycles - found.launch_latency == pytest.approx(expected, abs=1)
    assert launch.counted


def test_published_pkp_needs_no_preview_of_a_program(mixed: tuple[LaunchResult, Any]) -> None:
    class Watching(PKP):
        def begin(self, launch: LaunchView) -> Decision:
            decision = super().begin(launch)
            assert "previewed" not in vars(launch)
            return decision

    found, _ = run_mixed(Watching(threshold=50, window=200, interval=100, waves=0, trend=None))
    assert found.sampled is not None and found.sampled.decision == "stop"
    assert found.warp_instructions == mixed[0].warp_instructions


def test_instructions_of_a_trace_are_not_known_in_wider_warps(tmp_path: Path) -> None:
    folder = write_kernel(tmp_path, [[dependent(40)] * 2] * 400, 1, sm=80)
    options: dict[str, Any] = {"set": {"sm.count": 2}}
    for gpu, known in (("a100", True), ("r9nano", False)):
        truth = simulate(folder, gpu, **options).launches[0]
        seen: list[int | None] = []

        class Look(Cut):
            def begin(self, launch: LaunchView, seen: list[int | None] = seen) -> Decision:
                seen.append(launch.warp_instructions)
                return super().begin(launch)

        found = simulate(folder, gpu, controller=Look("stop", 5, 100), **options).launches[0]
        assert seen == [truth.warp_instructions if known else None]
        assert found.warp_instructions == pytest.approx(truth.warp_instructions, rel=0 if known else 0.1)


def test_a_stop_before_anything_was_executed_is_refused() -> None:
    with pytest.raises(ControlError, match="nothing was executed by then"):
        run_mixed(Cut("stop", 0, 5))


# --- CTAs that wait for each other ----------------------------------------------------------------------

WAITING = """
extern "C" __global__ void chain(volatile int* flag, int* out) {
    int b = blockIdx.x;
    if (threadIdx.x == 0) {
        if (b > 0) while (flag[b - 1] == 0) {}
        out[b] = (b > 0 ? out[b - 1] : 0) + b;
        __threadfence();
        flag[b] = 1;
    }
}
extern "C" __global__ void backwards(volatile int* flag, volatile int* out) {
    int b = blockIdx.x, last = gridDim.x - 1;
    if (threadIdx.x == 0) {
        if (b < last) while (flag[b + 1] == 0) {}
        out[b] = (b < last ? out[b + 1] : 0) + b;
        __threadfence();
        flag[b] = 1;
    }
}
extern "C" __global__ void together(int* flag, int* out) {
    int b = blockIdx.x, n = gridDim.x;
    if (threadIdx.x == 0) {
        for (int round = 1; round <= 3; ++round) {
            atomicAdd(&flag[0], 1);
            while (atomicAdd(&flag[0], 0) < round * n) {}
            out[b] += round * b;
        }
    }
}"""


def run_waiting(kernel: str, ctas: int, controller: Controller | None) -> tuple[LaunchResult, list[int]]:
    gpu = GPU("a100", set={"sm.count": 2}, controller=controller)
    flags, out = gpu.zeros(ctas, dtype=np.int32), gpu.zeros(ctas, dtype=np.int32)
    gpu.compile(WAITING)[kernel][ctas, 32](flags, out)
    return gpu.result().launches[0], np.asarray(out).tolist()


# All CTAs of the last two fit at once, as they must on any GPU. Dispatch takes half as many cycles.
@pytest.mark.slow
@pytest.mark.parametrize(("kernel", "ctas"), [("chain", 80), ("backwards", 50), ("together", 50)])
@pytest.mark.parametrize("how", HOW)
def test_ctas_that_wait_for_each_other(kernel: str, ctas: int, how: str) -> None:
    numbers = np.arange(ctas)
    expected = {
        "chain": numbers.cumsum(),
        "backwards": numbers[::-1].cumsum()[::-1],
        "together": 6 * numbers,
    }[kernel].tolist()
    decided = []
    for at, interval in ((-1, 10), (0, 10), (1, 350), (2, 350)):
        if how == "stop" and interval == 10:
            continue  # nothing has been executed, so its duration is unknown
        found, values = run_waiting(kernel, ctas, Cut(how, at, interval))
        assert values == expected, (at, interval)
        assert found.sampled is not None and found.engine["ctas_finished"] == ctas
        decided.append(found.sampled.decision)
        if how == "skip":
            assert found.sampled.reason == "its CTAs influence each other, so none can be left out"
        elif found.sampled.decision != "full":
            assert (
                "waiting loops may take a different number of iterations"
                in found.sampled.projected["warp_instructions"]
            )
    kind = {"stop": "stop", "skip": "full"}.get(how, "predict")
    assert decided[0] == kind


CLUSTERS = """
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void __cluster_dims__(4, 1, 1) ring(int* out, int rounds) {
    __shared__ int mine;
    cg::cluster_group cluster = cg::this_cluster();
    unsigned rank = cluster.block_rank(), next = (rank + 1) % 4;
    if (threadIdx.x == 0) mine = blockIdx.x;
    cluster.sync();
    int sum = 0;
    for (int k = 0; k < rounds; ++k) {
        int seen = *cluster.map_shared_rank(&mine, next);
        cluster.sync();
        if (threadIdx.x == 0) { sum += seen; mine = seen + 1; }
        cluster.sync();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}"""


@pytest.mark.slow
@pytest.mark.parametrize("how", HOW)
def test_clusters(how: str) -> None:
    def run(controller: Controller | None) -> tuple[LaunchResult, np.ndarray[Any, Any]]:
        gpu = GPU("h100", set={"sm.count": 8}, controller=controller)
        out = gpu.zeros(480, dtype=np.int32)
        gpu.compile(CLUSTERS).ring[480, 64](out, 5)
        return gpu.result().launches[0], np.asarray(out).copy()

    truth, values = run(None)
    for at, interval in ((0, 11), (2, 300)) if how != "stop" else ((2, 300), (3, 300)):
        found, result = run(Cut(how, at, interval))
        assert np.array_equal(result, values), (at, interval)
        assert found.sampled is not None and found.engine["ctas_finished"] == 480
        assert found.sampled.decision != "full" or how == "skip"
        for name in INSTRUCTIONS:
            assert found.engine[name] == truth.engine[name]


# --- work that is left of a launch when the next one begins -------------------------------------------------


def test_cut_residents_leave_their_sm_before_the_next_launch_begins() -> None:
    """They may take longer to drain than predicted."""
    gpu = GPU("a100", set={"sm.count": 2}, controller=Cut("warps residents", 2, 300))
    kernel = gpu.compile(MIXED).mixed
    x, rounds = gpu.zeros(96 * CTAS), gpu.array(np.full(37, 60, np.int32))
    for _ in range(6):
        kernel[CTAS, 96](x, rounds, 96 * CTAS)
    launches = gpu.result().launches
    assert [x.engine["ctas_finished"] for x in launches] == 6 * [CTAS]
    assert all(a.end_cycle <= b.start_cycle for a, b in pairwise(launches))


class FirstOnly(Cut):
    """Decides about the first launch."""

    def _answer(self, launch: LaunchView) -> Decision:
        return super()._answer(launch) if launch.index == 0 else GO_ON


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("length", [5, 400])
@pytest.mark.parametrize("how", ["stop", "warps", "warps residents"])
def test_warps_that_have_not_started_when_their_cta_is_cut(
    how: str, length: int, threads: int, tmp_path: Path
) -> None:
    """Of four warps, the first has started at the decision, and ended or not."""
    for number in (1, 2):
        write_kernel(tmp_path, [[dependent(length)] * 4] * 20, number, sm=80)
    # An L0 instruction cache has no code after the cut that a warp of its sub-core would have read.
    machine = {"sm.count": 2, "launch.warp_start_interval": 1000}
    options: dict[str, Any] = {"set": {**machine, "sm.front_end.instruction_cache.perfect": True}}
    truth = simulate(tmp_path, "a100", **options).launches
    found = simulate(tmp_path, "a100", controller=FirstOnly(how, 4, 100), threads=threads, **options).launches
    cut = found[0].sampled
    assert cut is not None and cut.decision == ("stop" if how == "stop" else "predict")
    assert found[0].engine["warp_instructions"] == truth[0].engine["warp_instructions"]
    assert found[0].engine["ctas_finished"] == 20
    assert found[1].start_cycle >= found[0].end_cycle
    assert found[1].cycles == truth[1].cycles
    assert found[1].engine["warp_instructions"] == truth[1].engine["warp_instructions"]
    if how == "stop":  # only the first warps have issued
        each = length + 1 if length == 5 else 100
        assert 0 < cut.warp_instructions <= 20 * each
        assert (cut.warp_instructions == 20 * each) == (length == 5)
