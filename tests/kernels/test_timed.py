"""Kernels under the timing engine: the values of functional execution, and cycles that do not depend on the
number of host threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
import test_linear_algebra
import test_neural
import test_reductions
import test_scans
import test_sorts
import test_sparse_and_graphs
import test_stencils

import simt
from simt.cuda import toolkit
from support.ptx import CODE

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Case:
    """source: the program. arrays: makes its arrays. launch: runs the kernel. result: what to compare."""

    source: str
    arrays: Callable[[np.random.Generator], Arrays]
    launch: Callable[[simt.gpu.Module, Arrays], None]
    result: tuple[str, ...]


def reduction(rng: np.random.Generator) -> Arrays:
    return {"x": rng.standard_normal(3000).astype(np.float32), "partial": np.zeros(6, np.float32)}


def scan(rng: np.random.Generator) -> Arrays:
    return {
        "x": rng.integers(0, 1000, 2000).astype(np.uint32),
        "y": np.zeros(2000, np.uint32),
        "state": np.zeros(16, np.uint64),
        "ticket": np.zeros(1, np.uint32),
    }


def histogram(rng: np.random.Generator) -> Arrays:
    return {"x": rng.integers(0, 256, 4000).astype(np.uint8), "bins": np.zeros(256, np.uint32)}


def products(rng: np.random.Generator) -> Arrays:
    a, b = rng.standard_normal((2, 64, 64)).astype(np.float32)
    return {"a": a, "b": b, "c": np.zeros_like(a)}


def attention(rng: np.random.Generator) -> Arrays:
    q, k, v = rng.standard_normal((3, 70, 16)).astype(np.float32)
    return {"q": q, "k": k, "v": v, "out": np.zeros_like(q)}


def sparse(rng: np.random.Generator) -> Arrays:
    a = test_sparse_and_graphs.matrix(rng, 100, 80, 0.1)
    arrays = {"begin": a.indptr, "column": a.indices, "value": a.data}
    return {**arrays, "x": rng.random(80, np.float32), "y": np.zeros(100, np.float32)}


def picture(rng: np.random.Generator) -> Arrays:
    a = rng.standard_normal((50, 70)).astype(np.float32)
    return {"a": a, "b": np.zeros((70, 50), np.float32)}


CASES = {
    "reduction": Case(
        test_reductions.SOURCE,
        reduction,
        lambda m, a: m.sum_shuffle[6, 128](a["x"], a["partial"], 3000),
        ("partial",),
    ),
    "scan with look-back": Case(
        test_scans.SOURCE,
        scan,
        lambda m, a: m.scan_look_back[16, 128](a["x"], a["y"], a["state"], a["ticket"], 2000),
        ("y",),
    ),
    "histogram": Case(
        test_sorts.SOURCE,
        histogram,
        lambda m, a: m.histogram_shared[4, 128](a["x"], a["bins"], 1000),
        ("bins",),
    ),
    "product in registers": Case(
        test_linear_algebra.SOURCE,
        products,
        lambda m, a: m.gemm_registers[(1, 1), 64](a["a"], a["b"], a["c"], 64, 64),
        ("c",),
    ),
    "attention": Case(
        test_neural.SOURCE,
        attention,
        lambda m, a: m.attention[70, 64, 280](a["q"], a["k"], a["v"], a["out"], 70, 16, 0.25),
        ("out",),
    ),
    "sparse matrix": Case(
        test_sparse_and_graphs.SOURCE,
        sparse,
        lambda m, a: m.spmv_vector[25, 128](a["begin"], a["column"], a["value"], a["x"], a["y"], 100),
        ("y",),
    ),
    "transpose": Case(
        test_stencils.SOURCE,
        picture,
        lambda m, a: m.transpose_padded[(3, 2), (32, 8)](a["a"], a["b"], 50, 70),
        ("b",),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("gpu_name", ["qv100", "h100"])
@pytest.mark.parametrize("name", CASES)
def test_values_and_cycles(rng: np.random.Generator, name: str, gpu_name: str) -> None:
    if not toolkit.toolkits():
        pytest.skip("NVRTC's wheel is not installed")
    case = CASES[name]
    arrays = case.arrays(rng)
    expected = {k: v.copy() for k, v in arrays.items()}
    functional = simt.GPU(gpu_name, functional=True, code=CODE)
    case.launch(functional.compile(case.source), expected)
    cycles = []
    for threads in (1, 2):
        timed = simt.GPU(gpu_name, threads=threads, code=CODE)
        found = {k: v.copy() for k, v in arrays.items()}
        case.launch(timed.compile(case.source), found)
        for key in case.result:
            assert (found[key] == expected[key]).all()
            assert (found[key] != arrays[key]).any()
        cycles.append(timed.launches[0].cycles)
        assert timed.launches[0].cycles > 100
    assert cycles[0] == cycles[1]
