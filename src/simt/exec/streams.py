"""Ordering between a program's streams."""

from __future__ import annotations

from simt.gpu import GPU
from simt.gpu.stream import Stream


class Streams:
    """The streams of a program: tracks what must have ended before the next work in each of them starts.

    Number 0 is the legacy default stream, which waits for all blocking streams, and they for it (CUDA runtime
    API, "Stream synchronization behavior").
    """

    def __init__(self) -> None:
        self._last: dict[int, int] = {}
        """Number of the last work in each stream."""
        self._waits: dict[int, list[int]] = {}
        self._non_blocking: set[int] = set()

    def add(self, stream: int, blocking: bool) -> None:
        if not blocking:
            self._non_blocking.add(stream)

    def before(self, stream: int) -> list[int]:
        """Numbers of the work that must have ended before the next work in this stream starts."""
        numbers = self.last(stream)
        self._waits.pop(stream, None)
        return numbers

    def queued(self, stream: int, number: int) -> None:
        """Records that this work is now the last in the stream."""
        self._last[stream] = number

    def wait(self, stream: int, number: int) -> None:
        """The next work in the stream also waits for this work."""
        self._waits.setdefault(stream, []).append(number)

    def last(self, stream: int) -> list[int]:
        """Numbers of the work to wait for until everything in the stream has ended: what its next work would
        wait for, as a copy does that the program waits for."""
        numbers = [*self._waits.get(stream, ()), *([self._last[stream]] if stream in self._last else ())]
        if stream == 0:
            numbers += [last for other, last in self._last.items() if other not in self._non_blocking]
        elif stream not in self._non_blocking and 0 in self._last:
            numbers.append(self._last[0])
        return list(dict.fromkeys(numbers))

    def clear(self) -> None:
        """Forgets all work, because everything has ended."""
        self._last.clear()
        self._waits.clear()


class ProgramStream(Stream):
    """A stream for launches on a `simt.GPU`."""

    def __init__(self, gpu: GPU, number: int, streams: Streams) -> None:
        super().__init__(gpu, number)
        self._streams = streams

    def pending(self) -> tuple[int, ...]:
        return tuple(self._streams.before(self.number))

    def launched(self, launch_id: int) -> None:
        self._streams.queued(self.number, launch_id)
