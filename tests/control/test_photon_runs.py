"""Photon in simulations: programs keep their values, threads have no effect, and known answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import simt
from simt.control import (
    GO_ON,
    Controller,
    Decision,
    Interval,
    LaunchView,
    Photon,
    Predict,
    Projection,
    PublishedPhoton,
    Stop,
)
from simt.workloads import WORKLOADS

# Loose round-robin: under a greedy scheduler some warps starve for a long time.
SMALL = {"sm.count": 2, "sm.scheduler.policy": "lrr"}

STREAM = r"""
extern "C" __global__ void stream(const float* in, float* out, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = in[i];
    #pragma unroll 1
    for (int k = 0; k < rounds; ++k) v = v * 1.0001f + in[(i + k * 37) & 1023];
    out[i] = v;
}
"""

MEETING = r"""
// Divergence, barriers, shared memory, atomics with and without results, and loops of different lengths.
extern "C" __global__ void meeting(const int* in, int* out, int* histogram, unsigned* tickets) {
    __shared__ int sums[128];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int value = in[i], rounds = 3 + blockIdx.x % 5;
    #pragma unroll 1
    for (int k = 0; k < rounds; ++k) {
        sums[threadIdx.x] = value + k;
        __syncthreads();
        value += sums[(threadIdx.x + 1) % 128];
        __syncthreads();
        if (value & 1) value = value * 3 + 1; else value /= 2;
        atomicAdd(&histogram[value & 15], 1);
    }
    if (threadIdx.x == 0) atomicAdd(tickets, 1u + atomicAdd(tickets + 1, 2u) * 0);
    out[i] = value;
}
"""


def run_stream(
    controller: Any,
    threads: int = 1,
    window: int | None = None,
    blocks: int = 96,
    launches: int = 2,
    rounds: int = 20,
    policy: str = "lrr",
) -> Any:
    smaller = SMALL | {"sm.scheduler.policy": policy}
    gpu = simt.GPU("a100", code="ptx", set=smaller, controller=controller, threads=threads, window=window)
    values = np.random.default_rng(1).random(blocks * 64).astype(np.float32)
    source, out = gpu.array(values), gpu.array(np.zeros_like(values))
    for _ in range(launches):
        gpu.compile(STREAM)["stream"][blocks, 64](source, out, rounds)
    return gpu.result().launches, out.numpy()


def run_meeting(controller: Any, threads: int = 1) -> Any:
    gpu = simt.GPU("a100", set=SMALL, controller=controller, threads=threads)
    values = np.random.default_rng(2).integers(0, 1 << 20, 80 * 128).astype(np.int32)
    arrays = [gpu.array(a) for a in (values, np.zeros_like(values), np.zeros(16, np.int32))]
    tickets = gpu.array(np.zeros(2, np.uint32))
    gpu.compile(MEETING)["meeting"][80, 128](*arrays, tickets)
    return gpu.result().launches, [a.numpy() for a in (*arrays, tickets)]


def eager(levels: str, **settings: Any) -> PublishedPhoton:
    """As published, except for the choice of similar launches, and with tests that pass early."""
    rules: dict[str, Any] = {"small": "wave", "work": 0.1, "block_window": 16, "warp_window": 16}
    return PublishedPhoton(levels, delta=20, interval=100, **rules, **settings)


@pytest.mark.slow
@pytest.mark.parametrize("levels", ["block", "warp", "kernel", "kernel+block+warp"])
@pytest.mark.parametrize("residents", [True, False])
def test_values_are_those_of_a_full_run(levels: str, residents: bool) -> None:
    _, expected = run_stream(None)
    launches, out = run_stream(eager(levels, residents=residents, coverage=0.5))
    assert (out == expected).all()
    assert [x.sampled.decision for x in launches][-1] == "predict"
    _, expected = run_meeting(None)
    launches, found = run_meeting(eager(levels, residents=residents, coverage=0.5, dominance=0.1))
    for a, b in zip(found, expected, strict=True):
        assert (a == b).all()


class At(Controller):
    """Decides once, at the end of an interval."""

    method = "at"
    interval = 300

    def __init__(self, number: int, decision: Decision) -> None:
        self.number = number
        self.decision = decision
        self.blocks = isinstance(decision, Predict) and decision.block_cycles is not None

    def observe(self, interval: Interval) -> Decision:
        return self.decision if interval.index == self.number else super().observe(interval)

    def project(self, launch: LaunchView, now: Interval) -> Projection:
        return Projection(now.end, now.counters)


@pytest.mark.parametrize("number", [0, 3])
def test_what_is_resident_at_a_stop_is_executed_to_its_end(number: int) -> None:
    _, expected = run_meeting(None)
    for decision in (Stop("now"), Predict(warp_cycles=500.0, residents=True)):
        _, found = run_meeting(At(number, decision))
        for a, b in zip(found, expected, strict=True):
            assert (a == b).all()


def test_residents_end_when_their_time_is_over() -> None:
    # One wave: every CTA is resident at the first decision, having begun a cycle after its dispatch.
    launches, _ = run_stream(At(1, Predict(warp_cycles=5000.0, residents=True)), blocks=16)
    full, _ = run_stream(None, blocks=16)
    assert full[0].cycles > 700
    begun = launches[0].cycles - launches[0].launch_latency
    assert 5000 <= begun <= 5000 + 20
    assert launches[0].sampled.ctas == 0
    # The predicted time has already passed: they end at once.
    launches, _ = run_stream(At(1, Predict(warp_cycles=10.0, residents=True)), blocks=16)
    assert 600 <= launches[0].cycles - launches[0].launch_latency <= 900


@pytest.mark.slow
@pytest.mark.parametrize("levels", ["block", "warp"])
def test_threads_and_windows_have_no_influence(levels: str) -> None:
    expected, _ = run_stream(eager(levels))
    assert expected[0].sampled.decision == "predict"
    for threads, window in ((2, None), (1, 1), (3, 7)):
        found, _ = run_stream(eager(levels), threads, window)
        for a, b in zip(found, expected, strict=True):
            assert (a.cycles, a.engine, a.sampled) == (b.cycles, b.engine, b.sampled)


class Latencies(Controller):
    method = "latencies"
    interval = 200
    blocks = True

    def begin(self, launch: LaunchView) -> Decision:
        assert launch.code is not None
        self.code = launch.code
        return super().begin(launch)

    def observe(self, interval: Interval) -> Decision:
        opcodes = [i["opcode"] for i in self.code.instructions]
        self.seen.append(dict(zip(opcodes, interval.latencies.tolist(), strict=True)))
        return super().observe(interval)

    def __init__(self) -> None:
        self.seen: list[dict[str, float]] = []


def test_latencies_are_measured_by_instruction() -> None:
    controller = Latencies()
    run_stream(controller, blocks=16)
    last = controller.seen[-1]
    arithmetic = next(v for k, v in last.items() if k.startswith("FFMA"))
    load = next(v for k, v in last.items() if k.startswith("LDG"))
    assert 3 <= arithmetic <= 12
    assert load > 25
    assert np.isnan(last["EXIT"])


def test_thresholds_that_are_never_met_give_the_full_simulation() -> None:
    full, _ = run_stream(None, blocks=512)
    launches, _ = run_stream(Photon("block+warp", delta=0, interval=100), blocks=512)
    for a, b in zip(launches, full, strict=True):
        assert (a.cycles, a.engine, a.l1, a.l2) == (b.cycles, b.engine, b.l1, b.l2)
        assert a.sampled.decision == "full"
        assert "not stable" in a.sampled.reason


def test_the_same_launch_again_takes_the_same_time() -> None:
    launches, _ = run_stream(Photon("kernel"), launches=4)
    assert [x.sampled.decision for x in launches] == ["full", "full", "predict", "predict"]
    assert "no earlier launch" in launches[0].sampled.reason
    # The first one ran with cold caches, so the second represents the others.
    first, second, *others = (x.cycles - x.launch_latency for x in launches)
    assert others == [second, second]
    assert launches[2].engine["warp_instructions"] == launches[1].engine["warp_instructions"]
    published, _ = run_stream(PublishedPhoton("kernel"))
    assert published[1].cycles - published[1].launch_latency == first


class SecondUnseen(Controller):
    """Of a program's launches, the second is not simulated."""

    method = "second-unseen"

    def begin(self, launch: LaunchView) -> Decision:
        return Predict(launch_cycles=1000) if launch.index == 1 else GO_ON


