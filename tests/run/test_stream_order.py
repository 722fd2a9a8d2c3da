"""A session's transfers: their cycles, the data they move, waiting for some of them, and being stopped."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import simt
from simt import _engine
from simt.errors import LimitReached, ResultError
from simt.options import Options
from simt.result.transfer import Transfer
from simt.run.facts import Facts
from simt.run.session import QueuedLaunch, QueuedTransfer, Session
from simt.trace import open_trace
from simt.trace.generate import Warp
from support.tiny import warp_of, write_kernel

functional = _engine.functional
SPEC = {
    **{f"clock.{part}_mhz": 1000 for part in ("core", "interconnect", "l2", "dram")},
    "sm.count": 2,
    "launch.max_concurrent_kernels": 4,
    "host_link.bandwidth": 1000,
    "host_link.latency": 100,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two kernels, in the streams 1 and 2."""

    folder = tmp_path_factory.mktemp("kernels")
    for number, adds in ((1, 10), (2, 1000)):

        def build(warp: Warp, adds: int = adds) -> None:
            for _ in range(adds):
                warp.op("FADD", 8, (8, 9))

        write_kernel(folder, [[warp_of(build)]], number, stream=number)
    return folder


def session_of(folder: Path, **options: Any) -> tuple[Session, list[QueuedLaunch]]:
    session = Session("qv100-accelsim", Options(set=SPEC, **options))
    session.begin(str(folder), "digest")
    launches = []
    for index, kernel in enumerate(open_trace(folder).kernels):
        facts = Facts(index, kernel.id, kernel.name, kernel.grid, kernel.block, 0, 32, 70)
        launches.append(QueuedLaunch(facts, kernel.source(), kernel.id))
    return session, launches


def copy(nbytes: int, stream: int, **more: Any) -> QueuedTransfer:
    return QueuedTransfer("host_to_device", nbytes, stream, **more)


def test_a_run_until_something_has_ended_leaves_the_rest_queued(folder: Path) -> None:
    session, (one, two) = session_of(folder)
    session.queue(one)
    session.queue(two)
    first, second, third = copy(400, 1), copy(0, 2), copy(200, 3)
    numbers = [session.queue_transfer(x) for x in (first, second, third)]
    session.run(until=numbers[:1])
    assert session.queued == (2,) and session.busy
    start = session.record.launches[0].end_cycle
    assert (first.start_cycle, first.end_cycle) == (start, start + 500)
    assert (third.start_cycle, third.end_cycle) == (0, 300)
    assert second.end_cycle is None
    late = copy(50, 4, after=[numbers[0], 1])
    session.queue_transfer(late)
    session.run(until=numbers)
    end = session.record.launches[1].end_cycle
    assert (late.start_cycle, late.end_cycle) == (start + 500, start + 650)
    assert (second.start_cycle, second.end_cycle) == (end, end + 100)
    assert not session.busy
    again = copy(0, 1)
    session.run(until=[session.queue_transfer(again)])
    assert again.start_cycle == end + 100
    assert [x.index for x in session.result().launches] == [0, 1]


def test_a_run_that_is_stopped_drops_transfers_and_the_next_one_goes_on_behind_it(folder: Path) -> None:
    session, (one, _) = session_of(folder, max_cycles=5000)
    fates: list[str] = []
    done = copy(900, 2, ended=lambda: fates.append("ended"), dropped=lambda: fates.append("dropped"))
    late = copy(1 << 20, 2, ended=lambda: fates.append("late"), dropped=lambda: fates.append("dropped late"))
    session.queue(one)
    for transfer in (done, late):
        session.queue_transfer(transfer)
    with pytest.raises(LimitReached):
        session.run()
    assert fates == ["ended", "dropped late"] and not session.busy
    assert (done.end_cycle, late.end_cycle) == (1000, None)


