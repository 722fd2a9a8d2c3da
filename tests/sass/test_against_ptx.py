"""Random programs compute the same values as machine code and as PTX, to the bit."""

from __future__ import annotations

import importlib.util

import pytest

from support.ptx_programs import values

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("elftools") is None,
    reason="pyelftools is not installed: pip install 'simt[sass]'",
)

SEEDS = tuple(range(21))


@pytest.mark.parametrize(
    ("arch", "seed"),
    [
        ("sm_80", 0),
        ("sm_120", 0),
        *(
            pytest.param(arch, seed, marks=pytest.mark.slow)
            for arch in ("sm_80", "sm_90", "sm_100", "sm_120")
            for seed in SEEDS[1:]
        ),
    ],
)
def test_same_values(arch: str, seed: int) -> None:
    expected = values(seed, functional=True, arch=arch, calls=False, among=SEEDS)
    assert values(seed, functional=True, arch=arch, calls=False, code="sass", among=SEEDS) == expected


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_same_values_timed(seed: int) -> None:
    expected = values(seed, functional=True, calls=False, among=SEEDS)
    assert values(seed, functional=False, calls=False, code="sass", among=SEEDS) == expected
