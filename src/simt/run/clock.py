"""The cycles of a run."""

from __future__ import annotations

import bisect


class RunClock:
    """The cycles of a run that correspond to those of its engine.

    A run begins at cycle `first`, and where an engine ends, the next one begins. Where launches are
    projected, cycles that were not simulated are added: the engine starts the next launch when a stopped one
    has released the GPU.
    """

    def __init__(self, first: int) -> None:
        self._begin = first
        """Of the present engine."""
        self._released: list[int] = []
        self._shift: list[int] = []  # running maximum

    def cycle(self, engine_cycle: int) -> int:
        """The cycle of the run in which something begins that the engine starts in `engine_cycle`."""
        i = bisect.bisect_right(self._released, engine_cycle)
        return self._begin + engine_cycle + (self._shift[i - 1] if i else 0)

    def ended(self, released: int, projected: int) -> None:
        """Records that a launch released the GPU at engine cycle `released`. projected: its projected end, a
        cycle of the run."""
        shift = projected - self._begin - released
        if not self._shift and shift == 0:
            return
        i = bisect.bisect_right(self._released, released)
        self._released.insert(i, released)
        self._shift.insert(i, max(shift, self._shift[i - 1] if i else 0))

    def new_engine(self, cycle: int) -> None:
        """The engine restarts at cycle 0; the previous one had reached `cycle`."""
        self._begin += cycle
        self._released.clear()
        self._shift.clear()
