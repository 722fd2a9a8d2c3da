"""Scale models: a launch's time from some of its CTAs on a part of the GPU."""

from __future__ import annotations

import gc
import math
from pathlib import Path

import numpy as np
import pytest

import simt
from simt.control.controller import GO_ON, Controller, Decision, LaunchView, Predict
from simt.control.scale_model import FEWEST_WAVES, ScaleModel
from simt.errors import ProgramFault
from simt.spec import load_spec
from simt.spec.scale_model import scale_model, with_room

SOURCE = """
extern "C" __global__ void compute(float *out, int n) {
  float x = threadIdx.x;
  for (int i = 0; i < n; i++) x = x * 1.5f + 0.5f;
  out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}
extern "C" __global__ void copy(const float *in, float *out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = 2 * in[i];
}
extern "C" __global__ void branch(const int *in, int *out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (in[i] > 0) out[i] = 1;
}
extern "C" __global__ void count(int *counter, int *out) {
  out[blockIdx.x * blockDim.x + threadIdx.x] = atomicAdd(counter, 1);
}
extern "C" __global__ void gather(const float *table, unsigned mask, float *out) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (unsigned k = 1; k < 9; k++) sum += table[i * 2654435761u * k >> 3 & mask];
  out[i] = sum;
}
extern "C" __global__ void share(const float *all, int shared, const float *own, int alone, float *out) {
  float sum = 0;
  for (int i = threadIdx.x; i < shared; i += blockDim.x) sum += all[i];
  for (int i = threadIdx.x; i < alone; i += blockDim.x) sum += own[blockIdx.x * alone + i];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
extern "C" __global__ void compute_less_and_less(float *out, int n) {
  float x = threadIdx.x;
  for (int i = n * (gridDim.x - blockIdx.x) / gridDim.x; i > 0; i--) x = x * 1.5f + 0.5f;
  out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}
extern "C" __global__ void compute_in_steps(float *out, int n, int levels) {
  float x = threadIdx.x;
  for (int i = blockIdx.x * levels / gridDim.x % 3 ? n : 4 * n; i > 0; i--) x = x * 1.5f + 0.5f;
  out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}
extern "C" __global__ void read_in_turn(const float *in, int chunks, float *out) {
  const int words = 2;  // of a thread
  float sum = 0;
  const float *own = in + (long)(blockIdx.x % chunks) * words * blockDim.x + threadIdx.x;
  for (int i = 0; i < words; i++) sum += own[i * blockDim.x];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
extern "C" __global__ void gather_and_compute(const float *table, unsigned mask, float *out, int n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = table[i * 2654435761u >> 3 & mask], x = i;
  for (int k = 0; k < n; k++) x = x * 1.5f + 0.5f;
  out[i] = sum + x;
}
extern "C" __global__ void last_is_bad(float *out) {
  const long i = blockIdx.x + 1 == gridDim.x ? 1l << 40 : blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = 1;
}
"""
BLOCK = 1024
SMS = 16
WAVE = 2 * SMS  # CTAs: an SM holds two of 1,024 threads


def gpu_with(controller: str | Controller | None = "scale-model", **options: object) -> simt.GPU:
    return simt.GPU("qv100", set={"sm.count": SMS}, controller=controller, **options)


def unbacked(gpu: simt.GPU, ctas: int, of: type = np.float32) -> object:
    return gpu.empty(ctas * BLOCK, of, unbacked=True)


def compute(controller: str | None, ctas: int, **options: object) -> simt.LaunchResult:
    gpu = gpu_with(controller, **options)
    return gpu.compile(SOURCE).compute[ctas, BLOCK](unbacked(gpu, ctas), 200)


def test_equal_ctas_that_compute_take_as_long_on_a_part() -> None:
    ctas = 10 * WAVE
    whole, found = compute(None, ctas), compute("scale-model", ctas)
    assert found.sampled is not None and found.sampled.decision == "predict"
    assert found.cycles == pytest.approx(whole.cycles, rel=0.01)
    assert abs(found.cycles / whole.cycles - 1) <= found.sampled.half_widths["cycles"]
    assert found.engine["warp_instructions"] == pytest.approx(whole.engine["warp_instructions"], rel=0.01)
    assert found.engine["ctas"] == ctas
    assert found.sampled.ctas < ctas * 4 / SMS  # of two SMs, some waves left out


