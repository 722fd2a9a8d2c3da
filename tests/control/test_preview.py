"""Counting basic blocks without timing: previews without effects, and CTAs executed but not timed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import simt
from simt import _engine
from simt.control.code import Preview
from simt.gpu.arguments import Arguments
from simt.isa import table_for
from simt.trace import open_trace
from support.signals import view

LOOPS = r"""
// Warp w of block b goes round b + w times; odd lanes take a branch of their own; then all meet at a barrier.
extern "C" __global__ void loops(int* out) {
    __shared__ int sums[4];
    int warp = threadIdx.x / 32, value = 0;
    #pragma unroll 1
    for (int i = 0; i < blockIdx.x + warp; ++i) value += out[i] * 3 + i;
    if (threadIdx.x & 1) value = __popc(value) + value / 7; else value ^= 0x55;
    if (threadIdx.x % 32 == 0) sums[warp] = value;
    __syncthreads();
    if (threadIdx.x == 0) value += sums[3];
    out[blockIdx.x * blockDim.x + threadIdx.x] = value;
}
"""

EFFECTS = r"""
#include <cstdio>
__device__ int total;
__device__ void* kept[64];
extern "C" __global__ void effects(int* data, unsigned* counter, int* scratch) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    data[i] = data[i] * 2 + 1;
    atomicAdd(counter, 3u);
    atomicExch(&total, i);
    __shared__ int staging[32];
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::
        "r"((unsigned)__cvta_generic_to_shared(staging + threadIdx.x)), "l"(scratch + i));
    asm volatile("cp.async.commit_group; cp.async.wait_group 0;");
    scratch[i] = staging[threadIdx.x] + 1;
    if (threadIdx.x == 0) {
        int* own = (int*)malloc(100);
        own[0] = i;
        kept[blockIdx.x] = own;
        printf("block %d\n", blockIdx.x);
    }
}
"""

QUEUE = r"""
// Each block waits until the one before it has passed.
extern "C" __global__ void in_order(volatile int* passed) {
    if (threadIdx.x == 0) {
        while (passed[0] != blockIdx.x) {}
        __threadfence();
        passed[0] = blockIdx.x + 1;
    }
}
"""


def source_of(kernel: Any, grid: Any, block: Any, *values: Any) -> Any:
    """The native instruction source of a launch that is never made."""
    gpu = kernel.module.gpu
    packed = Arguments(gpu, kernel.name, kernel.parameters, values)
    table, _ = table_for(gpu.spec.sm_version)
    source = kernel[grid, block].native.source
    return source(packed.block, 1, table.native, gpu.spec.sm_version, kernel.facts.registers, 0)


def snapshot(gpu: simt.GPU, arrays: list[Any], module: Any = None) -> list[bytes]:
    variables = [module.variable(name) for name in ("total", "kept")] if module else []
    return [gpu.memory.read(a.address, a.nbytes) for a in [*arrays, *variables]]


def loops_source(blocks: int) -> tuple[simt.GPU, Any, Any]:
    gpu = simt.GPU("a100")
    out = gpu.array(np.arange(blocks * 128, dtype=np.int32))
    kernel = gpu.compile(LOOPS)["loops"]
    return gpu, out, source_of(kernel, blocks, 128, out)


def replayed(trace: Path, cta: int, first: npt.NDArray[np.uint32]) -> list[list[int]]:
    """Executions of the first instructions of blocks, by warp, from the records of a trace."""
    source = open_trace(trace).kernels[0].source()
    counts = []
    for warp in source.read_cta(cta):
        executed = Counter(index for index, _, _ in warp)
        counts.append([executed[int(index)] for index in first])
    return counts


def test_counts_of_a_preview_are_those_of_the_recorded_trace(tmp_path: Path) -> None:
    gpu, out, source = loops_source(12)
    blocks = source.basic_blocks()
    ctas = [0, 5, 11]
    counts, complete = source.preview(ctas, blocks)
    assert complete
    assert counts.shape == (3 * 4, len(blocks))
    with gpu.trace(tmp_path / "loops.simt"):
        gpu.compile(LOOPS)["loops"][12, 128](out)
    expected = [row for cta in ctas for row in replayed(tmp_path / "loops.simt", cta, blocks.first)]
    assert counts.tolist() == expected
    # The number of executions of the loop body depends on the warp.
    assert all(b + w in counts[4 * i + w] for i, b in enumerate(ctas) for w in range(4))
    instructions = (counts * blocks.length).sum(axis=1)
    replay = open_trace(tmp_path / "loops.simt").kernels[0].source()
    assert instructions.tolist() == [len(warp) for cta in ctas for warp in replay.read_cta(cta)]


def test_a_trace_is_previewed_by_its_own_records(tmp_path: Path) -> None:
    gpu, out, _ = loops_source(12)
    with gpu.trace(tmp_path / "loops.simt"):
        gpu.compile(LOOPS)["loops"][12, 128](out)
    replay = open_trace(tmp_path / "loops.simt").kernels[0].source()
    blocks = replay.basic_blocks()
    counts, complete = replay.preview([3, 7], blocks)
    assert complete
    lengths = [len(w) for cta in (3, 7) for w in replay.read_cta(cta)]
    assert (counts * blocks.length).sum(axis=1).tolist() == lengths
    assert (replay.execute(3, 4, blocks) == counts[:4]).all()
    assert int(blocks.length.sum()) == len(replay.instructions())


@pytest.mark.parametrize("threads", [1, 3])
def test_threads_do_not_matter(threads: int) -> None:
    _gpu, out, source = loops_source(40)
    blocks = source.basic_blocks()
    expected, _ = source.preview(list(range(40)), blocks)
    found, complete = source.preview(list(range(40)), blocks, threads)
    assert complete and (found == expected).all()
    assert out.numpy()[1] == 1


def test_a_preview_leaves_memory_as_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    gpu = simt.GPU("a100")
    module = gpu.compile(EFFECTS)
    arrays = [gpu.array(np.arange(n, dtype=np.int32)) for n in (512, 1, 512)]
    source = source_of(module["effects"], 16, 32, *arrays)
    before, used = snapshot(gpu, arrays, module), gpu.memory.used
    counts, complete = source.preview(list(range(16)), source.basic_blocks())
    assert complete and counts.any()
    assert snapshot(gpu, arrays, module) == before
    assert gpu.memory.used == used
    assert source.printed == b""
    # It can be previewed again, and then executed.
    again, _ = source.preview(list(range(16)), source.basic_blocks())
    assert (again == counts).all()
    executed = source.execute(0, 16, source.basic_blocks())
    assert (executed == counts).all()
    assert source.printed.decode() == "".join(f"block {i}\n" for i in range(16))
    after = snapshot(gpu, arrays, module)
    reference = simt.GPU("a100", functional=True)
    module2 = reference.compile(EFFECTS)
    arrays2 = [reference.array(np.arange(n, dtype=np.int32)) for n in (512, 1, 512)]
    module2["effects"][16, 32](*arrays2)
    assert after[:4] == snapshot(reference, arrays2, module2)[:4]


@pytest.mark.slow
def test_blocks_that_wait_for_others_are_followed_as_far_as_they_come() -> None:
    gpu = simt.GPU("a100")
    passed = gpu.array(np.zeros(1, np.int32))
    kernel = gpu.compile(QUEUE)["in_order"]
    source = source_of(kernel, 100, 32, passed)
    blocks = source.basic_blocks()
    _, complete = source.preview([50], blocks)
    assert not complete
    assert source.preview([0, 1], blocks)[1]
    assert passed.numpy()[0] == 0
    source.execute(0, 2, blocks)
    assert passed.numpy()[0] == 2
    with pytest.raises(_engine.functional.ProgramFault, match="wait for others"):
        source.execute(50, 51, blocks)


def test_a_fault_ends_a_preview_quietly() -> None:
    gpu = simt.GPU("a100")
    kernel = gpu.compile('extern "C" __global__ void wild(int** p) { *p[blockIdx.x] = 1; }')["wild"]
    source = source_of(kernel, 4, 32, gpu.array(np.zeros(4, np.int64)))
    _, complete = source.preview([2], source.basic_blocks())
    assert not complete


def test_where_the_ctas_of_a_sample_differ_more_are_followed() -> None:
    """The one large CTA of 1,000 is in no sample of sixteen."""

    class Code:
        blocks = SimpleNamespace(length=np.array([10], np.uint32))

        def __init__(self, sampled: list[int]) -> None:
            self.sampled, self.asked = sampled, [0]

        def preview(self, fraction: float, at_least_ctas: int, at_least_warps: int) -> Preview:
            self.asked.append(at_least_ctas)
            ctas = min(1000, at_least_ctas)
            each = [*self.sampled, *[1] * (ctas - len(self.sampled) - 1), 50 if ctas == 1000 else 1]
            return Preview(tuple(range(ctas)), np.array(each, np.uint32)[:, None], True)

    even, uneven = Code([1, 1]), Code([1, 2])
    one, other = (view(ctas=1000, code=code).previewed for code in (even, uneven))
    assert one is not None and (one.largest, one.ctas, even.asked) == (10, 16, [0, 16])
    assert other is not None and (other.largest, other.ctas, uneven.asked) == (500, 1000, [0, 16, 4096])
    assert one.unequal(1000) == 0
    assert other.unequal(1000) == pytest.approx(500 / (10 * 1050 / 1000) - 1)
