"""Triton's kernels, against NumPy and against Triton's own interpreter."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import special

import simt
from support.products import product_bound
from support.ptx import CODE

triton = pytest.importorskip("triton", reason="Triton is not installed")

from support import triton_kernels as kernels  # noqa: E402

ARCHITECTURES = ["a100", "h100"]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def triton_cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_CACHE_DIR", str(tmp_path_factory.mktemp("triton")))
        yield


@pytest.fixture(scope="module", params=ARCHITECTURES)
def gpu(request: pytest.FixtureRequest) -> simt.GPU:
    return simt.GPU(request.param, functional=True, code=CODE)


@pytest.mark.parametrize(("n", "block", "warps"), [(1, 64, 2), (1000, 128, 4), (777, 512, 1)])
def test_add(gpu: simt.GPU, rng: np.random.Generator, n: int, block: int, warps: int) -> None:
    x, y = rng.standard_normal((2, n)).astype(np.float32)
    out = np.full(n + 3, np.nan, np.float32)
    gpu.triton(kernels.add)[-(-n // block)](x, y, out, n, BLOCK=block, num_warps=warps)
    assert (out[:n] == x + y).all()
    assert np.isnan(out[n:]).all()


@pytest.mark.parametrize(("rows", "columns", "block"), [(1, 1, 32), (7, 100, 128), (3, 700, 1024)])
def test_softmax(gpu: simt.GPU, rng: np.random.Generator, rows: int, columns: int, block: int) -> None:
    x = (5 * rng.standard_normal((rows, columns))).astype(np.float32)
    out = np.zeros_like(x)
    gpu.triton(kernels.softmax)[rows](out, x, columns, columns, BLOCK=block)
    np.testing.assert_allclose(out, special.softmax(x.astype(np.float64), axis=1), rtol=3e-6)


@pytest.mark.parametrize("columns", [64, 200])
def test_layer_norm(gpu: simt.GPU, rng: np.random.Generator, columns: int) -> None:
    x = (3 + 2 * rng.standard_normal((5, columns))).astype(np.float32)
    gain, shift = rng.standard_normal((2, columns)).astype(np.float32)
    out = np.zeros_like(x)
    gpu.triton(kernels.layer_norm)[5](out, x, gain, shift, columns, 1e-5, BLOCK=256)
    wide = x.astype(np.float64)
    normal = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(out, normal * gain + shift, rtol=0, atol=5e-6)


@pytest.mark.parametrize(("m", "n", "k"), [(64, 64, 32), (128, 64, 96)])
def test_matmul(gpu: simt.GPU, rng: np.random.Generator, m: int, n: int, k: int) -> None:
    a, b = rng.standard_normal((m, k)).astype(np.float16), rng.standard_normal((k, n)).astype(np.float16)
    c = np.zeros((m, n), np.float16)
    gpu.triton(kernels.matmul)[m // 64, n // 64](a, b, c, k, k, n, n, BM=64, BN=64, BK=32, num_warps=4)
    exact, bound = product_bound(a, b, np.float32)
    assert (np.abs(c - exact) <= 4 * bound + np.spacing(np.abs(exact).astype(np.float16))).all()


@pytest.mark.parametrize("length", [64, 128])
def test_flash_attention(gpu: simt.GPU, rng: np.random.Generator, length: int) -> None:
    depth = 32
    q, k, v = rng.standard_normal((3, length, depth)).astype(np.float16)
    out = np.zeros_like(q)
    scale = depth**-0.5 / np.log(2)
    gpu.triton(kernels.attention)[length // 64, 1](q, k, v, out, scale, length, BM=64, BN=32, D=depth)
    scores = q.astype(np.float64) @ k.T.astype(np.float64) * depth**-0.5
    scores[np.triu_indices(length, 1)] = -np.inf
    np.testing.assert_allclose(out, special.softmax(scores, axis=1) @ v, rtol=0, atol=4e-3)


def test_interpreter_agrees(gpu: simt.GPU, rng: np.random.Generator, tmp_path: Path) -> None:
    x = rng.standard_normal((4, 90)).astype(np.float32)
    gain, shift = rng.standard_normal((2, 90)).astype(np.float32)
    a, b = rng.integers(-8, 9, (2, 64, 64)).astype(np.float16)
    arrays = {"x": x, "gain": gain, "shift": shift, "a": a, "b": b, "sums": np.zeros_like(x)}
    arrays |= {"powers": np.zeros_like(x), "normal": np.zeros_like(x), "product": np.zeros_like(a)}
    launches: list[tuple[str, list[int], list[Any], dict[str, int]]] = [
        ("add", [6], ["x", "x", "sums", 360], {"BLOCK": 64}),
        ("softmax", [4], ["powers", "x", 90, 90], {"BLOCK": 128}),
        ("layer_norm", [4], ["normal", "x", "gain", "shift", 90, 1e-5], {"BLOCK": 128}),
        ("matmul", [2, 1], ["a", "b", "product", 64, 64, 64, 64], {"BM": 32, "BN": 64, "BK": 32}),
    ]
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
    (tmp_path / "launches.json").write_text(json.dumps(launches))
    program = Path(__file__).parent.parent / "support" / "triton_interpreter.py"
    subprocess.run(
        [sys.executable, program, tmp_path], env={**os.environ, "TRITON_INTERPRET": "1"}, check=True
    )
    for kernel, grid, arguments, constants in launches:
        gpu.triton(getattr(kernels, kernel))[tuple(grid)](
            *[arrays[a] if isinstance(a, str) else a for a in arguments], **constants
        )
    for name in ("sums", "product"):
        assert (arrays[name] == np.load(tmp_path / f"{name}.npy")).all()
    np.testing.assert_allclose(arrays["powers"], np.load(tmp_path / "powers.npy"), rtol=1e-5)
    np.testing.assert_allclose(arrays["normal"], np.load(tmp_path / "normal.npy"), rtol=0, atol=1e-5)