def test_a_part_of_a_wave_at_the_end_is_within_the_interval() -> None:
    """Whether the last CTAs share SMs depends on which SMs are free first."""
    ctas = 10 * WAVE + WAVE // 2
    whole, found = compute(None, ctas), compute("scale-model", ctas)
    assert found.sampled is not None
    assert 0.01 < abs(found.cycles / whole.cycles - 1) <= found.sampled.half_widths["cycles"]


def test_a_part_has_its_share_of_dram() -> None:
    ctas = 12 * WAVE

    def copy(controller: str | None) -> simt.LaunchResult:
        gpu = gpu_with(controller)
        return gpu.compile(SOURCE).copy[ctas, BLOCK](unbacked(gpu, ctas), unbacked(gpu, ctas))

    whole, found = copy(None), copy("scale-model")
    assert found.sampled is not None and found.sampled.decision == "predict"
    assert abs(found.cycles / whole.cycles - 1) <= found.sampled.half_widths["cycles"] < 0.2
    assert found.engine["dram_reads"] == pytest.approx(whole.engine["dram_reads"], rel=0.1)


@pytest.mark.parametrize("keeps_l2", [False, True])
def test_a_predicted_launch_leaves_its_buffers_in_the_l2_or_keeps_it(keeps_l2: bool) -> None:
    class First(Controller):
        method = "first"

        def begin(self, launch: LaunchView) -> Decision:
            return GO_ON if launch.index else Predict(launch_cycles=1000, executes=False, keeps_l2=keeps_l2)

    gpu = gpu_with(First())
    x, y = unbacked(gpu, WAVE), unbacked(gpu, WAVE)
    copy = gpu.compile(SOURCE).copy[WAVE, BLOCK]
    copy(x, y)
    sectors = WAVE * BLOCK * 4 // 32
    assert copy(x, y).engine["dram_reads"] == (sectors if keeps_l2 else 0)


def test_a_part_has_of_ctas_that_differ_what_the_launch_has() -> None:
    """Each CTA computes a little less than the one before."""
    ctas, found = 10 * WAVE, []
    for controller in (None, "scale-model"):
        gpu = gpu_with(controller)
        found.append(gpu.compile(SOURCE).compute_less_and_less[ctas, BLOCK](unbacked(gpu, ctas), 400))
    assert found[1].sampled is not None and found[1].sampled.decision == "predict"
    assert found[1].cycles == pytest.approx(found[0].cycles, rel=0.03)
    instructions = [launch.engine["warp_instructions"] for launch in found]
    assert instructions[1] == pytest.approx(instructions[0], rel=0.01)


def test_ctas_of_few_lengths_are_in_a_part_in_the_measure_of_the_launch() -> None:
    """As of attention: neighbours are alike, and a part has few CTAs of each length."""
    ctas, found = 6 * WAVE, []
    for controller in (None, "scale-model"):
        gpu = gpu_with(controller)
        found.append(gpu.compile(SOURCE).compute_in_steps[ctas, BLOCK](unbacked(gpu, ctas), 50, 8))
    assert found[1].sampled is not None and found[1].sampled.decision == "predict"
    instructions = [launch.engine["warp_instructions"] for launch in found]
    assert instructions[1] == pytest.approx(instructions[0], rel=0.01)
    assert found[1].cycles == pytest.approx(found[0].cycles, rel=0.03)


def test_a_part_of_the_waves_is_enough_for_ctas_that_differ() -> None:
    ctas, found = 16 * WAVE, []  # of which a part has 64
    for most in (None, math.inf, 8.0):
        controller = None
        if most is not None:
            controller = ScaleModel(error=1e-9)
            controller.most_waves = most
        gpu = gpu_with(controller)
        found.append(gpu.compile(SOURCE).compute_less_and_less[ctas, BLOCK](unbacked(gpu, ctas), 400))
    whole, all_waves, few = found
    assert all_waves.sampled is not None and few.sampled is not None
    assert few.sampled.ctas == pytest.approx(all_waves.sampled.ctas / 2, abs=1)
    assert few.cycles == pytest.approx(whole.cycles, rel=0.03)
    assert few.engine["warp_instructions"] == pytest.approx(whole.engine["warp_instructions"], rel=0.01)


