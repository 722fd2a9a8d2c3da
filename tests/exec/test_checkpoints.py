"""Checkpoints of programs: run again, they see what they saw, and continue as if nothing had interrupted
them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import simt
from simt.cli import app
from simt.errors import CheckpointError
from simt.exec import Finished, run
from simt.result import Result

PROGRAM = '''
import ctypes, os, sys

cuda = ctypes.CDLL("libcuda.so.1")
PTX = b""".version 7.0
.target sm_70
.address_size 64
.global .align 8 .u64 kept;
.global .align 1 .b8 text[7] = {37, 100, 32, 104, 105, 10, 0};
.extern .func (.param .b64 p) malloc (.param .b64 n);
.extern .func free (.param .b64 p);
.extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);
.visible .entry step(.param .u64 x, .param .u32 k) {
  .reg .b64 %x, %a; .reg .b32 %k, %i, %t, %v;
  ld.param.u64 %x, [x]; ld.param.u32 %k, [k];
  mov.u32 %i, %ctaid.x; mov.u32 %t, %ntid.x; mul.lo.u32 %i, %i, %t; mov.u32 %t, %tid.x; add.u32 %i, %i, %t;
  mul.wide.u32 %a, %i, 4; add.u64 %a, %a, %x;
  ld.global.u32 %v, [%a]; mad.lo.u32 %v, %v, 3, %k; add.u32 %v, %v, %i; st.global.u32 [%a], %v;
  ret; }
.visible .entry take(.param .u32 k) {
  .reg .b64 %p, %n; .reg .b32 %k;
  ld.param.u32 %k, [k]; ld.global.u64 %p, [kept];
  { .param .b64 a0; st.param.b64 [a0], %p; call.uni free, (a0); }
  mov.u64 %n, 40; cvt.u64.u32 %p, %k; add.u64 %n, %n, %p;
  { .param .b64 a0; .param .b64 r0; st.param.b64 [a0], %n; call.uni (r0), malloc, (a0);
    ld.param.b64 %p, [r0]; }
  st.global.u64 [kept], %p; st.u32 [%p], %k;
  ret; }
.visible .entry give(.param .u64 x) {
  .reg .b64 %p, %x, %f; .reg .b32 %v, %r; .local .align 4 .b8 args[4]; .reg .b64 %l;
  ld.param.u64 %x, [x]; ld.global.u64 %p, [kept]; ld.u32 %v, [%p]; st.global.u32 [%x], %v;
  mov.u64 %l, args; cvta.local.u64 %l, %l; st.u32 [%l], %v; mov.u64 %f, text; cvta.global.u64 %f, %f;
  { .param .b64 a0; .param .b64 a1; .param .b32 r0; st.param.b64 [a0], %f; st.param.b64 [a1], %l;
    call.uni (r0), vprintf, (a0, a1); ld.param.b32 %r, [r0]; }
  ret; }
"""

def ok(code):
    assert code == 0, code

N = 512
ok(cuda.cuInit(0))
context, module, x, stream, one, two, pinned = (ctypes.c_void_p() for _ in range(7))
ok(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
ok(cuda.cuCtxSetCurrent(context))
ok(cuda.cuModuleLoadData(ctypes.byref(module), PTX))
ok(cuda.cuMemAlloc_v2(ctypes.byref(x), ctypes.c_size_t(4 * N)))
ok(cuda.cuMemHostAlloc(ctypes.byref(pinned), ctypes.c_size_t(4 * N), 0))
ok(cuda.cuStreamCreate(ctypes.byref(stream), 1))
ok(cuda.cuEventCreate(ctypes.byref(one), 0))
ok(cuda.cuEventCreate(ctypes.byref(two), 0))
values = (ctypes.c_uint32 * N).from_address(pinned.value)

def launch(name, grid, block, *given):
    function = ctypes.c_void_p()
    ok(cuda.cuModuleGetFunction(ctypes.byref(function), module, name))
    arguments = (ctypes.c_void_p * len(given))(*[ctypes.addressof(v) for v in given])
    ok(cuda.cuLaunchKernel(function, grid, 1, 1, block, 1, 1, 0, stream, arguments, None))

address, number = lambda: ctypes.c_uint64(x.value), ctypes.c_uint32
'''
"""A program over the driver API that needs no compiler."""

ALL = """
called = []
note = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: called.append(values[3]))
ok(cuda.cuMemcpyHtoD_v2(x, bytes(range(256)) * 8, ctypes.c_size_t(4 * N)))
for k in range(4):
    ok(cuda.cuEventRecord(one, stream))
    launch(b"step", 4, 128, address(), number(k))  # launches 4 k + 1 to 4 k + 4
    launch(b"take", 1, 1, number(k))
    ok(cuda.cuMemcpyDtoHAsync_v2(pinned, x, ctypes.c_size_t(4 * N), stream))
    ok(cuda.cuLaunchHostFunc(stream, note, None))
    ok(cuda.cuMemsetD32Async(x, 5 * k, ctypes.c_size_t(2), stream))
    launch(b"give", 1, 1, address())
    ok(cuda.cuEventRecord(two, stream))
    ok(cuda.cuStreamSynchronize(stream))
    values[7] += 1
    ok(cuda.cuMemcpyHtoDAsync_v2(x, pinned, ctypes.c_size_t(64), stream))
    launch(b"step", 2, 128, ctypes.c_uint64(pinned.value), number(9))
    ok(cuda.cuStreamSynchronize(stream))
    time = ctypes.c_float()
    ok(cuda.cuEventElapsedTime(ctypes.byref(time), one, two))
    print(k, called, values[0], values[7], values[N - 1], sum(values), time.value >= 0, flush=True)
