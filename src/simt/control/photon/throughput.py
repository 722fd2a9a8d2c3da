"""Times of warps and CTAs by Little's law: from throughput, not from those that have ended."""

from __future__ import annotations

import bisect
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from ..controller import Contention, Interval

_LEAST = 8  # intervals before a result is given
_KEPT = 512  # points in time at which sums are kept, for any length of launch
_ROUNDS = 8
_UNEVEN = 0.2  # coefficient of variation of instructions per interval above which warps run in step


class Throughput:
    """Sums over the observed intervals of a launch.

    A mean over what has ended leaves out what has not: under a scheduler that prefers some warps, the others
    hardly advance and do not end, so the mean is too short. The number of residents, integrated over time and
    divided by completed work, gives the mean time over all of them (Little, "A Proof for the Queuing Formula
    L = lambda W", Operations Research 9(3), 1961).

    Means are over the later half of the observations. In a long launch, only every second, fourth, ... point
    in time is kept.
    """

    def __init__(self) -> None:
        self._sums: list[tuple[float, ...]] = []  # cycle; sums of warp-cycles, CTA-cycles, warp instructions
        self._of_blocks: list[npt.NDArray[np.float64]] = []  # ended: executions, and sum of their cycles
        self._of_sms: list[tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]] = []
        self._resident = 0
        self._added, self._stride = 0, 1

    def add(self, interval: Interval, blocks: int) -> None:
        """blocks: how many basic blocks the launch has."""
        if not self._sums:
            self._sums.append((interval.begin, 0.0, 0.0, 0.0))
            self._of_blocks.append(np.zeros((2, blocks)))
            self._resident = interval.ctas_resident
            zero = np.zeros(len(interval.sm_instructions), np.uint64)
            self._of_sms.append((zero, zero))
        self._of_sms.append((interval.sm_warp_cycles, interval.sm_instructions))
        now = (
            interval.end - interval.begin,
            interval.difference["active_warp_cycles"],
            (self._resident + interval.ctas_resident) / 2 * (interval.end - interval.begin),
            interval.difference["warp_instructions"],
        )
        ended = interval.blocks
        cycles = (ended["end"] - ended["begin"]).astype(np.float64)
        counted = [np.bincount(ended["block"], weights, blocks) for weights in (np.ones(len(ended)), cycles)]
        self._of_blocks.append(self._of_blocks[-1] + np.array(counted))
        self._resident = interval.ctas_resident
        self._sums.append(tuple(a + b for a, b in zip(self._sums[-1], now, strict=True)))
        self._thin_out()

    def _thin_out(self) -> None:
        """Keeps the newest point in time, and one in `_stride` of those before it."""
        kept: list[list[Any]] = [self._sums, self._of_blocks, self._of_sms]
        if self._added % self._stride:
            for moments in kept:
                del moments[-2]
        self._added += 1
        if len(self._sums) > _KEPT and self._added % (2 * self._stride) == 0:
            self._stride *= 2
            for moments in kept:
                moments[:] = moments[::2]

    def steady(self, delta: float, rounds: float) -> bool:
        """Whether warp-cycles per instruction of the last two quarters are within `delta` of each other.

        rounds: how often each resident warp has executed the code that takes most of the time. Warps that do
            so in step all compute and then all wait; then a quarter must contain two rounds.
        """
        if len(self._sums) <= _LEAST:
            return False
        last, before = self._rate(0.25, 0.0), self._rate(0.5, 0.25)
        if not math.isfinite(last) or abs(last - before) > delta * before:
            return False
        if rounds >= _ROUNDS:
            return True
        first, end = self._positions(0.5, 0.0)
        sums = np.array(self._sums[first : end + 1])
        executed = np.diff(sums[:, 3]) / np.diff(sums[:, 0])
        return bool(executed.std() <= _UNEVEN * executed.mean())

    def cta_cycles(self, instructions: float) -> float:
        """Mean core cycles of a CTA with this number of warp instructions."""
        _, _, ctas, executed = self._difference(0.5, 0.0)
        return ctas / executed * instructions

    def block_scale(
        self,
        lengths: npt.NDArray[np.uint32],
        each: npt.NDArray[np.float64],
        wanted: npt.NDArray[np.bool_],
    ) -> float:
        """Factor from times of basic blocks to the mean that includes those under way; nan if those that
        ended contain less than half of the instructions, or none of the wanted ones.

        lengths: instructions per block. each: cycles of one execution of each block, to be scaled. wanted:
            the blocks still to be executed. Warps that hardly advance end few blocks, which are not
            representative of the wanted ones.
        """
        first, last = self._positions(0.5, 0.0)
        _, warps, _, executed = self._difference(0.5, 0.0)
        executions, _ = self._of_blocks[last] - self._of_blocks[first]
        instructions = executions * lengths
        cycles = float((executions * each)[wanted].sum())
        if instructions.sum() < executed / 2 or not cycles:
            return math.nan
        return float((warps / executed) / (cycles / instructions[wanted].sum()))

    def waiting(self, warps_per_cta: int) -> float:
        """Residence time of CTAs over that of their warps; above 1 if some warps end before others."""
        _, warps, ctas, _ = self._difference(0.5, 0.0)
        return max(1.0, ctas * warps_per_cta / warps)

    def contention(self, fastest: float, in_turn: bool) -> Contention:
        """Warp-cycles per instruction of SMs with equally many warps, relative to all SMs."""
        cycles, executed, length = self._by_sm(0.5, 0.0)
        warps = cycles / length
        classes = np.unique(np.round(warps), return_inverse=True)[1]
        scale = _of_classes(cycles, executed, classes) * executed.sum() / max(1.0, cycles.sum())
        return Contention(scale, warps, fastest, in_turn)

    def _by_sm(
        self, begin: float, end: float
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], float]:
        """For each SM, between these shares of the time before now: warp-cycles and warp instructions; and
        the number of cycles."""
        first, last = self._positions(begin, end)
        cycles, executed = (
            (b - a).astype(np.float64) for a, b in zip(self._of_sms[first], self._of_sms[last], strict=True)
        )
        return cycles, executed, self._sums[last][0] - self._sums[first][0]

    def _rate(self, begin: float, end: float) -> float:
        """Warp-cycles per instruction."""
        _, warps, _, executed = self._difference(begin, end)
        return warps / executed if executed else math.inf

    def _difference(self, begin: float, end: float) -> tuple[float, ...]:
        """Differences of the sums between these shares of the time before now."""
        first, last = self._positions(begin, end)
        return tuple(b - a for a, b in zip(self._sums[first], self._sums[last], strict=True))

    def _positions(self, begin: float, end: float) -> tuple[int, int]:
        """The points in time nearest to these shares of the time before now."""
        (start, *_), (now, *_) = self._sums[0], self._sums[-1]
        return self._nearest(now - begin * (now - start)), self._nearest(now - end * (now - start))

    def _nearest(self, cycle: float) -> int:
        after = bisect.bisect_left(self._sums, (cycle,))
        if after == 0:
            return 0
        earlier = cycle - self._sums[after - 1][0]
        return after if after < len(self._sums) and self._sums[after][0] - cycle < earlier else after - 1


def _of_classes(
    cycles: npt.NDArray[np.float64], executed: npt.NDArray[np.float64], classes: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Cycles per instruction of each SM's class; where nothing was executed, that of all SMs."""
    spent, done = (np.bincount(classes, weights) for weights in (cycles, executed))
    everything = cycles.sum() / max(1.0, executed.sum())
    of_class = np.divide(spent, done, out=np.full(len(spent), everything), where=done > 0)
    return np.asarray(of_class[classes])
