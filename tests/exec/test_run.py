"""Running programs, without a compiler: statuses, the order of streams, and requests to the server."""

from __future__ import annotations

import socket
import struct
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from simt.cli import app
from simt.errors import LaunchError, SpecError
from simt.exec import Finished, run
from simt.exec.attributes import Attribute, device_attributes, device_uuid
from simt.exec.device import ProgramDevice
from simt.exec.requests import DeviceFacts, RefuseTablesRequest
from simt.exec.server import Server
from simt.exec.streams import Streams
from simt.options import GpuOptions
from simt.profile import read_profile
from simt.result import Result
from simt.sampling import Sieve
from simt.spec import load_spec

PROGRAM = '''
import ctypes, os, sys

cuda = ctypes.CDLL("libcuda.so.1")
PTX = b""".version 7.0
.target sm_70
.address_size 64
.visible .entry spin(.param .u64 out, .param .u32 rounds) {
  .reg .b64 %o; .reg .b32 %n, %k; .reg .pred %p;
  ld.param.u64 %o, [out]; ld.param.u32 %n, [rounds]; mov.u32 %k, 0;
L: add.u32 %k, %k, 1; setp.lt.u32 %p, %k, %n; @%p bra L;
  st.global.u32 [%o], %k; ret; }
"""

def ok(code):
    assert code == 0, code

ok(cuda.cuInit(0))
context, module, spin, memory = (ctypes.c_void_p() for _ in range(4))
ok(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
ok(cuda.cuCtxSetCurrent(context))
ok(cuda.cuModuleLoadData(ctypes.byref(module), PTX))
ok(cuda.cuModuleGetFunction(ctypes.byref(spin), module, b"spin"))
ok(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(4)))

def launch(rounds):
    values = [ctypes.c_uint64(memory.value), ctypes.c_uint32(rounds)]
    arguments = (ctypes.c_void_p * 2)(*[ctypes.addressof(v) for v in values])
    ok(cuda.cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, None, arguments, None))

def result():
    value = ctypes.c_uint32()
    ok(cuda.cuMemcpyDtoH_v2(ctypes.byref(value), memory, ctypes.c_size_t(4)))
    return value.value
'''
"""A program over the driver API that needs no compiler."""


def ran(tmp_path: Path, body: str, **options: Any) -> Finished:
    command = [sys.executable, "-S", "-c", PROGRAM + body]
    return run(command, "qv100", set={"sm.count": 1}, output=tmp_path / "out", **options)


def test_values_and_cycles(tmp_path: Path) -> None:
    finished = ran(tmp_path, "launch(100); assert result() == 100; launch(300); assert result() == 300")
    assert finished.status == 0
    (found,) = finished.results
    few, many = (launch.cycles for launch in found.launches)
    assert many - few > 200  # an iteration of the loop takes more than a cycle
    assert [launch.name for launch in Result.load(tmp_path / "out").launches] == ["spin", "spin"]


def test_what_nobody_waits_for_is_run_as_well(tmp_path: Path) -> None:
    assert len(ran(tmp_path, "launch(10)").results[0].launches) == 1


def test_a_killed_program_keeps_its_launches(tmp_path: Path) -> None:
    finished = ran(tmp_path, "launch(5); assert result() == 5; os.kill(os.getpid(), 9)")
    assert finished.status == -9
    assert len(Result.load(tmp_path / "out").launches) == 1


def test_a_limit_ends_the_program_and_keeps_what_is_finished(tmp_path: Path) -> None:
    finished = ran(tmp_path, "launch(5); result(); launch(10**8); result()", max_cycles=200_000)
    assert finished.stopped == "max_cycles" and finished.status != 0
    assert [launch.id for launch in Result.load(tmp_path / "out").launches] == [1]


def test_a_plan_times_its_launches_and_executes_the_others(tmp_path: Path) -> None:
    body = "launch(5); assert result() == 5; launch(6); assert result() == 6; launch(7); assert result() == 7"
    finished = ran(tmp_path, body, plan=[2])
    assert finished.status == 0
    assert [launch.id for launch in finished.results[0].launches] == [2]