def test_what_ctas_far_away_read_first_is_in_the_l2() -> None:
    """What a CTA reads is read again after more CTAs than a part has. Few read the same, so a sample of
    others does not show all of it."""
    ctas, chunks = 24 * WAVE, 4 * WAVE
    found = []
    for controller in (None, "scale-model"):
        gpu = gpu_with(controller)
        array = gpu.empty(chunks * 2 * BLOCK, np.float32, unbacked=True)
        found.append(gpu.compile(SOURCE).read_in_turn[ctas, BLOCK](array, chunks, unbacked(gpu, ctas)))
    assert found[1].sampled is not None and found[1].sampled.decision == "predict"
    whole, part = (launch.engine["dram_reads"] for launch in found)
    assert whole == chunks * 2 * BLOCK * 4 // 32
    assert part < 0.6 * whole * ctas / chunks  # of which a part that looks at neighbours reads all


def test_few_waves_are_simulated_whole() -> None:
    ctas = FEWEST_WAVES * WAVE - 1
    whole, found = compute(None, ctas), compute("scale-model", ctas)
    assert found.cycles == whole.cycles
    assert found.sampled is not None and found.sampled.decision == "full"
    assert "waves of CTAs" in found.sampled.reason


def test_ctas_that_influence_each_other_are_simulated_whole() -> None:
    gpu = gpu_with()
    ctas = 8 * WAVE
    counter, out = gpu.zeros(1, np.int32), gpu.zeros(ctas * BLOCK, np.int32)
    launch = gpu.compile(SOURCE).count[ctas, BLOCK](counter, out)
    assert launch.sampled is not None and launch.sampled.decision == "full"
    assert "influence each other" in launch.sampled.reason
    assert counter.numpy()[0] == ctas * BLOCK


def test_what_all_share_must_fit_into_the_l2() -> None:
    ctas, words = 24 * WAVE, 1 << 19
    gpu = gpu_with()
    small = {"l2.slice.sets": 16, "l2.slice.ways": 8}  # 1 MiB, and a table of 2 MiB
    little = simt.GPU("qv100", set={"sm.count": SMS, **small}, controller="scale-model")
    found = []
    for each in (gpu, little):
        table = each.empty(words, np.float32, unbacked=True)
        kernel = each.compile(SOURCE).gather
        found.append(kernel[ctas, BLOCK](table, words - 1, unbacked(each, ctas)).sampled)
    assert [x.decision for x in found] == ["predict", "full"]
    assert "from fewer banks" in found[1].reason


def test_dram_that_does_not_set_the_pace_may_have_fewer_banks() -> None:
    """The table does not fit into the L2, and DRAM is used much, but it is arithmetic that takes the time."""
    ctas, words, found = 24 * WAVE, 1 << 19, []
    small = {"sm.count": SMS, "l2.slice.sets": 16, "l2.slice.ways": 8, "clock.dram_mhz": 200}
    for controller, steps in (("scale-model", 0), ("scale-model", 700), (None, 700)):
        gpu = simt.GPU("qv100", set=small, controller=controller)
        table, out = gpu.empty(words, np.float32, unbacked=True), unbacked(gpu, ctas)
        found.append(gpu.compile(SOURCE).gather_and_compute[ctas, BLOCK](table, words - 1, out, steps))
    reads, part, whole = found
    assert reads.sampled is not None and "from fewer banks" in reads.sampled.reason
    assert part.sampled is not None and part.sampled.decision == "predict"
    assert part.cycles == pytest.approx(whole.cycles, rel=0.05)
    sectors = whole.engine["dram_reads"] + whole.engine["dram_writes"]
    assert 32 * sectors > 0.3 * whole.cycles * gpu.spec.dram_bytes_per_cycle


