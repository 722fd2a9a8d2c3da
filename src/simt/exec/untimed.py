"""Work of a program that is executed without timing."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from .streams import Streams

if TYPE_CHECKING:
    from simt.check.checking import Checking
    from simt.profile.executed import Executed


class Rest(Protocol):
    """What is left of work that has begun."""

    def advance(self, most: int) -> bool:
        """Executes `most` warp instructions of it, and to the end of a turn. Whether it has ended."""
        ...

    def repeats(self) -> bool:
        """Whether it has only repeated itself for long."""
        ...

    def report_endless_wait(self) -> None:
        """Raises ProgramFault for what only repeats itself."""
        ...


class HostCall:
    """A function of the program, which can be called only while the program waits for an answer."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call

    def advance(self, most: int) -> bool:
        self._call()
        return True

    def repeats(self) -> bool:
        return False

    def report_endless_wait(self) -> None:
        raise AssertionError("a function of the program has not been called yet")


Begin = Callable[[int], Rest | None]
"""Does work, up to what it returns. It is given the work's number, if its order is followed."""


@dataclass(eq=False)
class _Work:
    """number: 0 unless its order is followed. after: numbers of what it waits for. rest: None until it
    begins."""

    number: int
    after: list[int]
    begin: Begin
    rest: Rest | None = None


class Untimed:
    """Executes work as it arrives, unless it follows, in the order of streams, something that has paused."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self._left: dict[int, _Work] = {}
        """What has not ended, by number, in the order of arrival."""
        self._numbers = itertools.count(1)
        self.following: Checking | Executed | None = None
        """What is told of the order of work, if it is checked or profiled."""

    @property
    def numbers(self) -> list[int]:
        """Numbers of what has not ended."""
        return list(self._left)

    def finished(self, numbers: Collection[int]) -> bool:
        """Whether these have ended."""
        return not any(number in self._left for number in numbers)

    def add(self, stream: int, begin: Begin) -> int:
        """Begins work in a stream, or queues it. Returns its number; 0 if it has ended, unless its
        order is followed."""
        before = self._streams.before(stream) if self._left or self.following is not None else []
        number = 0
        if self.following is not None:
            number = next(self._numbers)
            self._streams.queued(stream, number)
            self.following.submitted(number, stream, before)
        work = _Work(number, [n for n in before if n in self._left], begin)
        if not work.after:
            work.rest = begin(number)
            if work.rest is None:
                return number
        number = number or next(self._numbers)
        self._left[number] = work
        self._streams.queued(stream, number)
        return number

    def advance(self, most: int) -> None:
        """Executes a part of all that has begun, then begins what has waited for that."""
        for number, work in list(self._left.items()):
            if work.rest is not None and work.rest.advance(most):
                del self._left[number]
        for number, work in list(self._left.items()):
            if work.rest is None and self.finished(work.after):
                work.rest = work.begin(work.number)
                if work.rest is None:
                    del self._left[number]

    def require_progress(self) -> None:
        """Raises ProgramFault if everything under way has only repeated itself for long."""
        running = [work.rest for work in self._left.values() if work.rest is not None]
        if all([rest.repeats() for rest in running]):
            for rest in running:
                rest.report_endless_wait()

    def drop(self) -> None:
        """Ends everything."""
        self._left.clear()
