"""The power of kernels measured on a V100 (AccelWattch's validation set), from recorded simulated events.

The published tables are in shared material; without it, these tests are skipped.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from simt.power import load_energies
from simt.power.fit import fit, mean_absolute

FOLDER = Path(__file__).parents[2] / "validation" / "power"


@pytest.fixture
def v100(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(FOLDER))
    import v100

    yield v100
    sys.modules.pop("v100")


def test_the_recorded_kernels_are_those_that_were_measured(v100: ModuleType, shared_data: Path) -> None:
    """Where a kernel was simulated whole, its loads and shared accesses are the published ones, but for two
    that the compilers translate differently and a merge whose splitting depends on them."""
    found, (_, counters) = v100.read_record(), v100.published(shared_data / "silicon")
    assert found.keys() == v100.KERNELS.keys() == counters.keys()
    for name, each in found.items():
        if v100.KERNELS[name].most_cycles or name in ("sobolQRNG_k1", "mergeSort_k1"):
            continue
        for counter in ("shared_accesses", "l1_reads"):
            assert each.counters[counter] == pytest.approx(counters[name][counter], rel=1e-4), (name, counter)


def test_power_of_kernels_that_the_energies_were_not_fitted_to(v100: ModuleType, shared_data: Path) -> None:
    energies = load_energies(v100.GPU)
    powers, _ = v100.published(shared_data / "silicon")
    rows = v100.measured(v100.read_record(), powers)
    fitted, judged = ([row for row in rows if row.name in half] for half in v100.split())
    assert (len(fitted), len(judged)) == (4, 6)
    published = [row.predicted(energies) / row.watts - 1 for row in (*fitted, *judged)]
    assert mean_absolute(published) < 0.12
    assert mean_absolute(v100.left_out([*fitted, *judged], energies, 0.05)) < 0.10
    found = fit(fitted, energies)
    assert mean_absolute(found.errors(fitted)) < 0.10
    assert mean_absolute(found.errors(judged)) < 0.20


def test_walsh_transforms_in_place_end_with_nan(v100: ModuleType) -> None:
    """fwtBatch2Kernel as the measured program repeats it: two Hadamard stages over one array."""
    data = np.random.default_rng(0).integers(0, 32768, (4, 1024)).astype(np.float32) / 32768
    stages = np.array([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]], np.float32)
    passes = 0
    with np.errstate(all="ignore"):
        while not np.isnan(data).all():
            data = sum(stages[:, k : k + 1] * data[k] for k in range(4))
            passes += 1
    assert passes < 150
    assert [name for name, kernel in v100.KERNELS.items() if kernel.loses_data] == [
        "fastWalshTransform_k1",
        "fastWalshTransform_k2",
    ]
