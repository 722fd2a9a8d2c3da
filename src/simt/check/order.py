"""Which launches and copies of a program happen before which others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

MOST = 1024
"""Of work that the host has not waited for, so much is compared with later work."""


@dataclass(frozen=True)
class Place:
    """Where work stands. others: earlier work that may run at the same time. kept: later work may as well."""

    number: int
    others: tuple[int, ...]
    kept: bool


class WorkOrder:
    """The work that the host has not waited for, by number, with a vector clock for each: how much of each
    stream's work happens before it.

    forget: is given the numbers of work that no later work runs at the same time as.
    """

    def __init__(self, forget: Callable[[int], None]) -> None:
        self._forget = forget
        self._clocks: dict[int, dict[int, int]] = {}
        self._places: dict[int, tuple[int, int]] = {}
        """Stream, and place in it, by number of work."""
        self._counts: dict[int, int] = {}
        self.streams = 1
        """How many there are, with the default stream."""

    @property
    def live(self) -> tuple[int, ...]:
        """Numbers of the work that the host has not waited for."""
        return tuple(self._clocks)

    def begin(self, number: int, stream: int, after: Iterable[int]) -> Place:
        """Adds work that comes after its stream's and after these, as far as the host has not waited for
        them; what comes before them comes before it as well."""
        clock: dict[int, int] = {}
        for earlier in after:
            for of, count in self._clocks.get(earlier, {}).items():
                clock[of] = max(count, clock.get(of, 0))
        others = tuple(n for n, (of, count) in self._places.items() if clock.get(of, 0) < count)
        self._counts[stream] = count = self._counts.get(stream, 0) + 1
        self._clocks[number] = {**clock, stream: count}
        self._places[number] = stream, count
        if len(self._clocks) > MOST:
            self._drop([next(iter(self._clocks))])
        return Place(number, others, self.streams > 1)

    def waited(self, numbers: Collection[int] | None = None) -> None:
        """The host has waited for these and all before them, by default for everything."""
        if numbers is None:
            self._drop(list(self._clocks))
            return
        ended: dict[int, int] = {}
        for number in numbers:
            for of, count in self._clocks.get(number, {}).items():
                ended[of] = max(count, ended.get(of, 0))
        self._drop([n for n, (of, count) in self._places.items() if count <= ended.get(of, 0)])

    def _drop(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            del self._clocks[number], self._places[number]
            self._forget(number)
