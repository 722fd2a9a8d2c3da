"""Numba's CUDA kernels."""

import importlib.util
from typing import Any

import numpy as np
import pytest

from simt.cuda.numba_cuda import compile_numba, parameters, signature_of
from simt.errors import CompileError

if importlib.util.find_spec("numba_cuda") is None:
    pytest.skip("numba-cuda is not installed", allow_module_level=True)

from numba import cuda, types


def saxpy(a: Any, x: Any, y: Any) -> None:
    i = cuda.grid(1)
    if i < x.size:
        y[i] += a * x[i]


@cuda.jit
def total(x: Any, out: Any) -> None:
    space = cuda.shared.array(128, types.float32)
    t = cuda.threadIdx.x
    space[t] = x[cuda.grid(1)]
    cuda.syncthreads()
    step = 64
    while step > 0:
        if t < step:
            space[t] += space[t + step]
        cuda.syncthreads()
        step //= 2
    if t == 0:
        cuda.atomic.add(out, 0, space[0])


def many(flag: Any, number: Any, pair: Any, half: Any, record: Any, matrix: Any) -> None:
    matrix[0, 0] = number.real + pair[0] + pair[1] + half + record["a"]
    if flag:
        matrix[1, 1] = number.imag


def _widths(kernel: Any) -> list[int]:
    """Bytes of each parameter in the PTX."""
    kinds = [line.split()[0] for line in kernel.module.parameters(kernel.name).split(".param")[1:]]
    return [int(kind[2:]) // 8 for kind in kinds]


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["sm_70", "sm_80", "sm_90"])
def test_saxpy(arch: str) -> None:
    kernel = compile_numba(saxpy, "void(float32, float32[:], float32[:])", arch=arch)
    assert kernel.module.arch == arch
    assert kernel.module.kernel("saxpy") == kernel.name
    assert _widths(kernel) == [4, *[8] * 14]  # two arrays of one dimension: 5 + 2 numbers each
    assert "fma.rn.f32" in kernel.module.text
    assert ".loc" in kernel.module.text
    bare = compile_numba(saxpy, "void(float32, float32[:], float32[:])", arch=arch, lineinfo=False)
    assert ".loc" not in bare.module.text


@pytest.mark.slow
def test_decorated_function() -> None:
    kernel = compile_numba(total, (types.float32[:], types.float32[:]), arch="sm_80")
    assert "bar.sync" in kernel.module.text and ".shared" in kernel.module.text
    assert kernel.module.kernel("total") == kernel.name


def test_parameters_fit_the_ptx() -> None:
    record = np.zeros(1, [("a", "i4"), ("b", "f8")])[0]
    matrix = np.zeros((6, 8), np.float64)[::2, ::4]
    arguments = (True, np.complex64(1 + 2j), (3, 4.5), np.float16(0.5), record, matrix)
    kernel = compile_numba(many, signature_of(arguments), arch="sm_80")
    flat = parameters(kernel.types, arguments, lambda array: 1000 if array is record else 2000)
    assert [value.itemsize for value in flat] == _widths(kernel)
    assert [value.item() for value in flat[:6]] == [1, 1.0, 2.0, 3, 4.5, 0.5]
    # record; then meminfo, parent, items, bytes of an item, address, shape, strides
    assert [value.item() for value in flat[6:]] == [1000, 0, 0, 3 * 2, 8, 2000, 3, 2, 128, 32]


def test_device_arrays() -> None:
    class DeviceArray:
        shape, strides, dtype = (3, 4), (4, 12), np.dtype(np.float32)

    (found,) = signature_of([DeviceArray()])
    assert (found.ndim, found.layout, found.dtype) == (2, "F", types.float32)
    flat = parameters([found], [DeviceArray()], lambda _: 7)
    assert [value.item() for value in flat] == [0, 0, 12, 4, 7, 3, 4, 4, 12]


def test_arguments_that_do_not_fit() -> None:
    kinds = (types.float32[:], types.int32)
    array = np.zeros(3, np.float32)
    for arguments, expected in (
        ((array,), "takes 2 arguments, found 1"),
        ((array.reshape(3, 1), 1), "argument 0: .* it has 2 dimensions"),
        ((array.astype(np.float64), 1), "argument 0: .* its elements are float64"),
        ((3, 1), "argument 0: the kernel takes array.*, found int"),
        ((array, "x"), "argument 1: the kernel takes int32, found str"),
    ):
        with pytest.raises(CompileError, match=expected):
            parameters(kinds, arguments, lambda _: 0)
    with pytest.raises(CompileError, match="argument 0: Numba has no type for object"):
        signature_of([object()])


def test_errors_are_numbas() -> None:
    with pytest.raises(CompileError, match=r"(?s)^saxpy: Numba does not compile it for sm_80\n.*getitem"):
        compile_numba(saxpy, (types.float32, types.int32, types.int32), arch="sm_80")
    with pytest.raises(CompileError, match="saxpy: Numba does not compile it for sm_30"):
        compile_numba(saxpy, (types.float32, types.float32[:], types.float32[:]), arch="sm_30")
