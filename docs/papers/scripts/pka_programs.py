"""PKA's programs, simulated in full: a row for each launch. Part of pka.py.

Each program is simulated in full once; what each method would have simulated, and what it would have said,
follows from that run: launches that a plan leaves out have their cycles in it, and controllers are asked by
`simt.control.what_if`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import matplotlib.pyplot as plt
import polars as pl
from matplotlib.figure import Figure
from papers import NotMeasured, Rows, Section, Steps
from recipes import rows, simulate, smaller

from simt.control import PKP, TBPointRegions, what_if
from simt.plots import SERIES
from simt.profile import Profile
from simt.profile.simulated import profile_of
from simt.result import LaunchResult, Result
from simt.sampling.columns import LANES, WARP_INSTRUCTIONS, available
from simt.sampling.features import PAPER
from simt.validate.recipes import Row

LIMIT = 900.0
"""Seconds of the wall clock for a program."""
LONGEST = 4e5
"""Cycles on silicon of the longest program; longer ones take minutes."""
LONGER = ("lud", "lud-512", "fast-walsh-transform-19")
"""Programs that are longer and are simulated nevertheless."""
SUITES = ("rodinia", "parboil", "sdk-4.2")
LEFT_OUT = {
    "dwt2d-1024": "an input like dwt2d-192's, and longer",
    "vector-add-6000000": "as vector-add-4000000",
    "scalar-prod-13920": "as scalar-prod-8192",
}
_POLYBENCH = "src/cuda/polybench-gpu-1.0/CUDA/"
SMALLER: Sequence[tuple[str, str, dict[str, str], str]] = (
    ("2dconv", "2dconv-1024", {"NI": "1024", "NJ": "1024"}, ""),
    ("2mm", "2mm-256", dict.fromkeys(("NI", "NJ", "NK", "NL"), "256"), ""),
    ("3dconv", "3dconv-64", dict.fromkeys(("NI", "NJ", "NK"), "64"), ""),
    ("3mm", "3mm-256", dict.fromkeys(("NI", "NJ", "NK", "NL", "NM"), "256"), ""),
    ("atax", "atax-1024", {"NX": "1024", "NY": "1024"}, ""),
    ("bicg", "bicg-1024", {"NX": "1024", "NY": "1024"}, ""),
    ("gemm", "correlation-128", {"M": "128", "N": "128"}, f"{_POLYBENCH}CORR/correlation.cu"),
    ("gemm", "covariance-128", {"M": "128", "N": "128"}, f"{_POLYBENCH}COVAR/covariance.cu"),
    ("gemm", "fdtd2d-256", {"NX": "256", "NY": "256", "tmax": "50"}, f"{_POLYBENCH}FDTD-2D/fdtd2d.cu"),
    ("gemm", "gemm-256", dict.fromkeys(("NI", "NJ", "NK"), "256"), ""),
    ("gesummv", "gesummv-1024", {"N": "1024"}, ""),
    ("gemm", "gramschmidt-128", {"M": "128", "N": "128"}, f"{_POLYBENCH}GRAMSCHM/gramschmidt.cu"),
    ("mvt", "mvt-1024", {"N": "1024"}, ""),
    ("gemm", "syr2k-128", {"M": "128", "N": "128"}, f"{_POLYBENCH}SYR2K/syr2k.cu"),
    ("syrk", "syrk-256", {"M": "256", "N": "256"}, ""),
    ("bfs", "bfs-65536", {"1000000": "65536"}, ""),
    ("needle", "needle-512", {"2048": "512"}, ""),
    ("srad-v1", "srad-v1-10", {"100": "10"}, ""),
    ("stencil", "stencil-10", {"100": "10"}, ""),
    ("wmma-2560x16x2560", "wmma-512x16x512", {"2560": "512"}, ""),
    ("wmma-2560x128x2560", "wmma-1024x128x1024", {"2560": "1024"}, ""),
    ("sgemm-2560x64x2560", "sgemm-512x64x512", {"2560": "512"}, ""),
)
"""Programs at smaller sizes: that of a recipe, a new name, macros and arguments, another source if any."""
VOLTA, TURING, AMPERE, HALF = "V100", "RTX 2060", "RTX 3070", "V100, 40 SMs"
GPUS: dict[str, tuple[str, dict[str, Any]]] = {
    VOLTA: ("qv100", {}),
    TURING: ("rtx2060", {}),
    AMPERE: ("rtx3070", {}),
    HALF: ("qv100", {"sm.count": 40}),
}
CONTROLLERS = {
    "paper": PKP(**PKP.presets["paper"]),
    "artifact": PKP(**PKP.presets["artifact"]),
    "simt": PKP(),
    "tbpoint": TBPointRegions(),
}
"""What would have stopped a launch: PKP as the paper's text and as its published code have it, and as simt
has it; TBPoint."""
SHAPE = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "registers", "shared_bytes")
MOST_SECONDS = 25.0
"""On the V100, of a program that is simulated on the other GPUs, too, which are three more runs."""


def launch_rows(program: str, suite: str, gpu: str, result: Result, seconds: float, measured: float) -> Rows:
    """What the methods need of each launch."""
    profile = profile_of(result)
    features = {available(profile, names) for names in (*PAPER.values(), WARP_INSTRUCTIONS, LANES)}
    columns = [name for name in sorted(filter(None, features)) if profile.has(name)]
    outcomes = {name: what_if(result, controller).outcomes for name, controller in CONTROLLERS.items()}
    found = []
    for i, launch in enumerate(result.launches):
        row: dict[str, Any] = {
            "suite": suite,
            "program": program,
            "gpu": gpu,
            "launch": i,
            "name": launch.name,
            "measured": measured,
            "seconds": seconds,
            "cycles": launch.cycles,
            "instructions": launch.warp_instructions,
            "dram": float(dram(launch)),
            "duration_ns": profile.column("duration_ns")[i],
        }
        row |= {name: int(profile.column(name)[i]) for name in SHAPE}
        row |= {name: float(profile.column(name)[i]) for name in columns}
        for name, of in outcomes.items():
            row |= {
                f"{name}.cycles": of[i].projected_cycles,
                f"{name}.instructions": of[i].simulated_instructions,
                f"{name}.dram": dram(launch) * (1 + finite(of[i].errors.get("dram_bus_cycles"))),
            }
        found.append(row)
    return found


def finite(value: float | None) -> float:
    return value if value is not None and math.isfinite(value) else 0.0


def dram(launch: LaunchResult) -> float:
    """DRAM utilisation (0 to 1) times cycles: adds up over launches, and over what is projected."""
    busy = launch.counters["dram__throughput.avg.pct_of_peak_sustained_elapsed"]
    return float(busy or 0) / 100 * launch.cycles


def programs() -> Iterator[Row]:
    """The programs, those of many launches and the shorter ones first."""
    known = {row.recipe.program: row for row in rows()}
    for base, name, values, file in SMALLER:
        if base in known:
            yield smaller(known[base], name, values, file)
    for row in known.values():
        recipe = row.recipe
        short = row.measured <= LONGEST or recipe.program in LONGER
        if recipe.suite in SUITES and short and recipe.program not in LEFT_OUT:
            yield row


def runs(steps: Steps, gpus: Sequence[str], chosen: Sequence[str] | None = None) -> Iterator[Rows]:
    for row in programs():
        for gpu in gpus:
            name, values = GPUS[gpu]
            recipe = row.recipe
            if chosen is not None and recipe.program not in chosen:
                continue

            def make(
                name: str = name, values: dict[str, Any] = values, gpu: str = gpu, row: Row = row
            ) -> Rows:
                run = simulate(row, name, LIMIT, values, timeline=500)
                if run.result is None:
                    raise NotMeasured(run.why)
                recipe = row.recipe
                return launch_rows(recipe.program, recipe.suite, gpu, run.result, run.seconds, row.measured)

            yield steps.rows(f"{recipe.program}, {gpu}", make)


def gathered(found: Iterator[Rows]) -> pl.DataFrame:
    return pl.DataFrame([row for rows in found for row in rows], infer_schema_length=None)


def measure_launches(steps: Steps) -> pl.DataFrame:
    return gathered(runs(steps, [VOLTA]))


def measure_generations(steps: Steps) -> pl.DataFrame:
    launches = steps.paper.frame("launches")
    seconds = launches.group_by("program").agg(pl.first("seconds"), pl.len())
    chosen = seconds.filter((pl.col("seconds") <= MOST_SECONDS) & (pl.col("len") > 1))["program"].to_list()
    return gathered(runs(steps, [TURING, AMPERE, HALF], chosen))


def profile_in(frame: pl.DataFrame) -> Profile:
    """The profile of a program's launches."""
    counters = [name for name in frame.columns if "__" in name and frame[name].null_count() == 0]
    return Profile(frame.select("launch", "name", *SHAPE, "duration_ns", *counters))


