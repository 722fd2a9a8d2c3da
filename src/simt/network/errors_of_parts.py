"""How far estimates from parts of a launch were off, where the launch was also simulated whole."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

FILE = Path(__file__).with_name("held_out.csv")
"""A row for each launch of the record: `kind`, `launch`, `gpu`, `whole`, `estimate` in seconds."""
LEAST = 0.02
"""Relative half width of an interval where errors were smaller, and of launches that were simulated whole."""
LOOPS = frozenset(("product", "prefill_attention", "decode_attention"))
"""Kernels with a loop, whose parts have fewer passes; the parts of others have fewer CTAs only."""
BEYOND = 1.25
"""The half width in multiples of the largest error. The next of n errors is larger than all of them in one
case of n + 1, and that by about as much as these are above the ones before."""


def half_width(kind: str, whole: bool) -> float:
    """Relative half width of a launch's interval, from the errors of held-out launches of kernels with a
    loop, or of those without one. LEAST for a launch that is simulated whole."""
    return LEAST if whole else width_of(_errors()[kind in LOOPS])


def width_of(errors: Sequence[float]) -> float:
    """Relative half width of the interval for a launch like those with these relative errors."""
    return max(LEAST, BEYOND * max(errors))


@lru_cache(maxsize=1)
def _errors() -> dict[bool, list[float]]:
    """Sizes of errors, by whether the kernel has a loop."""
    found: dict[bool, list[float]] = {True: [], False: []}
    with FILE.open(newline="") as file:
        for row in csv.DictReader(file):
            found[row["kind"] in LOOPS].append(abs(float(row["estimate"]) / float(row["whole"]) - 1))
    return found
