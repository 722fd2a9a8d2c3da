"""Fixtures for kernels in this folder: a GPU without timing, and each file's program, compiled once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import simt
from simt.cuda import toolkit
from support.ptx import CODE


@pytest.fixture(scope="session")
def gpu() -> simt.GPU:
    if not toolkit.toolkits():
        pytest.skip("NVRTC's wheel is not installed")
    return simt.GPU("h100", functional=True, code=CODE)


@pytest.fixture(scope="module")
def module(gpu: simt.GPU, request: pytest.FixtureRequest) -> simt.gpu.Module:
    """The file's SOURCE, compiled with its OPTIONS, and the template instances named in TEMPLATES."""
    file = request.module
    name = file.__name__.rpartition(".")[2] + ".cu"
    kernels, options = getattr(file, "TEMPLATES", ()), getattr(file, "OPTIONS", ())
    return gpu.compile(file.SOURCE, name=name, kernels=kernels, options=options)


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> Iterator[np.random.Generator]:
    """Random numbers, different in each test but the same in each run."""
    yield np.random.default_rng(list(request.node.name.encode()))
