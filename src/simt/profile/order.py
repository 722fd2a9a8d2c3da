"""Which launches of an executed program come after which others, by streams, events and the host's waits."""

from __future__ import annotations

from collections.abc import Collection, Iterable

Clock = dict[int, int]
"""By stream: the last of its work that comes before."""


class LaunchOrder:
    """The order of a program's launches. Other work (copies, events, host functions) only passes it on."""

    def __init__(self) -> None:
        self._work: list[tuple[int, int, tuple[int, ...]] | None] = []
        """Number, stream and what it comes after. None: the host has waited, for `_waits`."""
        self._waits: list[tuple[int, ...]] = []
        self._launches: dict[int, int] = {}
        """Ids of launches by number of work."""
        self._live: dict[int, None] = {}
        self._current = 0

    @property
    def live(self) -> tuple[int, ...]:
        """Numbers of the work since the host has last waited for everything."""
        return tuple(self._live)

    def submitted(self, number: int, stream: int, after: Iterable[int]) -> None:
        """Work has been submitted to a stream, after other work; numbers grow."""
        self._work.append((number, stream, tuple(after)))
        self._live[number] = None

    def begins(self, number: int) -> None:
        """The next launch is this work."""
        self._current = number

    def launched(self, launch: int) -> None:
        """Its id."""
        if self._current:
            self._launches[self._current] = launch

    def waited(self, numbers: Collection[int] | None = None) -> None:
        """The host has waited for these and all before them, by default for everything."""
        if numbers is None:
            numbers = self.live
            self._live.clear()
        if numbers:
            self._work.append(None)
            self._waits.append(tuple(numbers))

    def resolved(self) -> dict[int, tuple[int, list[int]]]:
        """By launch: its stream, and the launches of other streams that it comes after, without those that
        others of them, or the one before it in its stream, come after."""
        host: Clock = {}
        clocks: dict[int, Clock] = {}
        of_launch: dict[int, Clock] = {}
        found: dict[int, tuple[int, list[int]]] = {}
        waits, kept = iter(self._waits), 0
        for work in self._work:
            if work is None:
                for number in next(waits):
                    _merge(host, clocks.get(number, {}))
                if len(clocks) > 2 * kept:  # what is forgotten comes before all later work
                    clocks = {n: clock for n, clock in clocks.items() if not _within(clock, host)}
                    kept = max(len(clocks), 64)
                continue
            number, stream, after = work
            clock = dict(host)
            for earlier in after:
                _merge(clock, clocks.get(earlier, {}))
            if (launch := self._launches.get(number)) is not None:
                found[launch] = stream, sorted(_last(clock, stream, of_launch))
                clock[stream] = launch
                of_launch[launch] = clock
            clocks[number] = clock
        return found


def _merge(into: Clock, clock: Clock) -> None:
    for stream, launch in clock.items():
        into[stream] = max(launch, into.get(stream, -1))


def _within(clock: Clock, other: Clock) -> bool:
    return all(launch <= other.get(stream, -1) for stream, launch in clock.items())


def _last(clock: Clock, own: int, of_launch: dict[int, Clock]) -> list[int]:
    """The launches of a clock that no other of its launches comes after; none of the stream `own`."""
    return [
        launch
        for stream, launch in clock.items()
        if stream != own
        and not any(of_launch[other].get(stream, -1) >= launch for of, other in clock.items() if of != stream)
    ]
