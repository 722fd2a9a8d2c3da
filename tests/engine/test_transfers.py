"""Copies, events and host functions in stream order: when they start and end."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simt import _engine
from simt._engine import testing
from simt.spec import load_spec
from simt.trace import open_trace
from simt.trace.generate import Warp
from support.tiny import GLOBAL, finished, warp_of, write_kernel

NONE, TO_DEVICE, TO_HOST, WITHIN, FROM_PEER, TO_PEER = range(6)

# --- against a slow reference: transfers alone --------------------------------------------------------------


@dataclass(frozen=True)
class Command:
    """A transfer; or, with `waits`, the host waits for the transfer with this number."""

    stream: int | None = None
    after: tuple[int, ...] = ()
    link: int = NONE
    cycles: int = 0
    waits: int | None = None


@dataclass
class Slow:
    """A reference that visits every cycle, and every transfer in each."""

    commands: list[Command]
    queued: dict[int, int] = field(default_factory=dict)  # when
    started: dict[int, int] = field(default_factory=dict)
    ended: dict[int, int] = field(default_factory=dict)

    def before(self, number: int) -> list[int]:
        own = self.commands[number]
        earlier = [n for n in self.queued if n < number]
        streams = [n for n in earlier if own.stream is not None and self.commands[n].stream == own.stream]
        return streams + [n for n in earlier if n in own.after]

    def ready(self, number: int) -> int | None:
        before = self.before(number)
        if any(n not in self.ended for n in before):
            return None
        return max([self.queued[number], *(self.ended[n] for n in before)])

    def step(self, now: int) -> bool:
        """One event of this cycle; ends come first."""
        for n, start in self.started.items():
            if n not in self.ended and start + self.commands[n].cycles == now:
                self.ended[n] = now
                return True
        busy = {self.commands[n].link for n in self.started if n not in self.ended} - {NONE}
        able = [
            (ready, n) for n in self.queued if n not in self.started and (ready := self.ready(n)) is not None
        ]
        first = {link: min((x for x in able if self.commands[x[1]].link == link), default=None) for link in
                 (TO_DEVICE, TO_HOST, WITHIN, FROM_PEER, TO_PEER) if link not in busy}  # fmt: skip
        free = [x for x in able if self.commands[x[1]].link == NONE] or [x for x in first.values() if x]
        if not free:
            return False
        self.started[min(n for _, n in free)] = now
        return True

    def run(self) -> list[tuple[int, int, int]]:
        now = 0
        host = 0
        while len(self.queued) != len(self.ended) or host < len(self.commands):
            while self.step(now):
                pass
            moved = host
            while host < len(self.commands):
                waits = self.commands[host].waits
                if waits is None:
                    self.queued[host] = now
                elif waits not in self.ended or host > moved:
                    break
                host += 1
            if host == moved:
                now += 1
        return sorted((n, self.started[n], self.ended[n]) for n in self.ended)


def fast(commands: list[Command], stride: int) -> list[tuple[int, int, int]]:
    """The queue's events, polled every `stride` cycles, and the cycles in which the host continues."""
    queue = testing.LaunchQueue()
    found: dict[int, tuple[int, int]] = {}
    now = 0

    def take(until: int) -> None:
        while (ended := queue.next(until)) is not None:
            found[ended[1]] = ended[2:]

    for number, c in enumerate(commands):
        if c.waits is None:
            queue.transfer(number, c.stream, list(c.after), c.link, c.cycles)
            continue
        take(now)
        if c.waits in found:
            continue
        queue.host_waits_for([c.waits])
        while not queue.host_goes_on():
            now = min(now + stride, queue.next_event())
            take(now)
    while not queue.done():
        take(now)
        now += stride
    return sorted((number, *cycles) for number, cycles in found.items())


@st.composite
def programs(draw: st.DrawFn) -> list[Command]:
    commands: list[Command] = []
    for number in range(draw(st.integers(1, 14))):
        known = [n for n, c in enumerate(commands) if c.waits is None]
        if known and draw(st.integers(0, 4)) == 0:
            commands.append(Command(waits=draw(st.sampled_from(known))))
            continue
        commands.append(
            Command(
                stream=draw(st.sampled_from([None, 1, 2, 3])),
                after=tuple(draw(st.sets(st.sampled_from(known or [0]), max_size=3))) if number else (),
                link=draw(st.sampled_from(range(6))),
                cycles=draw(st.integers(0, 9)),
            )
        )
    return commands


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(programs(), st.sampled_from([1, 3, 1000]))
def test_transfers_are_scheduled_as_by_the_slow_reference(commands: list[Command], stride: int) -> None:
    assert fast(commands, stride) == Slow(commands).run()


