"""Processes that simulate a network's launches, and put them into the cache.

They are not multiprocessing's, which would run the caller's main module again in each of them.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING

from simt.cache import cache_directory
from simt.errors import SimtError

from .operators import operators
from .scaled import fastest, parts_of, to_simulate

if TYPE_CHECKING:
    from simt.spec import Spec

    from .architecture import Architecture, Weights
    from .operators import Phase

Pass = tuple["Phase", int]
"""A pass over the network: its phase and tokens, as of `operators`."""


def simulate(
    model: Architecture,
    passes: Sequence[Pass],
    batch: int,
    spec: Spec,
    weights: Weights,
    workers: int,
    progress: Callable[[str], None],
) -> None:
    """Simulates what the launches of some passes need and the cache does not hold, several at a time. What
    cannot be simulated is left out: it fails again where its time is needed.

    workers: processes at most. progress: is told what is simulated.
    """
    seen: set[frozenset[Path]] = set()
    found: dict[frozenset[Path], list[tuple[int, int]]] = {}  # those that may share parts, in one list
    has_loop, names = {}, {}
    for at, (phase, length) in enumerate(passes):
        for place, each in enumerate(operators(model, phase, batch, length, spec, weights)):
            missing = to_simulate(each.work, spec)
            if missing and missing not in seen:
                seen.add(missing)
                found.setdefault(parts_of(each.work, spec), []).append((at, place))
                has_loop[at, place] = each.work.has_loop
                names[at, place] = f"{phase} at {length:,} tokens: {each.name}"
    workers = min(workers, len(found))
    if workers < 2:
        return
    # Those with loops take longest: they come first, so that no worker is left with one of them at the end.
    left: SimpleQueue[list[tuple[int, int]] | None] = SimpleQueue()
    for tasks in [*sorted(found.values(), key=lambda tasks: not has_loop[tasks[0]]), *[None] * workers]:
        left.put(tasks)
    description = pickle.dumps((model, tuple(passes), batch, spec, weights))
    cache = str(cache_directory("models").parent)
    processes = [_start(cache) for _ in range(workers)]

    def feed(process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None and process.stdout is not None
        with suppress(OSError):  # a worker that has ended does no more
            process.stdin.write(len(description).to_bytes(8, "little") + description)
            while (tasks := left.get()) is not None:
                for task in tasks:
                    progress(names[task])
                    process.stdin.write(bytes(f"{task[0]} {task[1]}\n", "ascii"))
                    process.stdin.flush()
                    if not process.stdout.readline():
                        return
            process.stdin.close()

    try:
        with ThreadPoolExecutor(workers) as pool:
            try:
                list(pool.map(feed, processes))
            except BaseException:
                _end(processes)
                raise
    finally:
        _end(processes)


def _start(cache: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-W", "ignore", "-m", "simt.network.workers"]
    environment = os.environ | {"SIMT_CACHE": cache}
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)


def _end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        process.kill()
        for pipe in (process.stdin, process.stdout):
            with suppress(OSError):
                assert pipe is not None
                pipe.close()
        process.wait()


def _work() -> None:
    """A worker: reads what it is about, then a pass and an operator from each line, which it answers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started it ends it
    given = sys.stdin.buffer
    size = int.from_bytes(given.read(8), "little")
    model, passes, batch, spec, weights = pickle.loads(given.read(size))
    for line in given:
        at, place = map(int, line.split())
        phase, length = passes[at]
        with suppress(SimtError):
            fastest(operators(model, phase, batch, length, spec, weights)[place].work, spec)
        print("done", flush=True)


if __name__ == "__main__":
    _work()
