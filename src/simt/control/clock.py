"""When launches begin and end if those before them take as long as projected."""

from __future__ import annotations

import bisect


class ProjectedClock:
    """The engine's cycles, moved on by what was projected beyond what was simulated.

    The engine starts the next launch when a stopped one has released the GPU.
    """

    def __init__(self) -> None:
        self._released: list[int] = []
        self._shift: list[int] = []  # at most so far

    def offset(self, start: int) -> int:
        """By how many cycles a launch that the engine started at `start` begins later."""
        i = bisect.bisect_right(self._released, start)
        return self._shift[i - 1] if i else 0

    def ended(self, released: int, projected: int) -> None:
        """A launch has released the GPU at engine cycle `released`; projected, shifts included, it ends at
        `projected`."""
        shift = projected - released
        if not self._shift and shift == 0:
            return
        i = bisect.bisect_right(self._released, released)
        self._released.insert(i, released)
        self._shift.insert(i, max(shift, self._shift[i - 1] if i else 0))
