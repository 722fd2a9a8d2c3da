"""What a gap leaves behind: windows that follow it may still be disturbed, or drift."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simt.control.systematic.constants import CONSTANTS
from simt.control.systematic.rates import Rates
from simt.control.systematic.windows import Ints

Samples = list[list[int]]  # windows that follow each other without a gap, together


def samples_between(gaps: Sequence[bool]) -> Samples:
    """The windows, numbered from 0, by sample. gaps: of each window but the last, whether CTAs were left out
    after it."""
    samples: Samples = [[0]]
    for window, gap in enumerate(gaps, 1):
        if gap:
            samples.append([])
        samples[-1].append(window)
    return samples


def settled(rates: Rates, samples: Samples) -> Ints:
    """The windows that count. The first one after a gap is part of the warm-up if it differs from the next
    one, which follows at once, by more than `unsettled`."""
    disturbed = {
        sample[0]
        for sample in samples[1:]
        if len(sample) > 1
        and abs(rates.differences[sample[0]]) > CONSTANTS.unsettled * rates.by_window[sample[1]]
    }
    return np.array([x for x in range(len(rates.by_window)) if x not in disturbed], np.intp)


def drift(rates: Rates, samples: Samples) -> float:
    """How much the rate changes in the windows that follow a gap, from the first to the last of them, in the
    mean over gaps: a first window alone may differ as much from what is left out."""
    drifts = []
    for sample in samples[1:]:
        if len(sample) > 1:
            ends = np.array([sample[0], sample[-1]])
            first, last = rates.at(ends, np.full(2, rates.sectors[ends].mean()))
            drifts.append(last - first)
    return abs(float(np.mean(drifts))) if drifts else 0.0
