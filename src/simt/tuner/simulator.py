"""Runs microbenchmarks in the simulator for any specification, and caches their values."""

from __future__ import annotations

import gc
import hashlib
import json
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from simt import _engine
from simt.cache import cache_directory, write_whole
from simt.errors import SimtError
from simt.spec import Spec
from simt.validate.device import SOURCES, SimulatedDevice
from simt.validate.microbenchmark import Microbenchmark
from simt.version import __version__

COLLECT_EVERY = 16
"""Collects garbage: GPUs are part of reference cycles, and Python does not know how large they are."""


class Simulator:
    """Runs one microbenchmark at a time, each on its own GPU, so the order does not affect results.

    Values are kept in simt's cache, by specification and program, so an interrupted run can be continued.

    threads: host threads of the engine; values do not depend on them.
    report: called before each run with its description.
    """

    def __init__(self, threads: int = 1, report: Callable[[str], None] | None = None) -> None:
        self._threads = threads
        self._report = report or (lambda _: None)
        self._known: dict[tuple[str, str], float | None] = {}
        self._folder = cache_directory("tuner")
        self.asked = 0
        """Number of distinct values requested."""
        self.simulated = 0
        """Number of them that were simulated; the others were in the cache."""

    def value(self, benchmark: Microbenchmark, spec: Spec) -> float | None:
        """The microbenchmark's result; None if it has none on such a GPU."""
        key = (spec.hash, benchmark.name)
        if key not in self._known:
            self.asked += 1
            self._report(benchmark.name)
            place = self._folder / f"{_digest(_program(), *key)}.json"
            found = _kept(place)
            if found is None:
                found = (self._measure(benchmark, spec),)
                self.simulated += 1
                write_whole(place, json.dumps(found).encode())
            self._known[key] = found[0]
        return self._known[key]

    def known(self, benchmark: Microbenchmark, spec: Spec) -> float | None:
        """The value if it was computed before, otherwise None."""
        return self._known.get((spec.hash, benchmark.name))

    def _measure(self, benchmark: Microbenchmark, spec: Spec) -> float | None:
        if spec.sm_version < benchmark.sm_version:
            return None
        if self.simulated % COLLECT_EVERY == 0:
            gc.collect()
        try:
            found = float(benchmark.measure(SimulatedDevice(spec, threads=self._threads)))
        except (SimtError, ArithmeticError, ValueError):
            # On an unusual GPU, such as one whose L2 holds nothing, a microbenchmark may give no value.
            return None
        return found if abs(found) < float("inf") else None


def _kept(place: Path) -> tuple[float | None] | None:
    try:
        (value,) = json.loads(place.read_bytes())
    except (OSError, ValueError, TypeError):
        return None
    return (None if value is None else float(value),)


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:40]


@lru_cache(maxsize=1)
def _program() -> str:
    """Everything except the specification that a value depends on: engine, opcode tables and
    microbenchmarks."""
    package = Path(__file__).parents[1]
    files = [Path(_engine.__file__), *sorted(SOURCES.iterdir()), *sorted((package / "isa").rglob("*.*"))]
    files += sorted((package / "validate").rglob("*.py"))
    digest = hashlib.sha256(__version__.encode())
    for file in files:
        if file.is_file() and file.suffix != ".pyc":
            digest.update(file.read_bytes())
    return digest.hexdigest()