def test_what_all_share_must_stay_in_the_l2_of_a_part() -> None:
    """On the GPU 32 CTAs read together what 4 of the part read for themselves."""
    shared, ctas = 1 << 17, 8 * WAVE
    found = []
    for alone in (1 << 9, 1 << 14):
        little = {"l2.slice.sets": 16, "l2.slice.ways": 12, "clock.dram_mhz": 100}
        gpu = simt.GPU("qv100", set={"sm.count": SMS, **little}, controller="scale-model")
        array, own = (gpu.empty(n, np.float32, unbacked=True) for n in (shared, ctas * alone))
        launch = gpu.compile(SOURCE).share[ctas, BLOCK](array, shared, own, alone, unbacked(gpu, ctas))
        found.append(launch.sampled)
    assert [x.decision for x in found] == ["predict", "full"]
    assert "read from DRAM more often" in found[1].reason


def test_all_ctas_leave_their_values() -> None:
    gpu = gpu_with()
    ctas = 8 * WAVE
    given = np.arange(ctas * BLOCK, dtype=np.float32)
    out = gpu.zeros(ctas * BLOCK, np.float32)
    launch = gpu.compile(SOURCE).copy[ctas, BLOCK](gpu.array(given), out)
    assert launch.sampled is not None and launch.sampled.decision == "predict"
    assert np.array_equal(out.numpy(), 2 * given)


def test_what_branches_on_unbacked_memory_is_refused() -> None:
    gpu = gpu_with()
    ctas = 8 * WAVE
    with pytest.raises(ProgramFault, match="unbacked"):
        gpu.compile(SOURCE).branch[ctas, BLOCK](unbacked(gpu, ctas, np.int32), unbacked(gpu, ctas, np.int32))


def test_ctas_that_leave_no_values_are_not_executed() -> None:
    ctas = 8 * WAVE
    gpu = gpu_with()
    launch = gpu.compile(SOURCE).last_is_bad[ctas, BLOCK](unbacked(gpu, ctas))
    assert launch.sampled is not None and launch.sampled.decision == "predict"
    backed = gpu_with()
    with pytest.raises(ProgramFault, match="illegal address"):
        backed.compile(SOURCE).last_is_bad[ctas, BLOCK](backed.zeros(ctas * BLOCK, np.float32))


def test_variables_that_no_code_accesses_are_no_values() -> None:
    """A module of Triton has such ones, of names that its libraries look up."""
    ctas = 8 * WAVE
    gpu = gpu_with()
    names = 'extern "C" { __device__ char name[4] = "ftz"; __device__ float kept; }'
    launch = gpu.compile(names + SOURCE).last_is_bad[ctas, BLOCK](unbacked(gpu, ctas))
    assert launch.sampled is not None and launch.sampled.decision == "predict"
    with pytest.raises(ProgramFault, match="illegal address"):
        gpu.compile(names + SOURCE.replace("out[i] = 1;", "out[i] = 1; kept = 1;")).last_is_bad[ctas, BLOCK](
            unbacked(gpu, ctas)
        )


PRODUCTS = """
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void multiply(const __half *a, float *out, int steps) {
  __shared__ float shown[8][256];
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> x;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> y;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::load_matrix_sync(x, a, 16);
  wmma::load_matrix_sync(y, a, 16);
  wmma::fill_fragment(sum, 0.0f);
  for (int i = 0; i < steps; i++) wmma::mma_sync(sum, x, y, sum);
  wmma::store_matrix_sync(DECIDES ? shown[threadIdx.x / 32] : out, sum, 16, wmma::mem_row_major);
  float x0 = threadIdx.x;
  if (DECIDES) for (float i = 0; i < shown[threadIdx.x / 32][0]; i += 1) x0 = x0 * 1.5f + 0.5f;
  out[256 + blockIdx.x * blockDim.x + threadIdx.x] = x0;
}
"""


