"""The kernels by which sampling within launches of few waves is judged give the values that NumPy gives."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simt

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


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
