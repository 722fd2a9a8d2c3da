"""The queue of launches and copies in isolation: what starts when."""

from __future__ import annotations

from simt._engine import testing
from simt.spec import load_spec


def started(queue: testing.LaunchQueue) -> list[tuple[str, int, int, int]]:
    """Everything that can start now."""
    return list(iter(queue.next, None))


def test_one_after_the_other() -> None:
    queue = testing.LaunchQueue(1)
    for number in (1, 2):
        queue.launch(number, stream=number)
    assert started(queue) == [("launch", 1, 0, 0)]
    queue.ended(0, 700)
    assert started(queue) == [("launch", 2, 0, 700)]
    assert not queue.done()
    queue.ended(0, 900)
    assert queue.done()


def test_a_launch_that_is_queued_late_starts_after_the_last_end() -> None:
    queue = testing.LaunchQueue(2)
    queue.launch(1)
    assert started(queue) == [("launch", 1, 0, 0)]
    queue.ended(0, 500)
    assert queue.done()
    queue.launch(2, stream=7)
    assert started(queue) == [("launch", 2, 0, 500)]


def test_streams_run_side_by_side() -> None:
    queue = testing.LaunchQueue(3)
    for number, stream in ((1, 0), (2, 0), (3, 5), (4, 6), (5, 8)):
        queue.launch(number, stream)
    # 2 waits for 1; there is no slot left for 5.
    assert [(number, slot) for _, number, slot, _ in started(queue)] == [(1, 0), (3, 1), (4, 2)]
    queue.ended(1, 300)
    assert started(queue) == [("launch", 5, 1, 300)]
    queue.ended(0, 250)
    assert started(queue) == [("launch", 2, 0, 300)]  # never before one that was queued earlier and ended


def test_launches_of_a_stream_keep_their_order() -> None:
    queue = testing.LaunchQueue(4)
    queue.launch(1, stream=0)
    queue.launch(2, stream=3, after=[1])
    queue.launch(3, stream=3)
    queue.launch(4, stream=4, after=[3])
    assert [number for _, number, *_ in started(queue)] == [1]
    queue.ended(0, 10)
    assert [number for _, number, *_ in started(queue)] == [2]
    queue.ended(0, 20)
    assert [number for _, number, *_ in started(queue)] == [3]
    queue.ended(0, 30)
    assert [number for _, number, *_ in started(queue)] == [4]


def test_a_launch_waits_for_all_that_it_names() -> None:
    queue = testing.LaunchQueue(4)
    queue.launch(1, stream=1)
    queue.launch(2, stream=2)
    queue.launch(3, stream=3, after=[1, 2, 99])  # 99 was never queued
    assert [number for _, number, *_ in started(queue)] == [1, 2]
    queue.ended(0, 10)
    assert started(queue) == []
    queue.ended(1, 40)
    assert started(queue) == [("launch", 3, 0, 40)]


def test_copies_wait_for_everything_before_them_and_hold_back_what_follows() -> None:
    queue = testing.LaunchQueue(4)
    queue.copy(0x1000, 64)
    queue.launch(1, stream=1)
    queue.copy(0x2000, 128)
    queue.launch(2, stream=2)
    assert started(queue) == [("copy", 0x1000, 64, 0), ("launch", 1, 0, 0)]
    queue.ended(0, 80)
    assert started(queue) == [("copy", 0x2000, 128, 80), ("launch", 2, 0, 80)]


def test_latency() -> None:
    spec = {"launch.kernel_latency": 1000, "launch.cta_latency": 3, "launch.dispatch_latency": 20}
    assert testing.launch_latency(load_spec("qv100-accelsim", spec).native(), 10) == 1030
    # The overhead of a launch is a time: 1 us is 1,132 cycles at 1,132 MHz, 2,264 at 2,264.
    overhead = {**spec, "launch.overhead": 1000}
    assert testing.launch_latency(load_spec("qv100-accelsim", overhead).native(), 10) == 1030 + 1132
    fast = load_spec("qv100-accelsim", {**overhead, "clock.core_mhz": 2264})
    assert testing.launch_latency(fast.native(), 10) == 1030 + 2264
    # The GPU learns of a launch up to two windows late, and no window is longer than dispatch_latency + 1.
    short = {**spec, "launch.kernel_latency": 0}
    assert testing.launch_latency(load_spec("qv100-accelsim", short).native(), 0) == 3 * 21