@pytest.mark.parametrize("decides", ["false", "true"])
def test_products_that_decide_something_are_computed(decides: str) -> None:
    """Of a launch that leaves no values, others are not."""
    ctas, found = 24 * WAVE, []
    for controller in (None, "scale-model"):
        gpu = gpu_with(controller)
        kernel = gpu.compile(PRODUCTS.replace("DECIDES", decides)).multiply
        ones = gpu.array(np.ones(256, np.float16))
        out = gpu.empty(256 + ctas * 256, np.float32, unbacked=True)
        found.append(kernel[ctas, 256](ones, out, 20))
    assert found[1].sampled is not None and found[1].sampled.decision == "predict"
    assert found[1].cycles == pytest.approx(found[0].cycles, rel=0.03)


def test_equal_launches_are_simulated_once() -> None:
    gpu = gpu_with()
    ctas = 8 * WAVE
    kernel = gpu.compile(SOURCE).copy
    found = [kernel[ctas, BLOCK](unbacked(gpu, ctas), unbacked(gpu, ctas)) for _ in range(4)]
    assert found[2].cycles == found[3].cycles
    known = gpu._session.controller.simulated_  # type: ignore[union-attr]
    assert 0 < len(known) < len(found)
    before = len(known)
    kernel[ctas - 1, BLOCK](unbacked(gpu, ctas), unbacked(gpu, ctas))
    assert len(known) == before + 1


def test_launches_of_modules_that_are_gone_are_no_others() -> None:
    """A module may lie where one that is gone has been."""
    gpu = gpu_with()
    out = unbacked(gpu, 5 * WAVE)
    body = "float x = threadIdx.x; for (int i = 0; i < %d; i++) x = x * 1.5f + 0.5f; out[threadIdx.x] = x;"
    found = []
    for steps in (10, 40, 20, 50, 30, 60):
        module = gpu.compile(f'extern "C" __global__ void k(float *out) {{ {body % steps} }}')
        found.append((steps, module.k[5 * WAVE, BLOCK](out).cycles))
        del module
        gc.collect()
    assert [cycles for _, cycles in sorted(found)] == sorted({cycles for _, cycles in found})


def test_traces(tmp_path: Path) -> None:
    ctas = 8 * WAVE
    gpu = gpu_with(None)
    with gpu.trace(tmp_path / "compute.simt"):
        gpu.compile(SOURCE).compute[ctas, BLOCK](unbacked(gpu, ctas), 50)
    whole, found = (
        simt.simulate(tmp_path / "compute.simt", "qv100", set={"sm.count": SMS}, controller=controller)
        for controller in (None, "scale-model")
    )
    assert found.launches[0].sampled.decision == "predict"
    assert found.launches[0].cycles == pytest.approx(whole.launches[0].cycles, rel=0.02)


def test_results_do_not_depend_on_host_threads() -> None:
    assert compute("scale-model", 8 * WAVE).cycles == compute("scale-model", 8 * WAVE, threads=2).cycles


@pytest.mark.parametrize("name", ["h100", "a100", "qv100", "rtx3060", "r9nano", "b200"])
def test_a_part_has_the_same_of_everything_for_each_sm(name: str) -> None:
    whole = load_spec(name)
    part = scale_model(whole)
    share = part.sm.count / whole.sm.count
    assert share <= 1 / 4
    assert part.dram_bytes_per_cycle / whole.dram_bytes_per_cycle == pytest.approx(share, rel=1e-3)
    assert part.l2_lines / whole.l2_lines == pytest.approx(share, rel=0.02)
    assert part.launch.dispatch_rate == pytest.approx(whole.launch.dispatch_rate * share, abs=0.5)


def test_what_others_bring_has_room() -> None:
    whole = load_spec("qv100")
    part = scale_model(whole)
    assert with_room(part, whole, 0) == part
    assert with_room(part, whole, 1 << 40).l2_lines == pytest.approx(whole.l2_lines, rel=0.05)
    # Each of two partitions has a copy of what SMs of both read.
    whole = load_spec("h100")
    part = scale_model(whole)
    room = with_room(part, whole, whole.l2_lines // 4).l2_lines
    assert room == pytest.approx(whole.l2_lines / 2 + part.l2_lines, rel=0.02)