def test_transfers_alone_report_progress_and_functions_of_the_host_run_once(folder: Path) -> None:
    seen, calls = [], []
    session, _ = session_of(folder, progress=seen.append)
    memory = functional.DeviceMemory(1 << 20)
    address = memory.allocate(16, "x")
    out = np.zeros(4, np.int32)
    session.queue_transfer(copy(16, 1, perform=lambda: memory.write(address, bytes(range(16)))))
    session.queue_transfer(QueuedTransfer(stream=1, perform=lambda: calls.append(memory.read(address, 2))))
    session.queue_transfer(
        QueuedTransfer("device_to_host", 16, 1, perform=functional.copying(memory, out, address, 16))
    )
    session.run()
    assert calls == [b"\0\1"] and out.tobytes() == bytes(range(16))
    assert all(0 <= p.fraction <= 1 for p in seen)


# --- memory operations --------------------------------------------------------------------------------------

CAPACITY = 4096


def rows(
    data: st.DataObject, element: int = 1
) -> tuple[int, int, int, Callable[[np.ndarray, int, int], np.ndarray]]:
    """Bytes per row, number of rows, pitch; and a view of them in a flat array."""
    width = element * data.draw(st.integers(0, 24))
    height, pitch = data.draw(st.integers(0, 6)), width + data.draw(st.integers(0, 16))

    def view(flat: np.ndarray, at: int, apart: int) -> np.ndarray:
        return np.lib.stride_tricks.as_strided(flat[at:], (height, width), (apart or width, 1))

    return width, height, pitch, view


@given(st.data())
def test_copies_move_rows(data: st.DataObject) -> None:
    memory = functional.DeviceMemory(1 << 20)
    address = memory.allocate(CAPACITY, "x")
    rng = np.random.default_rng(0)
    device = rng.integers(0, 256, CAPACITY, np.uint8)
    memory.write(address, device.tobytes())
    host = rng.integers(0, 256, CAPACITY, np.uint8)
    width, height, pitch, view = rows(data)
    other = data.draw(st.sampled_from([0, pitch, width + 3]))
    pitch = data.draw(st.sampled_from([0, pitch]))
    kind = data.draw(st.sampled_from(["to", "from", "within"]))
    to, at = data.draw(st.integers(0, 500)), data.draw(st.integers(2000, 2500))
    if kind == "to":
        view(device, to, pitch)[:] = view(host, at, other)
        functional.copying(memory, address + to, host[at:], width, height, pitch, other)()
    elif kind == "from":
        expected = host.copy()
        view(expected, to, pitch)[:] = view(device, at, other)
        functional.copying(memory, host[to:], address + at, width, height, pitch, other)()
        assert (host == expected).all()
    else:
        view(device, to, pitch)[:] = view(device, at, other).copy()
        functional.copying(memory, address + to, address + at, width, height, pitch, other)()
    assert memory.read(address, CAPACITY) == device.tobytes()


