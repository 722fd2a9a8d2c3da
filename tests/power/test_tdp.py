"""Power of matrix products near the peak of each GPU, against its TDP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from simt.cuda import toolkit
from simt.power import load_energies
from simt.spec import load_spec

STUDIES = Path(__file__).resolve().parents[2] / "examples" / "case_studies"
BAND = (0.75, 1.1)
STATIC = ("board", "chip", "active SMs", "idle SMs")
TENSOR_STEP = 16 * 8 * 16  # multiply-adds of a unit in its initiation interval

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not toolkit.toolkits(), reason="NVRTC's wheel is not installed"),
]


@pytest.fixture
def gemm(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(STUDIES))
    import gemm

    return gemm


@pytest.mark.parametrize(
    ("gpu", "tensor", "depth", "least", "clock"),
    [
        ("qv100", False, 128, 0.8, None),
        ("a100", True, 128, 0.7, None),
        ("h100", True, 1024, 0.6, 1560.0),  # published of products at the limit: 1,537 to 1,638 MHz
        ("rtx2060", False, 640, 0.8, None),
        ("rtx3070", False, 192, 0.65, None),
    ],
)
def test_a_product_takes_about_the_tdp(
    gemm: Any, gpu: str, tensor: bool, depth: int, least: float, clock: float | None
) -> None:
    """Between 0.75 and 1.1 of it, at `least` this share of the peak rate."""
    units = load_spec(gpu).sm.units
    unit, step = (units.tensor, TENSOR_STEP) if tensor else (units.fp32, 32)
    kernel = gemm.tensor(gpu) if tensor else gemm.fp32(gpu)
    found = gemm.product(gpu, kernel, depth, clock=clock)
    # Tensor cores cut off what they add: less than two units in the last place for each step of 16 products.
    # Sums in FP32: rounding errors grow as the square root of their number.
    assert found.error < (depth / 16 * 2.0**-22 if tensor else depth**0.5 * 2.0**-24)
    assert least < found.rate / (step * unit.count / unit.initiation_interval) <= 1
    assert BAND[0] < found.watts / load_energies(gpu).reference["tdp_w"].value < BAND[1]


def test_a_product_on_titan_x(gemm: Any) -> None:
    """Its load/store unit holds the simulated product at three quarters of the peak: what the same
    instructions take at 0.9 of it is in the band."""
    tdp = load_energies("titanx").reference["tdp_w"].value
    found = gemm.product("titanx", gemm.fp32("titanx"), 64)
    assert found.error < 1e-6
    share = found.rate / 128
    assert 0.6 < share < 0.9
    static = sum(found.joules[name] for name in STATIC) / found.seconds
    assert BAND[0] < (static + (found.watts - static) * 0.9 / share) / tdp < BAND[1]
