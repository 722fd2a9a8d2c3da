"""How a launch goes over from one window into the next, through the gap between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from simt.control.systematic.constants import CONSTANTS
from simt.control.systematic.rates import Rates
from simt.control.systematic.windows import Floats


@dataclass(frozen=True, eq=False)
class Course:
    """How each step of a gap is divided between the window before it and the one after it.

    part: of the step, by step, that is as the later window. sectors_before, sectors_after: what the part as
    the earlier, and as the later window exchanges with DRAM per instruction. doubt: how uncertain `part` is,
    relative to a part that nothing is known of. known: whether something says how the launch goes over from
    the one window into the other; then their difference is no spread.
    """

    part: Floats
    sectors_before: Floats
    sectors_after: Floats
    doubt: float
    known: bool


def as_before(sectors: Floats) -> Course:
    """After the last window, or without a gap: all is as the window before. sectors: of the steps, per
    instruction."""
    return Course(np.zeros(len(sectors)), sectors, sectors, 1.0, False)


def in_equal_parts(sectors: Floats) -> Course:
    """Where nothing says how the launch goes over. sectors: of the steps, per instruction."""
    return Course(np.full(len(sectors), 0.5), sectors, sectors, 1.0, False)


def by_traffic(sectors: Floats, rates: Rates, use: Callable[[float], float]) -> Course | None:
    """By the traffic of the steps to DRAM, which tells where write-backs begin, because the L2 is full of
    modified lines, or where data is used again; None if it does not change.

    sectors: of the steps, per instruction. rates: of the two windows. use: of DRAM's peak, by a difference in
    sectors per instruction.

    The traffic goes from that of the first step to that of the last, or from or to that of a window, if that
    is far from these: the change then came in between.
    """
    ends = [float(sectors[0]), float(sectors[-1])]
    for i, seen in enumerate(rates.sectors.tolist()):
        if use(seen - ends[i]) * (1 - rates.elasticity[i]) > CONSTANTS.window_traffic_change:
            ends[i] = seen
    if use(ends[1] - ends[0]) <= CONSTANTS.traffic_change:
        return None
    part = _between(sectors, *ends)
    inside = (part > 0) & (part < 1)
    return Course(part, np.where(inside, ends[0], sectors), np.where(inside, ends[1], sectors), 1.0, True)


def by_work(work: Floats, before: float, after: float, sectors: Floats) -> Course | None:
    """By the instructions of the CTAs; None if these do not change.

    work: of a CTA of each step. before, after: of a CTA where the window before the gap begins, and where the
    one after it ends: a change may come within a window, or go on in it. sectors: of the steps, per
    instruction.
    """
    if abs(after - before) <= CONSTANTS.work_change * before:
        return None
    return Course(_between(work, before, after), sectors, sectors, 1.0, True)


def after_cold_beginning(share: float, sectors: Floats) -> Course:
    """share: of the gap that is as the first window, by `share_of_cold_beginning`. A share of one half or
    more is as uncertain as if nothing were known. sectors: of the steps, per instruction."""
    return Course(np.full(len(sectors), 1 - share), sectors, sectors, min(1.0, 2 * share), True)


def _between(values: Floats, first: float, last: float) -> Floats:
    """How far they have gone from the first value to the last: 0 to 1."""
    return np.clip((values - first) / (last - first), 0.0, 1.0)
