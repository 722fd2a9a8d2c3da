"""The spread of windows, and what it says of the interval."""

from __future__ import annotations

import math
from functools import cache
from itertools import pairwise

import numpy as np

from simt.control.systematic.constants import CONSTANTS
from simt.control.systematic.rates import Rates
from simt.control.systematic.windows import Bools


@cache
def student(confidence: float, freedom: int) -> float:
    """Half width of an interval, in standard deviations, by Student's t."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.5 + confidence / 2))


def half_width(rates: Rates, steady: Bools, wave: int, confidence: float, lost: int = 0) -> float:
    """Half width of the interval of the rate in one window.

    rates: of the windows that count. steady: of each pair of successive ones, whether the launch does not go
    over from the one into the other. wave: CTAs of a wave. lost: pairs that an elasticity was fitted to.

    From differences between successive windows (Wolter, "Introduction to Variance Estimation", 2007, section
    8.2), or from those to their mean if these are larger: CTAs drift apart and together again over many
    waves. Few windows say little of the spread, which is therefore shrunk towards that of most launches.
    """
    own = CONSTANTS.pair_freedom * max(0, int(steady.sum()) - lost)
    successive = float((rates.differences[steady] ** 2 / 2).sum())
    ends = [0, *(np.flatnonzero(~steady) + 1).tolist(), len(rates.by_window)]
    to_mean = sum(rates.squares(a, b) for a, b in pairwise(ends))
    prior = usual_spread(wave) * float(rates.by_window.mean())
    squares = CONSTANTS.pair_freedom * max(successive, to_mean) + CONSTANTS.prior_freedom * prior**2
    freedom = own + CONSTANTS.prior_freedom
    return student(confidence, freedom) * math.sqrt(squares / freedom)


def usual_spread(wave: int) -> float:
    """Of windows in most launches, relative to their rate. wave: CTAs of a wave, of which few vary more."""
    return max(CONSTANTS.usual_spread, CONSTANTS.usual_cta_spread / math.sqrt(wave))


def allowance(bias: float, waves: float, wave: int, ctas: int) -> float:
    """`bias` waves, relative to the launch, if so many waves are left out: their errors are independent.
    wave, ctas: CTAs of a wave, and of the launch."""
    return bias * math.sqrt(waves) * wave / ctas
