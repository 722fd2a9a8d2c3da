"""Whether a launch is about to fill the L2: times change when modified lines have to be evicted."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from simt.spec.models import SECTOR_BYTES

from .controller import Interval, LaunchView

_RECENT = 8  # intervals over which the rate of cache misses is measured
_BUSY = 0.45  # share of the memory bandwidth above which it affects times


class L2Filling:
    """Observes the L2 misses in the most recent intervals of a launch."""

    def __init__(self, view: LaunchView) -> None:
        self._view = view
        self._recent: deque[Interval] = deque(maxlen=_RECENT)
        self._misses: list[str] | None = None  # names of counters

    def lies_ahead(self, interval: Interval, instructions: float) -> bool:
        """Whether the launch will fill the L2 but has not done so yet, or stores to lines that replace
        read-only ones: until modified lines are evicted, stores cost no memory bandwidth; afterwards memory
        will be busy. Call it once per interval.

        instructions: estimated warp instructions of the whole launch.
        """
        recent, view = self._recent, self._view
        recent.append(interval)
        if self._missed(interval.counters) >= view.l2_lines:
            return False
        stored = sum(
            i.difference["l2.global_write.miss"] + i.difference["l2.global_write.sector_miss"] for i in recent
        )
        written = sum(i.difference["dram_writes"] for i in recent)
        moved = sum(i.difference["dram_reads"] for i in recent) + max(stored, written)
        cycles = interval.end - recent[0].begin
        if SECTOR_BYTES * moved < _BUSY * view.dram_bytes_per_cycle * cycles:
            return False
        left = max(0.0, instructions - interval.counters["warp_instructions"])
        executed = sum(i.difference["warp_instructions"] for i in recent)
        missed = sum(self._missed(i.difference) for i in recent)
        if missed * left < interval.l2_free_lines * executed:
            return False
        return interval.l2_free_lines > 0 or 2 * written < stored

    def _missed(self, counters: Mapping[str, int]) -> int:
        if self._misses is None:
            self._misses = [name for name in counters if name.startswith("l2.") and name.endswith(".miss")]
        return sum(counters[name] for name in self._misses)