@given(st.data(), st.sampled_from([1, 2, 4]), st.integers(0, 0xFFFFFFFF))
def test_fills_repeat_a_pattern(data: st.DataObject, element: int, value: int) -> None:
    memory = functional.DeviceMemory(1 << 20)
    address = memory.allocate(CAPACITY, "x")
    expected = np.zeros(CAPACITY, np.uint8)
    width, height, pitch, view = rows(data, element)
    pattern = np.frombuffer(value.to_bytes(4, "little")[:element], np.uint8)
    view(expected, 100, pitch)[:] = np.tile(pattern, width // element)
    functional.filling(memory, address + 100, value, element, width, height, pitch)()
    assert memory.read(address, CAPACITY) == expected.tobytes()


def test_memory_that_does_not_hold_the_rows_is_refused() -> None:
    memory = functional.DeviceMemory(1 << 20)
    address = memory.allocate(100, "x")
    constant = np.zeros(100, np.uint8)
    constant.flags.writeable = False
    functional.copying(memory, address, constant, 10, 4, 30, 30)()
    with pytest.raises(IndexError, match=r"101 bytes at .*`x`"):
        functional.copying(memory, address, np.zeros(200, np.uint8), 11, 4, 30, 30)
    with pytest.raises(IndexError, match="the host's memory has 100 bytes, the rows need 101"):
        functional.copying(memory, address, constant, 11, 4, 11, 30)
    with pytest.raises(ValueError, match="rows of 11 bytes are 10 bytes apart"):
        functional.copying(memory, address, constant, 11, 2, 10, 11)
    with pytest.raises((BufferError, ValueError), match=r"read-only|not writable"):
        functional.copying(memory, constant, address, 10)
    with pytest.raises(ValueError, match="elements of 1, 2 or 4 bytes"):
        functional.filling(memory, address, 0, 4, 10)
    assert memory.free(address)
    with pytest.raises(IndexError, match="freed"):
        functional.filling(memory, address, 0, 1, 1)


# --- events of simt.GPU -------------------------------------------------------------------------------------


def test_events_have_the_cycle_of_what_they_stand_behind() -> None:
    gpu = simt.GPU("qv100", set={"sm.count": 4})
    source = 'extern "C" __global__ void k(int* a, int n) { for (int i = 0; i < n; ++i) a[i] += i; }'
    kernel = gpu.compile(source).k
    a, b, one, two = gpu.zeros(100, np.int32), gpu.zeros(100, np.int32), gpu.stream(), gpu.stream()
    start = gpu.event().record()
    kernel[1, 1, 0, one](a, 20)
    kernel[1, 1, 0, two](b, 90)
    middle, begin = one.record(), gpu.stream().record()
    kernel[1, 1, 0, one](a, 90)
    end = gpu.event().record()
    first, second, third = (gpu.synchronize(), gpu.launches)[1]
    assert third.start_cycle == first.end_cycle
    assert start.cycle == begin.cycle == 0
    assert middle.cycle == first.end_cycle
    assert end.cycle == max(second.end_cycle, third.end_cycle) == gpu.event().record().cycle
    assert start.elapsed_time(middle) == pytest.approx(first.end_cycle / (1e3 * gpu.spec.clock.core_mhz))


@pytest.mark.parametrize("place", ["saved", "saved.json"])
def test_transfers_that_occupied_a_link_are_in_the_result(folder: Path, tmp_path: Path, place: str) -> None:
    session, (one, _) = session_of(folder)
    session.queue(one)
    within = QueuedTransfer("device", 64, None)
    for transfer in (copy(400, 1), QueuedTransfer(stream=1, perform=lambda: None), within):
        session.queue_transfer(transfer)
    session.run()
    result = session.result()
    end = session.record.launches[0].end_cycle
    assert [x.link for x in result.transfers] == ["device", "host_to_device"]
    assert result.transfers[1] == Transfer("host_to_device", 1, 400, end, end + 500)
    assert result.transfers[0].stream is None and result.transfers[0].cycles > 0
    assert simt.Result.load(result.save(tmp_path / place)) == result
    assert result.to_polars("transfers")["nbytes"].to_list() == [64, 400]
    data = result.to_json()
    data["transfers"]["end_cycle"][1] = 0
    with pytest.raises(ResultError, match="a transfer ends before it starts"):
        simt.Result.from_json(data)


def test_timelines_and_transfers_while_no_launch_runs(folder: Path) -> None:
    """Intervals that end during a copy before the first launch, or between two, belong to no timeline."""
    session, (one, two) = session_of(folder, timeline=20)
    two.after = [1]
    for work in (copy(400, 1), one, copy(4000, 1), two):
        if isinstance(work, QueuedLaunch):
            session.queue(work)
        else:
            session.queue_transfer(work)
    session.run()
    for x in session.result().launches:
        assert x.timeline is not None
        assert sum(x.timeline["warp_instructions"]) >= x.warp_instructions
        # A launch becomes known launch.dispatch_latency after the end of the one before.
        assert x.start_cycle < x.timeline["cycle"][0] <= x.start_cycle + 20 + 8
