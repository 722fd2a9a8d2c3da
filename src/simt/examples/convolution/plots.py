"""The study's pictures, after those that Lew et al. (2018) made with AerialVision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from matplotlib.figure import Figure

from simt.names import short_name
from simt.plots import INK, SERIES

from . import ALGORITHMS, DIRECTIONS
from .study import Run

if TYPE_CHECKING:
    from simt.result import LaunchResult

COLOURS = dict(zip(ALGORITHMS, SERIES.values(), strict=False))
# The states of schedulers in the order in which they are stacked; all others are summed up.
STATES = {
    "selected": "green",
    "not_selected": "aqua",
    "math_pipe_throttle": "yellow",
    "wait": "orange",
    "short_scoreboard": "violet",
    "long_scoreboard": "blue",
    "lg_throttle": "red",
    "barrier": "magenta",
    "no_instruction": "teal",
}

_DRAM = ("utilisation", "efficiency")


def cycles_figure(runs: Sequence[Run]) -> Figure:
    """Cycles of each algorithm in each direction, with those before the first CTAs start on top."""
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    directions = [direction for direction in DIRECTIONS if any(run.direction == direction for run in runs)]
    panels = figure.subplots(1, len(directions), sharey=True, squeeze=False)[0]
    names = [name for name in ALGORITHMS if any(run.algorithm == name for run in runs)]
    for axis, direction in zip(panels, directions, strict=True):
        for run in runs:
            if run.direction == direction:
                totals = run.result.totals
                cycles, latency = totals.cycles / 1000, totals.launch_latency / 1000
                at = names.index(run.algorithm)
                axis.bar(at, cycles - latency, color=COLOURS[run.algorithm])
                bar = axis.bar(at, latency, bottom=cycles - latency, color=INK["line"])
                axis.bar_label(bar, [f"{cycles:,.0f}"], fontsize=7, padding=2)
        axis.set_xticks(range(len(names)), names, rotation=35, ha="right", fontsize=8)
        axis.set_title(direction.replace("_", " "), fontsize=9)
        axis.margins(y=0.1)
        _plain(axis)
    panels[0].set_ylabel("thousands of core cycles\n(grey: launch latency)", color=INK["soft"], fontsize=8)
    return figure


def ipc_figure(runs: Sequence[Run]) -> Figure:
    """IPC over time, a row per direction."""
    directions = [direction for direction in DIRECTIONS if any(run.direction == direction for run in runs)]
    figure = Figure(figsize=(9, 2 * len(directions) + 0.6), layout="constrained")
    panels = figure.subplots(len(directions), 1, sharex=True, squeeze=False)[:, 0]
    for axis, direction in zip(panels, directions, strict=True):
        for run in runs:
            if run.direction == direction:
                samples = [sample for launch in run.result.launches for sample in launch.samples()]
                edges = [sample.start for sample in samples] + [samples[-1].end]
                values = [sample.ipc for sample in samples]
                axis.stairs(values, edges, color=COLOURS[run.algorithm], linewidth=0.9, label=run.algorithm)
        axis.set_ylabel(f"{direction.replace('_', ' ')}:\nIPC per SM", color=INK["soft"], fontsize=8)
        _plain(axis)
    panels[-1].set_xlabel("core cycle", color=INK["soft"], fontsize=8)
    figure.legend(
        *panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=6, frameon=False, fontsize=8
    )
    return figure


def run_figure(run: Run) -> Figure:
    """One run over time: IPC, what schedulers did, and DRAM by channel and by bank. Lines are where launches
    begin; their kernels' names are on top."""
    heights: dict[Any, float] = {"ipc": 1, "stalls": 1.6}
    heights |= {(by, what): size for by, size in (("channel", 1), ("bank", 2)) for what in _DRAM}
    figure = Figure(figsize=(9, 10), layout="constrained")
    rows = figure.subplots(len(heights), 1, sharex=True, height_ratios=list(heights.values()))
    panels = dict(zip(heights, rows, strict=True))
    launches = run.result.launches
    samples = [sample for launch in launches for sample in launch.samples()]
    edges = [sample.start for sample in samples] + [samples[-1].end]
    panels["ipc"].stairs([sample.ipc for sample in samples], edges, color=COLOURS[run.algorithm], fill=True)
    panels["ipc"].set_ylabel("IPC per SM", color=INK["soft"], fontsize=8)
    _stack(panels["stalls"], [sample.stalls for sample in samples], edges)
    for by in ("channel", "bank"):
        for what in _DRAM:
            _heat(panels[by, what], launches, edges, by, what)
    for axis in rows:
        _plain(axis)
        for launch in launches[1:]:
            axis.axvline(launch.start_cycle, color=INK["ink"], linewidth=0.6, linestyle=":")
    for launch in launches:
        place = ((launch.start_cycle + launch.end_cycle) / 2, 1.03)
        panels["ipc"].annotate(
            short_name(launch.name), place, xycoords=("data", "axes fraction"), rotation=20, fontsize=7
        )
    rows[-1].set_xlabel("core cycle", color=INK["soft"], fontsize=8)
    figure.suptitle(f"{run.algorithm}, {run.direction.replace('_', ' ')}: {run.problem}", fontsize=9)
    states = panels["stalls"].get_legend_handles_labels()
    figure.legend(
        *states,
        loc="outside lower center",
        ncols=5,
        frameon=False,
        fontsize=8,
        title="schedulers' cycles",
        title_fontsize=8,
    )
    return figure


def _stack(axis: Any, stalls: Sequence[dict[str, float]], edges: Sequence[int]) -> None:
    """Shares of schedulers' cycles, stacked; what is missing from 100 % are cycles without a warp."""
    bottom = np.zeros(len(stalls))
    rows = {state: np.array([row.get(state, 0.0) for row in stalls]) for state in STATES}
    rows["others"] = np.array([sum(v for k, v in row.items() if k not in STATES) for row in stalls])
    for state, row in rows.items():
        if row.any():
            colour = SERIES[STATES[state]] if state in STATES else INK["faint"]
            axis.stairs(bottom + row, edges, baseline=bottom, fill=True, color=colour, label=state)
            bottom = bottom + row
    axis.set_ylim(0, 100)
    axis.set_ylabel("schedulers' cycles, %", color=INK["soft"], fontsize=8)


def _heat(
    axis: Any,
    launches: Sequence[LaunchResult],
    edges: Sequence[int],
    by: Literal["channel", "bank"],
    what: str,
) -> None:
    """DRAM's utilisation or efficiency over time, a row per channel or bank; grey where there is none."""
    found = [activity for launch in launches if (activity := launch.dram_activity(by)) is not None]
    values = np.concatenate([getattr(activity, what) for activity in found]).T
    most = np.nanmax(values, initial=1) if (by, what) == ("bank", "utilisation") else 100  # they share a bus
    image = axis.pcolorfast(edges, np.arange(len(values) + 1), values, vmin=0, vmax=most, cmap="viridis")
    axis.set_facecolor(INK["line"])
    axis.set_ylabel(f"DRAM {by}", color=INK["soft"], fontsize=8)
    bar = axis.figure.colorbar(image, ax=axis, pad=0.01)
    bar.set_label(f"{what}, %", fontsize=8, color=INK["soft"])
    bar.ax.tick_params(colors=INK["soft"], labelsize=7)


def _plain(axis: Any) -> None:
    axis.spines[["top", "right"]].set_visible(False)
    axis.tick_params(colors=INK["soft"], labelsize=8)
