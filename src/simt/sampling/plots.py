"""Plots: how a Plan cuts the time distribution of each kernel, and how methods compare."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

from simt.formatting import kernel_label, percent, plural
from simt.plots import INK, SERIES
from simt.profile import Profile
from simt.sampling.plan import Plan

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from simt.sampling.compare import SamplerComparison

MARKERS = "osD^"  # the next marker after each cycle of colours
KERNELS = 6  # panels of strata_figure
BINS = 60
RUG = 400  # drawn launches marked in a panel
LEAST_ERROR = 1e-5  # where an error of 0 is drawn on a logarithmic axis


def strata_figure(
    profile: Profile, plan: Plan, strata: npt.NDArray[np.int64], kernels: int = KERNELS
) -> Figure:
    """Histograms of the launch times of the kernels with the most time, coloured by stratum.

    strata: each launch's stratum, as `Sampler.strata_`. Strata that are ranges of time shade the background;
    ticks below the axis are the chosen launches. Raises ProfileError if the profile has no times.
    """
    times = profile.column("duration_ns") / 1e3
    codes = profile.name_codes
    totals = np.bincount(codes, weights=times, minlength=len(profile.names))
    longest = np.argsort(-totals, kind="stable")[:kernels]
    ids = profile.launches["launch"].to_numpy()
    drawn = np.zeros(len(profile), bool)
    drawn[np.searchsorted(ids, plan.launches["launch"].to_numpy())] = True
    columns = min(2, len(longest))
    lines = -(-len(longest) // columns)
    figure = Figure(figsize=(5.6 * columns, 2.4 * lines), layout="constrained")
    axes = figure.subplots(lines, columns, squeeze=False).ravel()
    for axis in axes[len(longest) :]:
        axis.remove()
    for axis, code in zip(axes, longest, strict=False):
        rows = np.flatnonzero(codes == code)
        share = totals[code] / totals.sum() if totals.sum() else 0.0
        _histogram(axis, times[rows], strata[rows], drawn[rows])
        count = len(np.unique(strata[rows]))
        about = f"{plural(len(rows), 'launch')}, {percent(share, 1)} of the time, "
        about += f"{count} strat{'a' if count != 1 else 'um'}, {drawn[rows].sum():,} chosen"
        axis.set_title(f"{kernel_label(profile.names[code], 64)}\n{about}", **_title())
    return figure


def _title() -> dict[str, Any]:
    return {"loc": "left", "fontsize": 9, "color": INK["ink"]}


def _histogram(
    axis: Axes, times: npt.NDArray[np.float64], strata: npt.NDArray[np.int64], drawn: npt.NDArray[np.bool_]
) -> None:
    low, high = float(times.min()), float(times.max())
    logarithmic = low > 0 and high > 50 * low
    if low == high:
        low, high = (0.9 * low, 1.1 * high) if high else (0.0, 1.0)
    edges = np.geomspace(low, high, BINS + 1) if logarithmic else np.linspace(low, high, BINS + 1)
    _, codes = np.unique(strata, return_inverse=True)
    sizes = np.bincount(codes)
    rank = np.argsort(np.argsort(np.bincount(codes, times) / sizes, kind="stable"))[codes]
    at = np.clip(np.searchsorted(edges, times, "right") - 1, 0, BINS - 1)
    heights = np.bincount(rank * BINS + at, minlength=len(sizes) * BINS).reshape(-1, BINS)
    tops = np.cumsum(heights, axis=0)
    colors = np.resize(list(SERIES.values()), len(sizes))
    part, column = np.nonzero(heights)
    axis.bar(
        edges[column],
        heights[part, column],
        np.diff(edges)[column],
        (tops - heights)[part, column],
        align="edge",
        color=colors[part],
        linewidth=0,
    )
    order = np.argsort(rank, kind="stable")
    begins = np.flatnonzero(np.diff(rank[order], prepend=-1))
    least, most = (f.reduceat(times[order], begins) for f in (np.minimum, np.maximum))
    if len(sizes) > 1 and (most[:-1] <= least[1:]).all():  # ranges of time, one after another
        cuts = np.concatenate([[edges[0]], (most[:-1] + least[1:]) / 2, [edges[-1]]])
        axis.broken_barh(
            list(zip(cuts[:-1], np.diff(cuts), strict=True)),
            (0, 1),
            transform=axis.get_xaxis_transform(),
            facecolors=colors.tolist(),
            alpha=0.1,
            linewidth=0,
        )
    chosen = times[drawn]
    chosen = chosen[:: -(-len(chosen) // RUG)] if len(chosen) else chosen
    (rug,) = axis.plot(
        chosen,
        np.full(len(chosen), -0.045),
        "|",
        transform=axis.get_xaxis_transform(),
        color=INK["ink"],
        markersize=7,
        markeredgewidth=0.8,
        clip_on=False,
    )
    rug.set_in_layout(False)
    if logarithmic:
        axis.set_xscale("log")
        axis.xaxis.set_major_locator(LogLocator(subs=(1, 3)))
        axis.xaxis.set_major_formatter("{x:g}")
        axis.xaxis.set_minor_formatter(NullFormatter())
    axis.set_xlim(edges[0], edges[-1])
    axis.tick_params(axis="x", pad=9)
    axis.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    axis.set_xlabel("time, µs", fontsize=8, color=INK["soft"])
    axis.set_ylabel("launches", fontsize=8, color=INK["soft"])
    _quiet(axis)


def comparison_figure(comparison: SamplerComparison) -> Figure:
    """Error against speedup, both logarithmic, a colour per method; beside it the share of seeds within the
    bound.

    A small dot is one seed, a large one the method: mean error and harmonic mean of the speedup. A bar is the
    method's claimed bound, a dashed line the widest of these.
    """
    summary = comparison.summary
    bounded = summary.filter(pl.col("coverage").is_not_null())
    figure = Figure(figsize=(11, 5.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(2.2, 1))
    _scatter(left, comparison, summary)
    _coverage(right, bounded, _styles(summary))
    where = comparison.truth_source or comparison.source
    figure.suptitle(
        f"judged by {Path(where).name}"
        + (f", plans from {Path(comparison.source).name}" if comparison.truth_source else ""),
        fontsize=10,
        x=0.01,
        ha="left",
        color=INK["soft"],
    )
    return figure


def _styles(summary: pl.DataFrame) -> dict[str, tuple[str, str]]:
    colors = list(SERIES.values())
    return {
        method: (colors[i % len(colors)], MARKERS[i // len(colors) % len(MARKERS)])
        for i, method in enumerate(summary["method"])
    }


def _scatter(axis: Axes, comparison: SamplerComparison, summary: pl.DataFrame) -> None:
    styles = _styles(summary)
    for x in summary.to_dicts():
        color, marker = styles[x["method"]]
        runs = comparison.runs.filter((pl.col("method") == x["method"]) & pl.col("speedup").is_finite())
        errors = 100 * np.maximum(runs["error"].to_numpy(), LEAST_ERROR)
        axis.plot(
            runs["speedup"].to_numpy(),
            errors,
            marker,
            color=color,
            markersize=3,
            alpha=0.3,
            markeredgewidth=0,
        )
        axis.plot(
            x["speedup_hmean"],
            100 * max(x["mean_error"], LEAST_ERROR),
            marker,
            color=color,
            markersize=10,
            markeredgecolor=INK["card"],
            markeredgewidth=1.2,
            label=x["method"],
        )
    claims = summary["claimed_error"].drop_nulls()
    if len(claims):
        widest = 100 * float(claims.max())  # type: ignore[arg-type]
        axis.axhline(widest, color=INK["faint"], linewidth=1, linestyle="--")
        axis.annotate(
            f"widest claimed bound {percent(widest / 100)}",
            (0, widest),
            xycoords=("axes fraction", "data"),
            xytext=(4, 3),
            textcoords="offset points",
            fontsize=8,
            color=INK["soft"],
        )
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    for which in (axis.xaxis, axis.yaxis):
        which.set_major_formatter("{x:g}")
        which.set_minor_formatter(NullFormatter())
    for x in summary.filter(pl.col("claimed_error").is_not_null()).to_dicts():
        color = styles[x["method"]][0]
        at = (x["speedup_hmean"], 100 * x["claimed_error"])
        axis.plot(*at, "_", color=color, markersize=18, markeredgewidth=2.5)
    axis.set_xlabel("speedup: total time over the time of the draws", fontsize=9, color=INK["soft"])
    axis.set_ylabel("error of the total, %", fontsize=9, color=INK["soft"])
    axis.set_title("Down and right is better. Small: a seed; large: the mean; bar: its claim", **_title())
    _quiet(axis)
    axis.legend(fontsize=8, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=5)


def _coverage(axis: Axes, bounded: pl.DataFrame, styles: dict[str, tuple[str, str]]) -> None:
    axis.set_title("Seeds within the claimed bound, %", **_title())
    _quiet(axis)
    if bounded.is_empty():
        axis.set_axis_off()
        axis.text(0, 0.9, "no method claimed one", fontsize=9, color=INK["soft"])
        return
    places = np.arange(len(bounded))
    axis.barh(
        places,
        100 * bounded["coverage"].to_numpy(),
        xerr=100 * bounded["coverage_se"].to_numpy(),
        height=0.6,
        color=[styles[method][0] for method in bounded["method"]],
        ecolor=INK["soft"],
    )
    axis.set_yticks(places, bounded["method"].to_list(), fontsize=8)
    axis.set_ylim(max(len(bounded), 6) - 0.4, -0.6)
    axis.axvline(95, color=INK["faint"], linewidth=1, linestyle="--")
    axis.set_xlim(0, 105)


def _quiet(axis: Axes) -> None:
    axis.spines[["top", "right"]].set_visible(False)
    axis.spines[["left", "bottom"]].set_color(INK["line"])
    axis.tick_params(labelsize=8, color=INK["line"], labelcolor=INK["soft"], which="both")
    axis.set_axisbelow(True)
