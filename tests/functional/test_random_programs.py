"""Random valid programs load, run, and compute the same values with and without timing."""

from __future__ import annotations

import pytest

from support.ptx_programs import check


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_values_are_the_same_timed_or_not(seed: int) -> None:
    check(seed)
