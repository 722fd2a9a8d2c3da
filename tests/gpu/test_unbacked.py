"""Arrays without memory: their times are those of arrays with zeros, and launches whose time depends on what
they hold are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simt
from simt.errors import CheckpointError, LaunchError, ProgramFault

SOURCE = r"""
extern "C" __global__ void axpy(float a, const float* x, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = a * x[i] + y[i];
}
extern "C" __global__ void gather(const int* index, const float* x, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[index[i]];  // address
}
extern "C" __global__ void branch(const float* x, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (x[i] > 0) y[i] = y[i + 1] * 3;
}
extern "C" __global__ void loop(const int* count, float* y) {
    float sum = 0;
    for (int i = 0; i < *count; ++i) sum += y[i];
    y[threadIdx.x] = sum;
}
extern "C" __global__ void reduce(const float* x, float* y) {
    __shared__ float part[128];
    part[threadIdx.x] = x[blockIdx.x * blockDim.x + threadIdx.x];
    for (int n = 64; n; n /= 2) {
        __syncthreads();
        if (threadIdx.x < n) part[threadIdx.x] += part[threadIdx.x + n];
    }
    if (threadIdx.x == 0) atomicAdd(y, part[0]);
}
extern "C" __global__ void shared_index(const int* index, const float* x, float* y) {
    __shared__ int all[128];
    all[threadIdx.x] = index[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = x[all[127 - threadIdx.x]];
}
extern "C" __global__ void shift(const int* x, int* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i] * 2;
}
// The first block reads what the last may write before or afterwards.
extern "C" __global__ void both(const int* x, volatile int* index, const float* z, float* y) {
    int i = threadIdx.x;
    if (blockIdx.x == 0) y[i] = z[index[i]];
    if (blockIdx.x == gridDim.x - 1) index[i] = x[i];
}
extern "C" __global__ void warp(const int* x, int* y) {
    int v = x[threadIdx.x];
    v += __shfl_xor_sync(~0u, v, 1) + __popc(__ballot_sync(~0u, v > 3)) + __reduce_add_sync(~0u, v);
    y[threadIdx.x] = v;
}
extern "C" __global__ void ticket(unsigned* counter, float* y) {
    y[atomicAdd(counter, 1u) & 127] = 1;
}
extern "C" __global__ void carry(const unsigned long long* x, float* y) {
    unsigned low = x[threadIdx.x], high;
    asm("add.cc.u32 %0, %0, 5; addc.u32 %1, 0, 0;" : "+r"(low), "=r"(high));
    y[high] = 1;
}
extern "C" __global__ void local(const int* x, float* y) {
    volatile int own[4];
    own[threadIdx.x & 3] = x[threadIdx.x];
    y[own[threadIdx.x / 2 & 3]] = 1;
}
__device__ __noinline__ int twice(int v) { volatile int own = v; return own * 2; }
extern "C" __global__ void called(const int* x, int* y) { y[threadIdx.x] = twice(x[threadIdx.x]); }
"""


@pytest.fixture(scope="module")
def source() -> str:
    return SOURCE


def _gpu(**options: Any) -> simt.GPU:
    return simt.GPU("rtx3060", **options)


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_seventy_billion_parameters_take_no_memory() -> None:
    gpu = simt.GPU("h100", memory=160 << 30)
    before = _resident()
    layers = [gpu.empty(70_000_000_000 // 80, np.uint16, unbacked=True, name=f"layer {n}") for n in range(80)]
    assert gpu.memory.used >= 140e9
    touch = gpu.compile(
        r"""extern "C" __global__ void touch(const unsigned short* x, unsigned short* y, size_t step) {
                size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
                for (int k = 0; k < 64; ++k) y[i * step] = x[(i + k) * step] + 1;
            }"""
    )["touch"]
    step = layers[0].size // 2048
    assert touch[16, 64](layers[0], layers[79], step).counters["dram__bytes_read.sum"] > 1024 * 32
    assert _resident() - before < 1 << 30


@pytest.mark.parametrize("threads", [1, 2])
def test_data_flow_takes_the_time_of_zeros(source: str, threads: int) -> None:
    cycles = []
    for unbacked in (False, True):
        gpu = _gpu(threads=threads)
        x, y = gpu.empty(4096, unbacked=unbacked, name="x"), gpu.zeros(4096)
        total = gpu.zeros(1)
        kernels = gpu.compile(source)
        cycles.append(
            [kernels["axpy"][32, 128](2.0, x, y).cycles, kernels["reduce"][32, 128](x, total).cycles]
        )
        for array in (y, total):
            if unbacked:
                with pytest.raises(LaunchError, match=r"come from `x`, which is unbacked"):
                    array.numpy()
            else:
                assert not array.numpy().any()
    assert cycles[0] == cycles[1]


def _refused(name: str, arrays: Callable[[simt.GPU], tuple[Any, ...]], **options: Any) -> str:
    gpu = _gpu(**options)
    with pytest.raises(ProgramFault) as fault:
        gpu.compile(SOURCE)[name][4, 128](*arrays(gpu))
    assert fault.value.kind == "unbacked"
    assert fault.value.kernel == name
    return str(fault.value)


@pytest.mark.parametrize("functional", [False, True])
@pytest.mark.parametrize(
    ("name", "decides"),
    [
        ("gather", "an address"),
        ("loop", "where threads go on|which threads execute"),
        ("shared_index", "an address"),
        ("ticket", "an address"),
        ("carry", "an address"),
        ("local", "an address"),
        ("called", "a function"),
    ],
)
def test_what_decides_is_refused(name: str, decides: str, functional: bool) -> None:
    def arrays(gpu: simt.GPU) -> tuple[Any, ...]:
        others = [gpu.zeros(512)] * (2 if name in ("gather", "shared_index") else 1)
        return (gpu.empty(512, np.uint64, unbacked=True, name="indices"), *others)

    text = _refused(name, arrays, functional=functional)
    assert "`indices`, which is unbacked" in text
    assert any(f"decides {each}" in text for each in decides.split("|")) or decides in text
    assert "in line" in text


def test_a_branch_is_refused() -> None:
    text = _refused("branch", lambda gpu: (gpu.empty(512, unbacked=True, name="mask"), gpu.zeros(513)))
    assert "reads `mask`" in text
    assert "decides which threads execute" in text


def test_indices_with_values_may_lead_into_unbacked_arrays(source: str) -> None:
    gpu = _gpu()
    x, y = gpu.empty(512, unbacked=True), gpu.empty(512, unbacked=True)
    index = gpu.array(np.arange(512, dtype=np.int32)[::-1])
    assert gpu.compile(source)["gather"][4, 128](index, x, y).cycles > 0


def test_lanes_may_exchange_values(source: str) -> None:
    gpu = _gpu()
    y = gpu.zeros(32, np.int32)
    gpu.compile(source)["warp"][1, 32](gpu.empty(32, np.int32, unbacked=True, name="x"), y)
    with pytest.raises(LaunchError, match="come from `x`"):
        y.numpy()


def test_values_are_followed_into_other_launches(source: str) -> None:
    gpu = _gpu()
    kernels = gpu.compile(source)
    x, index = gpu.empty(512, np.int32, unbacked=True, name="x"), gpu.zeros(512, np.int32)
    z, y = gpu.zeros(512), gpu.zeros(512)
    kernels["gather"][4, 128](index, z, y)
    kernels["shift"][4, 128](x, index)
    with pytest.raises(ProgramFault, match="whose values come from `x`, which is unbacked"):
        kernels["gather"][4, 128](index, z, y)
    index.fill(1)  # all of it is known again
    assert kernels["gather"][4, 128](index, z, y).cycles > 0
    assert not y.numpy().any()


@pytest.mark.parametrize("blocks", [2, 400])
def test_the_order_of_blocks_does_not_matter(blocks: int) -> None:
    """Whether the index is read before it is written, or the other way round."""
    gpu = _gpu()
    x, index = gpu.empty(128, np.int32, unbacked=True, name="x"), gpu.zeros(128, np.int32)
    with pytest.raises(ProgramFault, match="unbacked"):
        gpu.compile(SOURCE)["both"][blocks, 128](x, index, gpu.zeros(128), gpu.zeros(128))


def test_unbacked_arrays_hold_no_values() -> None:
    gpu = _gpu()
    x = gpu.empty(1000, unbacked=True, name="x")
    for use in (x.numpy, lambda: x.set(np.ones(1000)), lambda: x.fill(1), lambda: x[3], lambda: x.copy()):
        with pytest.raises(LaunchError, match="`x` is unbacked: it holds no values"):
            use()
    with pytest.raises(CheckpointError, match="unbacked"):
        gpu.checkpoint("never")
    with pytest.raises(LaunchError, match="`check` follows values"):
        _gpu(check=True).empty(1, unbacked=True)


def test_freed_memory_is_backed_again(source: str) -> None:
    gpu = _gpu()
    x, y = gpu.empty(1 << 20, unbacked=True), gpu.empty(1 << 20, unbacked=True)
    gpu.compile(source)["axpy"][8192, 128](1.0, x, y)
    x.free()
    y.free()
    again = gpu.zeros(1 << 21)
    assert not again.numpy().any()
    again.fill(7)
    assert (again.numpy() == 7).all()
    assert not gpu.memory.native.has_unknown


def test_machine_code_is_not_followed() -> None:
    gpu = _gpu(code="sass")
    kernels = gpu.compile(SOURCE)
    y = gpu.zeros(512)
    with pytest.raises(ProgramFault, match="not followed in machine code"):
        kernels["axpy"][4, 128](1.0, gpu.empty(512, unbacked=True, name="x"), y)


def test_launches_left_out_by_a_plan_are_executed_for_values_only() -> None:
    ctas = 64
    gpu = simt.GPU("a100", set={"sm.count": 4}, plan={2, 5})
    axpy = gpu.compile(SOURCE).axpy
    x, y = (gpu.empty(ctas * 128, unbacked=True) for _ in range(2))
    axpy[ctas, 128](2.0, x, y)
    assert gpu.instructions == 0
    assert axpy[ctas, 128](2.0, x, y).engine["dram_reads"] == 0  # both are in the L2

    values = gpu.zeros(ctas * 128, np.float32)
    ones = gpu.array(np.ones(ctas * 128, np.float32))
    axpy[ctas, 128](2.0, ones, values)
    assert gpu.instructions > 0 and (values.get() == 2).all()
    axpy[ctas, 128](2.0, x, values)  # whose values are then unknown
    with pytest.raises(LaunchError, match="unbacked"):
        values.get()
    assert axpy[ctas, 128](1.0, x, y) is not None

    gpu = simt.GPU("a100", set={"sm.count": 4}, plan={2})
    x, y = (gpu.empty(ctas * 128 + 1, unbacked=True) for _ in range(2))
    with pytest.raises(ProgramFault, match="which is unbacked, and it decides"):
        gpu.compile(SOURCE).branch[ctas, 128](x, y)
