"""PolyBench and CUTLASS at the sizes that silicon ran. Part of pka.py."""

from __future__ import annotations

import polars as pl
from papers import NotMeasured, Rows, Section, Steps, percent, table, times
from pka_methods import METHODS, method_rows
from pka_programs import LIMIT, VOLTA, gathered, launch_rows
from recipes import rows, simulate

from simt.validate.recipes import Row

CHOSEN = (
    "mvt",
    "atax",
    "bicg",
    "gesummv",
    "2dconv",
    "gemm",
    "wmma-2560x16x2560",
    "3dconv",
    "wmma-2560x32x2560",
)
"""The shortest first; all rows of these are certain."""
LEFT_OUT = (
    "Left out for their time: `3mm` (some 5 minutes of the processor), `2mm`, `syrk` and "
    "the other products of CUTLASS"
)


def measure_sizes(steps: Steps) -> pl.DataFrame:
    known = {row.recipe.program: row for row in rows()}
    found: list[Rows] = []
    for name in CHOSEN:

        def make(row: Row = known[name]) -> Rows:
            run = simulate(row, "qv100", LIMIT, timeline=500)
            if run.result is None:
                raise NotMeasured(run.why)
            recipe = row.recipe
            return launch_rows(recipe.program, recipe.suite, VOLTA, run.result, run.seconds, row.measured)

        found.append(steps.rows(name, make))
    return gathered(iter(found))


def show_sizes(section: Section, frame: pl.DataFrame) -> str:
    said = pl.DataFrame(method_rows(frame, set(frame["program"])), infer_schema_length=None)
    lines = []
    for program in frame["program"].unique(maintain_order=True):
        by = {row["method"]: row for row in said.filter(program=program).iter_rows(named=True)}
        full = by["full"]
        lines.append(
            [
                full["suite"],
                f"`{program}`",
                full["of"],
                f"{full['cycles']:,.0f}",
                f"{full['seconds']:.0f}",
                f"{100 * full['silicon']:+.0f} %",
                f"{100 * by['PKA, simt']['silicon']:+.0f} %",
                *(f"{100 * by[m]['error']:+.1f} %, {times(by[m]['speedup'])}" for m in METHODS),
                percent(full["dram"]),
                percent(by["PKA, simt"]["dram"]),
            ]
        )
    head = ["suite", "program", "launches", "cycles", "s", "silicon, full", "silicon, PKA, simt", *METHODS]
    return (
        "The programs at the sizes that silicon ran, in full and with each method, as "
        f"[above](#methods); all rows are certain. {LEFT_OUT}.\n\n"
        + table([*head, "DRAM, full", "DRAM, PKA, simt"], lines)
    )