def test_a_link_serves_what_was_ready_first() -> None:
    queue = testing.LaunchQueue()
    queue.transfer(1, stream=1, link=TO_DEVICE, cycles=10)
    queue.transfer(2, stream=1, link=TO_DEVICE, cycles=10)  # ready at 10
    queue.transfer(3, stream=2, link=TO_HOST, cycles=7)
    queue.transfer(4, stream=2, link=TO_DEVICE, cycles=10)  # ready at 7, so before 2
    queue.transfer(5, stream=3, link=WITHIN, cycles=100)
    queue.transfer(6, after=[2, 3])
    assert list(iter(queue.next, None)) == [
        ("transfer", 3, 0, 7),
        ("transfer", 1, 0, 10),
        ("transfer", 4, 10, 20),
        ("transfer", 2, 20, 30),
        ("transfer", 6, 30, 30),
        ("transfer", 5, 0, 100),
    ]
    assert queue.done()


def test_launches_and_transfers_wait_for_each_other() -> None:
    queue = testing.LaunchQueue(2)
    queue.launch(1, stream=1)
    queue.transfer(2, stream=2, link=TO_DEVICE, cycles=500)
    queue.launch(3, stream=2)
    queue.transfer(4, stream=1, after=[3], link=TO_HOST, cycles=50)
    queue.copy(0x1000, 64)
    queue.transfer(5, stream=3, link=TO_HOST, cycles=1)

    def now(cycle: int) -> list[tuple[str, int, int, int]]:
        return list(iter(functools.partial(queue.next, cycle), None))

    assert now(0) == [("launch", 1, 0, 0)]
    assert now(499) == []
    assert now(500) == [("transfer", 2, 0, 500), ("launch", 3, 1, 500)]
    queue.ended(1, 800)
    assert now(832) == []
    queue.ended(0, 790)
    assert now(840) == []
    assert queue.next_event() == 850  # from the end of launch 3, not from when the host learned of it
    assert now(850) == [("transfer", 4, 800, 850), ("copy", 0x1000, 64, 850)]
    assert now(851) == [("transfer", 5, 850, 851)]


def test_duration() -> None:
    spec = {
        "clock.core_mhz": 1500,
        "host_link.bandwidth": 10_000,
        "host_link.latency": 1001,
        "peer_link.latency": 3000,
    }
    spec |= {"clock.dram_mhz": 1000, "address_map.channels": 32, "dram.bus_bytes": 16}
    native = load_spec("qv100-accelsim", spec).native()
    latency = 1502  # 1501.5
    linked = load_spec("qv100-accelsim", {**spec, "peer_link.bandwidth": 150_000}).native()
    for link in (FROM_PEER, TO_PEER):
        assert testing.transfer_cycles(linked, link, 1_000_000) == 4500 + 10_000
        assert testing.transfer_cycles(native, link, 1_000_000) == 4500 + 150_000  # over the host
    assert testing.transfer_cycles(native, NONE, 1 << 40) == 0
    assert testing.transfer_cycles(native, TO_DEVICE, 0) == latency
    assert testing.transfer_cycles(native, TO_DEVICE, 1_000_000) == latency + 150_000
    assert testing.transfer_cycles(native, TO_HOST, 1_000_001) == latency + 150_001
    # 32 channels move 16 bytes twice in each of their cycles: 1,024 bytes in 1.5 core cycles.
    assert testing.transfer_cycles(native, WITHIN, 2_048_000) == latency + 3000
    assert testing.transfer_cycles(native, TO_HOST, 1 << 40) == latency + ((1 << 40) * 15 + 99) // 100


# --- beside launches ----------------------------------------------------------------------------------------

# A cycle is a nanosecond everywhere, and a byte takes one cycle on the link.
SPEC = {
    **{f"clock.{part}_mhz": 1000 for part in ("core", "interconnect", "l2", "dram")},
    "sm.count": 2,
    "launch.kernel_latency": 300,
    "launch.max_concurrent_kernels": 4,
    "host_link.bandwidth": 1000,
    "host_link.latency": 100,
}