def test_a_profile_of_what_launches_execute(tmp_path: Path) -> None:
    body = "launch(5); assert result() == 5; launch(2000); assert result() == 2000"
    place = tmp_path / "p.parquet"
    program = [sys.executable, "-S", "-c", PROGRAM + body]
    done = CliRunner().invoke(
        app, ["exec", "--gpu", "qv100", "--code", "ptx", "--profile", str(place), "--", *program]
    )
    assert done.exit_code == 0, done.output
    profile = read_profile(place)
    assert profile.expected and [profile.names[code] for code in profile.name_codes] == ["spin", "spin"]
    few, many = profile.column("smsp__inst_executed.sum")
    assert many - few > 1995
    assert len(Sieve().fit_plan(profile)) == 2


def test_launches_are_sampled(tmp_path: Path) -> None:
    program = [sys.executable, "-S", "-c", PROGRAM + "launch(2000); assert result() == 2000"]
    options = ["--gpu", "qv100", "--code", "ptx", "--quiet", "--output", str(tmp_path / "out")]
    sampled = ["--sample", "first-n", "--sample-set", "instructions=100"]
    done = CliRunner().invoke(app, ["exec", *options, *sampled, "--", *program])
    assert done.exit_code == 0, done.output
    (launch,) = Result.load(tmp_path / "out").launches
    assert launch.sampled is not None
    assert launch.sampled.warp_instructions < launch.warp_instructions == 6003


ASK = "table = ctypes.c_void_p(); assert cuda.cuGetExportTable(ctypes.byref(table), bytes(16)) != 0; "


@pytest.mark.parametrize(
    ("body", "reported"), [(ASK, True), (ASK + "launch(7); assert result() == 7", False), ("", False)]
)
def test_private_tables_are_reported_where_no_kernel_follows(
    body: str, reported: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([sys.executable, "-S", "-c", PROGRAM + body], "qv100", functional=True).status == 0
    assert ("asked for NVIDIA's private tables" in capsys.readouterr().err) == reported


@pytest.mark.parametrize(
    ("file", "reported"),
    [("/lib/libnvrtc.so.13", False), ("/lib/libnvJitLink.so.12", False), ("/lib/libcublas.so.13", True)],
)
def test_compilers_do_without_private_tables(
    file: str, reported: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    device = ProgramDevice(GpuOptions("qv100"), None, 0, "program", lambda _: None, None)
    device.refuse_tables(RefuseTablesRequest(file))
    device.end(is_lost=False)
    assert (f"simt: {file} asked for NVIDIA's private tables" in capsys.readouterr().err) == reported


@pytest.mark.parametrize(("gpu", "changes"), [("h1000", {}), ("h100", {"sm.cuont": 4})])
def test_a_wrong_gpu_is_refused_before_the_program_starts(
    gpu: str, changes: dict[str, int], tmp_path: Path
) -> None:
    with pytest.raises(SpecError):
        run(["touch", str(tmp_path / "started")], gpu, set=changes)
    assert not (tmp_path / "started").exists()


def test_functional_runs_have_no_result(tmp_path: Path) -> None:
    command = [sys.executable, "-S", "-c", PROGRAM + "launch(7); assert result() == 7"]
    assert run(command, "qv100", functional=True) == Finished(0, ())


def device(ordinal: int, program: str, ask: Callable[[int], None]) -> ProgramDevice:
    return ProgramDevice(GpuOptions("qv100", functional=True), None, ordinal, program, ask)


def served(path: Path, talk: Callable[[socket.socket], None]) -> Server:
    """The server's state after a program has sent requests and ended."""
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
    facts: list[DeviceFacts] = []

    def talk(channel: socket.socket) -> None:
        channel.sendall(framed("hello", 1, 0, "program"))
        facts.append(msgspec.convert(answer(channel), DeviceFacts))

    served(tmp_path, talk)
    spec = load_spec("qv100")
    assert facts[0].memory == spec.dram.capacity_gib << 30
    assert facts[0].attributes == device_attributes(spec, 0)
    assert facts[0].attributes[Attribute.MULTIPROCESSOR_COUNT] == spec.sm.count
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
    assert "the program's CUDA library sent an invalid request" in capfd.readouterr().err


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
