"""Programs that are only partly simulated compute the same values as fully simulated ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import simt
from simt.control import GO_ON, Controller, Decision, Interval, LaunchView, Predict, Projection, Skip, Stop
from simt.errors import ControlError, ProgramFault

SOURCE = r"""
#include <cstdio>
extern "C" __global__ void mix(const float* a, float* out, unsigned* hits, int counts) {
    __shared__ float tile[128];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = a[i];
    for (int k = 0; k < 3 + blockIdx.x % 4; ++k) {
        tile[threadIdx.x] = x;
        __syncthreads();
        x = 0.5f * x + tile[(threadIdx.x + 33) % blockDim.x];
        __syncthreads();
    }
    out[i] = x;
}
extern "C" __global__ void count(unsigned* hits, unsigned* places) {
    unsigned place = atomicAdd(hits, 1u);
    places[place] = blockIdx.x * blockDim.x + threadIdx.x;
    __syncthreads();
    atomicAdd(hits + 1, threadIdx.x);
    if (threadIdx.x == 0 && blockIdx.x % 16 == 0) printf("block %d\n", blockIdx.x);
}
extern "C" __global__ void chain(volatile unsigned* flags, unsigned* out) {
    if (threadIdx.x == 0) {
        unsigned before = 0;
        if (blockIdx.x > 0) while ((before = flags[blockIdx.x - 1]) == 0) { }
        __threadfence();
        flags[blockIdx.x] = before + 1;
        out[blockIdx.x] = before;
    }
}
extern "C" __global__ void total(const float* a, float* out, int n) {
    float sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += a[i];
    if (sum == 1.5f) out[0] = sum;
}
extern "C" __global__ void outside(float* out) {
    out[threadIdx.x + (blockIdx.x == 90 ? 1000000000ull : 0ull)] = 1.0f;
}
"""
BLOCKS, THREADS = 96, 128
HOW = {"sm.count": 2, "sm.max_ctas": 4}


class At(Controller):
    """Decides once, at the end of the interval that ends at `cycle`, or at the beginning."""

    method = "at"

    def __init__(self, cycle: int, decide: Callable[[LaunchView], Decision], interval: int = 100) -> None:
        self.interval = interval
        self._cycle, self._decide = cycle, decide

    def begin(self, launch: LaunchView) -> Decision:
        self._launch = launch
        return self._decide(launch) if self._cycle == 0 else GO_ON

    def observe(self, interval: Interval) -> Decision:
        return self._decide(self._launch) if interval.end == self._cycle else GO_ON

    def project(self, launch: LaunchView, now: Interval) -> Projection:
        return Projection(now.end + 1, {name: float(n) for name, n in now.counters.items()})


class First(At):
    """Decides only in the first launch."""

    def observe(self, interval: Interval) -> Decision:
        return super().observe(interval) if self._launch.index == 0 else GO_ON


def by_blocks(launch: LaunchView) -> Decision:
    assert launch.code is not None
    return Predict(block_cycles=np.full(len(launch.code.blocks), 20.0))


DECISIONS: dict[str, Callable[[LaunchView], Decision]] = {
    "stop": lambda _: Stop("enough"),
    "warps": lambda _: Predict(warp_cycles=300.0),
    "blocks": by_blocks,
    "skip": lambda _: Skip(40),
}


def run(kernel: str, controller: Controller | None, **how: Any) -> tuple[simt.GPU, dict[str, np.ndarray]]:
    gpu = simt.GPU("a100", set=HOW, controller=controller, **how)
    rng = np.random.default_rng(1)
    a = gpu.array(rng.random(BLOCKS * THREADS, np.float32))
    out = gpu.zeros(BLOCKS * THREADS)
    hits, places = gpu.zeros(2, np.uint32), gpu.zeros(BLOCKS * THREADS, np.uint32)
    module = gpu.compile(SOURCE)
    arguments: dict[str, tuple[Any, ...]] = {
        "mix": (a, out, hits, 1),
        "count": (hits, places),
        "chain": (places, out),
        "outside": (out,),
    }
    module[kernel][BLOCKS, THREADS](*arguments[kernel])
    return gpu, {"out": out.numpy(), "hits": hits.numpy(), "places": places.numpy()}


@pytest.mark.parametrize("decision", DECISIONS)
@pytest.mark.parametrize("cycle", [0, 400, 1300])
def test_values_are_those_of_a_full_simulation(decision: str, cycle: int) -> None:
    _, full = run("mix", None)
    gpu, values = run("mix", At(cycle, DECISIONS[decision]), threads=2)
    sampled = gpu.launches[0].sampled
    assert sampled is not None and sampled.decision == (
        "predict" if decision in ("warps", "blocks") else decision
    )
    assert sampled.ctas < BLOCKS
    for name, value in full.items():
        np.testing.assert_array_equal(values[name], value)


@pytest.mark.parametrize("decision", DECISIONS)
def test_atomics_and_prints(decision: str, capsys: pytest.CaptureFixture[str]) -> None:
    gpu, values = run("count", At(200, DECISIONS[decision]))
    threads = BLOCKS * THREADS
    assert values["hits"].tolist() == [threads, BLOCKS * sum(range(THREADS))]
    assert sorted(values["places"].tolist()) == list(range(threads))
    assert sorted(gpu.printed.split("\n")[:-1]) == sorted(f"block {b}" for b in range(0, BLOCKS, 16))
    for how in ({"window": 1}, {"threads": 3}):
        other, again = run("count", At(200, DECISIONS[decision]), **how)
        np.testing.assert_array_equal(again["places"], values["places"])
        assert other.printed == gpu.printed
        assert other.launches[0].to_json() == gpu.launches[0].to_json()


def test_blocks_that_wait_for_others_are_finished_after_a_stop() -> None:
    gpu, values = run("chain", At(1000, DECISIONS["stop"]))
    assert gpu.launches[0].sampled is not None and gpu.launches[0].sampled.ctas < BLOCKS
    assert values["places"][:BLOCKS].tolist() == list(range(1, BLOCKS + 1))


def test_predicted_blocks_may_wait_for_resident_ones() -> None:
    _, values = run("chain", At(1000, DECISIONS["warps"]))
    assert values["places"][:BLOCKS].tolist() == list(range(1, BLOCKS + 1))


def test_a_predicted_launch_has_all_its_effects() -> None:
    _, full = run("mix", None)
    gpu, values = run("mix", At(0, lambda _: Predict(launch_cycles=5000.0)))
    np.testing.assert_array_equal(values["out"], full["out"])
    launch = gpu.launches[0]
    assert launch.cycles == launch.launch_latency + 5000
    assert np.isnan(launch.engine["dram_reads"]) and launch.engine["ctas"] == BLOCKS


def test_a_fault_in_what_is_not_simulated_is_reported() -> None:
    for decision in ("stop", "warps"):
        with pytest.raises(ProgramFault, match=r"block \(90,0,0\)"):
            run("outside", At(100, DECISIONS[decision]))


def test_a_broken_controller_leaves_the_gpu_usable() -> None:
    def broken(_: LaunchView) -> Decision:
        raise RuntimeError("no idea")

    controller = At(200, broken)
    gpu = simt.GPU("a100", set=HOW, controller=controller)
    out = gpu.zeros(BLOCKS * THREADS)
    module = gpu.compile(SOURCE)
    with pytest.raises(
        ControlError, match=r"controller at, launch 1 \(mix\): observe: RuntimeError: no idea"
    ):
        module["mix"][BLOCKS, THREADS](out, out, out, 1)
    controller._decide = DECISIONS["stop"]
    module["mix"][BLOCKS, THREADS](out, out, out, 1)
    assert len(gpu.launches) == 1


def test_later_launches_find_the_caches_warm() -> None:
    """The second of two launches over the same data hits what the first, stopped one left in the L2."""

    def second(controller: Controller | None, twice: bool) -> Any:
        gpu = simt.GPU("a100", set=HOW, controller=controller)
        a = gpu.zeros(BLOCKS * THREADS)
        out = gpu.zeros(BLOCKS * THREADS)
        module = gpu.compile(SOURCE)
        for _ in range(1 + twice):
            module["mix"][BLOCKS, THREADS](a, out, out, 1)
        return gpu.launches[-1]

    cold = second(None, twice=False)
    warm = second(First(900, DECISIONS["stop"]), twice=True)
    assert warm.sampled is not None and warm.sampled.decision == "full"
    assert warm.engine["dram_reads"] < cold.engine["dram_reads"]


@pytest.mark.slow
@pytest.mark.parametrize("gpu_name, code", [("qv100", "ptx"), ("a100", "sass")])
@pytest.mark.parametrize("decision", ["stop", "warps"])
def test_what_was_not_simulated_is_written_back_later(decision: str, gpu_name: str, code: Any) -> None:
    """A launch that reads a lot evicts what the previous one stored, whether simulated or not."""

    def second(controller: Controller | None) -> Any:
        small = {"l2.slice.sets": 2, "l2.slice.dirty_threshold": 0}  # 256 KB
        gpu = simt.GPU(gpu_name, code=code, set=HOW | small, controller=controller)
        read, stored = gpu.zeros(1 << 18), gpu.empty(BLOCKS * THREADS)
        module = gpu.compile(SOURCE)
        module["mix"][BLOCKS, THREADS](read, stored, stored, 1)
        module["total"][8, 256](read, stored, read.size)
        return gpu.launches[-1]

    whole, cut = second(None), second(First(900, DECISIONS[decision]))
    sectors = 4 * BLOCKS * THREADS // 32
    assert whole.engine["dram_writes"] == cut.engine["dram_writes"] == sectors
