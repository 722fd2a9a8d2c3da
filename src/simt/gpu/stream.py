"""Streams and events: the order of execution."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any

from simt.errors import LaunchError
from simt.run.l2 import PROPERTIES, AccessWindow, Property

from .elements import extent

if TYPE_CHECKING:
    from simt.run.session import QueuedTransfer

    from .array import DeviceArray
    from .gpu import GPU


class Event:
    """A point in a stream, or on the GPU's timeline, that streams can wait for."""

    def __init__(self, gpu: GPU) -> None:
        self.gpu = gpu
        self.after: tuple[int, ...] = ()
        """Ids of the launches that it stands behind."""
        self._since = 0
        self._mark: QueuedTransfer | None = None

    def record(self, stream: Stream | None = None) -> Event:
        """Records the point after everything queued now in the stream or, by default, in all streams."""
        stream = stream_of(self.gpu, stream, "the event's stream")
        with self.gpu.exclusive:
            self.after = self.gpu.queued if stream is None else stream.pending()
            self._since = self.gpu.last_cycle
            self._mark = self.gpu.mark(stream, self.after)
        return self

    def synchronize(self) -> None:
        """Waits for it."""
        _synchronize(self.gpu, self.after)

    def query(self) -> bool:
        """Whether it has been reached. If not, this call simulates the queued work, so the next call returns
        True.
        """
        return _query(self.gpu, self.after)

    @property
    def cycle(self) -> int:
        """The core cycle in which it was reached; 0 without timing. Waits for it."""
        with self.gpu.exclusive:
            self.gpu.synchronize()
            if self._mark is None or self._mark.end_cycle is None:
                return self._since
            return self._mark.end_cycle

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds of simulated time from this event to another; 0 without timing. Waits for both."""
        if not isinstance(end, Event) or end.gpu is not self.gpu:
            raise LaunchError(f"the end is {end!r}, expected an event of the same GPU")
        return (end.cycle - self.cycle) / (1e3 * self.gpu.spec.clock.core_mhz)


class Stream:
    """Launches of one stream run one after the other; those of different streams may overlap.

    A launch in a stream returns at once; `synchronize`, or reading an array, waits for it. In a block `with
    stream:`, launches of the same thread that name no stream go to this one.
    """

    def __init__(self, gpu: GPU, number: int) -> None:
        self.gpu = gpu
        self.number = number
        self._last: tuple[int, ...] = ()
        self._waits: tuple[int, ...] = ()
        self.window: AccessWindow | None = None
        """Of its launches; see `set_access_window`."""

    def set_access_window(
        self,
        memory: DeviceArray | tuple[int, int] | None,
        hit_ratio: float = 1.0,
        hit: Property = "persisting",
        miss: Property = "streaming",
    ) -> None:
        """Gives accesses of later launches in this stream to a range of memory properties in the L2, as
        CUDA's access policy window does. An access with a cache policy of its own is not affected.

        memory: an array, or an address and a number of bytes; None: no window.
        hit_ratio: share of its lines with the property `hit`; the others have `miss`. "persisting": evicted
            after all others, as far as the part that `GPU.set_persisting_l2` sets aside holds them, and not
            at all if nothing is set aside; "streaming": evicted before all others; "normal": neither.

        Raises LaunchError for other values.
        """
        if memory is None:
            self.window = None
            return
        if not isinstance(memory, tuple):
            begin, end = extent(memory.shape, memory.strides, memory.itemsize)
            memory = memory.address + begin, end - begin
        if not 0 <= hit_ratio <= 1:
            raise LaunchError(f"hit_ratio is {hit_ratio!r}, expected 0 to 1")
        if hit not in PROPERTIES or miss not in ("normal", "streaming"):
            raise LaunchError(
                f"hit is {hit!r} and miss {miss!r}, expected 'normal', 'streaming' or, for hit, 'persisting'"
            )
        self.window = AccessWindow(*memory, float(hit_ratio), hit, miss)

    def pending(self) -> tuple[int, ...]:
        """Ids of the launches that the next one must wait for."""
        return (*self._last, *self._waits)

    def launched(self, launch_id: int) -> None:
        """Used by the GPU: a launch was queued."""
        self._last, self._waits = (launch_id,), ()

    def wait(self, event: Event) -> None:
        """Makes later launches in this stream wait for the event."""
        if not isinstance(event, Event) or event.gpu is not self.gpu:
            raise LaunchError(
                f"stream {self.number} cannot wait for {event!r}: it is not an event of its GPU"
            )
        with self.gpu.exclusive:
            self._waits = (*self._waits, *event.after)

    def record(self, event: Event | None = None) -> Event:
        """Records an event, by default a new one, after everything queued now."""
        if event is not None and event.gpu is not self.gpu:
            raise LaunchError("the event belongs to another GPU")
        return (Event(self.gpu) if event is None else event).record(self)

    def synchronize(self) -> None:
        """Waits for everything queued in the stream."""
        _synchronize(self.gpu, self.pending())

    def query(self) -> bool:
        """Whether everything queued in it is done. If not, this call simulates it, so the next call returns
        True.
        """
        return _query(self.gpu, self.pending())

    def __enter__(self) -> Stream:
        self.gpu.entered_streams.append(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.gpu.entered_streams.pop()

    def __repr__(self) -> str:
        return f"Stream({self.number})"


def stream_of(gpu: GPU, stream: Any, what: str) -> Stream | None:
    """A stream of this GPU, or None. Raises LaunchError for anything else."""
    if stream is None or (isinstance(stream, int) and stream == 0):
        return None
    if not isinstance(stream, Stream):
        raise LaunchError(f"{what} is {stream!r}, expected one that gpu.stream() has made")
    if stream.gpu is not gpu:
        raise LaunchError(f"{what} is one of another GPU ({stream.gpu.name}), not of this one ({gpu.name})")
    return stream


def _synchronize(gpu: GPU, launches: tuple[int, ...]) -> None:
    """Waits for these launches, and what else is queued, on which a program cannot rely."""
    gpu.synchronize(None if gpu.checking is None else launches)


def _query(gpu: GPU, launches: tuple[int, ...]) -> bool:
    with gpu.exclusive:
        done = not set(gpu.queued).intersection(launches)
        if not done:
            gpu.synchronize()
        return done
