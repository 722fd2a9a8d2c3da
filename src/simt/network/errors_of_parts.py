"""How far estimates from parts of a launch were off, where the launch was also simulated whole."""

from __future__ import annotations

import csv
from functools import lru_cache
from pathlib import Path

FILE = Path(__file__).with_name("held_out.csv")
"""A row for each launch of the record: `kind`, `launch`, `gpu`, `whole`, `estimate` in seconds."""
LEAST = 0.02
"""Relative half width of an interval where errors were smaller, and of launches that were simulated whole."""


ENOUGH = 3
"""Held-out launches of a kernel from which on they speak for it."""


def half_width(kind: str, whole: bool) -> float:
    """Relative half width of a launch's interval: the largest error of held-out launches of its kernel, or
    of all kernels if there are fewer than ENOUGH of this one. LEAST for a launch that is simulated whole."""
    if whole:
        return LEAST
    own = _errors().get(kind, [])
    return max(LEAST, *(own if len(own) >= ENOUGH else [x for each in _errors().values() for x in each]))


@lru_cache(maxsize=1)
def _errors() -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    with FILE.open(newline="") as file:
        for row in csv.DictReader(file):
            error = abs(float(row["estimate"]) / float(row["whole"]) - 1)
            found.setdefault(row["kind"], []).append(error)
    return found
