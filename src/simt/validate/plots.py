"""Simulated against measured values as a plot."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from simt.names import short_name
from simt.plots import INK, SERIES, inline_svg

MAX_POINTS = 3000  # beyond that, every n-th point of those sorted by measured value
_BAND = 0.25
_SVG = "http://www.w3.org/2000/svg"
ElementTree.register_namespace("", _SVG)
ElementTree.register_namespace("xlink", "http://www.w3.org/1999/xlink")


def scatter_svg(pairs: pl.DataFrame, colours: Mapping[str, str]) -> str:
    """A log-log scatter plot as SVG for an HTML page, with a tooltip on each point.

    pairs: rows of `Correlation.kernels` with the same counter; x is `measured`, y is `simulated`.
    colours: for each suite the name of its colour in `simt.plots.SERIES`.
    """
    if len(pairs) > MAX_POINTS:
        pairs = pairs.sort("measured", maintain_order=True).gather_every(-(-len(pairs) // MAX_POINTS))
    values = np.concatenate([pairs["simulated"].to_numpy(), pairs["measured"].to_numpy()])
    positive = values[values > 0]
    low, high = (float(positive.min()), float(positive.max())) if len(positive) else (1.0, 10.0)
    low, high = 10.0 ** np.floor(np.log10(low)), 10.0 ** np.ceil(np.log10(high))
    high = high if high > low else 10 * low
    figure = Figure(figsize=(4.2, 4.0), layout="constrained")
    axis = figure.subplots()
    axis.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high), aspect="equal")
    axis.set_xlabel("measured", color=INK["soft"])
    axis.set_ylabel("simulated", color=INK["soft"])
    axis.tick_params(colors=INK["soft"], labelsize=8)
    axis.grid(color=INK["line"], linewidth=0.6)
    axis.spines[:].set_color(INK["line"])
    ends = np.array([low, high])
    axis.fill_between(ends, (1 - _BAND) * ends, (1 + _BAND) * ends, color=INK["line"], linewidth=0)
    axis.plot(ends, ends, color=INK["faint"], linewidth=1)
    titles: dict[str, list[str]] = {}
    for number, (suite, colour) in enumerate(colours.items()):
        rows = pairs.filter(pl.col("suite") == suite)
        titles[f"points{number}"] = [_title(row) for row in rows.iter_rows(named=True)]
        x, y = (rows[name].clip(low).to_numpy() for name in ("measured", "simulated"))
        axis.scatter(
            x, y, 14, SERIES[colour], alpha=0.65, linewidths=0, clip_on=False, zorder=3, gid=f"points{number}"
        )
    return _with_titles(inline_svg(figure), titles)


def _title(row: Mapping[str, object]) -> str:
    simulated, measured = float(str(row["simulated"])), float(str(row["measured"]))
    error = f", {100 * (simulated / measured - 1):+.1f} %" if measured > 0 else ""
    where = f"{row['suite']}/{row['program']}".strip("/")
    values = f"simulated {simulated:,.6g}, measured {measured:,.6g}{error}"
    return f"{short_name(str(row['name']))} ({where}): {values}"


def _with_titles(svg: str, titles: Mapping[str, list[str]]) -> str:
    """The SVG with a tooltip on each point: matplotlib writes a <use> for each, in order, in the group with
    the id of the points."""
    root = ElementTree.fromstring(svg)
    for group in root.iter(f"{{{_SVG}}}g"):
        if (texts := titles.get(group.get("id", ""))) is not None:
            del group.attrib["id"]  # a page has several plots
            for point, text in zip(group.iter(f"{{{_SVG}}}use"), texts, strict=True):
                ElementTree.SubElement(point, f"{{{_SVG}}}title").text = text
    return ElementTree.tostring(root, encoding="unicode")
