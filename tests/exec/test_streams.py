"""What must have ended before the next work in a stream, and before the program goes on."""

from __future__ import annotations

import pytest

from simt.exec.streams import Streams

LEGACY, BLOCKING, OTHER, FREE = 0, 1, 2, 3


@pytest.fixture
def streams() -> Streams:
    made = Streams()
    for number in (BLOCKING, OTHER, FREE):
        made.add(number, blocking=number != FREE)
    return made


def test_the_legacy_stream_waits_for_blocking_streams(streams: Streams) -> None:
    """Also where the program waits for it: a cudaMemcpy copies what a kernel in another stream wrote."""
    streams.queued(BLOCKING, 11)
    streams.queued(FREE, 12)
    assert streams.last(LEGACY) == [11] == streams.before(LEGACY)


def test_blocking_streams_wait_for_the_legacy_stream(streams: Streams) -> None:
    """The default stream of a thread is blocking, and copies in it are waited for, too."""
    streams.queued(LEGACY, 11)
    assert streams.last(BLOCKING) == [11] == streams.before(BLOCKING)
    assert streams.last(FREE) == [] == streams.before(FREE)
    streams.queued(BLOCKING, 12)
    assert streams.last(OTHER) == [11]


def test_waits_are_for_the_next_work_alone(streams: Streams) -> None:
    streams.wait(FREE, 7)
    assert streams.last(FREE) == [7] == streams.before(FREE)
    assert streams.last(FREE) == []
