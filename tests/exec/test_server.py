"""Clients that misbehave: they lose their connection, and nobody else does; programs that do not end."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import simt.exec.process
from simt.exec import run
from simt.exec.requests import REQUESTS, LaunchConfiguration, WindowRecord, operation_of
from simt.exec.server import Server

from .test_run import PROGRAM, answer, device, framed

_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=9)
    | st.binary(max_size=9),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)
_ONE = (1, 1, 1)
_NOWHERE = msgspec.msgpack.encode(
    LaunchConfiguration(0, 9, "k", _ONE, _ONE, _ONE, 0, False, WindowRecord(0, 0, 0.0, 0, 0))
)
"""A launch of a module that is not loaded."""
_OPERATIONS = sorted({operation_of(kind) for kind in REQUESTS} - {"synchronize"})


class Served:
    """A server in a thread of its own, until the block ends."""

    def __init__(self, folder: Path) -> None:
        self.place = folder / "socket"
        self.server = Server(self.place, device)
        self._ended, self._end = socket.socketpair()
        self._thread = threading.Thread(target=self.server.run, args=(self._ended,))

    def __enter__(self) -> Served:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.close()
        self._thread.join(30)
        assert not self._thread.is_alive()
        self.server.close()
        self._ended.close()

    def client(self) -> socket.socket:
        channel = socket.socket(socket.AF_UNIX)
        channel.settimeout(20)
        channel.connect(str(self.place))
        return channel


def opened(channel: socket.socket) -> socket.socket:
    channel.sendall(framed("hello", os.getpid(), 0, "program"))
    answer(channel)
    channel.sendall(framed("open"))
    answer(channel)
    return channel


def require_served(channel: socket.socket) -> None:
    channel.sendall(framed("synchronize", "all", 0))
    assert answer(channel) == [0, b"", []]


@pytest.mark.parametrize(
    "payload",
    [
        b"\x91" * 5000 + b"\x00",  # nested deeply
        msgspec.msgpack.encode(["load", 1.5]),
        msgspec.msgpack.encode(["launch", b"", b""]),
        msgspec.msgpack.encode(["launch", _NOWHERE, b""]),
        msgspec.msgpack.encode(["copy", 0, False, False, "device", *[[2**63] * 3] * 2, *[2**63] * 3]),
        msgspec.msgpack.encode(["copy", 0, False, False, "devise", *[[0] * 3] * 2, *[1] * 3]),
        msgspec.msgpack.encode(["launch", _NOWHERE, b"", b"one more"]),
        msgspec.msgpack.encode(["fill", 0, False, 16 << 32, 2**63, 0, 1, 1, 3]),
        msgspec.msgpack.encode(["elapsed", 1, 2]),
        msgspec.msgpack.encode(["called"]),
        msgspec.msgpack.encode(["reach", 64, True]),
        msgspec.msgpack.encode(["hello", 1, 0, "again"]),
        b"",
    ],
)
def test_a_bad_request_ends_its_connection_only(
    payload: bytes, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with Served(tmp_path) as served, served.client() as good, served.client() as bad:
        opened(good)
        opened(bad).sendall(len(payload).to_bytes(8, "little") + payload)
        assert bad.recv(1) == b""
        require_served(good)
    assert "sent an invalid request" in capfd.readouterr().err


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    messages=st.lists(
        st.tuples(st.sampled_from(_OPERATIONS), st.lists(_VALUES, max_size=14)).map(
            lambda request: msgspec.msgpack.encode([request[0], *request[1]])
        )
        | _VALUES.map(msgspec.msgpack.encode)
        | st.binary(max_size=40),
        max_size=4,
    )
)
def test_whatever_is_sent_others_are_served(
    messages: list[bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    with Served(tmp_path_factory.mktemp("s")) as served, served.client() as good:
        opened(good)
        for message in messages:
            with served.client() as bad:
                opened(bad)
                bad.sendall(len(message).to_bytes(8, "little") + message)
                bad.shutdown(socket.SHUT_WR)
                while bad.recv(4096):
                    pass
        require_served(good)


FULL = """
import resource, socket, time
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
others = []
for _ in range(90):
    others.append(socket.socket(socket.AF_UNIX))
    others[-1].connect(os.environ["SIMT_EXEC_SOCKET"])
