"""The kernels by which sampling within launches of few waves is judged give the values that NumPy gives."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simt
from simt.control.registry import make

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
QUARTER = {"sm.count": 33, "address_map.channels": 40}


@pytest.fixture(scope="module")
def kernels() -> Iterator[Any]:
    sys.path.insert(0, str(BENCHMARKS))
    try:
        import few_waves_kernels

        yield few_waves_kernels.KERNELS
    finally:
        sys.path.remove(str(BENCHMARKS))


def test_values(kernels: Any) -> None:
    gpu = simt.GPU("qv100", functional=True)
    module = gpu.compile((BENCHMARKS / "few_waves.cu").read_text(), name="few_waves.cu")
    for name, kernel in kernels.items():
        ctas = -(-11 // kernel.multiple) * kernel.multiple
        arguments, values = kernel.make(gpu, np.random.default_rng(1), ctas)
        module[name][ctas, kernel.threads](*arguments)
        for array, wanted, tolerance in values():
            np.testing.assert_allclose(array.numpy(), wanted, tolerance, tolerance, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("gpu", "name", "ctas", "known"),
    [
        ("h100", "histogram_shared", 275, {}),
        ("qv100", "sgemm_tiled", 144, {}),
        ("h100", "sgemm_tiled", 84, QUARTER),
    ],
)
@pytest.mark.parametrize("method", ["photon", "pkp"])
def test_launches_of_few_waves(kernels: Any, gpu: str, name: str, ctas: int, known: Any, method: str) -> None:
    """These were up to 37 % off, with intervals of 1 to 9 %."""
    found = []
    for controller in (None, make(method)):
        device = simt.GPU(gpu, set=known, controller=controller)
        module = device.compile((BENCHMARKS / "few_waves.cu").read_text(), name="few_waves.cu")
        arguments, _ = kernels[name].make(device, np.random.default_rng(1), ctas)
        module[name][ctas, kernels[name].threads](*arguments)
        found += device.result().launches
    full, launch = found
    assert launch.sampled is not None
    assert abs(launch.cycles / full.cycles - 1) <= launch.sampled.half_widths.get("cycles", 0.0)
