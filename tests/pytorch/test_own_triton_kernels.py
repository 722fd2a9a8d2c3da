"""Models that launch Triton kernels of their own."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'simt[torch]'")
triton = pytest.importorskip("triton", reason="Triton is not installed")

import triton.language as tl  # noqa: E402
from torch.utils import _triton  # noqa: E402

import simt  # noqa: E402
from simt.torch import backend  # noqa: E402


@triton.jit
def scale(x, o, n, factor, B: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + i, factor * tl.load(x + i, i < n), i < n)


tuned = triton.autotune(
    [triton.Config({"B": 32}, num_warps=1), triton.Config({"B": 128}, num_warps=4)], key=["n"]
)(scale)


def fixed(x: Any) -> Any:
    o = torch.empty_like(x)
    scale[(triton.cdiv(x.numel(), 64),)](x, o, x.numel(), 3.0, B=64)
    return o + 1


def by_meta(x: Any) -> Any:
    o = torch.empty_like(x)
    tuned[lambda meta: (triton.cdiv(x.numel(), meta["B"]),)](x, o, x.numel(), 3.0)
    return o + 1


@pytest.mark.parametrize(
    ("model", "chosen", "grid"), [(fixed, "simt", 2), (by_meta, "simt", 4), (fixed, backend, 2)]
)
def test_a_launch_is_part_of_the_graph(model: Any, chosen: Any, grid: int) -> None:
    gpu = simt.GPU("a100")
    x = torch.arange(100.0)
    found = torch.compile(model, backend=chosen, options={"gpu": gpu}, fullgraph=True)(x)
    assert torch.equal(found, 3 * x + 1)
    own = [launch for launch in gpu.result().launches if "scale" in launch.name]
    assert [launch.grid for launch in own] == [(grid, 1, 1)]


def test_other_backends_are_told_what_this_computer_has() -> None:
    asked = []

    def other(module: Any, inputs: Any) -> Any:
        asked.append(_triton.has_triton())
        return module

    before = _triton.has_triton()
    torch.compile(lambda x: x + 1, backend=other)(torch.zeros(2))
    assert asked == [before]
