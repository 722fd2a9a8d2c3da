"""Streams and events: what runs after what."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .gpu import GPU


class Event:
    """A point in a stream. Another stream can wait for it."""

    def __init__(self, gpu: GPU) -> None:
        self._gpu = gpu
        self.after: tuple[int, ...] = ()
        """Ids of the launches that it stands behind."""

    def record(self, stream: Stream) -> Event:
        """Puts it behind what is queued in the stream now."""
        self.after = stream.pending()
        return self

    def synchronize(self) -> None:
        """Waits for it."""
        self._gpu.synchronize()

    @property
    def cycle(self) -> int:
        """Core cycle in which it was reached; 0 without timing or for an empty stream. Waits for it."""
        self._gpu.synchronize()
        return max((x.end_cycle for x in self._gpu.launches if x.id in self.after), default=0)


class Stream:
    """Launches of one stream run one after the other; those of different streams may overlap.

    A launch in a stream returns at once; `synchronize`, or reading an array, waits for it.
    """

    def __init__(self, gpu: GPU, number: int) -> None:
        self._gpu = gpu
        self.number = number
        self._last: tuple[int, ...] = ()
        self._waits: tuple[int, ...] = ()

    def pending(self) -> tuple[int, ...]:
        """Ids of the launches that what comes next has to wait for."""
        return (*self._last, *self._waits)

    def launched(self, launch_id: int) -> None:
        self._last, self._waits = (launch_id,), ()

    def wait(self, event: Event) -> None:
        """What is launched in this stream from now on waits for the event."""
        self._waits = (*self._waits, *event.after)

    def record(self) -> Event:
        """An event behind what is queued now."""
        return Event(self._gpu).record(self)

    def synchronize(self) -> None:
        """Waits for everything that is queued."""
        self._gpu.synchronize()

    def __repr__(self) -> str:
        return f"Stream({self.number})"
