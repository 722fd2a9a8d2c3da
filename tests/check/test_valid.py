"""Nothing is found in valid programs that are easily taken for faulty ones."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import simt
from simt.cuda import compile_cuda, toolkit

if not toolkit.toolkits():
    pytest.skip("NVRTC's wheel is not installed", allow_module_level=True)

SOURCES = Path(__file__).parent / "valid"
TILES = 3


def load(gpu: simt.GPU, name: str) -> simt.gpu.Module:
    path = SOURCES / f"{name}.cu"
    return gpu.load(compile_cuda(path.read_text(), name=str(path), arch=gpu.arch))


@pytest.mark.parametrize("name", ["a100", "h100", "t4"])
def test_cooperative_groups(name: str) -> None:
    gpu = simt.GPU(name, check=True)
    module = load(gpu, "groups")
    x = np.random.default_rng(46).integers(-99, 99, 2 * TILES * 256).astype(np.int32)
    for kernel in (module.reduces, module.scans):
        kernel[2, 256](gpu.array(x[:512]), gpu.empty(512, np.int32))
    large = [module.large_tiles]
    if gpu.arch >= "sm_80":  # where a tile of several warps has its memory from the system
        large.append(module.tiles_in_reserved_memory)
    for kernel in large:
        y = gpu.empty(512, np.int32)
        kernel[2, 256](gpu.array(x[:512]), y)
        np.testing.assert_array_equal(y.numpy(), x[:512].reshape(-1, 64).sum(1).repeat(64))
    module.grid_steps[4, 128](gpu.array(x[:512]), gpu.empty(512, np.int32), 512, cooperative=True)
    reversed_tiles = x.reshape(2, TILES, 256)[:, :, ::-1].sum(1).ravel()
    for kernel in (module.staged, module.with_barrier, module.with_pipeline):
        y = gpu.empty(512, np.int32)
        kernel[2, 256](gpu.array(x), y, TILES)
        np.testing.assert_array_equal(y.numpy(), reversed_tiles)
    y = gpu.empty(256, np.int32)
    module.roles[2, 256](gpu.array(x), y, TILES)
    halves = x[: 2 * TILES * 128].reshape(2, TILES, 128)
    np.testing.assert_array_equal(y.numpy(), halves[:, :, ::-1].sum(1).ravel())
    assert gpu.findings() == []


def test_copies_that_read_nothing() -> None:
    """The input's end is beside the output, which other blocks write."""
    gpu = simt.GPU("a100", check=True)
    both = gpu.array(np.arange(-256, 256, dtype=np.int32))
    load(gpu, "copies").padded[4, 64](both, both.address + 4 * 100, 100)
    np.testing.assert_array_equal(both.numpy()[100:200], 256 - np.arange(100))
    assert gpu.findings() == []


@pytest.mark.parametrize("kernel", ["replicated", "replicated_rows"])
def test_vectors_of_the_same_values(kernel: str) -> None:
    gpu = simt.GPU("h100", check=True)
    y = gpu.empty(32, np.int32)
    load(gpu, "copies")[kernel][1, 32](gpu.array(np.arange(4, dtype=np.int32)), y)
    np.testing.assert_array_equal(y.numpy(), np.arange(32) % 4)
    assert gpu.findings() == []


@pytest.mark.slow
@pytest.mark.parametrize("model", ["perceptron", "convolutions", "transformer"])
def test_training(model: str) -> None:
    """Lanes load what one of them overwrites, and store a result that each has combined in its order."""
    pytest.importorskip("torch", reason="PyTorch is not installed")
    pytest.importorskip("triton", reason="Triton is not installed")
    script = [sys.executable, SOURCES / "training.py", model]
    finished = simt.exec.run(script, gpu="h100", functional=True, check=True)
    assert finished.status == 0
    assert finished.findings == ()