others[-1].settimeout(20)
assert others[-1].recv(1) == b""
for other in others: other.close()
time.sleep(1)
launch(7); assert result() == 7
"""


@pytest.mark.slow
def test_without_free_descriptors_new_clients_are_turned_away() -> None:
    start = "from simt.cli import main; main()"
    command = f'ulimit -S -n 64; exec "$0" -c "{start}" exec -q --functional -- "$0" -S -c "$1"'
    done = subprocess.run(
        ["sh", "-c", command, sys.executable, PROGRAM + FULL], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert "a process of the program cannot be connected" in done.stderr


STAYS = """signal.signal(signal.SIGTERM, signal.SIG_IGN)
launch(10**8)
try: result()
except AssertionError: time.sleep(99)
"""


def program(body: str) -> list[str]:
    return [sys.executable, "-S", "-c", PROGRAM + "import signal, time\n" + body]


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_program_that_ignores_the_request_to_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simt.exec.process, "_GRACE", 0.3)
    finished = run(program(STAYS), "qv100", set={"sm.count": 1}, max_cycles=20_000)
    assert (finished.status, finished.stopped) == (-9, "max_cycles")


def test_processes_that_the_program_has_started_end_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simt.exec.process, "_GRACE", 0.3)
    place = tmp_path / "pid"
    body = f"open({str(place)!r}, 'w').write(str(os.getpid()))\n" + STAYS
    # The shell is the program; what uses CUDA is its child.
    command = ["sh", "-c", '"$@"; exit 3', "sh", *program(body)]
    assert run(command, "qv100", set={"sm.count": 1}, max_cycles=20_000).stopped == "max_cycles"
    end = time.monotonic() + 10
    while is_running(int(place.read_text())):
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.slow
def test_ctrl_c_leaves_no_program_behind(tmp_path: Path) -> None:
    place = tmp_path / "pid"
    body = "signal.signal(15, signal.SIG_IGN); signal.signal(2, signal.SIG_IGN); launch(5); result()\n"
    body += f"open({str(place)!r}, 'w').write(str(os.getpid())); time.sleep(99)"
    start = "from simt.cli import main; main()"
    command = [sys.executable, "-c", start, "exec", "-q", "--functional", "--", *program(body)]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as running:
        while not place.exists() or not place.read_text():
            time.sleep(0.05)
        running.send_signal(signal.SIGINT)
        assert running.wait(30) == 128 + signal.SIGINT
    assert not is_running(int(place.read_text()))


@pytest.mark.parametrize("launched", ["launch(10**9); result()", "launch(10**9); os.kill(os.getpid(), 9)"])
def test_a_killed_process_does_not_keep_the_device(launched: str) -> None:
    body = "launch(5); result()\nif os.fork() == 0: time.sleep(1); os.kill(os.getppid(), 9); os._exit(0)\n"
    begin = time.monotonic()
    finished = run(program(body + launched), "qv100", set={"sm.count": 1})
    assert finished.status == -9 and time.monotonic() - begin < 30
    (result,) = finished.results
    assert (result.status, [launch.id for launch in result.launches]) == ("interrupted", [1])


def test_what_a_program_that_ends_has_not_waited_for_is_run() -> None:
    finished = run(program("launch(5); launch(6)"), "qv100", set={"sm.count": 1})
    (result,) = finished.results
    assert (finished.status, result.status, len(result.launches)) == (0, "complete", 2)


@pytest.mark.parametrize("asked", [True, False])
def test_code_that_no_tool_reads_is_an_error_of_the_run(
    asked: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    newer = "bytes(PTX).replace(b'.version 7.0', b'.version 9.99')"
    body = f"code = cuda.cuModuleLoadData(ctypes.byref(module), {newer})\n"
    body += (
        "assert code == 222, code\nassert cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(4)) == 0"
    )
    if not asked:
        body = "assert result() == 0"
    finished = run(program(body), "a100", functional=True, code="sass")
    assert finished.status == int(asked)
    assert ("no installed ptxas makes machine code" in capfd.readouterr().err) == asked


def test_a_killed_process_does_not_keep_the_device_without_timing() -> None:
    body = "if os.fork() == 0: time.sleep(1); os.kill(os.getppid(), 9); os._exit(0)\n"
    begin = time.monotonic()
    finished = run(program(body + "launch(2**32 - 1); result()"), "qv100", functional=True)
    assert finished.status == -9 and time.monotonic() - begin < 30
