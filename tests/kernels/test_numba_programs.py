"""Typical Numba programs: device functions, layouts, types, options, cooperative parts."""

from __future__ import annotations

import gc
import importlib.util
import math
from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simt
from simt.errors import CompileError, LaunchError
from support.ptx import CODE

if importlib.util.find_spec("numba_cuda") is None:
    pytest.skip("numba-cuda is not installed", allow_module_level=True)

from numba import cuda, float32, int32


@pytest.fixture(scope="module")
def gpu() -> simt.GPU:
    return simt.GPU("a100", functional=True, code=CODE)


@cuda.jit(device=True)
def square(a: Any) -> Any:
    return a * a


@cuda.jit(device=True)
def distance(ax: Any, ay: Any, bx: Any, by: Any) -> Any:
    return math.sqrt(square(ax - bx) + square(ay - by))


@cuda.jit
def nearest(points: Any, queries: Any, found: Any) -> None:
    i = cuda.grid(1)
    if i >= queries.shape[0]:
        return
    best, where = np.float32(1e30), 0
    for j in range(points.shape[0]):
        d = distance(points[j, 0], points[j, 1], queries[i, 0], queries[i, 1])
        if d < best:
            best, where = d, j
    found[i] = where


@pytest.mark.slow
def test_device_functions(gpu: simt.GPU, rng: np.random.Generator) -> None:
    points, queries = rng.random((50, 2), np.float32), rng.random((70, 2), np.float32)
    found = np.zeros(70, np.int64)
    gpu.numba(nearest)[3, 32](points, queries, found)
    distances = ((points[None] - queries[:, None]) ** 2).sum(-1)
    assert (found == distances.argmin(1)).all()
    # Also for another architecture.
    found[:] = 0
    simt.GPU("h100", functional=True, code=CODE).numba(nearest)[3, 32](points, queries, found)
    assert (found == distances.argmin(1)).all()


def weigh(a: Any, b: Any) -> None:
    i, j = cuda.grid(2)
    if i < a.shape[0] and j < a.shape[1]:
        b[i, j] = 10 * a[i, j] + i - 2 * j


