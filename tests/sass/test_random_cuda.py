"""CUDA C++ programs made by chance compute the same values as PTX and as machine code, to the bit."""

from __future__ import annotations

import importlib.util
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.cuda_programs import ARCHS, LEVELS, Program, mismatch

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("elftools") is None,
    reason="pyelftools is not installed: pip install 'simt[sass]'",
)


@pytest.mark.parametrize("arch", ["sm_75", "sm_90", "sm_120"])
def test_same_values(arch: str) -> None:
    assert mismatch(Program(random.Random(1), arch), arch, ("-O0", "-O3")) is None


@pytest.mark.slow
@given(st.randoms(use_true_random=False), st.sampled_from(ARCHS))
@settings(max_examples=12, deadline=None)
def test_same_values_of_any(chance: random.Random, arch: str) -> None:
    assert mismatch(Program(chance, arch), arch, LEVELS) is None
