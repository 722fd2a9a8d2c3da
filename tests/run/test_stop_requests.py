"""A request to stop is never dropped, and keeps what had finished. SIMT_SIGNALS=200 for as many as that."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import simt
from simt.errors import Interrupted, LaunchError, LimitReached
from simt.exec import run
from simt.result import Result
from simt.run.interruption import Stopped, deferred_stop, raise_requested, stoppable
from support.fake_gpu import installed
from support.kills import PTX

SIGNALS = int(os.environ.get("SIMT_SIGNALS", "12"))
GRACE = 60.0
"""Seconds in which a stopped program has ended, even on a busy machine."""
SMALL = {"sm.count": 1}
ENDLESS = "1 << 30"

DRIVER = f'''
import sys
PTX = """{PTX}"""

def main(gpu):
    import numpy as np
    module, x = gpu.load(PTX), gpu.zeros(64, np.uint32)
    print("started", flush=True)
    for i in range(COUNT):
        module.work[1, 64](x, ROUNDS)
'''
"""A program for `simt run`."""

CLIENT = f'''
import ctypes, os
cuda = ctypes.CDLL("libcuda.so.1")
def ok(code):
    assert code == 0, code
ok(cuda.cuInit(0))
context, module, work, memory = (ctypes.c_void_p() for _ in range(4))
ok(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
ok(cuda.cuCtxSetCurrent(context))
ok(cuda.cuModuleLoadData(ctypes.byref(module), b"""{PTX}"""))
ok(cuda.cuModuleGetFunction(ctypes.byref(work), module, b"work"))
ok(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(4096)))
print("started", flush=True)
for i in range(COUNT):
    values = [ctypes.c_uint64(memory.value), ctypes.c_uint32(ROUNDS)]
    arguments = (ctypes.c_void_p * 2)(*[ctypes.addressof(v) for v in values])
    ok(cuda.cuLaunchKernel(work, 1, 1, 1, 64, 1, 1, 0, None, arguments, None))
    WAIT
'''
"""The same for `simt exec`."""


def command(tmp_path: Path, kind: str, program: str, functional: bool, short: int = 5) -> list[str]:
    """A program of this kind that never ends by itself.

    program: of many short launches, of one long launch after a short one, or one whose launches nobody waits
        for, so that they are run when it has ended. short: rounds of a short launch.
    """
    text, wait = (DRIVER, "") if kind == "run" else (CLIENT, "")
    if program == "many":
        count, rounds, wait = "10**9", str(short), "if i % 64 == 63: ok(cuda.cuCtxSynchronize())"
    elif program == "long":
        count, rounds, wait = "2", f"{short} if i == 0 else {ENDLESS}", "ok(cuda.cuCtxSynchronize())"
    else:
        count, rounds = "3000", "2000"
    text = text.replace("COUNT", count).replace("ROUNDS", rounds).replace("WAIT", wait or "pass")
    file = tmp_path / "program.py"
    file.write_text(text)
    started = [sys.executable, "-c", "from simt.cli import main; main()", kind, "--gpu", "qv100"]
    started += ["--set", "sm.count=1"]
    started += ["--functional"] if functional else ["--output", "out"]
    return [*started, str(file)] if kind == "run" else [*started, "--", sys.executable, "-S", str(file)]


def stopped(tmp_path: Path, started: list[str], number: int, after: float) -> tuple[int, str, str]:
    """Exit status and output of the program, which is sent a signal so many seconds after it has started."""
    with subprocess.Popen(
        started,
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        while (line := process.stdout.readline()) != "started\n":  # an editable build may print before
            assert line, process.communicate(timeout=GRACE)
        time.sleep(after)
        process.send_signal(number)
        try:
            out, err = process.communicate(timeout=GRACE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            pytest.fail(f"{signal.Signals(number).name} after {after:.3f} s was dropped: {started}")
        return process.returncode, out, err


CASES = [
    (kind, program, functional)
    for kind in ("run", "exec")
    for program in ("many", "long", "unwaited")
    for functional in (False, True)
    if program != "unwaited" or (kind == "exec" and not functional)
]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "program", "functional"), CASES)
def test_no_signal_is_dropped(tmp_path: Path, kind: str, program: str, functional: bool) -> None:
    chance = random.Random(f"{kind} {program} {functional}")
    for n in range(-(-SIGNALS // len(CASES))):
        folder = tmp_path / str(n)
        folder.mkdir()
        started = command(folder, kind, program, functional)
        number = chance.choice([signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
        after = chance.uniform(0.2, 1.5) if program == "unwaited" else chance.uniform(0, 1.5)
        status, out, err = stopped(folder, started, number, after)
        assert status == 128 + number, (status, out, err)
        assert "Interrupted." in err and "Traceback" not in err, err
        if functional:
            continue
        file = folder / "out" / "result.json"
        if not file.exists() or not (saved := Result.load(folder / "out")).launches:
            assert "simulated" not in out + err, "the table has launches, and the file has not"
            assert not (folder / "out" / "result.journal").exists()
            continue
        assert saved.status == "interrupted"
        assert [x.index for x in saved.launches] == list(range(len(saved.launches)))
        table = re.search(r"([\d,]+) launch(?:es)? on", out + err)
        assert table is not None and int(table[1].replace(",", "")) == len(saved.launches), out + err
        if program == "long":
            assert len(saved.launches) == 1


def test_a_request_at_the_end_of_a_launch_is_not_dropped() -> None:
    """All launches end within the slice of the engine in which the signal comes: the run was taken as done,
    and the request was forgotten."""
    gpu = simt.GPU(
        "qv100", set=SMALL, progress=lambda p: p.launches_done and signal.raise_signal(signal.SIGINT)
    )
    module, x = gpu.load(PTX), gpu.zeros(64, "uint32")
    with pytest.raises(Interrupted) as caught:
        module.work[1, 64](x, 3)
    assert [launch.id for launch in caught.value.result.launches] == [1]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_request_when_a_trace_is_done_is_not_dropped(tmp_path: Path) -> None:
    def stop(progress: Any) -> None:
        if progress.launches_done == progress.launches_total:
            signal.raise_signal(signal.SIGINT)

    with installed(), pytest.raises(Interrupted) as caught:
        simt.simulate("input", output=tmp_path / "out", progress=stop)
    assert caught.value.result.status == "complete" and len(caught.value.result.launches) == 4
    assert Result.load(tmp_path / "out").launches == caught.value.result.launches


@pytest.mark.parametrize("functional", [False, True])
def test_a_request_whose_exception_is_lost_stops_the_next_launch(functional: bool) -> None:
    class Noisy:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGTERM)  # Python prints and drops what it raises here

    gpu = simt.GPU("qv100", set=SMALL, functional=functional)
    module, x = gpu.load(PTX), gpu.zeros(64, "uint32")
    with pytest.raises(KeyboardInterrupt), stoppable():
        sys.unraisablehook, before = lambda _: None, sys.unraisablehook
        try:
            Noisy()
        finally:
            sys.unraisablehook = before
        module.work[1, 64](x, 3)
        pytest.fail("the request was dropped")
    module.work[1, 64](x, 3)  # it was honoured: nothing is left of it


def test_a_request_that_a_program_swallows_is_raised_at_the_end() -> None:
    with pytest.raises(Stopped) as caught, stoppable(), suppress(KeyboardInterrupt):
        signal.raise_signal(signal.SIGTERM)
    assert caught.value.number == signal.SIGTERM
    raise_requested()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_deferred_requests() -> None:
    with pytest.raises(Stopped), stoppable():
        with deferred_stop() as requested:
            assert requested() == 0
            signal.raise_signal(signal.SIGHUP)
            assert requested() == signal.SIGHUP
            done = True
        pytest.fail("the end of the context raises it")
    assert done
    with pytest.raises(Stopped), stoppable(), deferred_stop():
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
        pytest.fail("the second one interrupts")
    with pytest.raises(KeyboardInterrupt), deferred_stop():
        signal.raise_signal(signal.SIGINT)
        raise ValueError("a request outlasts another error")
    with stoppable(), deferred_stop() as requested:
        assert requested() == 0


LIMITED: list[Callable[[simt.GPU], None]] = [
    lambda gpu: gpu.load(PTX).work[1, 64](gpu.zeros(64, "uint32"), 0),
    lambda gpu: [gpu.load(PTX).work[1, 64](gpu.zeros(64, "uint32"), 3) for _ in range(10**9)],  # type: ignore
]


@pytest.mark.slow
@pytest.mark.parametrize("program", LIMITED, ids=["one endless launch", "many launches"])
@pytest.mark.parametrize("options", [{}, {"functional": True}, {"plan": [10**9]}], ids=str)
def test_the_time_limit_of_a_gpu(program: Callable[[simt.GPU], None], options: dict[str, Any]) -> None:
    start = time.monotonic()
    gpu = simt.GPU("qv100", set=SMALL, timeout=1, **options)
    with pytest.raises(LimitReached, match="the limit of 1 seconds is reached") as stopped:
        program(gpu)
    assert stopped.value.result.status == "timeout"
    assert 1 <= time.monotonic() - start < GRACE


def test_what_a_limit_does_not_apply_to_is_refused() -> None:
    with pytest.raises(LaunchError, match="without cycles: leave out max_cycles"):
        simt.GPU("qv100", functional=True, max_cycles=1000)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["run", "exec"])
@pytest.mark.parametrize("functional", [False, True])
@pytest.mark.parametrize("program", ["many", "long", "host"])
def test_timeout_has_one_rule(tmp_path: Path, kind: str, functional: bool, program: str) -> None:
    short = 2000 if program == "many" else 5  # thousands of launches take longer to save than to simulate
    started = command(tmp_path, kind, "long" if program == "host" else program, functional, short)
    if program == "host":
        file = tmp_path / "program.py"
        file.write_text(file.read_text().replace(f"{short} if i == 0 else {ENDLESS}", str(short)))
        indent = "    " if kind == "run" else ""
        with file.open("a") as text:
            text.write(f"{indent}while True: pass\n")
    at = started.index("--gpu")
    started[at:at] = ["--timeout", "2" if functional else "3"]  # which a launch has to end in
    done = subprocess.run(
        started,
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        start_new_session=True,
    )
    assert done.returncode == 3, done
    assert "Stopped: timeout reached." in done.stderr
    if not functional:
        saved = Result.load(tmp_path / "out")
        assert saved.status == "timeout" and saved.launches


@pytest.mark.parametrize("how", ["functional", "profile"])
def test_exec_refuses_cycles_without_timing(how: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {how: tmp_path / "profile.parquet" if how == "profile" else True}
    with pytest.raises(LaunchError, match="leave out max_cycles"):
        run([sys.executable, "-c", ""], "qv100", max_cycles=5, **options)
