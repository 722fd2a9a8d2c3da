"""Whether a launch is still changing: the warps at work, the use of DRAM, the hits of the caches."""

from __future__ import annotations

import bisect
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from simt.spec.models import SECTOR_BYTES

from .controller import Interval

Floats = npt.NDArray[np.float64]


class Trends:
    """Observes a launch, and compares the two halves of a stretch of it.

    A rate that repeats does not show that the rest of the launch is like it: the data may be about to fill
    the L2, or the warps with least work to end. `found` names what changes.

    dram_bytes_per_cycle: peak; 0: unknown.
    """

    def __init__(self, dram_bytes_per_cycle: float) -> None:
        self._peak = dram_bytes_per_cycle
        self._names: list[list[str]] = []  # of the counters that are summed
        self._ends: list[int] = [0]
        self._sums: list[Floats] = [np.zeros(6)]

    def add(self, interval: Interval) -> None:
        counters = interval.counters
        if not self._names:
            wanted = [["active_warp_cycles"], ["dram_reads", "dram_writes"]]
            self._names = [[name for name in names if name in counters] for names in wanted]
            self._names += [*_lookups(counters, "l1"), *_lookups(counters, "l2")]
        sums = [sum(counters[name] for name in names) for names in self._names]
        self._ends.append(interval.end)
        self._sums.append(np.array(sums, np.float64))

    def found(self, begin: float, limit: float) -> str:
        """What differs between the halves of the time from cycle `begin` on, as text; empty if nothing does.

        limit: largest change of active warps, relative to the larger number; and of DRAM's utilisation and of
            hit rates, of 1.
        """
        now = self._ends[-1]
        first = bisect.bisect_left(self._ends, begin)
        middle = bisect.bisect_left(self._ends, (self._ends[first] + now) / 2)
        if not first < middle < len(self._ends) - 1:
            return "too few observations to see a trend"
        a, b = self._rates(first, middle), self._rates(middle, len(self._ends) - 1)
        for name, before, after in zip(_NAMES, a, b, strict=True):
            scale = max(before, after) if name == _NAMES[0] else 1.0
            if abs(after - before) > limit * scale:
                return f"{name} went from {before:.3g} to {after:.3g}"
        return ""

    def _rates(self, first: int, last: int) -> tuple[float, ...]:
        cycles = self._ends[last] - self._ends[first]
        warps, dram, l1, l1_hits, l2, l2_hits = (self._sums[last] - self._sums[first]).tolist()
        return (
            warps / cycles,
            dram * SECTOR_BYTES / (cycles * self._peak) if self._peak else 0.0,
            l1_hits / l1 if l1 else 0.0,
            l2_hits / l2 if l2 else 0.0,
        )


_NAMES = ("active warps", "DRAM utilisation", "L1 hit rate", "L2 hit rate")


def _lookups(counters: Mapping[str, int], level: str) -> tuple[list[str], list[str]]:
    """Names of the counters of lookups in a cache, and of hits; of a timeline, its own."""
    if f"{level}_hits" in counters:
        return [f"{level}_accesses"], [f"{level}_hits"]
    names = [name for name in counters if name.startswith(f"{level}.")]
    lookups = [name for name in names if not name.endswith("fail")]
    return lookups, [name for name in names if name.endswith(".hit")]
