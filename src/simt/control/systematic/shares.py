"""What was left out, divided among the windows that it is as."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from simt.control.systematic.courses import Course
from simt.control.systematic.rates import Rates
from simt.control.systematic.windows import Floats, Ints


@dataclass(frozen=True, eq=False)
class Shares:
    """windows, work, sectors: of each share, its window, its instructions, and what it exchanges with DRAM
    for each of them."""

    windows: Ints
    work: Floats
    sectors: Floats

    def total(self, rates: Rates) -> float:
        """Of a counter, in all that was left out."""
        return float(rates.at(self.windows, self.sectors) @ self.work)

    def scaled(self, rates: Rates) -> float:
        """How much of the total comes from windows that exchange more or less with DRAM than this, unless
        that is known to be all that matters."""
        own = rates.by_window[self.windows]
        change = np.where(rates.elasticity[self.windows] < 1, rates.at(self.windows, self.sectors) - own, 0)
        return abs(float(change @ self.work))

    @property
    def spread(self) -> float:
        """Standard deviation of the mean rate, if that of each window is 1."""
        return float(np.linalg.norm(np.bincount(self.windows, self.work)) / self.work.sum())


def divide(
    gaps: Iterable[tuple[Floats, Course]], samples: Sequence[Sequence[int]], counted: Iterable[int]
) -> Shares:
    """Divides gaps between the windows before and after them, in equal parts among those that follow each
    other at once.

    gaps: instructions of the steps of each, and its course; the last one has no window after it. samples: as
    in `settling`. counted: the windows that count.
    """
    counts = set(counted)
    sample_of = [[x for x in sample if x in counts] for sample in samples for _ in sample]
    windows: list[Ints] = []
    work: list[Floats] = []
    sectors: list[Floats] = []
    for i, (executed, course) in enumerate(gaps):
        after = sample_of[min(i + 1, len(sample_of) - 1)]
        for sample, part, exchanged in (
            (sample_of[i], 1 - course.part, course.sectors_before),
            (after, course.part, course.sectors_after),
        ):
            for window in sample:
                windows.append(np.full(len(executed), window, np.intp))
                work.append(executed * part / len(sample))
                sectors.append(exchanged)
    return Shares(np.concatenate(windows), np.concatenate(work), np.concatenate(sectors))
