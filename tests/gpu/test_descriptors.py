"""Triton kernels that copy through tensor maps: host-made and kernel-made descriptors."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import simt
from simt import _engine
from simt.errors import LaunchError
from simt.gpu.triton_kernel import descriptor_arguments

pytest.importorskip("triton", reason="needs Triton")
TensorDescriptor = pytest.importorskip("triton.tools.tensor_descriptor").TensorDescriptor

from support import triton_kernels as kernels  # noqa: E402

MODES = pytest.mark.parametrize(
    ("gpu", "functional"),
    [("h100", True), ("h100", False), ("a100", True)],
    ids=["h100", "h100-timed", "a100"],
)


def descriptor(array: Any, tile: list[int]) -> Any:
    rows, columns = array.shape
    return TensorDescriptor(array, [rows, columns], [columns, 1], tile)


@MODES
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8])
def test_tiles_beyond_the_edges(gpu: str, functional: bool, dtype: Any) -> None:
    device = simt.GPU(gpu, functional=functional)
    values = np.random.default_rng(0).integers(-100, 100, (100, 144)).astype(dtype)
    source, target = device.array(values), device.array(np.zeros_like(values))
    device.triton(kernels.copy_tile)[2, 3](descriptor(source, [64, 64]), descriptor(target, [64, 64]), 64, 64)
    assert (target.numpy() == values).all()


@MODES
@pytest.mark.parametrize(("m", "n", "k"), [(128, 64, 64), (200, 136, 72)])
def test_product_with_descriptors_of_the_kernel(gpu: str, functional: bool, m: int, n: int, k: int) -> None:
    rng = np.random.default_rng(m)
    a, b = rng.random((m, k)).astype(np.float16), rng.random((k, n)).astype(np.float16)
    c = np.zeros((m, n), np.float16)
    device = simt.GPU(gpu, functional=functional)
    grid = (-(-m // 64), -(-n // 64))
    result = device.triton(kernels.matmul_by_maps)[grid](a, b, c, m, n, k, 64, 64, 64)
    # One rounding to f16 of sums of up to k products; the error of f32 sums is far below that.
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), rtol=2**-10)
    assert functional or result.cycles > 0


def test_a_descriptor_that_no_tensor_map_can_hold() -> None:
    device = simt.GPU("h100", functional=True)
    array = device.array(np.zeros((64, 64), np.float16))
    good, bad = descriptor(array, [64, 64]), descriptor(array, [64, 64])
    bad.strides = [65, 1]
    with pytest.raises(LaunchError, match=r"copy_tile.*stride of dimension 1 is 130 bytes"):
        device.triton(kernels.copy_tile)[1, 1](good, bad, 64, 64)


def test_an_im2col_descriptor_lists_the_innermost_dimension_first() -> None:
    value = SimpleNamespace(
        shape=[2, 9, 7, 64], strides=[9 * 7 * 64, 7 * 64, 64, 1], element_strides=[1, 2, 3, 1],
        pixel_box_lower_corner=[-1, -2], pixel_box_upper_corner=[1, 0],
    )  # fmt: skip
    layout = {"swizzle": 3, "elem_size": 2, "elem_type": 6, "block_size": [16, 64], "is_im2col": True}
    found = descriptor_arguments(value, 1 << 36, layout, "kernel")
    expected = _engine.functional.encode_tensor_map(
        6, 1 << 36, [64, 7, 9, 2], [128, 896, 8064], [64, 16], [1, 3, 2, 1], swizzle=3,
        corners=([-2, -1], [0, 1]),
    )  # fmt: skip
    assert found[0].tobytes() == expected
    assert found[1:] == [*value.shape, *value.strides]


@pytest.mark.parametrize("code", ["ptx", "sass"])
def test_a_tile_takes_the_sectors_of_its_rows(code: Any, tmp_path: Any) -> None:
    """Rows of a tile lie a row of the array apart, not one after the other; what is outside takes nothing."""
    cold = {"launch.cold_caches": True}
    gpu = simt.GPU("h100", code=code, set=cold)
    values = np.ones((100, 144), np.float32)  # 18 sectors a row; tiles begin at sectors 0, 8 and 16
    source, target = gpu.array(values), gpu.array(np.zeros_like(values))

    def copy() -> Any:
        return gpu.triton(kernels.copy_tile)[2, 3](
            descriptor(source, [64, 64]), descriptor(target, [64, 64]), 64, 64
        )

    launch = copy()
    with gpu.trace(tmp_path / "trace.simt"):  # its warps poll for what others of them copy
        copy()
    (replayed,) = simt.simulate(tmp_path / "trace.simt", "h100", set=cold).launches
    assert (target.numpy() == 1).all()
    sectors = values.nbytes // 32
    for counted in (launch.engine, replayed.engine):
        assert counted["dram_reads"] == sectors
        assert counted["global_load_sectors"] + counted["global_store_sectors"] == 2 * sectors
