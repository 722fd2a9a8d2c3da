"""How far estimates of a launch were off, where the launch was also simulated whole."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .scaled import LaunchEstimate, Way

FILE = Path(__file__).with_name("held_out.csv")
"""A row for each launch of the record: `way`, `kind`, `launch`, `gpu`, `whole`, `estimate` in seconds."""
LEAST = 0.02
"""Relative half width of an interval where errors were smaller, and of launches that were simulated whole."""
LOOPS = frozenset(("product", "prefill_attention", "decode_attention"))
"""Kernels with a loop: their parts have fewer passes, those of others fewer CTAs only; a scale model leaves
waves out of them."""
LINKED = frozenset(("all_reduce", "all_gather"))
"""Kernels that fetch from other GPUs."""
BEYOND = 1.25
"""The half width in multiples of the largest error. The next of n errors is larger than all of them in one
case of n + 1, and that by about as much as these are above the ones before."""
Class = tuple[str, str]
"""Launches whose errors go together."""


def class_of(way: Way, kind: str) -> Class:
    """How it was estimated, and whether the kernel has a loop. On scale models, attention is apart from
    products: its errors are twice as large. Kernels that wait for a link are apart: its pace is always the
    same."""
    if kind in LINKED:
        return way, "over a link"
    if kind not in LOOPS:
        return way, "without a loop"
    return way, kind if way == "scale model" else "with a loop"


def half_width(kind: str, way: Way, stated: float = 0.0) -> float:
    """Relative half width of a launch's interval, from the errors of held-out launches of its class, or what
    its scale model states if that is more. LEAST for a launch that is simulated whole."""
    return LEAST if way == "whole" else max(stated, width_of(_errors()[class_of(way, kind)]))


def interval(kind: str, one: LaunchEstimate) -> tuple[float, float]:
    """Of a launch's time, in seconds: from the least and the largest of its estimates."""
    error = half_width(kind, one.way, one.stated)
    return one.low / (1 + error), one.high / (1 - error)


def width_of(errors: Sequence[float]) -> float:
    """Relative half width of the interval for a launch like those with these relative errors."""
    return max(LEAST, BEYOND * max(errors))


@lru_cache(maxsize=1)
def _errors() -> dict[Class, list[float]]:
    """Sizes of errors, by class."""
    found: dict[Class, list[float]] = {}
    with FILE.open(newline="") as file:
        for row in csv.DictReader(file):
            error = abs(float(row["estimate"]) / float(row["whole"]) - 1)
            way: Way = "scale model" if row["way"] == "scale model" else "parts"
            found.setdefault(class_of(way, row["kind"]), []).append(error)
    return found
