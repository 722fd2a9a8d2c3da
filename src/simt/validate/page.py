"""One self-contained HTML page of a Correlation: agreement, scatter plots, outliers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from simt.files import write_text
from simt.names import short_name
from simt.result.display import percent, plural
from simt.result.html import Cell, page, say, section, table, text, tiles, warnings
from simt.validate.correlate import CYCLES, Correlation

MAX_POINTS = 3000  # drawn in one plot: of more, every n-th of those sorted by measured value
MAX_PLOTS = 40
SIDE, LEFT, BOTTOM, TOP, RIGHT = 300, 52, 34, 8, 8  # pixels of a plot
COLOURS = ("blue", "orange", "aqua", "violet", "yellow", "magenta", "green", "red", "teal")


def write(correlation: Correlation, path: Path, source: str, before: Correlation | None = None) -> None:
    """Writes the page. before: the same of an earlier version of the model. Raises ResultError."""
    write_text(path, html(correlation, source, before))


def html(correlation: Correlation, source: str, before: Correlation | None = None) -> str:
    """The page as text."""
    agreement = correlation.agreement()
    parts = [_headline(correlation, agreement)]
    if correlation.unpaired:
        parts.append(warnings(correlation.unpaired))
    if before is not None:
        parts.append(_versions(correlation, before))
    parts.append(_agreement("Agreement per kernel", agreement))
    suites = correlation.kernels["suite"].unique(maintain_order=True).to_list()
    if len(suites) > 1:
        parts.append(_agreement("Agreement per suite", correlation.agreement(by_suite=True)))
    parts.append(_agreement("Agreement per program (sums over launches)", correlation.agreement("programs")))
    parts.append(_outliers(correlation))
    parts.append(_plots(correlation, suites))
    return page("simt correlation", plural(len(agreement), "counter"), source, parts)


def _headline(correlation: Correlation, agreement: pl.DataFrame) -> str:
    programs = correlation.kernels.select("suite", "program").n_unique()
    kernels = correlation.kernels.select("suite", "program", "launch").n_unique()
    values = [
        (f"{programs:,}", "programs" if programs != 1 else "program"),
        (f"{kernels:,}", "kernel launches"),
    ]
    cycles = agreement.filter(pl.col("counter") == CYCLES).to_dicts()
    if cycles:
        row = cycles[0]
        values += [
            (percent(row["mae"], 1), "mean absolute error of cycles"),
            (_number(row["pearson"]), "Pearson correlation"),
            (_number(row["spearman"]), "rank correlation"),
            (percent(row["within_25"], 0), "of kernels within 25 %"),
        ]
    return tiles(values)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _share(value: float | None, digits: int = 1) -> Cell:
    return ("-", math.inf) if value is None else (percent(value, digits), value)


def _agreement(title: str, rows: pl.DataFrame) -> str:
    keys = [c for c in ("suite", "counter") if c in rows.columns]
    header = [
        *reversed(keys),
        "n",
        "MAE",
        "NRMSE",
        "Pearson",
        "rank",
        "bias",
        "p90",
        "worst",
        "≤ 10 %",
        "≤ 25 %",
    ]
    body: list[list[Cell]] = []
    for row in rows.to_dicts():
        correlations: list[Cell] = [
            (_number(row[c]), -math.inf if row[c] is None else row[c]) for c in ("pearson", "spearman")
        ]
        body.append(
            [
                *((row[key], None) for key in reversed(keys)),
                (f"{row['n']:,}", row["n"]),
                _share(row["mae"]),
                (_number(row["nrmse"]), math.inf if row["nrmse"] is None else row["nrmse"]),
                *correlations,
                *(_share(row[c]) for c in ("bias", "p90", "worst")),
                *(_share(row[c], 0) for c in ("within_10", "within_25")),
            ]
        )
    note = (
        "MAE: mean of |simulated - measured| / measured where measured is above 0. NRMSE: root mean square "
        "error over the mean. Bias: geometric mean of simulated / measured, minus 1. A column's head sorts."
    )
    return section(title, note, table(header, body))


def _versions(now: Correlation, before: Correlation) -> str:
    both = now.agreement().join(before.agreement(), on="counter", suffix="_before", maintain_order="left")
    rows: list[list[Cell]] = [
        [
            (row["counter"], None),
            _share(row["mae_before"]),
            _share(row["mae"]),
            (_number(row["pearson_before"]), row["pearson_before"] or 0.0),
            (_number(row["pearson"]), row["pearson"] or 0.0),
        ]
        for row in both.to_dicts()
    ]
    counters = table(["counter", "MAE before", "MAE now", "Pearson before", "Pearson now"], rows)
    changed = now.against(before)
    kernels: list[list[Cell]] = [
        [
            (short_name(row["name"]), None),
            (row["program"], None),
            _share(row["before"]),
            _share(row["now"]),
            _share(row["change"]),
        ]
        for row in changed.head(200).to_dicts()
    ]
    worse = int((changed["change"] > 0).sum())
    better = int((changed["change"] < 0).sum())
    sentences = say(
        [f"Cycles of {better:,} kernels came nearer to the measurement, of {worse:,} went further off."]
    )
    listed = table(["kernel", "program", "error before", "error now", "change of |error|"], kernels)
    return (
        sentences
        + section("Against the version before", "", counters)
        + section("Kernels that changed most", "Negative changes are improvements.", listed)
    )


def _outliers(correlation: Correlation) -> str:
    rows: list[list[Cell]] = [
        [
            (short_name(row["name"]), None),
            (f"{row['suite']}/{row['program']}".strip("/"), None),
            (f"{row['simulated']:,.0f}", row["simulated"]),
            (f"{row['measured']:,.0f}", row["measured"]),
            _share(row["error"]),
            (row["stall"] or "-", None),
        ]
        for row in correlation.outliers(most=25).to_dicts()
    ]
    note = "The largest errors of cycles, and what the simulated kernel's warps waited for most."
    header = ["kernel", "program", "simulated", "measured", "error", "waits mostly for"]
    return section("Outliers", note, table(header, rows)) if rows else ""


def _plots(correlation: Correlation, suites: Sequence[str]) -> str:
    colours = {suite: COLOURS[i % len(COLOURS)] for i, suite in enumerate(suites)}
    legend = "".join(
        f'<span><i style="background:var(--{c})"></i>{text(s or "all")}</span>' for s, c in colours.items()
    )
    charts = []
    for counter in correlation.counters[:MAX_PLOTS]:
        pairs = correlation.kernels.filter(pl.col("counter") == counter)
        charts.append(f'<div class="chart"><h3>{text(counter)}</h3>{scatter(pairs, colours)}</div>')
    note = (
        "Each point is a kernel launch; on the line simulated equals measured, the shaded band is ± 25 %. "
        "The name shows when the pointer rests on a point. Values of 0 lie on the axes."
    )
    body = f'<div class="legend">{legend}</div><div class="charts">{"".join(charts)}</div>'
    return section("Simulated against measured", note, body)


def scatter(pairs: pl.DataFrame, colours: dict[str, str]) -> str:
    """A log-log plot as SVG; x measured, y simulated."""
    if len(pairs) > MAX_POINTS:
        pairs = pairs.sort("measured", maintain_order=True).gather_every(-(-len(pairs) // MAX_POINTS))
    values = np.concatenate([pairs["simulated"].to_numpy(), pairs["measured"].to_numpy()])
    positive = values[values > 0]
    low, high = (float(positive.min()), float(positive.max())) if len(positive) else (1.0, 10.0)
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    last += last == first
    width = SIDE - LEFT - RIGHT

    def along(value: float) -> float:
        """0 to `width`; 0 for what no logarithm has."""
        if value <= 0:
            return 0.0
        return width * min(1.0, max(0.0, (math.log10(value) - first) / (last - first)))

    def x(value: float) -> float:
        return LEFT + along(value)

    def y(value: float) -> float:
        return TOP + width - along(value)

    parts = [f'<svg viewBox="0 0 {SIDE} {TOP + width + BOTTOM}" role="img" style="max-width:{2 * SIDE}px">']
    bottom, top = 10.0**first, 10.0**last
    band = [
        (bottom, bottom * 1.25),
        (top / 1.25, top),
        (top, top),
        (top, top * 0.75),
        (bottom / 0.75, bottom),
    ]
    corners = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in [(bottom, bottom), *band])
    parts.append(f'<polygon points="{corners}" fill="var(--grid)"/>')
    step = max(1, (last - first + 5) // 6)
    for power in range(first, last + 1, step):
        at = 10.0**power
        label = f"10<tspan dy='-4' font-size='8'>{power}</tspan>"
        parts.append(
            f'<line x1="{x(at):.1f}" x2="{x(at):.1f}" y1="{TOP}" y2="{TOP + width}" stroke="var(--line)"/>'
            f'<line x1="{LEFT}" x2="{LEFT + width}" y1="{y(at):.1f}" y2="{y(at):.1f}" stroke="var(--line)"/>'
            f'<text x="{x(at):.1f}" y="{TOP + width + 15}" text-anchor="middle">{label}</text>'
            f'<text x="{LEFT - 6}" y="{y(at) + 4:.1f}" text-anchor="end">{label}</text>'
        )
    parts.append(
        f'<line x1="{LEFT}" y1="{TOP + width}" x2="{LEFT + width}" y2="{TOP}" stroke="var(--faint)"/>'
        f'<text x="{LEFT + width / 2}" y="{TOP + width + 30}" text-anchor="middle">measured</text>'
        f'<text transform="translate(12 {TOP + width / 2}) rotate(-90)" text-anchor="middle">simulated</text>'
    )
    for row in pairs.iter_rows(named=True):
        s, m = row["simulated"], row["measured"]
        error = f", {100 * (s / m - 1):+.1f} %" if m > 0 else ""
        where = f"{row['suite']}/{row['program']}".strip("/")
        title = f"{short_name(row['name'])} ({where}): simulated {s:,.6g}, measured {m:,.6g}{error}"
        parts.append(
            f'<circle cx="{x(m):.1f}" cy="{y(s):.1f}" r="3" fill="var(--{colours[row["suite"]]})" '
            f'fill-opacity=".65"><title>{text(title)}</title></circle>'
        )
    return "".join([*parts, "</svg>"])
