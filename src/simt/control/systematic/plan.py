"""How many windows a launch gets, and how much is left out before the next one."""

from __future__ import annotations

import math
from dataclasses import dataclass

from simt.control.systematic.constants import CONSTANTS

_SIMULATED = 1 + CONSTANTS.warm_up  # waves for each window after a gap


@dataclass(frozen=True)
class Agreement:
    """Of the last windows: the range of their rates at the same traffic, and the rate of the first."""

    range: float
    rate: float

    def within(self, share: float) -> bool:
        return self.range <= share * self.rate


def windows_wanted(
    waves: float, done: int, use: float, planned: int, last_pair: Agreement, last_few: Agreement
) -> int:
    """Windows that a launch needs whatever their spread, by what is known after `done` of them.

    waves: of the launch. use: of DRAM's peak in the last window. planned: the controller's `windows`.
    last_pair, last_few: of the last `fewest_windows` and `windows_to_agree`, the cold one included.
    """
    if waves < CONSTANTS.short_launch:
        as_cold = done == 1 and last_pair.within(CONSTANTS.loose_agreement)
        return 1 if as_cold else CONSTANTS.fewest_windows
    usual = max(planned, int(waves / CONSTANTS.waves_per_window))
    if done == 1:
        return usual
    if use <= CONSTANTS.much_use:
        return CONSTANTS.fewest_windows if last_pair.within(CONSTANTS.agreement) else usual
    if use <= CONSTANTS.full_use:
        agree = last_few.within(CONSTANTS.loose_agreement)
        return done if agree else max(usual, CONSTANTS.windows_at_much_use)
    return CONSTANTS.fewest_windows  # nothing but DRAM matters, and it is seen in the traffic


def follows_at_once(waves: float, done: int, use: float, after_gap: bool) -> bool:
    """Whether another window follows the last one without a gap: where the time of a wave varies much, the
    second of two tells by how much. waves, done, use: as above. after_gap: of the last window."""
    varies = CONSTANTS.much_use < use <= CONSTANTS.full_use
    return waves >= CONSTANTS.short_launch and done > 1 and varies and after_gap


def windows_for(error: float, half_width: float, alike: int, done: int) -> int:
    """Windows in all with which the half width is down to the error: it falls with the root of the number of
    windows that count, `alike` of the `done` ones."""
    return math.ceil(alike * (half_width / error) ** 2) - alike + done


def windows_to_come(done: int, wanted: int, needed: int, waves_left: float) -> int:
    """wanted, needed: `windows_wanted` and `windows_for`, of which the first window alone says nothing. None
    are to come if they would leave nothing out and are not needed."""
    more = max(0, max(needed if done > 1 else 0, wanted) - done)
    if more * _SIMULATED > waves_left - 1 and needed <= done:
        return 0
    return more


def waves_of_gap(waves_left: float, windows: int) -> int:
    """Waves to leave out before the next window, if that many windows are to come. Gaps before them are twice
    as long as the one after the last, of which less is seen; without windows to come, more than all."""
    left_out = int(waves_left) - windows * _SIMULATED
    return max(0, math.ceil(left_out / (windows + CONSTANTS.last_gap)))
