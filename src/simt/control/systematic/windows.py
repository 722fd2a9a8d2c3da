"""What sampling along the grid sees of a launch: windows, and the gaps between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from simt.control.controller import Interval

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]
Bools = npt.NDArray[np.bool_]

Measure = Literal["warp_instructions", "thread_instructions"]  # of work


@dataclass(frozen=True, eq=False)
class Window:
    """A launch from the dispatch of one CTA to that of the CTA a wave later, simulated in detail."""

    begin: Interval
    end: Interval

    def __getitem__(self, name: str) -> int:
        """The increase of a counter, or of the `cycles`."""
        if name == "cycles":
            return self.end.end - self.begin.end
        return self.end.counters[name] - self.begin.counters[name]

    @property
    def dram_sectors(self) -> int:
        """Sectors exchanged with DRAM."""
        return self["dram_reads"] + self["dram_writes"]


@dataclass(frozen=True)
class SkippedCtas:
    """CTAs left out in one step.

    warp_instructions, thread_instructions: what they execute; 0: not counted. dram_sectors: what they
    exchange with DRAM, as far as the L2's tags show.
    """

    ctas: int
    warp_instructions: int
    thread_instructions: int
    dram_sectors: int

    @classmethod
    def between(cls, before: Interval, after: Interval) -> SkippedCtas:
        """What was left out between two observations."""
        return cls(
            after.skipped_ctas - before.skipped_ctas,
            after.skipped_warp_instructions - before.skipped_warp_instructions,
            after.skipped_thread_instructions - before.skipped_thread_instructions,
            after.skipped_dram_sectors - before.skipped_dram_sectors,
        )

    def work(self, measure: Measure) -> int:
        """Instructions of all of them."""
        return self.warp_instructions if measure == "warp_instructions" else self.thread_instructions

    def work_per_cta(self, measure: Measure) -> float:
        return self.work(measure) / self.ctas

    @property
    def sectors_per_cta(self) -> float:
        return self.dram_sectors / self.ctas


# What is left out between two windows, by step; empty where the one follows the other at once.
Gap = list[SkippedCtas]