def loads(warp: Warp) -> None:
    for i in range(8):
        warp.memory("LDG.E.SYS", [GLOBAL + 4096 * i + 128 * lane for lane in range(32)], 4, 8 + i, (2,))
        warp.op("FFMA", 20, (8 + i, 9, 12))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Kernels 1 to 4, in the streams 1, 2, 1 and 2."""
    folder = tmp_path_factory.mktemp("kernels")
    for number, (ctas, stream) in enumerate(((4, 1), (6, 2), (2, 1), (9, 2)), 1):
        made = [[warp_of(loads) for _ in range(4)] for _ in range(ctas)]
        write_kernel(folder, made, number, stream=stream)
    return folder


class Machine:
    """An engine with kernels queued by number; returns its records by number."""

    def __init__(self, folder: Path, threads: int = 1, window: int = 0, **changes: Any) -> None:
        self.engine = _engine.Gpu(load_spec("qv100-accelsim", SPEC | changes).native(), threads, window)
        self.kernels = {c.id: c for c in open_trace(folder).commands}
        self.cycles: dict[int, tuple[int, int]] = {}

    def launch(self, number: int, after: list[int] | None = None) -> None:
        self.engine.launch(self.kernels[number].source(), number, after or [])

    def copy(self, number: int, nbytes: int, stream: int, link: str = "host_to_device", **more: Any) -> None:
        self.engine.transfer(number, stream=stream, link=link, traffic=nbytes, **more)

    def event(self, number: int, stream: int | None, after: list[int] | None = None, **more: Any) -> None:
        self.engine.transfer(number, stream=stream, after=after or [], **more)

    def run(self, until: int | None = None, most: Callable[[], int] = lambda: 1 << 60) -> int:
        """Runs until the end of one command or of all; returns the engine's cycle."""
        while not self.engine.run(most(), [] if until is None else [until]):
            self._collect()
            if until in self.cycles:
                break
        self._collect()
        return self.engine.cycle

    def _collect(self) -> None:
        for record in finished(self.engine):
            self.cycles[record["id"]] = (record["start_cycle"], record["end_cycle"])
        for number, start, end in self.engine.finished_transfers():
            self.cycles[number] = (start, end)


def alone(folder: Path, kernel: int) -> int:
    machine = Machine(folder)
    machine.launch(kernel)
    machine.run()
    start, end = machine.cycles[kernel]
    return end - start


def test_copy_launch_copy_in_one_stream(folder: Path) -> None:
    machine = Machine(folder)
    machine.copy(11, 500, 1)
    machine.launch(1)
    machine.event(12, 1)
    machine.copy(13, 300, 1, "device_to_host")
    machine.event(14, None)
    machine.run()
    end = 600 + alone(folder, 1)
    assert machine.cycles == {
        11: (0, 600),
        1: (600, end),
        12: (end, end),
        13: (end, end + 400),
        14: (0, 0),
    }


def test_copies_overlap_launches_and_copies_back_but_not_each_other(folder: Path) -> None:
    machine = Machine(folder)
    machine.launch(1)
    machine.copy(11, 900, 2)
    machine.launch(2)
    machine.copy(12, 100, 3)  # waits for the link
    machine.copy(13, 200, 4, "device_to_host")
    machine.copy(14, 0, 5, "device")
    machine.run()
    # In the second stream the launch begins when its data has arrived, independently of the first stream.
    assert [machine.cycles[n] for n in (11, 12, 13, 14)] == [(0, 1000), (1000, 1200), (0, 300), (0, 100)]
    assert machine.cycles[1][0] == 0 and machine.cycles[2][0] == 1000
    assert machine.cycles[1][1] > 1000


def test_streams_wait_for_events_of_others(folder: Path) -> None:
    machine = Machine(folder)
    machine.copy(11, 2000, 1)
    machine.event(21, 1)
    machine.launch(1)
    machine.launch(2, after=[21])
    machine.event(22, 2)
    machine.copy(12, 50, 1, "device_to_host", after=[22])
    machine.run()
    assert machine.cycles[21] == (2100, 2100)
    assert machine.cycles[1][0] == machine.cycles[2][0] == 2100
    ends = [machine.cycles[n][1] for n in (1, 2)]
    assert machine.cycles[22] == (ends[1], ends[1])
    assert machine.cycles[12] == (max(ends), max(ends) + 150)


def test_the_host_goes_on_at_the_end_of_what_it_waited_for(folder: Path) -> None:
    machine = Machine(folder)
    machine.launch(1)
    machine.copy(11, 400, 2)
    machine.copy(12, 100, 2)
    assert not machine.engine.run(499, [11])
    assert machine.engine.finished_transfers() == []
    assert machine.run(until=11) == 500
    assert machine.cycles == {11: (0, 500)}
    machine.copy(13, 0, 3, "device_to_host")  # queued at 500
    machine.launch(2, after=[13])
    assert machine.run(until=1) > 500
    first = machine.cycles[1]
    assert first[0] == 0 and machine.cycles[12] == (500, 700) and machine.cycles[13] == (500, 600)
    machine.event(14, 7)  # the host has waited for launch 1, which became known after its end
    machine.copy(15, 10, 7)
    machine.run()
    assert machine.cycles[14] == (first[1], first[1])
    assert machine.cycles[15] == (first[1], first[1] + 110)
    assert machine.cycles[2][0] == 700  # behind 12 in its stream, and 13