def test_what_was_not_simulated_leaves_its_data_in_the_l2() -> None:
    """The third launch reads what the second wrote."""

    def dram_reads(controller: Controller | None) -> list[float]:
        gpu = simt.GPU("a100", set=SMALL | {"l2.copies_fill": False}, controller=controller)
        x, y, z = (gpu.array(np.ones(96 * 64, np.float32)) for _ in range(3))
        stream = gpu.compile(STREAM)["stream"]
        for source, out in ((z, z), (x, y), (y, z)):
            stream[96, 64](source, out, 20)
        return [launch.engine["dram_reads"] for launch in gpu.result().launches]

    seen, unseen = dram_reads(None), dram_reads(SecondUnseen())
    assert seen[0] > 0
    assert unseen[2] == seen[2]


@pytest.mark.slow
@pytest.mark.parametrize("levels", ["block", "warp"])
def test_a_regular_kernel_is_predicted_well(levels: str) -> None:
    full, _ = run_stream(None, blocks=2000)
    launches, _ = run_stream(Photon(levels, block_window=256, warp_window=256), blocks=2000)
    first = launches[0]
    assert first.sampled.decision == "predict"
    assert first.sampled.ctas < 1000
    assert first.cycles == pytest.approx(full[0].cycles, rel=0.1)
    assert first.engine["warp_instructions"] == pytest.approx(full[0].engine["warp_instructions"], rel=0.01)
    # Warps that were cut short have not reached their store.
    for counter in ("global_load_requests", "global_store_requests"):
        assert first.engine[counter] == pytest.approx(full[0].engine[counter], rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [10, 40])
