"""Begin and end of launches, given the projected durations of those before them."""

from __future__ import annotations

import bisect


class ProjectedClock:
    """The engine's cycles plus the projected cycles that were not simulated.

    The engine starts the next launch when a stopped one has released the GPU.
    """

    def __init__(self) -> None:
        self._released: list[int] = []
        self._shift: list[int] = []  # running maximum

    def offset(self, start: int) -> int:
        """Cycles by which a launch that the engine started at `start` begins later."""
        i = bisect.bisect_right(self._released, start)
        return self._shift[i - 1] if i else 0

    def ended(self, released: int, projected: int) -> None:
        """Records that a launch released the GPU at engine cycle `released`. projected: its projected end,
        including shifts."""
        shift = projected - released
        if not self._shift and shift == 0:
            return
        i = bisect.bisect_right(self._released, released)
        self._released.insert(i, released)
        self._shift.insert(i, max(shift, self._shift[i - 1] if i else 0))
