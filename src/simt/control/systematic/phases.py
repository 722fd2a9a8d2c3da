"""Changes of phase: CTAs left out whose work or traffic is not that of those that were seen."""

from __future__ import annotations

from collections.abc import Sequence

from simt.control.systematic.constants import CONSTANTS


def other_work(each: float, earlier: float | None) -> float:
    """How much more or less CTAs execute that were left out after the last window, relative to them.

    each: instructions of one of them. earlier: of one of those left out before that window; None: there are
    none.
    """
    return abs(earlier / each - 1) if each and earlier is not None else 0.0


def traffic_not_seen(each: float, seen: Sequence[float], elasticity: float) -> float:
    """Sectors of what one CTA left out after the last window exchanges with DRAM that nothing else did.

    each: sectors of one of them. seen: of a CTA of that window, and of one left out before it. elasticity: of
    the time of that window with respect to its traffic, which tells how long that much takes.
    """
    return min(abs(each - x) for x in seen) * (1 - elasticity)


def is_other_phase(work: float, use: float) -> bool:
    """Whether CTAs left out after the last window are of another phase, which asks for another window.

    work: `other_work`. use: of DRAM's peak, by `traffic_not_seen`: write-backs begin when the L2 is full of
    modified lines, and data may be used again or not.
    """
    return work > CONSTANTS.work_change or use > CONSTANTS.traffic_change
