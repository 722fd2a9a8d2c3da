"""What the kernels of this folder need: a GPU without timing, and each file's program compiled once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import simt
from simt.cuda import toolkit


@pytest.fixture(scope="session")
def gpu() -> simt.GPU:
    if not toolkit.toolkits():
        pytest.skip("NVRTC's wheel is not installed")
    return simt.GPU("h100", functional=True)


@pytest.fixture(scope="module")
def module(gpu: simt.GPU, request: pytest.FixtureRequest) -> simt.gpu.Module:
    """The file's SOURCE, compiled, with the instances of templates that TEMPLATES names."""
    file = request.module
    return gpu.compile(file.SOURCE, name=f"{file.__name__}.cu", kernels=getattr(file, "TEMPLATES", ()))


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> Iterator[np.random.Generator]:
    """Random numbers, other ones for each test and the same in each run."""
    yield np.random.default_rng(list(request.node.name.encode()))
