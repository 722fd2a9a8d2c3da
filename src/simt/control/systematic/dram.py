"""How far DRAM sets the pace: its use, and the elasticity of time with respect to traffic."""

from __future__ import annotations

import numpy as np

from simt.control.systematic.constants import CONSTANTS
from simt.control.systematic.windows import Bools, Floats
from simt.spec.checks import SECTOR_BYTES


def use_of_dram(sectors: float, cycles: float, bytes_per_cycle: float) -> float:
    """Use of DRAM's peak, if it moves these sectors in these core cycles; 0 if the peak is unknown (0)."""
    return sectors * SECTOR_BYTES / (bytes_per_cycle * cycles) if bytes_per_cycle and cycles else 0.0


def elasticity_of_time(use: Floats, last_use: float, shown: float) -> Floats:
    """By window: by how many percent its time changes if it exchanges 1 % more with DRAM.

    use: of DRAM's peak in each window; last_use: in the last one. shown: the elasticity that the windows
    themselves show (`elasticity_shown`), which is the least for windows with nearly as much use as the last.

    DRAM begins to set the pace at `pace_from`, and sets it alone from `pace_alone` on.
    """
    least = np.where(use > CONSTANTS.regression_from * last_use, shown, 0.0)
    pace = (use - CONSTANTS.pace_from) / (CONSTANTS.pace_alone - CONSTANTS.pace_from)
    return np.clip(pace, least, 1.0)


def elasticity_shown(times: Floats, sectors: Floats, steady: Bools, last_use: float) -> float:
    """The elasticity that windows show: the ridge regression, through the origin, of relative differences
    between the times of successive windows on those of their traffic.

    times, sectors: by window, per instruction. steady: of each pair of successive windows, whether it counts.
    last_use: of DRAM's peak. 0 with fewer than two pairs, or little use of DRAM. Few small differences say
    little.
    """
    if steady.sum() < 2 or last_use < CONSTANTS.much_use:
        return 0.0
    time, traffic = (np.diff(x)[steady] / x[-1] for x in (times, sectors))
    slope = time @ traffic / (traffic @ traffic + CONSTANTS.regression_ridge)
    return float(np.clip(slope, 0.0, CONSTANTS.regression_most))