ok(cuda.cuMemcpyDtoH_v2(pinned, x, ctypes.c_size_t(4 * N)))
print(list(values))
"""
"""Copies of all kinds, host functions, memory of a kernel's malloc, output of a kernel, pinned memory."""


def command(body: str) -> list[str]:
    return [sys.executable, "-S", "-c", PROGRAM + body]


def output_of(capfd: pytest.CaptureFixture[str], body: str, **options: Any) -> tuple[str, Finished]:
    capfd.readouterr()
    finished = run(command(body), "qv100" if "resume_from" not in options else None, **options)
    return capfd.readouterr().out, finished


@pytest.mark.slow
@pytest.mark.parametrize("launch", range(1, 17))
def test_a_resumed_program_sees_what_it_saw(
    launch: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    whole, _ = output_of(capfd, ALL, functional=True)
    assert whole.count(" hi\n") == 4 and len(whole.splitlines()) == 9
    point = {"checkpoint_at": f"launch={launch}", "checkpoint": tmp_path / "one"}
    before, finished = output_of(capfd, ALL, **point)
    assert finished.status == 0 and whole.startswith(before)
    functional, _ = output_of(capfd, ALL, resume_from=tmp_path / "one", functional=True)
    assert functional == whole
    timed, finished = output_of(capfd, ALL, resume_from=tmp_path / "one")
    assert timed == whole
    assert [x.id for x in finished.results[0].launches] == list(range(launch, 17))


@pytest.mark.slow
@pytest.mark.parametrize(
    "point", ["cta=2", "cta=1,instruction=7,ctas=2", "instruction=9", "cta=3,instruction=5"]
)
def test_a_program_resumed_within_a_launch_sees_what_it_saw(
    point: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    whole, _ = output_of(capfd, ALL, functional=True)
    place = tmp_path / "one"
    output_of(capfd, ALL, checkpoint_at=f"launch=5,{point}", checkpoint=place)
    functional, _ = output_of(capfd, ALL, resume_from=place, functional=True)
    assert functional == whole
    timed, finished = output_of(capfd, ALL, resume_from=place)
    (result,) = finished.results
    assert timed == whole and [x.id for x in result.launches] == list(range(5, 17))
    rest = result.launches[0].thread_instructions
    assert 0 < rest < 4 * 128 * 16 and rest < max(x.thread_instructions for x in result.launches[1:])


STEPS = "for k in range(8): launch(b'step', 4, 128, address(), number(k))\nok(cuda.cuCtxSynchronize())\n"


@pytest.mark.slow
def test_resumed_timing_is_that_of_cold_caches(tmp_path: Path) -> None:
    finished = run(command(STEPS), "qv100", checkpoint_at="launch=6", checkpoint=tmp_path / "one")
    assert finished == Finished(0, ())

    def timing(result: Result) -> list[dict[str, object]]:
        """All of each launch but its number."""
        return [{**x.to_json(detail=True), "index": None, "id": None} for x in result.launches]

    for gpu in ("qv100", "h100"):
        (expected,) = run(command(STEPS.replace("range(8)", "range(5, 8)")), gpu).results
        for _ in range(2):
            (found,) = run(command(STEPS), gpu, resume_from=tmp_path / "one").results
            assert [x.id for x in found.launches] == [6, 7, 8]
            assert timing(found) == timing(expected)


@pytest.mark.slow
def test_the_command_line(tmp_path: Path) -> None:
    """Given the same program; then with a wrong one, damage, and options that contradict each other."""
    place, out = str(tmp_path / "one"), str(tmp_path / "out")

    def simt_exec(*options: str, body: str = STEPS) -> Any:
        return CliRunner().invoke(app, ["exec", "--quiet", *options, "--", *command(body)])

    done = simt_exec("--gpu", "qv100", "--checkpoint-at", "launch=3", "--checkpoint", place)
    assert done.exit_code == 0, done.output
    assert simt_exec("--resume-from", place, "--output", out).exit_code == 0
    found = Result.load(out)
    assert [x.id for x in found.launches] == [3, 4, 5, 6, 7, 8] and found.provenance.gpu == "qv100"
    for message, body in (
        ("launch 1 is `take` with kernel take, was step", "launch(b'take', 1, 1, number(0))\n" + STEPS),
        ("launch 1 is `step` with grid (2, 1, 1), was (4, 1, 1)", STEPS.replace("4, 128", "2, 128")),
        ("launch 1 is `step` with parameter 2 0x1, was 0x0", STEPS.replace("number(k)", "number(k + 1)")),
        ("the program ended after 1 launches, before launch 3", STEPS.replace("range(8)", "range(1)")),
        (
            "`cudaMalloc` (2,048 bytes at 0x1000000400) has other contents at launch 3",
            "ok(cuda.cuMemsetD32_v2(x, 0x7000000, ctypes.c_size_t(2)))\n" + STEPS,
        ),
        (
            "`cudaMalloc` (512 bytes",
            "y = ctypes.c_void_p(); cuda.cuMemAlloc_v2(ctypes.byref(y), 512)\n" + STEPS,
        ),
    ):
        refused = simt_exec("--resume-from", place, body=body)
        assert refused.exit_code != 0 and message in str(refused.exception or refused.output), message
    refused = simt_exec("--gpu", "qv100", "--checkpoint-at", "launch=2,cta=9", "--checkpoint", place + "2")
    assert "has 4 CTAs, so none is number 9" in str(refused.exception or refused.output)
    changes = tmp_path / "one" / "changes.zst"
    good = changes.read_bytes()
    for bad in (good[:-1], b"", good[:20] + bytes([good[20] ^ 1]) + good[21:]):
        changes.write_bytes(bad)
        refused = simt_exec("--resume-from", place)
        assert "damaged: changes.zst" in str(refused.exception or refused.output)


def test_refusals(tmp_path: Path) -> None:
    for options, message in (
        ({"checkpoint_at": "launch=0", "checkpoint": tmp_path / "no"}, "expected launch=N"),
        ({"checkpoint_at": "cta=3", "checkpoint": tmp_path / "no"}, "expected launch=N"),
        ({"checkpoint_at": "launch=3,ctas=3", "checkpoint": tmp_path / "no"}, "expected launch=N"),
        ({"checkpoint_at": "launch=3,cta=-1", "checkpoint": tmp_path / "no"}, "expected launch=N"),
        ({"checkpoint_at": "launch=3"}, "both its point and a directory"),
        ({"checkpoint": tmp_path / "no"}, "both its point and a directory"),
        ({"resume_from": tmp_path / "no"}, "no such directory"),
    ):
        with pytest.raises(CheckpointError, match=message):
            run(["true"], "qv100", **options)
    simt.GPU("qv100", functional=True).checkpoint(tmp_path / "gpu")
    with pytest.raises(CheckpointError, match="a checkpoint of a GPU, expected one of a program"):
        run(["true"], resume_from=tmp_path / "gpu")
    with pytest.raises(CheckpointError, match="ended after 0 launches, before launch 3"):
        run(["true"], "qv100", checkpoint_at="launch=3", checkpoint=tmp_path / "no")
    assert [p.name for p in tmp_path.iterdir()] == ["gpu"]  # no partly written file is left
