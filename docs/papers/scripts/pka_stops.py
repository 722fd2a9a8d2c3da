"""Where PKP stops launches, over time. Part of pka.py."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import polars as pl
from matplotlib.figure import Figure
from papers import NotMeasured, Rows, Section, Steps, table
from pka_programs import LIMIT, programs
from recipes import simulate

from simt.control import PKP, what_if
from simt.formatting import kernel_label
from simt.gpu import GPU
from simt.plots import SERIES
from simt.result import Result
from simt.validate.recipes import Row
from simt.workloads import WORKLOADS

THRESHOLDS = (2.5, 0.25, 0.025)
STOPPED = {"fir": 1 << 18, "spmv": 1 << 13}
"""A regular and an irregular one of simt's workloads, beside the paper's ATAX and BFS."""


def measure_stops(steps: Steps) -> pl.DataFrame:
    """Timelines of some programs, and where PKP would have stopped."""
    found: Rows = []
    for name, size in STOPPED.items():

        def shipped(name: str = name, size: int = size) -> Rows:
            gpu = GPU("qv100", timeline=500)
            WORKLOADS[name].run(gpu, size)
            return timeline_rows(name, gpu.result())

        found += steps.rows(name, shipped)
    for name in ("atax-1024", "bfs-65536"):
        row = next(row for row in programs() if row.recipe.program == name)

        def make(row: Row = row) -> Rows:
            run = simulate(row, "qv100", LIMIT, timeline=500)
            if run.result is None:
                raise NotMeasured(run.why)
            return timeline_rows(row.recipe.program, run.result)

        found += steps.rows(name, make)
    return pl.DataFrame(found, infer_schema_length=None)


def timeline_rows(program: str, result: Result) -> Rows:
    stops = {
        s: [
            o.stop_cycle if o.decision == "stop" else None
            for o in what_if(result, PKP(**{**PKP.presets["artifact"], "threshold": s})).outcomes
        ]
        for s in THRESHOLDS
    }
    longest = sorted(result.launches, key=lambda launch: -launch.cycles)[:3]
    found: Rows = []
    for launch in sorted(longest, key=lambda launch: launch.index):
        samples = launch.samples()
        step = max(1, len(samples) // 300)
        for i in range(0, len(samples) - step + 1, step):
            part = samples[i : i + step]
            hits = [s.l2_hit_rate for s in part if s.l2_hit_rate is not None]
            found.append(
                {
                    "program": program,
                    "launch": launch.index,
                    "name": launch.name,
                    "cycle": part[-1].end - launch.start_cycle,
                    "ipc": float(np.mean([s.ipc for s in part])),
                    "l2_miss": 100 - float(np.mean(hits)) if hits else None,
                    "dram": float(np.mean([s.dram_busy for s in part])),
                    **{f"stop {s}": stops[s][launch.index] for s in THRESHOLDS},
                }
            )
    return found


def show_stops(section: Section, frame: pl.DataFrame) -> str:
    def draw() -> Figure:
        launches = list(frame.group_by("program", "launch", "name", maintain_order=True))
        lines = -(-len(launches) // 3)
        figure, plots = plt.subplots(lines, 3, figsize=(11, 2.6 * lines), squeeze=False)
        for axes in plots.ravel()[len(launches) :]:
            axes.remove()
        for i, (axes, ((program, _, name), part)) in enumerate(zip(plots.ravel(), launches, strict=False)):
            axes.plot(part["cycle"] / 1e3, part["ipc"], color=SERIES["blue"], lw=1, label="IPC per SM")
            axes.set_title(f"{program}: {kernel_label(name, 26)} ({part['launch'][0]})", fontsize=8)
            axes.set_ylim(bottom=0)
            right = axes.twinx()
            for column, colour, label in (
                ("l2_miss", "orange", "L2 miss rate, %"),
                ("dram", "aqua", "DRAM utilisation, %"),
            ):
                right.plot(part["cycle"] / 1e3, part[column], color=SERIES[colour], lw=0.8, label=label)
            right.set_ylim(0, 105)
            for s, style in zip(THRESHOLDS, ("-", "--", ":"), strict=True):
                if part[f"stop {s}"][0] is not None:
                    axes.axvline(part[f"stop {s}"][0] / 1e3, color="k", ls=style, lw=1, label=f"s = {s}")
            axes.tick_params(labelsize=7)
            right.tick_params(labelsize=7)
            axes.set_xlabel("thousand cycles", fontsize=7)
            if i % 3 == 0:
                axes.set_ylabel("IPC per SM", fontsize=7)
            if i % 3 == 2 or i == len(launches) - 1:
                right.set_ylabel("L2 misses, DRAM, %", fontsize=7)
        handles = {}
        for axes in figure.axes:
            handles |= {
                label: handle for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
            }
        figure.legend(handles.values(), handles.keys(), loc="lower center", ncols=6, fontsize=8)
        figure.tight_layout(rect=(0, 0.07, 1, 1))
        return figure

    lines = []
    for (program, launch), part in frame.group_by("program", "launch", maintain_order=True):
        end = part["cycle"].max()
        cells = [part[f"stop {s}"][0] for s in THRESHOLDS]
        lines.append(
            [f"`{program}`", launch, f"{end:,}", *(f"{c:,}" if c is not None else "not" for c in cells)]
        )
    return (
        "Regular and irregular programs (ATAX, BFS, and two of simt's workloads), their longest launches, "
        "with the published code's rule: the standard "
        "deviation of the IPC since the start of the launch, over 3,000 cycles, below s; and a wave of "
        "CTAs (or 0.3 of "
        "them) finished. Cycles at which it stops:\n\n"
        + table(["program", "launch", "cycles", *(f"s = {s}" for s in THRESHOLDS)], lines)
        + "\n"
        + section.plot("figure-5", "IPC, L2 misses and DRAM utilisation over time, and where PKP stops", draw)
    )
