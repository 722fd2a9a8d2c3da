"""The order of work that is executed without timing, and launches that are executed in parts."""

from __future__ import annotations

import struct

import pytest

from simt.cuda import PtxModule
from simt.errors import ProgramFault
from simt.exec import gpus
from simt.exec.gpus import ProgramGpu
from simt.exec.streams import ProgramStream, Streams
from simt.exec.untimed import HostCall, Untimed
from simt.gpu.arguments import LaunchArguments
from simt.gpu.module import Launcher, Module
from simt.options import GpuOptions

# Thread t of block b stores the sum of 0 .. n-1 at word 64 b + t.
SUMS = """.version 7.0
.target sm_70
.address_size 64
.visible .entry sums(.param .u64 out, .param .u32 n) {
  .reg .b64 %o, %a; .reg .b32 %n, %k, %s, %t, %b, %i; .reg .pred %p;
  ld.param.u64 %o, [out]; ld.param.u32 %n, [n];
  mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x; mad.lo.u32 %i, %b, 64, %t;
  mov.u32 %k, 0; mov.u32 %s, 0;
L: add.u32 %s, %s, %k; add.u32 %k, %k, 1; setp.lt.u32 %p, %k, %n; @%p bra L;
  mad.wide.u32 %a, %i, 4, %o; ORDERED st.global.u32 [%a], %s; ret; }
"""
# Waits until the word is not 0, then stores 1 in the next one.
WAIT = """.version 7.0
.target sm_70
.address_size 64
.visible .entry wait(.param .u64 out, .param .u32 n) {
  .reg .b64 %o; .reg .b32 %v; .reg .pred %p;
  ld.param.u64 %o, [out];
L: ld.volatile.global.u32 %v, [%o]; setp.eq.u32 %p, %v, 0; @%p bra L;
  st.volatile.global.u32 [%o+4], 1; ret; }
"""


class Parts:
    """Work of so many parts, that notes in `log` what is done."""

    def __init__(self, name: str, parts: int, log: list[str]) -> None:
        self._name, self._left, self._log = name, parts, log

    def begin(self, number: int) -> Parts | None:
        self._log.append(f"{self._name} begins")
        return self if self._left else None

    def advance(self, most: int) -> bool:
        self._left -= 1
        self._log.append(self._name)
        return self._left == 0

    def repeats(self) -> bool:
        return False

    def report_endless_wait(self) -> None:
        raise AssertionError


def test_work_waits_for_its_stream_only() -> None:
    streams, log = Streams(), []
    for number in (1, 2):
        streams.add(number, blocking=False)
    untimed = Untimed(streams)
    assert untimed.add(1, Parts("short", 0, log).begin) == 0
    kernel = untimed.add(1, Parts("kernel", 2, log).begin)
    after = untimed.add(1, Parts("after", 0, log).begin)
    assert untimed.add(2, Parts("other", 0, log).begin) == 0
    assert log == ["short begins", "kernel begins", "other begins"]
    assert untimed.numbers == [kernel, after]
    untimed.advance(1)
    assert not untimed.finished([kernel]) and log[3:] == ["kernel"]
    untimed.advance(1)
    assert untimed.finished([kernel, after]) and log[4:] == ["kernel", "after begins"]


def test_an_event_orders_streams() -> None:
    streams, log = Streams(), []
    for number in (1, 2):
        streams.add(number, blocking=False)
    untimed = Untimed(streams)
    untimed.add(1, Parts("kernel", 1, log).begin)
    event = untimed.add(1, Parts("event", 0, log).begin)
    streams.wait(2, event)
    untimed.add(2, Parts("waiting", 0, log).begin)
    assert log == ["kernel begins"]
    untimed.advance(1)
    assert log[1:] == ["kernel", "event begins", "waiting begins"] and untimed.numbers == []


def test_a_function_of_the_program_is_called_while_it_waits() -> None:
    called: list[int] = []
    untimed = Untimed(Streams())
    number = untimed.add(1, lambda _: HostCall(lambda: called.append(1)))
    assert number and not called
    untimed.advance(1)
    assert called == [1] and untimed.finished([number])


def _launched(ptx: str, n: int, monkeypatch: pytest.MonkeyPatch, at_arrival: int):
    """The GPU after a launch of 3 blocks of 64 threads, its memory, and what is left of the launch."""
    monkeypatch.setattr(gpus, "AT_ARRIVAL", at_arrival)
    gpu = ProgramGpu(0, bytearray(), GpuOptions("a100", functional=True, memory=1 << 20))
    out = gpu.memory.native.allocate(1024, "out")
    gpu.memory.native.write(out, bytes(1024))
    module = Module(gpu, PtxModule.from_text(ptx, "test"))
    kernel = next(iter(module.native.kernels))
    launcher = Launcher(
        module[kernel], (3, 1, 1), (64, 1, 1), 0, ProgramStream(gpu, 1, Streams()), (1, 1, 1), False
    )
    rest = gpu.launch_untimed(launcher, LaunchArguments(struct.pack("QI", out, n)))
    return gpu, out, rest


@pytest.mark.parametrize("ordered", ["", "membar.gl;"])
def test_a_launch_in_parts_does_the_same(ordered: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ptx, n = SUMS.replace("ORDERED", ordered), 100_000
    whole, out, rest = _launched(ptx, n, monkeypatch, 1 << 40)
    assert rest is None
    parts, out, rest = _launched(ptx, n, monkeypatch, 1)
    assert rest is not None
    count = 0
    while not rest.advance(1):
        count += 1
        assert not rest.repeats()
    assert count > 0
    expected = struct.pack("I", n * (n - 1) // 2 & 0xFFFFFFFF) * 192
    assert [gpu.memory.native.read(out, 768) for gpu in (whole, parts)] == [expected] * 2
    assert (parts.instructions, parts.thread_instructions) == (whole.instructions, whole.thread_instructions)


def test_a_launch_goes_on_when_memory_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu, out, rest = _launched(WAIT, 0, monkeypatch, 1)
    assert rest is not None
    for _ in range(200):
        assert not rest.advance(1)
        if rest.repeats():
            break
    with pytest.raises(ProgramFault, match="only repeat themselves") as caught:
        rest.report_endless_wait()
    assert caught.value.kind == "endless wait" and "kernel `wait`" in str(caught.value)
    gpu.memory.native.write(out, struct.pack("I", 1))
    while not rest.advance(1):
        assert not rest.repeats()
    assert gpu.memory.native.read(out + 4, 4) == struct.pack("I", 1)
