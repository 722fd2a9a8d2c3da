"""Rates of a counter by window, scaled to other traffic to DRAM."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simt.control.systematic.constants import CONSTANTS
from simt.control.systematic.windows import Floats, Ints


@dataclass(frozen=True, eq=False)
class Rates:
    """Of a counter against instructions.

    by_window: increase of the counter per instruction. sectors: exchanged with DRAM per instruction, by
    window. elasticity: of the rate with respect to them, by window.
    """

    by_window: Floats
    sectors: Floats
    elasticity: Floats

    def at(self, windows: Ints, sectors: Floats) -> Floats:
        """The rates that these windows would have had, if they had exchanged that much per instruction.

        A difference beyond `trusted_traffic` says rather that the L2's tags do not see all that is exchanged:
        nothing is scaled.
        """
        rates: Floats = self.by_window[windows]
        if not self.elasticity.any():
            return rates
        own = self.sectors[windows]
        change = np.divide(sectors, own, out=np.ones(len(sectors)), where=own > 0) - 1
        change[np.abs(own - sectors) > CONSTANTS.trusted_traffic * sectors] = 0
        scaled: Floats = rates * (1 + self.elasticity[windows] * change)
        return scaled

    @property
    def differences(self) -> Floats:
        """Between successive windows, as if both had exchanged what they do in the mean."""
        if not self.elasticity.any():
            return np.diff(self.by_window)
        later = np.arange(1, len(self.by_window))
        sectors = (self.sectors[later] + self.sectors[later - 1]) / 2
        return self.at(later, sectors) - self.at(later - 1, sectors)

    def squares(self, first: int, end: int) -> float:
        """Sum of the squares of the deviations of windows `first` to `end` - 1 from their mean, as if all had
        exchanged what they do in the mean."""
        sectors = np.full(end - first, self.sectors[first:end].mean())
        rates = self.at(np.arange(first, end), sectors)
        return float(((rates - rates.mean()) ** 2).sum())

    def of(self, windows: Ints) -> Rates:
        """The rates of these windows alone."""
        return Rates(self.by_window[windows], self.sectors[windows], self.elasticity[windows])
