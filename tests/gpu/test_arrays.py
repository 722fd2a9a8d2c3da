"""Device arrays, as used by users of CuPy, Numba and PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as numpy_strategies

import simt
from simt.errors import LaunchError

SOURCE = """
extern "C" __global__ void twice(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= 2;
}
extern "C" __global__ void first(const int* const* p, int* out) { *out = **p; }
"""


@pytest.fixture(scope="module")
def gpu() -> simt.GPU:
    return simt.GPU("qv100", functional=True)


@pytest.fixture(scope="module")
def module(gpu: simt.GPU) -> Any:
    return gpu.compile(SOURCE)


def test_values_in_and_out(gpu: simt.GPU) -> None:
    host = np.arange(12, dtype=np.float32).reshape(3, 4)
    for array in (gpu.array(host), gpu.to_device(host), gpu.asarray(host), gpu.array(gpu.array(host))):
        assert (array.shape, array.ndim, array.size, array.nbytes) == ((3, 4), 2, 12, 48)
        assert (array.strides, array.itemsize, len(array)) == ((16, 4), 4, 3)
        for copy in (array.get(), array.numpy(), array.copy_to_host(), np.asarray(array)):
            assert copy.dtype == np.float32 and (copy == host).all()
    assert gpu.asarray(array) is array
    assert gpu.asarray(array, np.int32).dtype == np.int32
    assert array.tolist() == host.tolist()
    assert array[:1, 2:3].item() == 2.0 and array.item(1, 1) == 5.0 and float(array[0, :1]) == 0.0
    into = np.zeros((3, 4), np.float64)
    assert array.copy_to_host(into) is into and (into == host).all()
    array.copy_to_device(-host)
    assert (array.get() == -host).all()
    with pytest.raises(LaunchError, match="expected a writable one of shape"):
        array.copy_to_host(np.zeros(3))
    with pytest.raises(LaunchError, match="no item"):
        array.item()


def test_how_arrays_are_made(gpu: simt.GPU) -> None:
    assert gpu.empty(np.int64(4)).shape == (4,) and gpu.zeros((2, np.int32(3))).shape == (2, 3)
    assert gpu.ones(3).tolist() == [1, 1, 1] and gpu.full((2,), 7, np.int16).tolist() == [7, 7]
    like = np.zeros((2, 2), np.uint8)
    assert gpu.empty_like(like).dtype == np.uint8 and gpu.ones_like(gpu.array(like)).tolist() == [
        [1, 1],
        [1, 1],
    ]
    assert gpu.zeros_like(like, np.float64).dtype == np.float64
    assert gpu.full_like(like, 3).tolist() == [[3, 3], [3, 3]]
    assert gpu.empty((0, 3)).tolist() == [] and gpu.empty(()).tolist() == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((-5,), "shape is -5, expected numbers of 0 or more"),
        (((-5, -5),), r"shape is \(-5, -5\), expected numbers of 0 or more"),
        ((2.5,), "shape is 2.5, expected whole numbers"),
        (("ab",), "shape is 'ab', expected whole numbers"),
        ((None,), "shape is None, expected whole numbers"),
        (((1 << 40, 1 << 40),), "no room for"),
        ((1 << 70,), "no room for"),
        ((float("inf"),), "shape is inf"),
        ((3, "strange"), "dtype is 'strange', expected a NumPy type"),
    ],
)
def test_arrays_that_cannot_be(gpu: simt.GPU, arguments: tuple[Any, ...], words: str) -> None:
    with pytest.raises(LaunchError, match=words):
        gpu.empty(*arguments)


@pytest.mark.slow
@given(st.data())
def test_views_are_those_of_numpy(gpu: simt.GPU, data: st.DataObject) -> None:
    shape = data.draw(numpy_strategies.array_shapes(max_dims=3, max_side=5))
    host = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    array = gpu.array(host)
    for _ in range(data.draw(st.integers(1, 3))):
        if data.draw(st.booleans()):
            host, array = host.T, array.T
        key = data.draw(numpy_strategies.basic_indices(host.shape, allow_newaxis=True))
        if not isinstance(host[key], np.ndarray):
            assert array[key] == host[key]
            continue
        host, array = host[key], array[key]
        if not isinstance(array, simt.gpu.DeviceArray):  # a number for each dimension, and `...`
            assert array == host
            return
        assert array.shape == host.shape
        assert (array.get() == host).all()
        if host.size:
            assert array.strides == host.strides or array.is_contiguous == host.flags.c_contiguous
    assert (array.reshape(-1).get() == host.reshape(-1)).all()
    assert (array.copy().get() == host).all() and array.copy().is_contiguous
    array[...] = 7
    host[...] = 7
    whole = array if array.base is None else array.base
    assert (whole.get().ravel() == np.asarray(host if host.base is None else host.base).ravel()).all()


def test_views_share_memory(gpu: simt.GPU, module: Any) -> None:
    array = gpu.array(np.arange(12, dtype=np.float32))
    half, square = array[6:], array.reshape(3, -1)
    module.twice[1, 32](half, 6)
    assert array.tolist() == [0, 1, 2, 3, 4, 5, 12, 14, 16, 18, 20, 22]
    square[1] = -1
    square[:, 0] = np.array([10, 20, 30])
    square[2, 3] = 0
    assert array.get().reshape(3, 4).tolist() == [[10, 1, 2, 3], [20, -1, -1, -1], [30, 18, 20, 0]]
    assert array[1] == 1 and isinstance(array[1], np.float32)
    column = square[:, 1]
    assert column.base is array and column.strides == (16,) and not column.is_contiguous
    with pytest.raises(LaunchError, match=r"`twice`, argument 1: DeviceArray.* has gaps"):
        module.twice[1, 32](column, 3)
    module.twice[1, 32](column.copy(), 3)
    assert square.transpose(1, 0).shape == (4, 3) and array.view(np.int32)[:2].dtype == np.int32
    assert array.astype(np.int64).tolist() == array.get().astype(np.int64).tolist()
    assert [float(x) for x in array[:2]] == [10, 1]
    for bad, words in (
        (lambda: square.reshape(5, 5), "cannot have shape"),
        (lambda: array[np.arange(3)], "index a copy, .numpy"),
        (lambda: array[1.5], "expected numbers, slices"),
        (lambda: column.view(np.int8), "needs an array without gaps"),
        (lambda: array.view(np.int64, (100,)), "a view of 800 bytes of an array of 48"),
        (lambda: array.set(np.zeros(5)), "cannot be set"),
        (lambda: array.fill([1, 2]), "fill takes one value"),
        (lambda: half.free(), "a view cannot be freed"),
    ):
        with pytest.raises(LaunchError, match=words):
            bad()
    with pytest.raises(IndexError):
        array[12]


def test_freed_arrays(gpu: simt.GPU) -> None:
    array = gpu.ones(4)
    view = array[1:]
    array.free()
    array.free()
    for use in (
        array.numpy,
        view.get,
        array.copy,
        lambda: view.set(1),
        lambda: array[0],
        lambda: np.asarray(view),
    ):
        with pytest.raises(LaunchError, match=r"DeviceArray\(float32, shape .* was freed"):
            use()


def test_exchange_with_other_libraries(gpu: simt.GPU, module: Any) -> None:
    array = gpu.array(np.arange(6, dtype=np.int16).reshape(2, 3))
    facts = array.T.__cuda_array_interface__
    assert facts["shape"] == (3, 2) and facts["strides"] == (2, 6) and facts["typestr"] == "<i2"
    assert facts["data"] == (array.address, False) and array.__cuda_array_interface__["strides"] is None
    assert array.__dlpack_device__() == (1, 0)
    copy = np.from_dlpack(array)
    assert copy.dtype == np.int16 and (copy == array.get()).all()
    array.fill(0)
    assert copy.any(), "it is a copy"

    class OfRealGpu:
        __cuda_array_interface__ = facts

    with pytest.raises(LaunchError, match=r"argument 1: OfRealGpu .* is in the memory of a real GPU"):
        module.twice[1, 1](OfRealGpu(), 1)


def test_launches_in_other_forms(gpu: simt.GPU, module: Any) -> None:
    x = gpu.ones(100)
    module.twice((4,), (32,), (x, 100))
    module.twice((4, 1), (32,), (x, 100), shared_mem=64, stream=gpu.stream())
    module.twice[4, 32](x, 100, stream=None)
    assert (x.get() == 8).all()


@pytest.mark.parametrize(
    ("configuration", "words"),
    [
        ((1, 32, -1), "`twice`: the dynamic shared memory is -1, expected a whole number of bytes"),
        ((1, 32, 2.5), "the dynamic shared memory is 2.5"),
        ((1, 32, 0, "a"), r"the stream is 'a', expected one that gpu.stream\(\) has made"),
        ((float("inf"), 32), "the grid is inf, expected one to three whole numbers"),
        ((float("nan"), 32), "the grid is nan"),
        (((1, 70_000), 32), "its y is 70,000, CUDA allows 65,535 at most"),
        (((1, 1, 70_000), 32), "its z is 70,000, CUDA allows 65,535 at most"),
        ((1 << 31, 32), "its x is 2,147,483,648, CUDA allows 2,147,483,647 at most"),
        ((1, (1, 1, 128)), "the block is .* its z is 128, CUDA allows 64 at most"),
        ((1, -32), "the block is -32"),
        (("a", 32), "the grid is 'a'"),
        ((1, 2000), "a block of 2000 threads; this GPU allows 1024"),
        ((1, 32, 1 << 20), "bytes of shared memory a block"),
        ((1, 32, 0, None, (3, 1, 1)), "not a multiple of the cluster"),
    ],
)
@pytest.mark.parametrize("functional", [False, True])
def test_launches_that_cannot_be(functional: bool, configuration: tuple[Any, ...], words: str) -> None:
    gpu = simt.GPU("qv100", functional=functional, set={"sm.count": 2})
    x, kernel = gpu.ones(4), gpu.compile(SOURCE).twice
    with pytest.raises(LaunchError, match=words):
        kernel[configuration](x, 4)
    assert gpu.memory.used == x.nbytes
    kernel[1, 32](x, 4)
    assert x.tolist() == [2, 2, 2, 2]


def test_raw_memory(gpu: simt.GPU, module: Any) -> None:
    value, pointer = gpu.memory.allocate(4), gpu.memory.allocate(8, "pointer")
    assert value % 256 == 0 and gpu.memory.read(value, 4) == bytes(4)
    gpu.memory.write(value, np.int32(41).tobytes())
    gpu.memory.write(pointer, value.to_bytes(8, "little"))
    out = gpu.empty(1, np.int32)
    module.first[1, 1](pointer, out)
    assert out.item() == 41
    assert (pointer, 8, "pointer", False) in gpu.memory.allocations()
    gpu.memory.free(pointer)
    for act, words in (
        (lambda: gpu.memory.free(pointer), "cannot be freed: it is 0 bytes into freed `pointer`"),
        (lambda: gpu.memory.read(value, 5), "cannot be read"),
        (lambda: gpu.memory.write(pointer, b"1"), "cannot be written"),
        (lambda: gpu.memory.read(-1, 5), "address is -1"),
        (lambda: gpu.memory.allocate(-1), "size is -1"),
        (lambda: gpu.memory.allocate(1 << 70), "no room"),
        (lambda: gpu.memory.allocate(1 << 63), "no room"),
    ):
        with pytest.raises(LaunchError, match=words):
            act()
    gpu.memory.free(value)


def test_streams_events_and_occupancy() -> None:
    gpu = simt.GPU("qv100", set={"sm.count": 4})
    assert gpu.name == "qv100"
    module = gpu.compile(SOURCE)
    x, stream = gpu.ones(1000), gpu.stream()
    module.twice[4, 256](x, 1000)
    start = stream.record()
    assert start.query() and stream.query()
    with stream:
        assert module.twice[4, 256](x, 1000) is None
        with gpu.stream() as inner:
            module.twice[1, 32](x, 0)
        end = stream.record(gpu.event())
    assert not stream.query() and stream.query(), "asking makes progress"
    assert [launch.stream for launch in gpu.launches] == [0, stream.number, inner.number]
    assert end.query() and end.cycle == gpu.launches[1].end_cycle
    took = gpu.launches[1].end_cycle - gpu.launches[0].end_cycle
    assert start.elapsed_time(end) == pytest.approx(took / (1e3 * gpu.spec.clock.core_mhz))
    with pytest.raises(LaunchError, match="expected an event of the same GPU"):
        start.elapsed_time(7)  # type: ignore[arg-type]
    done = module.twice[64, 256](x, 1000)
    occupancy = module.twice.occupancy(256)
    assert (occupancy.ctas, occupancy.limited_by) == (done.occupancy_limit_ctas, done.occupancy_limited_by)
    assert occupancy.warps == 8 * occupancy.ctas and occupancy.share == occupancy.warps / 64
    limited = module.twice.occupancy((32, 2), shared=40_000)
    assert (limited.ctas, limited.limited_by) == (2, "shared memory")
    with pytest.raises(LaunchError, match="this GPU allows 1,024 threads"):
        module.twice.occupancy(2000)
    with pytest.raises(LaunchError, match="bytes of shared memory a block"):
        module.twice.occupancy(32, 1 << 20)
