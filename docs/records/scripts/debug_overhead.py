"""What `simt debug compare` costs: instrumented runs against plain ones, and a whole search.

python debug_overhead.py [EXAMPLE ...]

Processor time of each kernel of an example, without timing: as it is; with the hash of each thread; with the
windows of 1,024 registers of one CTA; with its stores watched. Then of the whole program, of `record`, of
`compare` with that recording, and of `compare` with an executor that rounds `fma` down, so that it has to
look for the instruction.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

import simt.debug
from simt.debug.executors import Ours, Scratch
from simt.debug.instrument import InstrumentedProgram
from simt.debug.launches import LaunchOutcome, WatchedLaunch, run_watched
from simt.debug.search import WINDOW, Tracer, Windows, find_writer

EXAMPLES = ("saxpy", "coalescing", "gemm")


class RoundsDown(Ours):
    """Our own executor with a bug."""

    name = "simt that rounds down"

    def run(self, launch: WatchedLaunch) -> LaunchOutcome:
        return super().run(replace(launch, ptx=launch.ptx.replace("fma.rn", "fma.rz")))

    def run_instrumented(self, launch: WatchedLaunch, ptx: str, scratch: Scratch) -> bytes:
        return super().run_instrumented(launch, ptx.replace("fma.rn", "fma.rz"), scratch)


def seconds(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def launches_of(example: str) -> list[WatchedLaunch]:
    found: list[WatchedLaunch] = []

    def watch(launch: WatchedLaunch, outcome: LaunchOutcome) -> None:
        found.append(launch)

    run_watched(example, "qv100", watch)
    return found


def main() -> None:
    print(f"{'example':12} {'kernel':10} {'plain s':>8} {'hash':>7} {'window':>7} {'writers':>8}")
    for example in sys.argv[1:] or EXAMPLES:
        with contextlib.redirect_stdout(io.StringIO()):
            launches = launches_of(example)
        for launch in {x.kernel: x for x in launches}.values():
            program = InstrumentedProgram(launch.ptx, launch.module, launch.kernel)
            tracer = Tracer(Ours(), launch, program, program.points(Ours.exclude))
            plain = seconds(lambda launch=launch: Ours().run(launch))
            everything = Windows(0, np.zeros(launch.threads, np.uint32), 1, 0)
            window = Windows(0, np.zeros(launch.threads_per_block, np.uint32), 1, WINDOW)
            hashed = seconds(lambda tracer=tracer, w=everything: tracer.trace(w))
            stored = seconds(lambda tracer=tracer, w=window: tracer.trace(w))
            address = launch.before[0].address
            written = seconds(lambda launch=launch, at=address: find_writer(Ours(), launch, at, 4))
            times = [f"{t / plain:.1f}x" for t in (hashed, stored, written)]
            print(
                f"{example:12} {launch.kernel:10} {plain:8.2f} {times[0]:>7} {times[1]:>7} {times[2]:>8}",
                flush=True,
            )
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            place = Path(folder) / "recording"
            run = seconds(lambda example=example: run_watched(example, "qv100", lambda launch, outcome: None))
            recorded = seconds(lambda example=example, place=place: simt.debug.record(example, place))
            compared = seconds(lambda example=example, place=place: simt.debug.compare(example, place))
            searched = seconds(lambda example=example: simt.debug.compare(example, RoundsDown()))
            size = sum(p.stat().st_size for p in place.rglob("*"))
        print(
            f"{example:12} program {run:.2f} s, record {recorded:.2f} s ({size / 1e6:.1f} MB), "
            f"compare {compared:.2f} s, with a search {searched:.2f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
