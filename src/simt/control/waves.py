"""The rate of a launch by waves of its CTAs, and how far the rest of it may differ from those seen."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from .controller import Interval, LaunchView, Previewed

_CONFIDENCE = 0.95
TAIL = 0.25  # residence times of a CTA that the emptying of the GPU adds, about half of what it can add
_PRIOR = 0.05, 4  # deviation of rates between waves, and the degrees of freedom that it counts for
FEWEST = 8  # waves of a launch of which something is left out
_UNCERTAIN = 0.5  # half width per size of an effect that is present but not understood
_LEAST = 4  # waves that count in any case; of more, the later half
_KEPT = 64


class Waves:
    """Instructions per cycle of each wave of CTAs that has finished.

    Within a wave the rate varies, as CTAs go through the code in step, so that a shorter stretch says little.
    The first wave, which begins with cold caches and has no predecessor, does not count.

    _PRIOR and the other constants were chosen on the development half and the fresh kernels of
    systematic_study.py in docs/records/scripts/, FEWEST at the first look at its few_waves_study.py.

    previewed: of the launch; None: unknown; its largest CTA is then taken to be at least twice as large as
        the mean. So it is if CTAs influence each other: those of a preview run before others have written.
    """

    def __init__(self, launch: LaunchView, previewed: Previewed | None) -> None:
        self._launch = launch
        unequal = 0.0 if previewed is None else previewed.unequal(launch.cta_count)
        self._unequal = max(1.0, unequal) if previewed is None or launch.order_matters else unequal
        self._size = self._wave = launch.wave_size
        self._now: tuple[int, Mapping[str, int]] = (0, {})
        self.forget()

    def forget(self) -> None:
        """Begins anew."""
        self._marks = [self._now]  # cycle and counters where waves end

    def add(self, interval: Interval) -> None:
        self._now = (interval.end, interval.counters)
        if interval.counters["ctas_finished"] - self._marks[-1][1].get("ctas_finished", 0) < self._size:
            return
        self._marks.append(self._now)
        if len(self._marks) > _KEPT:  # from now on, a wave is two
            del self._marks[1::2]
            self._size *= 2

    @property
    def seen(self) -> int:
        """Waves that count."""
        return max(0, len(self._marks) - 2)

    @property
    def _first(self) -> int:
        """Where the waves that count begin."""
        return max(1, len(self._marks) - 1 - max(_LEAST, (self.seen + 1) // 2))

    @property
    def begin(self) -> int:
        """Cycle in which the stretch that represents the rest begins."""
        return self._marks[self._first][0]

    def window(self) -> tuple[dict[str, int], int]:
        """Counts in the stretch that represents the rest, and its core cycles."""
        (begin, before), (end, counters) = self._marks[self._first], self._marks[-1]
        return {name: n - before[name] for name, n in counters.items()}, end - begin

    def _rates(self) -> npt.NDArray[np.float64]:
        marks = self._marks[self._first :]
        ends = np.array([(end, counters["warp_instructions"]) for end, counters in marks], np.float64)
        cycles, instructions = np.diff(ends, axis=0).T
        return np.asarray(np.maximum(instructions, 1) / cycles)

    def cycles(self, instructions: float) -> float:
        """Core cycles of a launch with this many warp instructions: what has passed, and the rest at the rate
        of the waves that count."""
        end, counters = self._now
        rate = self._rate()
        left = max(0.0, instructions - counters["warp_instructions"])
        return end + left / rate + TAIL * self._residence(rate, instructions)

    def _rate(self) -> float:
        window, cycles = self.window()
        return max(1, window["warp_instructions"]) / cycles

    def _residence(self, rate: float, instructions: float) -> float:
        """Core cycles of a CTA (Little's law)."""
        return self._wave * instructions / self._launch.cta_count / rate

    def undecided(self, instructions: float, error: float) -> str:
        """Why the rest of a launch with this many warp instructions cannot be left out; empty if it can.

        After the last CTA has been dispatched, the end is left, in which the GPU empties: of that, the waves
        show nothing.

        error: largest half width with which it can.
        """
        if not self.seen:
            return "fewer than two waves of CTAs had finished"
        _, counters = self._now
        if counters["ctas"] == self._launch.cta_count:
            return "all CTAs had been dispatched"
        half = self.half_width(instructions)
        return f"the cycles would have been uncertain by {half:.1%}" if half > error else ""

    def half_width(self, instructions: float) -> float:
        """Of the 95 % interval of `cycles`, relative to them; infinite if no wave counts.

        The waves that count deviate from each other (Student's t; few say little, so the variance is shrunk
        towards that of other launches). Half of each of these is added, which are uncertain by about as much:
        the drift from the earlier of the waves to the later ones, the difference in instructions between the
        CTAs that finished and all, the time in which the GPU empties, and what the largest CTA takes longer
        than the mean one, as it may be the last.
        """
        if not self.seen:
            return math.inf
        from scipy.special import stdtrit

        rate = self._rate()
        _, counters = self._now
        residence = self._residence(rate, instructions)
        left = max(0.0, instructions - counters["warp_instructions"]) / rate
        x = np.log(self._rates())
        squares = max(float(((x - x.mean()) ** 2).sum()), float((np.diff(x) ** 2).sum()) / 2)
        deviation, worth = _PRIOR
        freedom = len(x) - 1 + worth
        variance = (squares + worth * deviation**2) / freedom
        to_come = max(0.25, left / residence)
        spread = float(stdtrit(freedom, (1 + _CONFIDENCE) / 2)) * math.sqrt(
            variance * (1 / len(x) + 1 / to_come)
        )
        half = len(x) // 2
        drift = abs(float(x[-half:].mean() - x[:half].mean())) if half else 0.0
        finished = counters["finished_instructions"] / counters["ctas_finished"]
        other_work = abs(math.log(max(1.0, finished) * self._launch.cta_count / max(1.0, instructions)))
        per_cycle = spread + _UNCERTAIN * (drift + other_work)
        end = TAIL + _UNCERTAIN * self._unequal
        return (left * per_cycle + end * residence) / self.cycles(instructions)


def too_few(launch: LaunchView, fewest: int = FEWEST) -> str:
    """Why nothing of the launch can be left out, as text; empty if it has at least `fewest` waves of CTAs.

    Two waves have to end before their rates can be compared: the first one, which is cold, and another. In
    launches of few waves, what is left then is mostly the end, in which the GPU empties. Below a wave, no CTA
    has been seen from its beginning to its end: what follows in its code, such as atomics on memory that all
    share, may take any time.
    """
    waves = launch.cta_count / launch.wave_size
    if waves >= fewest:
        return ""
    return f"it has {waves:.2f} waves of CTAs: fewer than {fewest} leave nothing out"
