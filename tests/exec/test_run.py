"""Running programs, without a compiler: statuses, the order of streams, and what the server is sent."""

from __future__ import annotations

import socket
import struct
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simt.errors import LaunchError
from simt.exec import run
from simt.exec.attributes import Attribute, device_attributes, device_uuid
from simt.exec.device import Device
from simt.exec.server import Server
from simt.exec.streams import Streams
from simt.spec import load_spec


def device(ordinal: int, program: str, ask: Callable[[int], None]) -> Device:
    return Device("qv100", ordinal, program, {"gpu": "qv100", "functional": True}, ask)


def served(path: Path, talk: Callable[[socket.socket], None]) -> Server:
    """What a server is like after a program has talked to it and gone."""
    server = Server(path / "socket", device)
    told, tell = socket.socketpair()

    def program() -> None:
        with tell, socket.socket(socket.AF_UNIX) as channel:
            channel.connect(str(path / "socket"))
            channel.settimeout(20)
            talk(channel)

    thread = threading.Thread(target=program)
    thread.start()
    server.run(told)
    thread.join()
    server.close()
    told.close()
    return server


def framed(*message: object) -> bytes:
    payload = msgspec.msgpack.encode(message)
    return struct.pack("<Q", len(payload)) + payload


def answer(channel: socket.socket) -> object:
    (size,) = struct.unpack("<Q", channel.recv(8, socket.MSG_WAITALL))
    return msgspec.msgpack.decode(channel.recv(size, socket.MSG_WAITALL))


@pytest.mark.parametrize("code", ["0", "3"])
def test_the_status_is_that_of_the_program(code: str) -> None:
    finished = run([sys.executable, "-S", "-c", f"raise SystemExit({code})"], "qv100")
    assert finished.status == int(code) and finished.results == ()


def test_a_killed_program_has_the_signal_as_its_status() -> None:
    assert run(["sh", "-c", "kill -9 $$"], "qv100").status == -9


def test_a_program_that_is_not_there_is_named() -> None:
    with pytest.raises(LaunchError, match="/no/such/program: cannot be started"):
        run(["/no/such/program"])


def test_programs_find_the_libraries_and_the_number_of_devices() -> None:
    check = "import os; from pathlib import Path; p = os.environ['LD_LIBRARY_PATH'].split(':')[0]; "
    check += "assert (Path(p) / 'libcudart.so.12').is_file(); assert os.environ['SIMT_EXEC_DEVICES'] == '2'"
    assert run([sys.executable, "-S", "-c", check], ["qv100", "qv100"]).status == 0


def test_a_device_says_what_its_specification_says(tmp_path: Path) -> None:
    facts: list[dict[str, object]] = []

    def talk(channel: socket.socket) -> None:
        channel.sendall(framed("hello", 1, 0, "program"))
        facts.append(answer(channel))  # type: ignore[arg-type]

    served(tmp_path, talk)
    spec = load_spec("qv100")
    assert facts[0]["memory"] == spec.dram.capacity_gib << 30
    assert facts[0]["attributes"] == device_attributes(spec, 0)
    assert facts[0]["attributes"][Attribute.MULTIPROCESSOR_COUNT] == spec.sm.count  # type: ignore[index]
    assert len({device_uuid(spec, n) for n in range(3)}) == 3


@settings(max_examples=30, deadline=None)
@given(st.binary(max_size=60))
def test_rubbish_ends_one_connection_and_no_more(
    tmp_path_factory: pytest.TempPathFactory, rubbish: bytes
) -> None:
    for sent in (rubbish, struct.pack("<Q", len(rubbish)) + rubbish):
        server = served(tmp_path_factory.mktemp("s"), lambda channel, sent=sent: channel.sendall(sent))
        assert server.results == []


@pytest.mark.parametrize(
    "message",
    [("launch",), ("no such thing",), ("hello", 1, 0, "x", "y"), ("allocate", 4, "x"), (), ("hello", 1, 77)],
)
def test_what_makes_no_sense_ends_the_connection(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], message: tuple[object, ...]
) -> None:
    def talk(channel: socket.socket) -> None:
        if message[:1] not in (("hello",), ("launch",)):
            channel.sendall(framed("hello", 1, 0, "program"))
            answer(channel)
        channel.sendall(framed(*message))
        assert channel.recv(1) == b""

    served(tmp_path, talk)
    assert "the program's CUDA library sent what cannot be used" in capfd.readouterr().err


def test_a_blocking_stream_and_the_default_stream_wait_for_each_other() -> None:
    streams = Streams()
    streams.add(1, blocking=True)
    streams.add(2, blocking=False)
    for stream, number in ((1, 10), (2, 20)):
        assert streams.before(stream) == []
        streams.queued(stream, number)
    assert streams.before(0) == [10]
    streams.queued(0, 30)
    assert streams.before(1) == [10, 30]
    assert streams.before(2) == [20]


def test_a_wait_holds_for_the_next_work_of_its_stream() -> None:
    streams = Streams()
    streams.add(1, blocking=False)
    streams.queued(1, 10)
    streams.wait(1, 99)
    assert streams.last(1) == [99, 10]
    assert streams.before(1) == [99, 10]
    streams.queued(1, 11)
    assert streams.before(1) == [11] == streams.last(1)
    streams.clear()
    assert streams.before(1) == []
