"""Explanations: what is removed is what was put in, and nothing else changes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import simt
from simt.cli import app
from simt.errors import ResultError
from simt.explain import bounds, chains, explain
from simt.spec import load_spec

SOURCE = """
extern "C" __global__ void conflicts(float* out, int stride) {
  __shared__ float s[33 * 32];
  for (int i = threadIdx.x; i < 1056; i += blockDim.x) s[i] = i;
  __syncthreads();
  float sum = 0;
#pragma unroll 1
  for (int k = 0; k < 64; ++k) sum += s[threadIdx.x % 32 * stride + k % 32];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
extern "C" __global__ void apart(float* out, const float* in) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[i * 16] + 1;
}
"""
GPU = "gtx1650"


def conflicts(gpu: simt.GPU, stride: int = 32) -> None:
    gpu.compile(SOURCE).conflicts[14, 256](np.zeros(14 * 256, np.float32), stride)


def apart(gpu: simt.GPU) -> None:
    n = 14 * 1024
    gpu.compile(SOURCE).apart[n // 256, 256](np.zeros(n, np.float32), np.ones(16 * n, np.float32))


DIVIDES = """
extern "C" __global__ void divides(unsigned* x, unsigned d, int rounds) {
  unsigned v = x[threadIdx.x];
#pragma unroll 1
  for (int k = 0; k < rounds; ++k) v += (v + k) / d;
  x[threadIdx.x] = v;
}
extern "C" __global__ void shifts(unsigned* x, unsigned d, int rounds) {
  unsigned v = x[threadIdx.x];
#pragma unroll 1
  for (int k = 0; k < rounds; ++k) v += (v + k) * d;
  x[threadIdx.x] = v;
}
extern "C" __global__ void count(unsigned* sum) { atomicAdd(sum + threadIdx.x / 16, 1u); }
"""


def divides(gpu: simt.GPU, kernel: str = "divides") -> None:
    gpu.compile(DIVIDES)[kernel][14, 256](np.ones(256, np.uint32), 3, 64)


def test_without_divisions_a_launch_takes_as_long_as_with_products() -> None:
    name = "divisions and special functions"
    (gain,) = explain(divides, GPU, causes=[name]).gains
    products = simt.GPU(GPU)
    divides(products, "shifts")
    assert gain.cycles == pytest.approx(products.launches[0].cycles, rel=0.05) and gain.speedup > 2
    assert explain(divides, GPU, causes=[name], code="sass").gains == ()
    assert explain(apart, GPU, causes=[name]).gains == ()


def test_atomics_of_a_warp_to_one_word_are_those_of_one_lane(tmp_path: Path) -> None:
    lanes = []
    for combined in (False, True):
        gpu, sums = simt.GPU(GPU, functional=True), np.zeros(4, np.uint32)
        with gpu.trace(tmp_path / f"{combined}.simt", combined=combined):
            gpu.compile(DIVIDES).count[1, 64](sums)
        assert sums.tolist() == [16] * 4
        launch = simt.simulate(tmp_path / f"{combined}.simt", gpu=GPU).launches[0]
        at = next(i for i, opcode in enumerate(launch.pc["opcode"]) if opcode.startswith(("RED", "ATOM")))
        lanes.append(launch.pc["threads"][at])
    assert lanes == [64, 4]


BUSY = """
extern "C" __global__ void busy(float* out) {
  __shared__ volatile float s[512];
  s[threadIdx.x % 512] = threadIdx.x;
  __syncthreads();
  volatile float* p = s + threadIdx.x % 32;
  float a = 0, b = 0, c = 0, d = 0;
#pragma unroll 1
  for (int k = 0; k < 64; ++k) {
    a += p[0] + p[32], b += p[64] + p[96];
    c += p[128] + p[160], d += p[192] + p[224];
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = a + b + c + d;
}
extern "C" __global__ void chase(volatile int* next, int* out) {
  int at = threadIdx.x;
#pragma unroll 1
  for (int k = 0; k < 16; ++k) at = next[at];
  out[blockIdx.x * blockDim.x + threadIdx.x] = at;
}
"""


def test_shared_memory_that_is_always_busy_costs_time() -> None:
    """Also where a warp's access takes one pass, so that no latency and no conflict can be removed."""

    def busy(gpu: simt.GPU) -> None:
        gpu.compile(BUSY).busy[14, 1024](np.zeros(14 * 1024, np.float32))

    found = explain(busy, "a100", set={"sm.count": 7}, causes=["shared memory"])
    bound = {bound.resource: bound.share for bound in found.bounds}
    assert bound["shared memory"] > 0.6 and found.gains[0].speedup > 1.3


def test_more_warps_than_an_sm_holds() -> None:
    def chase(gpu: simt.GPU, ctas: int = 14 * 8) -> None:
        gpu.compile(BUSY).chase[ctas, 256](
            np.roll(np.arange(256), 1).astype("i4"), np.zeros(ctas * 256, "i4")
        )

    (gain,) = explain(chase, GPU, causes=["few warps"]).gains
    assert 1.2 < gain.speedup < 2
    assert explain(lambda gpu: chase(gpu, 14), GPU, causes=["few warps"]).gains == ()  # all fit at once
    assert explain(chase, "a100", set={"sm.count": 4}, causes=["few warps"]).gains == ()  # holds the most


@pytest.mark.slow
def test_the_page_of_a_result_has_the_gains(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        f"import numpy as np\nSOURCE = {SOURCE!r}\ndef main(gpu):\n"
        "    gpu.compile(SOURCE).conflicts[14, 256](np.zeros(14 * 256, np.float32), 32)\n"
    )
    run = CliRunner().invoke
    done = run(app, ["run", str(tmp_path / "program.py"), "--gpu", GPU, "--output", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    told = run(app, ["report", str(tmp_path / "out"), "--explain", "-o", str(tmp_path / "page.html")])
    assert told.exit_code == 0, told.output
    page = (tmp_path / "page.html").read_text()
    data = json.loads(page.split("const D = ")[1].split(";\n")[0])["explanation"]
    assert data["gains"][0][0] == "bank conflicts" and data["gains"][0][2] > 2
    assert (
        data["sentences"][0].startswith("Bank conflicts at kernel.cu:8") and data["chains"] and data["bounds"]
    )
    assert "--explain takes one Result, not 2" in str(run(app, ["report", "a", "b", "--explain"]).exception)


@pytest.mark.slow
def test_bank_conflicts_are_named_first_and_their_gain_is_that_of_padding() -> None:
    found = explain(conflicts, GPU, causes=["bank conflicts", "shared memory", "barriers"])
    assert found.gains[0].cause.name == "bank conflicts"
    assert found.gains[0].lines == ("kernel.cu:8",)
    padded = simt.GPU(GPU)
    conflicts(padded, 33)
    assert found.gains[0].speedup == pytest.approx(found.launch.cycles / padded.launches[0].cycles, rel=0.05)
    assert found.sentences[0].startswith("Bank conflicts at kernel.cu:8: without, the launch takes")
    assert found.sentences[0] in str(found) and found.sentences[0] in found.page()
    assert sum(part.share for part in found.parts) == pytest.approx(1)
    assert json.loads(json.dumps(found.to_json()))["gains"][0]["cause"] == "bank conflicts"


def test_sectors_that_are_not_filled_are_removed() -> None:
    gpu, ideal = simt.GPU(GPU), simt.GPU(GPU, set={"load_store.perfect_coalescing": True})
    for each in (gpu, ideal):
        apart(each)
    loaded = [each.launches[0].engine["global_load_sectors"] for each in (gpu, ideal)]
    assert loaded == [14 * 1024 * 4 * 16 // 32 // 4 * 2, 14 * 1024 * 4 // 32]  # a sector a lane; four a warp
    stored = [each.launches[0].engine["global_store_sectors"] for each in (gpu, ideal)]
    assert stored[0] == stored[1] == 14 * 1024 * 4 // 32
    assert ideal.launches[0].cycles < gpu.launches[0].cycles


def test_a_cause_that_the_launch_does_not_have_is_not_simulated() -> None:
    said: list[str] = []
    found = explain(apart, GPU, causes=["bank conflicts", "barriers", "atomics"], report=said.append)
    assert found.gains == () and not any("without" in text for text in said)


def test_bounds_are_work_by_rate() -> None:
    gpu = simt.GPU(GPU)
    conflicts(gpu)
    launch, spec = gpu.launches[0], load_spec(GPU)
    found = {bound.resource: bound.cycles for bound in bounds(launch, spec)}
    passes = launch.engine["shared_wavefronts"] * spec.shared_memory.pass_interval
    assert found["shared memory"] == passes / 14
    assert found["issue"] == launch.warp_instructions / (14 * 4)
    assert all(cycles <= launch.cycles for cycles in found.values())


@pytest.mark.parametrize(("gpu", "share"), [("a100", 1.0), ("rtx3090", 0.5)])
def test_tensor_bound_is_by_type_of_product(gpu: str, share: float) -> None:
    """INT8 m16n8k32 takes as long as FP16 m16n8k16, on GeForce half as long as with FP32 accumulators."""
    device, spec = simt.GPU(gpu), load_spec(gpu)
    registers = "{%0, %1, %2, %3}"
    mma = f"mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {registers}, {{%4, %4, %4, %4}}, {{%4, %4}}"
    outputs = ", ".join(f'"+r"(d[{i}])' for i in range(4))
    kernel = device.compile(
        'extern "C" __global__ void k(int* out, int a) { int d[4] = {};\n#pragma unroll\n'
        f'for (int i = 0; i < 64; ++i) asm volatile("{mma}, {registers};" : {outputs} : "r"(a));\n'
        "out[threadIdx.x] = d[0] + d[1] + d[2] + d[3]; }"
    ).k
    kernel[spec.sm.count, 128](device.array(np.zeros(128, np.int32)), 1)
    launch = device.launches[0]
    found = {bound.resource: bound.cycles for bound in bounds(launch, spec)}
    assert found["tensor pipe"] == share * 64 * spec.sm.units.tensor.initiation_interval <= launch.cycles


def test_atomics_on_one_word_keep_one_slice_busy() -> None:
    gpu = simt.GPU(GPU)
    kernel = gpu.compile('extern "C" __global__ void k(float* x) { atomicAdd(x, 1); }').k
    kernel[28, 256](gpu.array(np.zeros(1, np.float32)))
    launch, spec = gpu.launches[0], load_spec(GPU)
    requests = 28 * 256 // 32
    cycles = float(spec.clock.core_mhz) / float(spec.clock.l2_mhz) * max(launch.spread["l2_slice"]["lookups"])
    found = {bound.resource: bound.cycles for bound in bounds(launch, spec)}
    assert requests * 0.9 <= found["busiest L2 slice"] == cycles <= launch.cycles
    assert found["busiest L2 slice"] > 10 * found["L2"]


def test_a_chain_leads_from_the_addition_to_the_load() -> None:
    gpu = simt.GPU(GPU)
    apart(gpu)
    first = chains(gpu.launches[0])[0]
    assert first.links[0].state == "long_scoreboard" and first.links[0].opcode.startswith("FADD")
    assert first.links[1].opcode.startswith("LDG") and first.links[1].place == "kernel.cu:13"


def test_a_result_without_its_program_has_no_gains(tmp_path: Path) -> None:
    gpu = simt.GPU(GPU)
    conflicts(gpu)
    result = gpu.result()
    found = result.explain()
    assert found.gains == () and found.bounds and "cannot be run again" in found.notes[0]
    assert result.explain(run=conflicts, causes=["bank conflicts"]).gains
    with pytest.raises(
        ResultError, match="launch 7: no finished launch has this id; there are 1, from 1 to 1"
    ):
        result.explain(launch=7)
    saved = result.save(tmp_path / "result")
    told = CliRunner().invoke(app, ["explain", str(saved), "--json", "-", "--quiet"])
    assert json.loads(told.stdout)["launch"] == 1


def test_removed_causes_do_not_change_values() -> None:
    free = {
        "sm.free_barriers": True,
        "shared_memory.conflict_free": True,
        "l1.perfect": True,
        "l2.perfect": True,
    }
    out = [np.zeros(256, np.float32) for _ in range(2)]
    for array, overrides in zip(out, ({}, free), strict=True):
        simt.GPU(GPU, set=overrides).compile(SOURCE).conflicts[1, 256](array, 32)
    assert out[0].any() and np.array_equal(*out)


def test_a_converged_trace_has_the_lanes_of_full_warps(tmp_path: Path) -> None:
    source = """extern "C" __global__ void half(float* out) {
      float v = threadIdx.x;
      if (threadIdx.x % 2) { for (int k = 0; k < 64; ++k) v = v * v + 1; } else { for (int k = 0; k < 64;
      ++k) v = v * v - 1; } out[threadIdx.x] = v;
    }"""
    counts = []
    for converged in (False, True):
        gpu = simt.GPU(GPU, functional=True)
        with gpu.trace(tmp_path / f"{converged}.simt", converged=converged):
            gpu.compile(source).half[1, 32](np.zeros(32, np.float32))
        counts.append(simt.simulate(tmp_path / f"{converged}.simt", gpu=GPU).launches[0].warp_instructions)
    assert 0.45 * counts[0] < counts[1] < 0.6 * counts[0]
