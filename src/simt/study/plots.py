"""Plots of a study's page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from simt.plots import INK, SERIES, inline_svg
from simt.study.analysis import Configuration, Objective, by_value
from simt.study.report import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_LINES = len(SERIES)


def parameter_svg(table: pl.DataFrame, name: str, value: str) -> str:
    """A column against the values of a parameter, a line for each input, relative to its mean."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(4.6, 3.0), layout="constrained")
    means = by_value(table, name, value)
    values = sorted(means[name].unique().to_list())
    inputs = means["input"].unique(maintain_order=True).to_list()
    for colour, each in zip(SERIES.values(), inputs[:_MOST_LINES], strict=False):
        found = dict(means.filter(pl.col("input") == each).select(name, "relative").iter_rows())
        there = [i for i, v in enumerate(values) if v in found]
        line = [found[values[i]] for i in there]
        axes.plot(there, line, _style(values), ms=4, lw=1.4, color=colour, label=each)
    axes.axhline(1, color=INK["line"], lw=0.8, zorder=0)
    axes.set_xticks(range(len(values)), [shown(v) for v in values], rotation=0 if len(values) < 7 else 45)
    _plain(axes, name, f"{value} / mean")
    if 1 < len(inputs) <= _MOST_LINES:
        axes.legend(frameon=False, fontsize=8, labelcolor=INK["soft"])
    return _svg(figure)


def interaction_svg(table: pl.DataFrame, names: tuple[str, str], value: str) -> str:
    """A column against one parameter, a line for each value of another: parallel lines do not interact."""
    import matplotlib.pyplot as plt

    first, second = names
    rows = table.filter(pl.col("status") == "done", pl.col(value) > 0)
    rows = rows.with_columns(pl.col(value).log().alias("log"))
    means = (
        rows.with_columns((pl.col("log") - pl.col("log").mean().over("input")).alias("log"))
        .group_by(names, maintain_order=True)
        .agg(pl.col("log").mean().exp().alias("relative"))
    )
    figure, axes = plt.subplots(figsize=(4.6, 3.0), layout="constrained")
    values = sorted(means[first].unique().to_list())
    for colour, other in zip(SERIES.values(), sorted(means[second].unique().to_list()), strict=False):
        found = dict(means.filter(pl.col(second) == other).select(first, "relative").iter_rows())
        there = [i for i, v in enumerate(values) if v in found]
        line = [found[values[i]] for i in there]
        label = f"{second} = {shown(other)}"
        axes.plot(there, line, _style(values), ms=4, lw=1.4, color=colour, label=label)
    axes.set_xticks(range(len(values)), [shown(v) for v in values], rotation=0 if len(values) < 7 else 45)
    _plain(axes, first, f"{value} / mean")
    axes.legend(frameon=False, fontsize=8, labelcolor=INK["soft"])
    return _svg(figure)


def front_svg(
    found: Sequence[Configuration], best: Sequence[Configuration], wanted: Sequence[Objective]
) -> str:
    """All configurations by two objectives, and the front."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
    known = [(x, y) for x, y, *_ in (each.values for each in found) if x is not None and y is not None]
    axes.plot(*zip(*known, strict=True), "o", ms=4, color=INK["faint"], label="configurations")
    line = sorted((each.values[0], each.values[1]) for each in best)
    axes.plot(*zip(*line, strict=True), "o-", ms=5, lw=1.4, color=SERIES["orange"], label="Pareto front")
    _plain(axes, *(f"{each.name} ({'max' if each.maximise else 'min'})" for each in wanted[:2]))
    axes.legend(frameon=False, fontsize=8, labelcolor=INK["soft"])
    return _svg(figure)


def _style(values: Sequence[Any]) -> str:
    """Lines between values that have an order, points for names."""
    return "o" if any(isinstance(value, str) for value in values) else "o-"


def _plain(axes: Axes, x: str, y: str) -> None:
    axes.set_xlabel(x, color=INK["soft"], fontsize=9)
    axes.set_ylabel(y, color=INK["soft"], fontsize=9)
    axes.tick_params(colors=INK["soft"], labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(INK["line"])


def _svg(figure: Any) -> str:
    import matplotlib.pyplot as plt

    text = inline_svg(figure)
    plt.close(figure)
    return text
