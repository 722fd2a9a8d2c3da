"""`gpu.triton` of kernels that are not plain `@triton.jit` functions, and of types that NumPy lacks."""

import warnings
from typing import Any

import numpy as np
import pytest

import simt
from simt.errors import LaunchError

triton = pytest.importorskip("triton", reason="Triton is not installed")

from support import triton_kernels as kernels  # noqa: E402

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def own_triton_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path_factory.mktemp("triton")))


@pytest.fixture
def gpu() -> simt.GPU:
    return simt.GPU("a100", functional=True)


def _run(gpu: simt.GPU, n: int, **options: Any) -> tuple[float, list[int], list[str]]:
    """What the kernel adds to twice its input, the BLOCK that the grid saw, and warnings."""
    x, out, seen = np.arange(n, dtype=np.float32), np.zeros(n, np.float32), list[int]()

    def grid(named: dict[str, Any]) -> tuple[int]:
        seen.append(named["BLOCK"])
        return (triton.cdiv(n, named["BLOCK"]),)

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        gpu.triton(kernels.tuned_twice)[grid](x, out, n, **options)
    (added,) = set((out - 2 * x).tolist())
    return added, seen, [str(each.message) for each in told if "autotuner" in str(each.message)]


def test_autotuners_and_heuristics(gpu: simt.GPU) -> None:
    added, seen, told = _run(gpu, 192)
    assert (added, seen) == (1.0, [64])  # the first configuration; 192 is a multiple of its block
    assert len(told) == 1 and "of 2 configurations of its autotuner, the first is taken: BLOCK: 64" in told[0]
    assert _run(gpu, 192, BLOCK=128) == (0.0, [128], [])  # chosen at the launch; 192 is no multiple of 128
    assert _run(gpu, 1280) == (1.0, [128], [])  # the pruning leaves the second
    with pytest.raises(LaunchError, match=r"no configuration of its autotuner agrees with \{'BLOCK': 32\}"):
        _run(gpu, 192, BLOCK=32)


def test_gluon(gpu: simt.GPU) -> None:
    x, out = np.arange(200, dtype=np.float32), np.zeros(200, np.float32)
    gpu.triton(kernels.gluon_copy)[2](x, out, 200, BLOCK=128)
    assert np.array_equal(out, x)


@pytest.mark.parametrize("kind", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("gaps", [False, True])
def test_tensors_of_types_that_numpy_lacks(kind: str, gaps: bool) -> None:
    torch = pytest.importorskip("torch")
    gpu = simt.GPU("h100", functional=True)
    dtype = getattr(torch, kind)
    x = torch.arange(-50, 50, dtype=torch.float32).to(dtype)
    out = torch.zeros(200, dtype=dtype)[::2] if gaps else torch.zeros(100, dtype=dtype)
    plain = torch.zeros(100, dtype=dtype)
    gpu.triton(kernels.gluon_copy)[1](x, plain, 100, BLOCK=128)
    assert torch.equal(plain.view(torch.uint8), x.view(torch.uint8))
    if gaps:  # the kernel sees the memory with its strides: element i is at i
        gpu.triton(kernels.gluon_copy)[1](x, out, 50, BLOCK=128)
        assert torch.equal(out[:25].float(), x[:50:2].float())
    device = gpu.array(x)
    assert device.itemsize == x.element_size()
    assert np.array_equal(device.numpy().view(np.uint8), x.view(torch.uint8).numpy())
    gpu.triton(kernels.gluon_copy)[1](device, plain.zero_(), 100, BLOCK=128)
    assert torch.equal(plain.view(torch.uint8), x.view(torch.uint8))


def test_a_tensor_without_ml_dtypes(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setitem(__import__("sys").modules, "ml_dtypes", None)
    device = simt.GPU("a100", functional=True).array(torch.ones(3, dtype=torch.bfloat16))
    assert device.dtype == np.uint16 and device.tolist() == [0x3F80] * 3
