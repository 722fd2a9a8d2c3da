"""What Triton, Numba and CUB compile runs as machine code of each architecture, with the right values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import test_cub
import test_numba_kernels
from scipy import special

import simt
from simt.cuda import machine_code, toolkit
from simt.sass import Cubin, disassemble
from simt.sass.disassembler import is_installed
from support.products import product_bound

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not is_installed(),
        reason="nvdisasm is not installed: pip install 'simt[cuda]'",
    ),
]
ARCHS = {75: "rtx2060-accelsim", 80: "a100", 86: "rtx3070-accelsim", 89: "a100", 90: "h100"}
"""By sm version, a GPU; that of Ada is an A100 with other code."""


@pytest.fixture(scope="module", params=ARCHS)
def gpu(request: pytest.FixtureRequest) -> simt.GPU:
    sm = request.param
    return simt.GPU(ARCHS[sm], functional=True, code="sass", set={"sm_version": sm})


def opcodes(kernel: Any, arch: str) -> set[str]:
    """Those of a kernel that Triton has compiled, without modifiers."""
    ((_, module),) = kernel._compiled.values()
    code = disassemble(Cubin.parse(machine_code(module.ptx, arch), "kernel.cubin"))
    return {x.opcode.split(".")[0] for instructions in code.values() for x in instructions}


@pytest.fixture(scope="module")
def triton_kernels(tmp_path_factory: pytest.TempPathFactory) -> Any:
    pytest.importorskip("triton", reason="Triton is not installed")
    from support import triton_kernels

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_CACHE_DIR", str(tmp_path_factory.mktemp("triton")))
        yield triton_kernels


def test_triton_rows(gpu: simt.GPU, triton_kernels: Any, rng: np.random.Generator) -> None:
    x = rng.standard_normal((5, 200)).astype(np.float32)
    gain, shift = rng.standard_normal((2, 200)).astype(np.float32)
    powers, normal = np.zeros_like(x), np.zeros_like(x)
    gpu.triton(triton_kernels.softmax)[5](powers, x, 200, 200, BLOCK=256)
    np.testing.assert_allclose(powers, special.softmax(x.astype(np.float64), axis=1), rtol=3e-6)
    gpu.triton(triton_kernels.layer_norm)[5](normal, x, gain, shift, 200, 1e-5, BLOCK=256)
    wide = x.astype(np.float64)
    expected = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(normal, expected * gain + shift, rtol=0, atol=5e-6)


@pytest.mark.parametrize(
    ("name", "grid"), [("matmul", (3, 2)), ("matmul_by_maps", (3, 2)), ("matmul_persistent", (4,))]
)
def test_triton_matmul(
    gpu: simt.GPU, triton_kernels: Any, rng: np.random.Generator, name: str, grid: tuple[int, ...]
) -> None:
    m, n, k = 192, 128, 96
    a, b = rng.standard_normal((m, k)).astype(np.float16), rng.standard_normal((k, n)).astype(np.float16)
    c = np.zeros((m, n), np.float16)
    sides = (k, k, n, n) if name == "matmul" else (m, n, k)
    kernel = gpu.triton(getattr(triton_kernels, name))
    kernel[grid](a, b, c, *sides, BM=64, BN=64, BK=32, num_warps=4)
    exact, bound = product_bound(a, b, np.float32)
    assert (np.abs(c - exact) <= 4 * bound + np.spacing(np.abs(exact).astype(np.float16))).all()
    if gpu.arch == "sm_90a":
        assert {"HGMMA"} | ({"UTMALDG", "UTMASTG"} if name != "matmul" else set()) <= opcodes(
            kernel, gpu.arch
        )


@pytest.mark.parametrize("name", ["attention", "attention_by_maps"])
def test_triton_fused_attention(
    gpu: simt.GPU, triton_kernels: Any, rng: np.random.Generator, name: str
) -> None:
    length, depth = 128, 64
    q, k, v = rng.standard_normal((3, length, depth)).astype(np.float16)
    out = np.zeros_like(q)
    grid = (length // 64, 1)
    kernel = gpu.triton(getattr(triton_kernels, name))
    kernel[grid](q, k, v, out, depth**-0.5 / np.log(2), length, BM=64, BN=64, D=depth)
    scores = q.astype(np.float64) @ k.T.astype(np.float64) * depth**-0.5
    if name == "attention":  # it is causal
        scores[np.triu_indices(length, 1)] = -np.inf
    np.testing.assert_allclose(out, special.softmax(scores, axis=1) @ v, rtol=0, atol=4e-3)
    if gpu.arch == "sm_90a":
        maps = set() if name == "attention" else {"UTMALDG", "UTMASTG"}
        assert {"HGMMA", *maps} <= opcodes(kernel, gpu.arch)


def test_numba(gpu: simt.GPU, rng: np.random.Generator) -> None:
    test_numba_kernels.test_saxpy(gpu, rng, 1000, 96)
    test_numba_kernels.test_sum(gpu, rng, 500)
    test_numba_kernels.test_transpose_of_a_view(gpu, rng)


def test_cub_blocks(gpu: simt.GPU, rng: np.random.Generator) -> None:
    if not toolkit.toolkits():
        pytest.skip("NVRTC's wheel is not installed")
    module = gpu.compile(test_cub.SOURCE, name="cub.cu", kernels=test_cub.TEMPLATES)
    for algorithm in test_cub.REDUCTIONS:
        test_cub.test_reduce(module, rng, algorithm, 3)
    for algorithm in test_cub.SCANS:
        test_cub.test_scan(module, rng, algorithm, 3)
    for descending in (0, 1):
        test_cub.test_radix_sort(module, rng, descending, 3)
    test_cub.test_histogram(module, rng)