def show_launches(section: Section, frame: pl.DataFrame) -> str:
    found = frame.group_by("program", maintain_order=True).agg(
        pl.first("seconds"), (pl.sum("duration_ns") / 1e9).alias("gpu"), pl.len(), pl.sum("cycles")
    )

    def draw() -> Figure:
        figure, axes = plt.subplots(figsize=(8, 3.6))
        ordered = found.sort("gpu")
        x = range(len(ordered))
        axes.semilogy(
            x,
            ordered["seconds"],
            "o",
            color=SERIES["blue"],
            ms=4,
            label="simulation in full, s of the processor",
        )
        axes.semilogy(
            x, ordered["gpu"], "s", color=SERIES["orange"], ms=4, label="the same on the V100 (simulated), s"
        )
        axes.set_xticks(x, ordered["program"], rotation=90, fontsize=7)
        axes.set_ylabel("seconds")
        axes.legend(fontsize=8)
        figure.tight_layout()
        return figure

    total = found["seconds"].sum()
    return (
        f"{len(found)} programs with {len(frame):,} launches and {frame['cycles'].sum() / 1e6:,.1f} "
        f"million cycles took {total:,.0f} s of the processor in full, of which "
        f"{found['seconds'].max():,.0f} s the longest. A row of the Parquet is a launch: cycles, counters, "
        "and what PKP (as in the paper's text, as in its published code, and simt's) and TBPoint would have "
        "simulated and said. Left out: "
        + "; ".join(f"`{name}` ({why})" for name, why in LEFT_OUT.items())
        + f"; programs of more than {LONGEST / 1e3:,.0f} thousand cycles on silicon, but for "
        + ", ".join(f"`{name}`" for name in LONGER)
        + ". In place of some of these, and of all of PolyBench and CUTLASS, are smaller ones, whose size is "
        "in the name: nothing was measured of them on silicon. The suites' other programs have no recipe.\n\n"
        + section.plot("figure-1", "Seconds of the processor and of the GPU by program", draw)
    )
