"""When the times of a recurring event (executions of a basic block, warps) are stable.

Photon (MICRO'23), sections 4.1 and 4.2: over the last n executions, ordered by end, the least-squares line
through (begin, end) has a slope near 1, and the mean of the last n times is close to that of the last 2n,
which guards against a local optimum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from simt.errors import SimtError

Cycles = npt.NDArray[np.int64]


@dataclass(frozen=True)
class StabilityRule:
    """Thresholds of the test.

    window: executions n, whose mean is the prediction. long_window: executions whose mean is compared with
        that of the last n. slope_window: executions that the line is fitted to. delta: largest difference of
        the slope from 1, and of the two means. difference: what the latter is relative to: "relative": the
        long window's mean; "sum": the sum of the two. skip: number of first executions to ignore.
    """

    window: int
    long_window: int
    slope_window: int
    delta: float = 0.03
    difference: str = "relative"
    skip: int = 0

    def __post_init__(self) -> None:
        if not 2 <= self.window <= self.long_window or not 2 <= self.slope_window <= self.long_window:
            raise SimtError(
                f"stability windows of {self.window}, {self.slope_window} and {self.long_window}: expected "
                "2 or more each, the long one last"
            )
        if self.difference not in ("relative", "sum"):
            raise SimtError(f"difference is {self.difference!r}, expected 'relative' or 'sum'")

    @staticmethod
    def published(window: int, delta: float = 0.03) -> StabilityRule:
        """The test of the paper: windows n and 2n, the slope over the last n."""
        return StabilityRule(window, 2 * window, window, delta)

    @staticmethod
    def artifact(granularity: int, delta: float = 0.03) -> StabilityRule:
        """The test of the paper's artifact: windows of `granularity` and half of it, the slope over the long
        one, the difference divided by the sum of the means, the first 1024 executions ignored."""
        return StabilityRule(granularity // 2, granularity, granularity, delta, "sum", 1024)


class Stability:
    """The executions of one recurring event, and whether its time is stable."""

    def __init__(self, rule: StabilityRule) -> None:
        self._rule = rule
        self._begin: Cycles = np.empty(0, np.int64)
        self._end: Cycles = np.empty(0, np.int64)
        self.seen = 0
        """Number of executions."""
        self.stable = False
        """Whether the test has passed once."""
        self.stable_at = -1
        """Execution at which it first passed; -1: none."""

    def add(self, begin: Cycles, end: Cycles) -> None:
        """Adds executions in the order in which they ended (in cycles). Tests after each of them."""
        rule = self._rule
        before = self.seen
        self.seen += len(begin)
        left_out = min(len(begin), max(0, rule.skip - before))
        kept = len(self._begin)
        self._begin = np.concatenate([self._begin, begin[left_out:]])
        self._end = np.concatenate([self._end, end[left_out:]])
        if not self.stable and len(self._begin) >= rule.long_window:
            holds = self._test(max(kept + 1, rule.long_window))
            if holds.any():
                self.stable = True
                after = int(np.argmax(holds)) + max(kept + 1, rule.long_window) - kept
                self.stable_at = before + left_out + after - 1
        self._begin = self._begin[-rule.long_window :]
        self._end = self._end[-rule.long_window :]

    def mean(self) -> float:
        """Mean time of the last `window` executions in cycles; nan if there are none."""
        n = self._rule.window
        if len(self._begin) == 0:
            return float("nan")
        return float((self._end[-n:] - self._begin[-n:]).mean())

    def _test(self, first: int) -> npt.NDArray[np.bool_]:
        """Whether the test passes after the first `first`, `first` + 1, ... of the kept executions.

        Sums are of integers, relative to the oldest kept time, and therefore exact."""
        rule = self._rule
        base = int(self._begin.min())
        x, y = self._begin - base, self._end - base

        def rolling(values: Cycles, n: int) -> npt.NDArray[np.float64]:
            sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(values)])
            result: npt.NDArray[np.float64] = (sums[first:] - sums[first - n : len(sums) - n]).astype(float)
            return result

        n = rule.slope_window
        sx, sy = rolling(x, n), rolling(y, n)
        squares = rolling(x * x, n)
        variance = squares - sx * sx / n
        covariance = rolling(x * y, n) - sx * sy / n
        # All begin at the same time, as in the first wave: no line can be fitted.
        slope = np.divide(covariance, variance, out=np.full(len(sx), np.inf), where=variance > 1e-9 * squares)
        short = rolling(y - x, rule.window) / rule.window
        long = rolling(y - x, rule.long_window) / rule.long_window
        scale = long if rule.difference == "relative" else short + long
        near = (np.abs(short - long) < rule.delta * scale) | (short == long)
        holds: npt.NDArray[np.bool_] = (np.abs(1 - slope) < rule.delta) & near
        return holds


class SpanStability:
    """Our variant: stability over windows as long as the times that they measure.

    A fixed number of executions is a small part of a wave on a large GPU, and more than a small launch has.
    Here the window holds the last executions whose ends span their own mean time, and at least `least` of
    them, so that it contains each concurrently running warp about once. The time is stable when the mean over
    the window is within `delta` of that over twice as many executions. No line is fitted: with executions
    sorted by end, its slope is below 1 wherever times vary as much as begins do, however steady they are.
    """

    kept = 16384

    def __init__(self, delta: float = 0.03, least: int = 32) -> None:
        self._delta = delta
        self._least = least
        self._begin: Cycles = np.empty(0, np.int64)
        self._end: Cycles = np.empty(0, np.int64)
        self._window = 0
        self._tested_at = 0
        self.seen = 0
        self.stable = False

    def add(self, begin: Cycles, end: Cycles) -> None:
        """Adds executions in the order in which they ended; tests after every further eighth of their
        number."""
        self.seen += len(begin)
        self._begin = np.concatenate([self._begin, begin])[-self.kept :]
        self._end = np.concatenate([self._end, end])[-self.kept :]
        if not self.stable and self.seen >= max(2 * self._least, self._tested_at * 9 // 8):
            self._tested_at = self.seen
            self._test()

    def mean(self) -> float:
        """Mean time in cycles over the window or, while it is not stable, over all kept executions; nan if
        there are none."""
        if len(self._begin) == 0:
            return float("nan")
        n = self._window if self.stable else len(self._begin)
        return float((self._end[-n:] - self._begin[-n:]).mean())

    def fastest(self) -> float:
        """Time in cycles that 5 % of the kept executions do not exceed."""
        return float(np.percentile(self._end - self._begin, 5))

    def _test(self) -> None:
        sizes = np.arange(1, len(self._end) + 1)
        means = np.cumsum((self._end - self._begin)[::-1]) / sizes  # means of the last 1, 2, ...
        spans = self._end[-1] - self._end[::-1]
        long_enough = (spans >= means) & (sizes >= self._least)
        n = int(np.argmax(long_enough)) + 1
        if not long_enough[n - 1] or 2 * n > len(sizes):
            return
        short, long = means[n - 1], means[2 * n - 1]
        self.stable = bool(abs(short - long) <= self._delta * long)
        self._window = n
