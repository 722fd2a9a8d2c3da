"""What the case studies share: programs, how one is simulated, the table and the plot."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
import numpy as np

import simt
from simt.power import COMPONENTS, Energy, ProgramEnergy
from simt.power.energy import NORMAL_95
from simt.result.result import Totals
from simt.workloads import WORKLOADS

TRACES = Path(os.environ.get("SIMT_TRACES", "traces"))
COLOURS = ("#b8442a", "#2a6f97", "#7d9d3d")
# Components of energy that a plot shows as one, with its colour.
PARTS = {
    "board, chip": ("#c9c9c9", ("board", "chip")),
    "SMs": ("#8a8a8a", ("active SMs", "idle SMs")),
    "front end": ("#b58db6", ("front end",)),
    "registers": ("#7a4b94", ("register file",)),
    "units": ("#2a6f97", tuple(name for name in COMPONENTS if name.endswith("units") or name == "control")),
    "tensor cores": ("#6fb1d6", ("tensor cores",)),
    "shared memory, L1": ("#7d9d3d", ("shared memory", "L1", "constant caches")),
    "L2, network": ("#e0a030", ("L2", "network")),
    "DRAM": ("#b8442a", ("DRAM",)),
}
# Programs here are short: without their launches' latency, power is that of a GPU that works.
NO_LATENCY = {"launch.kernel_latency": 0, "launch.overhead": 0}

SOURCE = """
// Matrix times vector, a thread for each row: its line is used for 32 steps, and must stay in the L1.
extern "C" __global__ void rows(const float* a, const float* x, float* y, int columns) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int c = 0; c < columns; c++) sum += a[row * columns + c] * x[c];
  y[row] = sum;
}
extern "C" __global__ void gather(const int* from, const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[from[i]];
}
// Reads along rows, writes along columns.
extern "C" __global__ void transpose(const float* x, float* y, int width) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i % width * width + i / width] = x[i];
}
extern "C" __global__ void triad(const float4* a, const float4* b, float4* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float4 u = a[i], v = b[i];
  c[i] = make_float4(u.x + 3 * v.x, u.y + 3 * v.y, u.z + 3 * v.z, u.w + 3 * v.w);
}
"""


def rows(gpu: simt.GPU, height: int, width: int = 32) -> None:
    arrays = gpu.zeros(height * width), gpu.zeros(width), gpu.zeros(height)
    gpu.compile(SOURCE).rows[height // 128, 128](*arrays, width)


def gather(gpu: simt.GPU, n: int) -> None:
    places = np.random.default_rng(0).integers(0, 1 << 22, n, np.int32)
    gpu.compile(SOURCE).gather[-(-n // 256), 256](gpu.array(places), gpu.zeros(1 << 22), gpu.zeros(n), n)


def transpose(gpu: simt.GPU, width: int) -> None:
    arrays = gpu.zeros(width * width), gpu.zeros(width * width)
    gpu.compile(SOURCE).transpose[width * width // 256, 256](*arrays, width)


def triad(gpu: simt.GPU, n: int) -> None:
    a, b, c = (gpu.zeros(n) for _ in range(3))
    gpu.compile(SOURCE).triad[-(-n // 1024), 256](a, b, c, n // 4)


@dataclass(frozen=True)
class Program:
    """A program of the studies: how it is run at a size; its sizes in full and in the quick form."""

    name: str
    run: Callable[[simt.GPU, int], Any]
    size: int
    quick: int


PROGRAMS = {
    program.name: program
    for program in (
        Program("aes", WORKLOADS["aes"].run, 1 << 20, 1 << 19),
        Program("convolution", WORKLOADS["convolution"].run, 1024, 128),
        Program("fir", WORKLOADS["fir"].run, 1 << 18, 1 << 15),
        Program("matmul", WORKLOADS["matmul"].run, 1 << 14, 1 << 12),
        Program("pagerank", WORKLOADS["pagerank"].run, 1024, 512),
        Program("relu", WORKLOADS["relu"].run, 1 << 20, 1 << 16),
        Program("spmv", WORKLOADS["spmv"].run, 1 << 13, 1 << 11),
        Program("rows", rows, 40960, 10240),
        Program("gather", gather, 1 << 18, 1 << 15),
        Program("transpose", transpose, 1024, 512),
        Program("triad", triad, 1 << 20, 1 << 17),
    )
}


@dataclass(frozen=True)
class Arguments:
    quick: bool
    output: Path
    threads: int


def arguments(description: str | None, name: str) -> Arguments:
    """The command line of a study; `name` is the plot's file."""
    parser = argparse.ArgumentParser(description=(description or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few and small programs")
    parser.add_argument("--output", type=Path, default=Path(name), help="file of the plot")
    parser.add_argument("--threads", type=int, default=2, help="host threads; no result depends on them")
    given = parser.parse_args()
    return Arguments(given.quick, given.output, given.threads)


def simulated(
    program: Program, gpu: str, overrides: Mapping[str, Any], given: Arguments
) -> tuple[Totals, int]:
    """Totals of a program's launches, and their cycles without launch latencies."""
    device = simt.GPU(gpu, set=overrides, threads=given.threads)
    program.run(device, program.quick if given.quick else program.size)
    return _measured(device.result())


def energy(
    program: Program, gpu: str, overrides: Mapping[str, Any], given: Arguments
) -> tuple[ProgramEnergy, simt.Result]:
    """Energy of a program whose launches have no latency."""
    device = simt.GPU(gpu, set={**NO_LATENCY, **overrides}, threads=given.threads, power=True)
    program.run(device, program.quick if given.quick else program.size)
    result = device.result()
    return result.energy, result


def ratio(a: Energy, b: Energy) -> str:
    """Energy of `a` over that of `b` with its 95 % interval: a value that is wrong is wrong for both."""
    sources = a.uncertain.keys() | b.uncertain.keys()
    each = [a.uncertain.get(x, 0) / a.joules - b.uncertain.get(x, 0) / b.joules for x in sources]
    middle, factor = a.joules / b.joules, math.exp(NORMAL_95 * math.sqrt(sum(x * x for x in each)))
    return f"{middle:.2f} ({middle / factor:.2f}-{middle * factor:.2f})"


def traces() -> list[Path]:
    """Recorded traces, where there are any; says so where there are none."""
    found = sorted(path.parent for path in TRACES.glob("*/kernelslist.g"))
    if not found:
        print(f"no traces in {TRACES} (SIMT_TRACES names their folder): executed programs only")
    return found


def replayed(trace: Path, gpu: str, overrides: Mapping[str, Any], given: Arguments) -> tuple[Totals, int]:
    """The same of a trace."""
    return _measured(simt.simulate(trace, gpu, set=overrides, threads=given.threads))


def _measured(result: simt.Result) -> tuple[Totals, int]:
    return result.totals, sum(launch.cycles - launch.launch_latency for launch in result.launches)


def geometric_mean(values: Sequence[float]) -> float:
    return float(np.exp(np.mean(np.log(values))))


def print_table(header: Sequence[str], table: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(header, *table, strict=True)]
    for line in (header, *table):
        first, *others = line
        cells = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        print("  ".join([first.ljust(widths[0]), *cells]))


def bars(
    axes: Any,
    names: Sequence[str],
    groups: Mapping[str, Sequence[float]],
    label: str,
    colours: Sequence[str] = COLOURS,
    digits: int = 2,
) -> None:
    """Grouped bars with their values on top."""
    width = 0.8 / len(groups)
    for k, (group, values) in enumerate(groups.items()):
        at = np.arange(len(names)) + (k - (len(groups) - 1) / 2) * width
        drawn = axes.bar(at, values, width, label=group, color=colours[k])
        axes.bar_label(drawn, [f"{v:,.{digits}f}" for v in values], fontsize=7, padding=2)
    axes.set_xticks(range(len(names)), names, rotation=30, ha="right")
    axes.set_ylabel(label)
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(y=0.12)
    if len(groups) > 1:
        axes.legend(frameon=False)


def stacked(
    axes: Any, names: Sequence[str], rows: Sequence[Mapping[str, float]], label: str, digits: int = 0
) -> None:
    """A bar for each row, of its components summed into `PARTS`, with the sum on top."""
    bottom = np.zeros(len(rows))
    for part, (colour, components) in PARTS.items():
        values = np.array([sum(row[name] for name in components) for row in rows])
        if values.any():
            drawn = axes.bar(range(len(rows)), values, 0.7, bottom=bottom, color=colour, label=part)
            bottom += values
    axes.bar_label(drawn, [f"{v:,.{digits}f}" for v in bottom], fontsize=7, padding=2)
    axes.set_xticks(range(len(names)), names, rotation=30, ha="right")
    axes.set_ylabel(label)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_ylim(0, 1.12 * bottom.max())


def legend(axes: Any) -> None:
    """The parts of stacked bars beside the plot, in their order."""
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(handles[::-1], labels[::-1], frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))


def save(figure: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130, bbox_inches="tight")
    plt.close(figure)
    print(f"plot: {path}")