def test_data_moves_when_a_transfer_ends(folder: Path) -> None:
    machine = Machine(folder)
    seen: list[tuple[str, int]] = []
    machine.launch(1)
    machine.copy(11, 400, 2, perform=lambda: seen.append(("copy", machine.engine.cycle)))
    machine.event(12, 2, perform=lambda: seen.append(("function of the host", machine.engine.cycle)))
    machine.event(13, 1, perform=lambda: seen.append(("after the launch", machine.engine.cycle)))
    machine.run()
    assert seen[:2] == [("copy", 500), ("function of the host", 500)]
    assert [what for what, _ in seen[2:]] == ["after the launch"] and seen[2][1] >= machine.cycles[1][1]


def test_what_a_function_of_the_host_raises_leaves_the_queue_as_it_is(folder: Path) -> None:
    machine = Machine(folder)

    def fails() -> None:
        raise ZeroDivisionError("in the function")

    machine.event(11, 1, perform=fails)
    machine.copy(12, 100, 1)
    with pytest.raises(ZeroDivisionError, match="in the function"):
        machine.run()
    machine.run()
    assert machine.cycles == {11: (0, 0), 12: (0, 200)}


def test_what_copies_leave_in_the_l2_is_there_when_they_end(folder: Path) -> None:
    def hits(stream: int, **changes: Any) -> int:
        machine = Machine(folder, **changes)
        machine.engine.transfer(
            11,
            stream=stream,
            link="host_to_device",
            traffic=100_000,
            touched=[(GLOBAL, 1 << 18, 0, 1, 0, 1, "received")],
        )
        machine.launch(1)
        assert machine.engine.run(1 << 60)
        (record,) = finished(machine.engine)
        return sum(row["hit"] for row in record["l2"].values())

    assert hits(1) > hits(2)  # in the launch's own stream, and concurrently with the launch
    assert hits(1, **{"l2.copies_fill": False}) == hits(2)


def test_what_a_memset_or_a_copy_on_the_device_leaves_is_there_when_it_ends(folder: Path) -> None:
    def hits(*touched: tuple[int, int, int, int, int, int, str], stream: int = 1) -> int:
        machine = Machine(folder)
        machine.engine.transfer(11, stream=stream, link="device", traffic=100_000_000, touched=touched)
        machine.launch(1)
        assert machine.engine.run(1 << 60)
        (record,) = finished(machine.engine)
        return sum(row["hit"] for row in record["l2"].values())

    size, far = 1 << 18, GLOBAL + (1 << 32)
    none = hits()
    everything = hits((GLOBAL, size, 0, 1, 0, 1, "written"))
    assert everything > none
    assert hits((GLOBAL, size, 0, 1, 0, 1, "written"), stream=2) == none  # not yet there
    assert hits((far, size, 0, 1, 0, 1, "read"), (GLOBAL, size, 0, 1, 0, 1, "written")) == everything
    assert hits((GLOBAL, size, 0, 1, 0, 1, "read"), (far, size, 0, 1, 0, 1, "written")) == everything
    # By rows and slices: the same memory, and every second kilobyte of it.
    assert hits((GLOBAL, 1024, 1024, 16, 16384, size >> 14, "written")) == everything
    assert none < hits((GLOBAL, 1024, 2048, size >> 11, 0, 1, "written")) < everything


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.data())
def test_windows_threads_and_slices_change_nothing(folder: Path, data: st.DataObject) -> None:
    steps = data.draw(
        st.lists(
            st.tuples(
                st.sampled_from(["launch", "copy", "event", "wait"]),
                st.sampled_from([1, 2, 3]),
                st.sampled_from(["host_to_device", "device_to_host", "device"]),
                st.integers(0, 4000),
                st.lists(st.integers(0, 7), max_size=2),
            ),
            min_size=1,
            max_size=8,
        )
    )

    def simulated(threads: int, window: int, most: int) -> tuple[Any, ...]:
        machine = Machine(folder, threads, window)
        order: list[int] = []
        kernels = iter((1, 2, 3, 4))
        numbers: list[int] = []
        for place, (what, stream, link, nbytes, after) in enumerate(steps):
            others = [numbers[i] for i in after if i < len(numbers)]
            number = 100 + place
            if what == "launch" and (kernel := next(kernels, None)) is not None:
                machine.launch(number := kernel, others)
            elif what == "wait":
                if numbers and numbers[-1] not in machine.cycles:
                    machine.run(numbers[-1], lambda: most)
                continue
            elif what == "event":
                machine.event(number, stream, others, perform=functools.partial(order.append, number))
            else:
                machine.copy(
                    number,
                    nbytes,
                    stream,
                    link,
                    after=others,
                    perform=functools.partial(order.append, number),
                )
            numbers.append(number)
        machine.run(None, lambda: most)
        return machine.cycles, order

    expected = simulated(1, 0, 1 << 60)
    assert len(expected[0]) == sum(what != "wait" for what, *_ in steps)
    assert simulated(1, 1, 1 << 60) == expected
    assert simulated(2, 0, 97) == expected
    assert simulated(2, 3, 1) == expected