@pytest.mark.parametrize("policy", ["lrr", "gto"])
@pytest.mark.parametrize("levels", ["block", "warp"])
def test_the_stated_interval_covers_a_regular_kernel(levels: str, policy: str, rounds: int) -> None:
    """Young CTAs run slowly under a greedy scheduler: the times of their blocks are not those of all."""
    settings: dict[str, Any] = {"blocks": 1200, "launches": 1, "rounds": rounds, "policy": policy}
    full = run_stream(None, **settings)[0][0]
    found = run_stream(Photon(levels), **settings)[0][0]
    assert found.sampled.decision == "predict"
    half = found.sampled.half_widths["cycles"]
    assert f"cycles ± {half:.1%}" in found.sampled.reason
    error = abs(found.cycles / full.cycles - 1)
    assert error <= half <= 0.15
    assert error <= 0.05


@pytest.mark.slow
def test_a_network_whose_launches_find_other_weights_in_the_l2() -> None:
    # Blocks of one shape take 666 to 946 thousand cycles here, by whether the L2 has their weights.
    cycles = {}
    for controller in (None, Photon("kernel")):
        gpu = simt.GPU("mi100", threads=1, controller=controller)
        WORKLOADS["resnet18"].run(gpu, 32)
        launches = gpu.result().launches
        cycles[controller is None] = sum(launch.cycles for launch in launches)
    predicted = [launch for launch in launches if launch.sampled.decision == "predict"]
    assert len(predicted) >= 30
    assert cycles[False] == pytest.approx(cycles[True], rel=0.01)
