"""Triton's kernels for sm_100, which use tensor memory, against NumPy; executed and timed."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from scipy import special

import simt
from support.products import product_bound

triton = pytest.importorskip("triton", reason="Triton is not installed")

from support import triton_kernels as kernels  # noqa: E402

pytestmark = pytest.mark.slow
FORMS = [
    ("b200", "ptx", True),
    ("b200", "ptx", False),
    ("b200", "sass", True),
    ("b200", "sass", False),
    ("b300", "sass", False),
]


@pytest.fixture(scope="module", autouse=True)
def triton_cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_CACHE_DIR", str(tmp_path_factory.mktemp("triton")))
        yield


@pytest.fixture(
    scope="module",
    params=FORMS,
    ids=[f"{name}-{code}-{'executed' if functional else 'timed'}" for name, code, functional in FORMS],
)
def gpu(request: pytest.FixtureRequest) -> simt.GPU:
    name, code, functional = request.param
    return simt.GPU(name, code=code, functional=functional, set={"sm.count": 4})


def ptx_of(kernel: Any) -> str:
    ((_, module),) = kernel._compiled.values()
    return str(module.ptx.text)


@pytest.mark.parametrize(("m", "n", "k"), [(128, 128, 64), (256, 128, 192)])
def test_matmul(gpu: simt.GPU, rng: np.random.Generator, m: int, n: int, k: int) -> None:
    a, b = rng.standard_normal((m, k)).astype(np.float16), rng.standard_normal((k, n)).astype(np.float16)
    c = np.zeros((m, n), np.float16)
    kernel = gpu.triton(kernels.matmul)
    kernel[m // 128, n // 128](a, b, c, k, k, n, n, BM=128, BN=128, BK=64, num_warps=4)
    exact, bound = product_bound(a, b, np.float32)
    assert (np.abs(c - exact) <= 4 * bound + np.spacing(np.abs(exact).astype(np.float16))).all()
    assert "tcgen05.mma.cta_group::1.kind::f16" in ptx_of(kernel)


def test_flash_attention(gpu: simt.GPU, rng: np.random.Generator) -> None:
    """The scores, from tensor memory, become A of the second product."""
    length, depth = 256, 64
    q, k, v = rng.standard_normal((3, length, depth)).astype(np.float16)
    out = np.zeros_like(q)
    scale = depth**-0.5 / np.log(2)
    kernel = gpu.triton(kernels.attention)
    kernel[length // 128, 1](q, k, v, out, scale, length, BM=128, BN=64, D=depth)
    scores = q.astype(np.float64) @ k.T.astype(np.float64) * depth**-0.5
    scores[np.triu_indices(length, 1)] = -np.inf
    np.testing.assert_allclose(out, special.softmax(scores, axis=1) @ v, rtol=0, atol=4e-3)
    assert "tcgen05.mma" in ptx_of(kernel)


@pytest.mark.parametrize("name", ["b200", "b300"])
def test_flash_attention_with_specialized_warps(name: str, rng: np.random.Generator) -> None:
    """On a B300, the maximum of a row of scores is of a load with reduction."""
    gpu = simt.GPU(name, functional=True, set={"sm.count": 4})
    length, depth = 256, 64
    q, k, v = rng.standard_normal((3, length, depth)).astype(np.float16)
    out = np.zeros_like(q)
    kernel = gpu.triton(kernels.attention_by_maps)
    sizes = {"BM": 128, "BN": 64, "D": depth}
    kernel[length // 128, 1](q, k, v, out, depth**-0.5 / np.log(2), length, **sizes, SPECIAL=True)
    scores = q.astype(np.float64) @ k.T.astype(np.float64) * depth**-0.5
    np.testing.assert_allclose(out, special.softmax(scores, axis=1) @ v, rtol=0, atol=4e-3)
    text = ptx_of(kernel)
    assert "setmaxnreg" in text
    assert ("tcgen05.ld.red" in text) == (name == "b300")


def test_padded_numbers_of_4_bits(gpu: simt.GPU, rng: np.random.Generator) -> None:
    side, depth = 128, 256
    a = rng.standard_normal((side, depth)).astype(ml_dtypes.float8_e4m3fn)
    codes = rng.integers(0, 16, (side, depth)).astype(np.uint8)
    scales = rng.integers(124, 131, (2, side, depth // 32)).astype(np.uint8)
    out = np.zeros((side, side), np.float32)
    kernel = gpu.triton(kernels.scaled_product)
    b = codes[:, ::2] | codes[:, 1::2] << 4
    kernel[1,](a, b, scales[0], scales[1], out, depth, BM=side, BN=side, BK=128, num_warps=4)
    values = codes.view(ml_dtypes.float4_e2m1fn).astype(np.float64)
    factors = np.repeat(2.0 ** (scales.astype(int) - 127), 32, axis=2)
    np.testing.assert_allclose(
        out, (a.astype(float) * factors[0]) @ (values * factors[1]).T, rtol=1e-5, atol=1e-2
    )
    assert "elemtype.shared::cta.b1024.b32" in ptx_of(kernel)
