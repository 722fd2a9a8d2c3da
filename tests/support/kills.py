"""Runs of `simt run` that are killed: children of a process in which everything is already loaded."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

PTX = """.version 8.0
.target sm_70
.address_size 64
.visible .entry work(.param .u64 out, .param .u32 n)
{
  .reg .pred %p; .reg .b32 %r<6>; .reg .b64 %rd<4>;
  ld.param.b64 %rd1, [out]; ld.param.b32 %r4, [n]; mov.u32 %r3, %tid.x;
  mul.wide.u32 %rd2, %r3, 4; add.u64 %rd3, %rd1, %rd2; ld.global.u32 %r5, [%rd3];
AGAIN:
  add.u32 %r5, %r5, 3; sub.u32 %r4, %r4, 1; setp.ne.u32 %p, %r4, 0; @%p bra AGAIN;
  st.global.u32 [%rd3], %r5;
  ret;
}
"""
LAUNCHES = 12
PROGRAM = f'''
import os
import numpy as np

PTX = """{PTX}"""

def main(gpu):
    module, x = gpu.load(PTX), gpu.zeros(64, np.uint32)
    for i in range({LAUNCHES}):
        module.work[1, 64](x, 100 + i)
    with open("values", "w") as file:
        file.write(str(x.numpy().tolist()))
'''


def _child(arguments: Sequence[str], folder: str) -> None:
    """Runs `simt ARGUMENTS` in the folder and ends the process. Each launch is recorded in the file
    `finished` once the run has taken it over.
    """
    os.chdir(folder)
    silent = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(silent, stream)
    from simt.cli import main
    from simt.result import LaunchResult
    from simt.run.record import Record

    note = os.open("finished", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    add = Record.add

    def noted(self: Record, launch: LaunchResult, digest: str = "") -> None:
        add(self, launch, digest)
        os.write(note, f"{launch.index}\n".encode())

    Record.add = noted  # type: ignore[method-assign]
    sys.argv = ["simt", *arguments]
    status = 0
    try:
        main()
    except SystemExit as stop:
        status = int(stop.code or 0)
    except BaseException:
        status = 99
    os._exit(status)


def serve() -> None:
    """Starts a child for each line of standard input, and reports its outcome. This process has loaded simt
    and has no threads, as required for forking.
    """
    import simt.cli.run
    import simt.gpu  # noqa: F401

    for line in sys.stdin:
        arguments, folder = json.loads(line)
        process = os.fork()
        if process == 0:
            _child(arguments, folder)
        print(process, flush=True)
        print(os.waitpid(process, 0)[1], flush=True)


class Runs:
    """Starts runs in children of a separate process."""

    def __init__(self) -> None:
        code = "from support.kills import serve; serve()"
        self._server = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)},
        )

    def close(self) -> None:
        self._server.communicate()

    def killed(self, arguments: Sequence[str], folder: Path, after: float, number: int) -> int:
        """Runs `simt ARGUMENTS` and sends it a signal after this many seconds; returns its wait status."""
        process = self._start(arguments, folder)
        select.select([self._server.stdout], [], [], after)
        with suppress(ProcessLookupError):  # the process has ended
            os.kill(process, number)
        return self._status()

    def whole(self, arguments: Sequence[str], folder: Path) -> float:
        """Runs `simt ARGUMENTS` to completion; returns the time in seconds."""
        start = time.monotonic()
        self._start(arguments, folder)
        assert self._status() == 0, arguments
        return time.monotonic() - start

    def _start(self, arguments: Sequence[str], folder: Path) -> int:
        assert self._server.stdin is not None
        print(json.dumps([list(arguments), str(folder)]), file=self._server.stdin, flush=True)
        return self._status()

    def _status(self) -> int:
        assert self._server.stdout is not None
        return int(self._server.stdout.readline())


def finished(folder: Path) -> set[int]:
    """Positions of the launches recorded, from complete lines."""
    file = folder / "finished"
    lines = file.read_bytes().split(b"\n")[:-1] if file.exists() else []
    return {int(line) for line in lines}


SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
