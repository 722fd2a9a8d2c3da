"""One self-contained HTML page of a Correlation: agreement, scatter plots, outliers."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import polars as pl

from simt.files import write_text
from simt.formatting import percent, plural
from simt.names import short_name
from simt.pages import Cell, Table, render
from simt.plots import SERIES
from simt.validate.correlation import CYCLES, Correlation
from simt.validate.plots import scatter_svg

MAX_PLOTS = 40
AGREEMENT_NOTE = (
    "MAE: mean of |simulated - measured| / measured where measured is above 0. NRMSE: root mean square "
    "error over the mean. Bias: geometric mean of simulated / measured, minus 1. Click a header to sort."
)
PLOTS_NOTE = (
    "Each point is a kernel launch. Simulated equals measured on the line; the shaded band is ± 25 %. "
    "Hover over a point for its name. Values of 0 lie on the axes."
)


def write(correlation: Correlation, path: Path, source: str, before: Correlation | None = None) -> None:
    """Writes the page. before: the correlation of an earlier version of the model. Raises ResultError."""
    write_text(path, html(correlation, source, before))


def html(correlation: Correlation, source: str, before: Correlation | None = None) -> str:
    """The page as text."""
    agreement = correlation.agreement()
    suites = correlation.kernels["suite"].unique(maintain_order=True).to_list()
    names = list(SERIES)
    colours = {suite: names[i % len(names)] for i, suite in enumerate(suites)}
    agreements = [("Agreement per kernel", agreement)]
    if len(suites) > 1:
        agreements.append(("Agreement per suite", correlation.agreement(by_suite=True)))
    agreements.append(("Agreement per program (sums over launches)", correlation.agreement("programs")))
    return render(
        "correlation.html",
        title="simt correlation",
        about=plural(len(agreement), "counter"),
        source=source,
        tiles=_headline(correlation, agreement),
        warnings=correlation.unpaired,
        versions=None if before is None else _versions(correlation, before),
        agreements=[(title, _agreement(rows)) for title, rows in agreements],
        agreement_note=AGREEMENT_NOTE,
        outliers=_outliers(correlation),
        colours=colours,
        plots_note=PLOTS_NOTE,
        plots=[
            (counter, scatter_svg(correlation.kernels.filter(pl.col("counter") == counter), colours))
            for counter in correlation.counters[:MAX_PLOTS]
        ],
    )


def _headline(correlation: Correlation, agreement: pl.DataFrame) -> list[tuple[str, str]]:
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
    return values


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _share(value: float | None, digits: int = 1) -> Cell:
    return ("-", math.inf) if value is None else (percent(value, digits), value)


def _agreement(rows: pl.DataFrame) -> Table:
    keys = [c for c in ("suite", "counter") if c in rows.columns]
    header = [
        *reversed(keys),
        "n",
        "MAE",
        "NRMSE",
        "Pearson",
        "rank",
        "bias",
        "median",
        "p90",
        "worst",
        "≤ 10 %",
        "≤ 20 %",
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
                *(_share(row[c]) for c in ("bias", "median", "p90", "worst")),
                *(_share(row[c], 0) for c in ("within_10", "within_20", "within_25")),
            ]
        )
    return Table(header, body)


def _versions(now: Correlation, before: Correlation) -> dict[str, Any]:
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
    counters = Table(["counter", "MAE before", "MAE now", "Pearson before", "Pearson now"], rows)
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
    return {
        "sentence": f"Cycles of {better:,} kernels moved closer to the measurement, "
        f"of {worse:,} further away.",
        "counters": counters,
        "kernels": Table(["kernel", "program", "error before", "error now", "change of |error|"], kernels),
    }


def _outliers(correlation: Correlation) -> Table:
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
    header = ["kernel", "program", "simulated", "measured", "error", "waits mostly for"]
    return Table(header, rows)
