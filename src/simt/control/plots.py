"""Plots of what-if outcomes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from simt.plots import INK, SERIES

if TYPE_CHECKING:
    from simt.control.what_if import WhatIf


def sweep_figure(outcomes: Mapping[str, WhatIf]) -> Figure:
    """Error of the cycles and speedup for each of several settings: the error of the total and the mean and
    worst |error| of a launch as lines; the factor by which simulated instructions decrease as bars.

    outcomes: label of each setting -> its outcome, in drawing order.
    """
    labels, found = list(outcomes), list(outcomes.values())
    figure = Figure(figsize=(max(5.6, 0.7 * len(labels)), 4.8), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    places = range(len(labels))
    for name, colour, values in (
        ("total", SERIES["blue"], [100 * abs(x.error) for x in found]),
        ("mean of the launches", SERIES["orange"], [100 * x.mean_error for x in found]),
        ("worst launch", SERIES["magenta"], [100 * x.worst_error for x in found]),
    ):
        above.plot(places, values, marker="o", markersize=4, color=colour, label=name)
    above.set_ylabel("error of the cycles, %", color=INK["soft"])
    above.set_ylim(bottom=0)
    above.legend(frameon=False, fontsize=8)
    speedups = [x.speedup if math.isfinite(x.speedup) else 0.0 for x in found]
    below.bar(places, speedups, color=SERIES["aqua"], width=0.6)
    below.axhline(1, color=INK["faint"], linewidth=0.8)
    below.set_ylabel("fewer instructions, times", color=INK["soft"])
    many = len(labels) > 6
    below.set_xticks(list(places), labels, rotation=30 * many, ha="right" if many else "center")
    for axis in (above, below):
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(colors=INK["soft"], labelsize=8)
    return figure
