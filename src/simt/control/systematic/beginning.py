"""The first waves of a launch: they may swing, or decay from a cold beginning."""

from __future__ import annotations

from simt.control.systematic.constants import CONSTANTS


def swings(cold: float, first: float, usual: float) -> bool:
    """Whether the first waves swing about what follows: CTAs that begin together also end together.

    cold, first, usual: cycles per instruction in the cold window, in the one after it, and in the mean of all
    later ones. They do if the first window differs from both others on the same side.
    """
    slower_by = (cold - first, usual - first)
    least = CONSTANTS.swing * usual
    return min(slower_by) > least or max(slower_by) < -least


def share_of_cold_beginning(cold: float, first: float, later: float, waves: float) -> float | None:
    """How much of these waves, which follow the first window, is as that one; the rest is as the later one.

    cold, first, later: cycles per instruction in the cold window, in the one after it, and in the one after
    the waves. From wave to wave, the difference to the later one is multiplied by k, the ratio of those of
    the first window and the cold one: the mean of k, k**2, ..., k**waves.

    None if the beginning does not decay, or already has.
    """
    usual = CONSTANTS.usual_spread * later
    if abs(first - later) <= usual or abs(cold - later) <= usual:
        return None
    keeps = (first - later) / (cold - later)
    if not 0 <= keeps <= CONSTANTS.cold_decay:
        return None
    return float(keeps * (1 - keeps**waves) / (1 - keeps) / waves)
