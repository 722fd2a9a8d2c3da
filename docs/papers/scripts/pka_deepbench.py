"""Workloads in DeepBench's style: matrix products, convolutions and recurrent layers. Part of pka.py.

Matrix products are CUTLASS's (as in `simt validate programs`), convolutions simt's algorithms, and recurrent
layers PyTorch's, compiled to Triton. Sizes are a quarter of DeepBench's and below.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

import polars as pl
from papers import NotMeasured, Rows, Section, Steps, percent, table, times
from pka_methods import METHODS, method_rows
from pka_programs import LIMIT, VOLTA, gathered, launch_rows
from recipes import rows, simulate, smaller

from simt.examples.convolution import ALGORITHMS, DIRECTIONS, Convolution
from simt.gpu import GPU

PRODUCTS = {
    "GEMM, inference": (("wmma-2560x16x2560", "448x16x448", {"2560": "448"}),),
    "GEMM, training": (
        ("wmma-2560x128x2560", "448x128x448", {"2560": "448"}),
        ("sgemm-2560x64x2560", "448x64x448", {"2560": "448"}),
    ),
}
"""By suite: a recipe, the size, and what takes the place of which argument."""
CONVOLUTIONS = {
    "convolution, inference": (Convolution(1, 16, 28, 28, 32, 3, 3, 1, 1), DIRECTIONS[:1]),
    "convolution, training": (Convolution(4, 16, 14, 14, 32, 3, 3, 1, 1), DIRECTIONS),
}
CHOSEN = ("implicit_gemm", "winograd_nonfused", "fft")
REPEATS = 4
"""DeepBench repeats each operation, CUTLASS's program seven times."""
WIDTH, BATCH = 128, 4
RECURRENT = {"recurrent, inference": 16, "recurrent, training": 6}
"""Steps in time."""


def convolve(algorithm: str, problem: Convolution, directions: Sequence[str], gpu: GPU) -> None:
    x, w, dy = problem.inputs()
    given = {"forward": (x, w), "backward_data": (dy, w), "backward_filter": (x, dy)}
    convolution = ALGORITHMS[algorithm](gpu, problem)
    for _ in range(REPEATS):
        for direction in directions:
            getattr(convolution, direction)(*given[direction])


def recur(gates: int, steps: int, training: bool, gpu: GPU) -> None:
    """A layer step by step; in training, back after each. gates: 1, tanh of a product; 4, an LSTM."""
    try:
        import torch
    except ModuleNotFoundError as error:
        raise NotMeasured(f"{error}: pip install 'simt[torch]'") from None
    torch.manual_seed(0)

    class Cell(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.product = torch.nn.Linear(2 * WIDTH, gates * WIDTH)

        def forward(
            self, x: torch.Tensor, h: torch.Tensor, c: torch.Tensor
        ) -> tuple[torch.Tensor, torch.Tensor]:
            both = self.product(torch.cat([x, h], 1))
            if gates == 1:
                return torch.tanh(both), c
            i, f, g, o = both.chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            return torch.sigmoid(o) * torch.tanh(c), c

    cell = torch.compile(Cell(), backend="simt", options={"gpu": gpu}, dynamic=False)
    h = c = torch.zeros(BATCH, WIDTH)
    with torch.set_grad_enabled(training):
        for _ in range(steps):
            h, c = cell(torch.randn(BATCH, WIDTH), h.detach(), c.detach())
            if training:
                h.square().mean().backward()


def cases() -> dict[tuple[str, str], Callable[[GPU], None]]:
    """What is run on a GPU, by suite and name."""
    found: dict[tuple[str, str], Callable[[GPU], None]] = {}
    for suite, (problem, directions) in CONVOLUTIONS.items():
        for algorithm in CHOSEN:
            found[suite, algorithm] = partial(convolve, algorithm, problem, directions)
    for suite, steps in RECURRENT.items():
        for name, gates in (("vanilla", 1), ("LSTM", 4)):
            found[suite, name] = partial(recur, gates, steps, suite.endswith("training"))
    return found


def measure_deepbench(steps: Steps) -> pl.DataFrame:
    found: list[Rows] = []
    known = {row.recipe.program: row for row in rows()}
    for suite, products in PRODUCTS.items():
        for base, size, values in products:

            def product(
                suite: str = suite, base: str = base, size: str = size, values: dict[str, str] = values
            ) -> Rows:
                name = f"{base.partition('-')[0]}-{size}"
                run = simulate(smaller(known[base], name, values), "qv100", LIMIT, timeline=500)
                if run.result is None:
                    raise NotMeasured(run.why)
                return launch_rows(name, suite, VOLTA, run.result, run.seconds, 0.0)

            if base in known:
                found.append(steps.rows(f"{suite}, {size}", product))
    for (suite, name), run_it in cases().items():

        def other(suite: str = suite, name: str = name, run_it: Callable[[GPU], None] = run_it) -> Rows:
            gpu, start = GPU("qv100", timeline=500), time.process_time()
            run_it(gpu)
            seconds = time.process_time() - start
            return launch_rows(f"{suite}, {name}", suite, VOLTA, gpu.result(), seconds, 0.0)

        found.append(steps.rows(f"{suite}, {name}", other))
    return gathered(iter(found))


def show_deepbench(section: Section, frame: pl.DataFrame) -> str:
    said = pl.DataFrame(method_rows(frame, set()), infer_schema_length=None)
    shown = ("PKS", "PKA, artifact", "PKA, simt", "TBPoint", "one iteration")
    lines, means = [], []
    for suite in frame["suite"].unique(maintain_order=True):
        mine = said.filter(suite=suite)
        for program in mine["program"].unique(maintain_order=True):
            by = {row["method"]: row for row in mine.filter(program=program).iter_rows(named=True)}
            lines.append(
                [
                    program,
                    by["full"]["of"],
                    f"{frame.filter(program=program)['cycles'].sum():,}",
                    *(f"{100 * by[m]['error']:+.1f} %, {times(by[m]['speedup'])}" for m in shown),
                    percent(by["full"]["dram"]),
                    percent(by["PKA, simt"]["dram"]),
                ]
            )
        full = mine.filter(method="full")
        cells = []
        for method in shown:
            part = mine.filter(method=method)
            work = (1 / part["speedup"]).mean()
            cells.append(f"{percent(part['error'].abs().mean())}, {times(1 / work)}")  # type: ignore[operator]
        means.append([f"{suite}, mean", len(full), *cells])
    assert set(shown) <= set(METHODS)
    return (
        "DeepBench's programs call cuDNN and cuBLAS, whose kernels are machine code without sources. In "
        "their place: matrix products of CUTLASS (tensor cores and float32, seven launches), convolutions of "
        f"[simt's algorithms](../convolution.md) ({REPEATS} times, forward, or in three directions), and "
        f"recurrent layers of PyTorch, compiled to Triton ({WIDTH} units, batch {BATCH}; "
        f"{RECURRENT['recurrent, inference']} steps, in training {RECURRENT['recurrent, training']}, each "
        "with its way back). Sizes are a quarter of DeepBench's and below. Each cell: error against full "
        "simulation on `qv100`, and how many times fewer warp instructions.\n\n"
        + table(["workload", "launches", "cycles", *shown, "DRAM, full", "DRAM, PKA, simt"], lines)
        + "\nMeans of a suite (errors; harmonic of the speedups):\n\n"
        + table(["suite", "workloads", *shown], means)
    )