LAYOUTS = {
    "C": lambda a: a,
    "Fortran": np.asfortranarray,
    "transposed": lambda a: np.ascontiguousarray(a.T).T,
    "every second": lambda a: np.repeat(np.repeat(a, 2, 0), 3, 1)[::2, ::3],
    "backwards": lambda a: a[::-1, ::-1].copy()[::-1, ::-1],
    "a column block": lambda a: np.hstack([a, a])[:, 3 : 3 + a.shape[1]],
    "broadcast": lambda a: np.broadcast_to(a[0], a.shape),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("on_device", [False, True])
def test_layouts(gpu: simt.GPU, on_device: bool, layout: str) -> None:
    a = LAYOUTS[layout](np.arange(42, dtype=np.int32).reshape(6, 7))
    b = LAYOUTS[layout if layout != "broadcast" else "C"](np.zeros((6, 7), np.int32))
    i, j = np.indices(a.shape)
    if on_device:
        device = gpu.zeros((7, 12), np.int32)[:, ::2].T  # a view with gaps
        gpu.numba(weigh)[(1, 1), (8, 8)](gpu.array(a), device)
        b = device.get()
    else:
        before = gpu.memory.used
        gc.disable()  # what a kernel holds is freed with it, not when Python collects cycles
        try:
            gpu.numba(weigh)[(1, 1), (8, 8)](a, b)
            assert gpu.memory.used == before
        finally:
            gc.enable()
    assert (b == 10 * a + i - 2 * j).all()


def shift(target: Any, source: Any) -> None:
    for i in range(target.size):  # one thread
        target[i] = source[i] + 100


def test_views_of_one_array_share_memory(gpu: simt.GPU) -> None:
    x = np.arange(20, dtype=np.int64)
    expected = x.copy()
    for i in range(8):
        expected[2::2][i] = expected[::2][i] + 100
    gpu.numba(shift)[1, 1](x[2::2][:8], x[::2][:8])
    assert (x == expected).all()


@cuda.jit
def halves(x: Any, y: Any, z: Any) -> None:
    i = cuda.grid(1)
    if i < x.size:
        z[i] = x[i] * y[i] + x[i] - y[i] / x[i]


def test_half_precision(gpu: simt.GPU, rng: np.random.Generator) -> None:
    x, y = rng.integers(1, 9, (2, 100)).astype(np.float16)
    z = np.zeros(100, np.float16)
    gpu.numba(halves)[1, 128](x, y, z)
    np.testing.assert_allclose(z, x * y + x - y / x, rtol=2e-3)


TABLE = np.array([3, 1, 4, 1, 5, 9, 2, 6], np.float32)


def spaces(x: Any, out: Any) -> None:
    tile = cuda.shared.array((8, 8), float32)
    extra = cuda.shared.array(0, int32)
    mine = cuda.local.array(4, float32)
    table = cuda.const.array_like(TABLE)
    i, j = cuda.threadIdx.x, cuda.threadIdx.y
    tile[i, j] = x[i, j]
    if j == 0:
        extra[i] = i
    cuda.syncthreads()
    for k in range(4):
        mine[k] = tile[j, i] * table[k]
    total = float32(0)
    for k in range(4):
        total += mine[k]
    out[i, j] = total + extra[7 - i]


def test_shared_local_and_constant_arrays(gpu: simt.GPU, rng: np.random.Generator) -> None:
    x = rng.integers(0, 9, (8, 8)).astype(np.float32)
    out = np.zeros((8, 8), np.float32)
    gpu.numba(spaces)[1, (8, 8), 0, 32](x, out)  # Numba's order: stream, shared memory
    expected = x.T * TABLE[:4].sum() + 7 - np.arange(8)[:, None]
    assert (out == expected).all()
    out[:] = 0
    gpu.numba(spaces)[1, (8, 8), 32](x, out)
    assert (out == expected).all()


def counts(values: Any, bins: Any, most: Any, changed: Any) -> None:
    i = cuda.grid(1)
    if i < values.size:
        cuda.atomic.add(bins, values[i] % bins.size, 1)
        cuda.atomic.max(most, 0, values[i])
        cuda.atomic.cas(changed, values[i] % 4, 0, 7)
        if cuda.ballot_sync(cuda.activemask(), values[i] & 1) & (1 << cuda.laneid):
            cuda.atomic.add(most, 1, 1)


def test_atomics_and_votes(gpu: simt.GPU, rng: np.random.Generator) -> None:
    values = rng.integers(0, 1000, 500).astype(np.int32)
    bins, most, changed = np.zeros(16, np.int32), np.zeros(2, np.int32), np.zeros(4, np.int32)
    gpu.numba(counts)[4, 128](values, bins, most, changed)
    assert (bins == np.bincount(values % 16, minlength=16)).all()
    assert most.tolist() == [values.max(), (values & 1).sum()]
    assert (changed == 7).all()


def warp_sum(x: Any, sums: Any) -> None:
    value = x[cuda.grid(1)]
    for step in (16, 8, 4, 2, 1):
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, step)
    if cuda.laneid == 0:
        sums[cuda.grid(1) // 32] = value


def test_shuffles(gpu: simt.GPU) -> None:
    x, sums = np.arange(128, dtype=np.float64), np.zeros(4)
    gpu.numba(warp_sum)[2, 64](x, sums)
    assert (sums == x.reshape(4, 32).sum(1)).all()


PARTICLE = np.dtype([("mass", np.float32), ("at", np.float64, (3,)), ("id", np.int16)], align=True)
Scale = namedtuple("Scale", "factor offset")


def move(particles: Any, scale: Any, step: Any, flag: Any, one: Any) -> None:
    i = cuda.grid(1)
    if i < particles.size:
        for k in range(3):
            particles[i].at[k] = particles[i].at[k] * scale.factor + step[k] + scale.offset
        if flag:
            particles[i]["id"] += one["id"]
            one["mass"] = 5.0


def test_structures_and_tuples(gpu: simt.GPU, rng: np.random.Generator) -> None:
    particles = np.zeros(10, PARTICLE)
    particles["at"] = rng.random((10, 3))
    particles["id"] = np.arange(10)
    expected = particles["at"] * 2.0 + np.array([1, 2, 3]) + 0.5
    ones = np.zeros(1, PARTICLE)
    ones["id"] = 4
    gpu.numba(move)[1, 32](particles, Scale(2.0, 0.5), (1.0, 2.0, 3.0), True, ones[0])
    np.testing.assert_allclose(particles["at"], expected)
    assert (particles["id"] == np.arange(10) + 4).all()
    assert ones[0]["mass"] == 5, "records are passed by reference"


def mixed(c: Any, b: Any, days: Any, out: Any, z: complex, flag: bool, day: Any) -> None:
    i = cuda.grid(1)
    if i < out.size:
        w = c[i] * z
        out[i] = w.real + w.imag if b[i] == flag else 0
        days[i] = days[i] + day


def test_complex_boolean_and_dates(gpu: simt.GPU, rng: np.random.Generator) -> None:
    c = (rng.integers(0, 9, 20) + 1j * rng.integers(0, 9, 20)).astype(np.complex64)
    b, out = rng.random(20) < 0.5, np.zeros(20, np.float64)
    days = np.arange("2024-02-20", "2024-03-11", dtype="datetime64[D]")
    later = days + 1
    gpu.numba(mixed)[1, 32](c, b, days, out, 2 + 1j, True, np.timedelta64(1, "D"))
    w = c * (2 + 1j)
    assert (out == np.where(b, w.real + w.imag, 0)).all()
    assert (days == later).all()


def special(x: Any, out: Any) -> None:
    i = cuda.grid(1)
    if i < x.size:
        out[i] = math.erf(x[i]) + math.exp(-x[i]) + cuda.libdevice.rsqrt(x[i] + 1) + math.lgamma(x[i] + 2)


def test_mathematics(gpu: simt.GPU, rng: np.random.Generator) -> None:
    x, out = rng.random(64) * 3, np.zeros(64)
    gpu.numba(special)[1, 64](x, out)
    expected = [math.erf(v) + math.exp(-v) + 1 / math.sqrt(v + 1) + math.lgamma(v + 2) for v in x]
    np.testing.assert_allclose(out, expected, rtol=1e-12)


def divide(x: Any, y: Any) -> None:
    i = cuda.grid(1)
    if i < x.size:
        y[i] = x[i] / float32(3)


@pytest.mark.slow
def test_options(gpu: simt.GPU, tmp_path: Path) -> None:
    x, y = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)

    def text(fn: Any, *rest: Any, **options: Any) -> str:
        compiled = gpu.numba(fn, *rest, **options)
        compiled[1, 32](x, y)
        np.testing.assert_allclose(y, x / 3, rtol=1e-6)
        ((_, module),) = compiled._compiled.values()
        return str(module.ptx.text)

    plain = text(divide)
    assert ".loc" in plain and "div.rn.f32" in plain and ".maxnreg" not in plain
    assert "div.approx.ftz.f32" in text(divide, fastmath=True)
    assert "div.approx.ftz.f32" in text(cuda.jit(fastmath=True)(divide))
    assert ".loc" not in text(divide, lineinfo=False)
    assert ".maxnreg 24" in text(divide, max_registers=24)
    assert ".maxntid 64" in text(divide, launch_bounds=64)
    text(divide, "void(float32[:], float32[:])")
    text(divide, debug=True)
    with pytest.raises(CompileError, match="argument 0"):
        gpu.numba(divide, "void(float32[:], float32[:])")[1, 32](np.arange(3), y)
    with pytest.raises(CompileError, match="no option fast_math of Numba kernels; there are fastmath, debug"):
        gpu.numba(divide, fast_math=True)

    (tmp_path / "third.cu").write_text(
        'extern "C" __device__ int third(float* result, float x) { *result = x / 3.0f; return 0; }'
    )
    third = cuda.declare_device("third", "float32(float32)")

    def calls(x: Any, y: Any) -> None:
        i = cuda.grid(1)
        if i < x.size:
            y[i] = third(x[i])

    assert "third" in text(calls, link=[tmp_path / "third.cu"])


def test_streams_and_arrays_of_the_gpu() -> None:
    gpu = simt.GPU("a100", set={"sm.count": 4}, code=CODE)
    kernel = gpu.numba(divide)
    x, y = gpu.array(np.arange(64, dtype=np.float32)), gpu.zeros(64)
    stream = gpu.stream()
    assert kernel[2, 32, stream](x, y) is None
    kernel[1, 32, stream, 0](x[32:], y[:32])
    np.testing.assert_allclose(y.copy_to_host()[:32], np.arange(32, 64, dtype=np.float32) / 3, rtol=1e-6)
    assert [launch.stream for launch in gpu.launches] == [stream.number] * 2
    with pytest.raises(LaunchError, match="memory of another GPU"):
        simt.GPU("a100", functional=True).numba(divide)[1, 32](x, y)
