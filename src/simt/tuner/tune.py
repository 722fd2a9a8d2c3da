"""The tuner: turns a description and measurements into a complete specification with its evidence."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from simt.errors import TuneError
from simt.names import listed
from simt.progress import Progress
from simt.spec import Spec, load_spec
from simt.tuner.description import GpuDescription, described, nearest, read_description
from simt.tuner.draft import Draft, value_at
from simt.tuner.records import BenchmarkRecord, Records, read_records
from simt.tuner.search import WEAK, Block, TunedChoice, TunerSearch, default_blocks, level
from simt.tuner.simulator import Simulator
from simt.tuner.solve import SUFFICES, Fit, Trials, apart, first_parameter, fit, parameters
from simt.validate.microbenchmark import GROUPS, Microbenchmark, microbenchmarks

BUDGET = 1000
ROUNDS = 4  # rounds of solving
PASSES = 3  # passes of searching and solving
_RUNS_EACH = 6  # approximate simulations per benchmark, for the progress bar only

How = Literal["described", "measured", "searched", "inherited"]


@dataclass(frozen=True)
class TunedParameter:
    """One value of the specification, and its origin.

    before: its value in the base.
    benchmarks: the benchmarks used for it.
    certainty: how well they determine it.
    """

    path: str
    value: Any
    before: Any
    how: How
    source: str
    benchmarks: tuple[str, ...]
    certainty: str


@dataclass(frozen=True)
class Check:
    """A measured benchmark, simulated before (the base with the description) and after."""

    name: str
    group: str
    unit: str
    measured: float
    spread: float | None
    before: float | None
    after: float | None
    parameters: tuple[str, ...]

    def error(self, simulated: float | None) -> float | None:
        """The error relative to the measurement, unless that is 0."""
        if simulated is None:
            return None
        return abs(simulated - self.measured) / (self.measured or 1.0)


@dataclass(frozen=True)
class Tuning:
    """A tuned specification.

    files: the records.
    notes: remarks for the user.
    interrupted: whether Ctrl-C ended it early.
    asked: number of distinct values that were needed.
    simulated: how many of them were not cached.
    seconds: duration of the tuning.
    """

    spec: Spec
    base: str
    device: str
    files: tuple[str, ...]
    parameters: tuple[TunedParameter, ...]
    checks: tuple[Check, ...]
    choices: tuple[TunedChoice, ...]
    notes: tuple[str, ...]
    interrupted: bool
    asked: int
    simulated: int
    seconds: float

    def mean_error(self, which: Literal["before", "after"]) -> float | None:
        """Mean absolute error over the benchmarks that gave a value before and after."""
        errors = [
            error
            for check in self.checks
            if check.before is not None and check.after is not None
            if (error := check.error(getattr(check, which))) is not None
        ]
        return sum(errors) / len(errors) if errors else None


def tune(
    description: str | os.PathLike[str] | GpuDescription | None,
    records: Sequence[str | os.PathLike[str]],
    *,
    name: str = "tuned",
    base: str | os.PathLike[str] | None = None,
    without: Sequence[str] = (),
    search: Sequence[Block] | None = None,
    budget: int = BUDGET,
    threads: int = 1,
    progress: Callable[[Progress], None] | None = None,
) -> Tuning:
    """Makes the specification with which simulated microbenchmarks match the measurements.

    description: a TOML file with known facts about the GPU; None: the records' facts about their device.
    records: files of `simt bench run --json`, all of one device; several files are several runs.
    base: the GPU whose values are inherited; None: the nearest one.
    without: microbenchmarks or groups to ignore.
    search: blocks of choices that are tried together; None for those of `default_blocks`; [] for no search.
    budget: maximum number of simulated values in the search.
    threads: host threads. Values do not depend on them.

    On Ctrl-C it returns the results so far, with `interrupted` set; the next run continues from there. Raises
    TuneError or SpecError on bad input.
    """
    start = time.monotonic()
    measured = read_records([Path(file) for file in records])
    if description is None:
        description = GpuDescription(f"device record {measured.files[0]}", {}, {})
    elif not isinstance(description, GpuDescription):
        description = read_description(Path(description))
    description = description.completed(measured.facts, f"device record {measured.files[0]}")
    chosen = load_spec(base if base is not None else nearest(description.facts))
    run = _Run(
        described(chosen, description, name), chosen, measured, without, threads, progress, start, budget
    )
    interrupted = False
    try:
        run.start()
        run.solve()
        blocks = default_blocks() if search is None else search
        for _ in range(PASSES if blocks else 0):
            if not run.search(blocks) or not run.solve():
                break
        run.judge()
    except KeyboardInterrupt:
        interrupted = True
    return run.tuning(description, interrupted)


@dataclass
class _Run:
    """A tuning in progress."""

    draft: Draft
    base: Spec
    measured: Records
    without: Sequence[str]
    threads: int
    progress: Callable[[Progress], None] | None
    began: float
    budget: int
    fits: dict[str, Fit] = field(default_factory=dict)
    choices: list[TunedChoice] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    phase: str = ""
    exhausted: bool = False
    tried: dict[str, set[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        every = microbenchmarks()
        if unknown := [n for n in self.without if n not in every and n not in GROUPS]:
            raise TuneError(
                f"no microbenchmark or group {unknown[0]!r}; there are {listed([*GROUPS, *every], 80)}"
            )
        self.pairs: list[tuple[Microbenchmark, BenchmarkRecord]] = [
            (every[n], record)
            for n, record in self.measured.records.items()
            if n not in self.without and every[n].group not in self.without
        ]
        if not self.pairs:
            raise TuneError(f"{self.measured.files[0]}: no measured value is left")
        self.simulator = Simulator(self.threads, self._report)
        self.started = self.draft.spec
        self.notes += self.measured.notes
        self.inherited = dict(self.draft.sources)

    def _report(self, name: str) -> None:
        if self.progress is not None:
            total = max(_RUNS_EACH * len(self.pairs), self.simulator.asked + len(self.pairs))
            done = self.simulator.asked - 1
            passed = time.monotonic() - self.began
            self.progress(Progress(f"{self.phase}: {name}", done / total, passed, done, total))

    def start(self) -> None:
        """Runs every benchmark on the base with the described values."""
        self.phase = "before"
        for benchmark, _ in self.pairs:
            self.simulator.value(benchmark, self.started)

    def solve(self) -> bool:
        """Adjusts parameters, one after another, until none changes; returns whether any changed."""
        before = self.draft.spec.hash
        tried = self.tried = {}
        for number in range(ROUNDS):
            self.phase = f"round {number + 1}"
            moved = False
            for path, pairs in self._groups(tried).items():
                found = fit(self.simulator, self.draft, path, pairs, self.fits.get(path))
                if found.value != self.draft.get(path):
                    self.draft.change({path: found.value}, "")
                    moved = True
                self.fits[path] = found
                self.draft.sources[path] = self._source(found)
                for benchmark, record in pairs:
                    off = apart(self.simulator.value(benchmark, self.draft.spec), record.value)
                    further = {*tried.get(benchmark.name, ()), path}
                    if off > max(SUFFICES, benchmark.tolerance) and first_parameter(
                        benchmark, self.draft, further
                    ):
                        tried[benchmark.name] = further
                        moved = True
            if not moved:
                break
        return self.draft.spec.hash != before

    def _groups(
        self, tried: Mapping[str, set[str]]
    ) -> dict[str, list[tuple[Microbenchmark, BenchmarkRecord]]]:
        """Benchmarks by the parameter that is adjusted for them."""
        groups: dict[str, list[tuple[Microbenchmark, BenchmarkRecord]]] = {}
        for benchmark, record in self.pairs:
            path = first_parameter(benchmark, self.draft, tried.get(benchmark.name, ()))
            if path is not None:
                groups.setdefault(path, []).append((benchmark, record))
        return groups

    def refit(self, draft: Draft, at: int) -> None:
        """Adjusts the parameters of a candidate that benchmarks of a level determine."""
        for path, pairs in self._groups(self.tried).items():
            if any(level(benchmark) == at for benchmark, _ in pairs):
                found = fit(self.simulator, draft, path, pairs, self.fits.get(path))
                if found.value != draft.get(path):
                    draft.change({path: found.value}, draft.sources[path])

    def _source(self, found: Fit) -> str:
        used = [t.benchmark for t in found.trials if t.benchmark in found.wants]
        if not used:
            return self.inherited[found.path]
        files = dict.fromkeys(f for name in used for f in self.measured.records[name].files)
        return f"measured: {', '.join(used)} on {self.measured.device}, {', '.join(files)}"

    def search(self, blocks: Sequence[Block]) -> bool:
        """Searches the choices; returns whether any changed."""
        self.phase = "search"
        before = self.draft.spec
        search = TunerSearch(self.simulator, self.pairs, self.budget, self.refit)
        self.choices = search.run(self.draft, blocks)
        self.exhausted |= search.exhausted
        for choice in self.choices:
            for path in choice.paths:
                if choice.gap < WEAK and self.draft.get(path) == value_at(self.started.values(), path):
                    self.draft.sources[path] = f"{self.inherited[path]} (searched: {choice.verdict})"
                else:
                    count = len(choice.gaps)
                    self.draft.sources[path] = f"searched: best of {count} candidates; {choice.verdict}"
        return self.draft.spec.hash != before.hash

    def judge(self) -> None:
        """Runs every benchmark on the result."""
        self.phase = "after"
        for benchmark, _ in self.pairs:
            self.simulator.value(benchmark, self.draft.spec)

    def tuning(self, description: GpuDescription, interrupted: bool) -> Tuning:
        about = description.about or f"{self.measured.device}, by simt tune from {self.base.name}"
        spec = self.draft.finished(about)
        checks = tuple(
            Check(
                b.name,
                b.group,
                b.unit,
                r.value,
                r.spread,
                self.simulator.known(b, self.started),
                self.simulator.known(b, self.draft.spec),
                parameters(b),
            )
            for b, r in self.pairs
        )
        used_up = f"the search ended early: its budget of {self.budget} values was used up"
        return Tuning(
            spec,
            self.base.name,
            self.measured.device,
            self.measured.files,
            tuple(self._parameters(spec)),
            checks,
            tuple(self.choices),
            (*self.notes, *self._contradictions(checks), *([used_up] if self.exhausted else [])),
            interrupted,
            self.simulator.asked,
            self.simulator.simulated,
            time.monotonic() - self.began,
        )

    def _contradictions(self, checks: Sequence[Check]) -> list[str]:
        """Benchmarks of described values that disagree with the description."""
        every, found = microbenchmarks(), []
        for check in checks:
            pinned = [path for path in check.parameters if path in self.draft.pinned]
            error = check.error(check.after)
            if pinned and error is not None and error > max(SUFFICES, every[check.name].tolerance):
                found.append(
                    f"{pinned[0]} = {self.draft.get(pinned[0])} is described, but {check.name} measured "
                    f"{check.measured:g} and simulates {check.after:g} {check.unit}"
                )
        return found

    def _parameters(self, spec: Spec) -> list[TunedParameter]:
        before = dict(self.base.leaves())
        chosen = {path: choice for choice in self.choices for path in choice.paths}
        found = []
        for path, value in spec.leaves():
            if path in ("name", "description"):
                continue
            how: How = "inherited"
            names: tuple[str, ...] = ()
            certainty = ""
            if path in self.draft.pinned:
                how = "described"
            elif path in chosen:
                choice = chosen[path]
                how = "searched" if spec.sources[path].startswith("searched") else "inherited"
                certainty = choice.verdict
            elif path in self.fits:
                fitted = self.fits[path]
                names = tuple(t.benchmark for t in fitted.trials)
                how = "measured" if fitted.wants else "inherited"
                certainty = _certainty(fitted, self.measured.records)
            found.append(TunedParameter(path, value, before[path], how, spec.sources[path], names, certainty))
        return found


def _certainty(fitted: Fit, records: Mapping[str, BenchmarkRecord]) -> str:
    """How well benchmarks determine a value, as text."""
    if not fitted.wants:
        return f"not determined: {', '.join(t.benchmark for t in fitted.trials)} does not depend on it"
    texts = []
    precise = [p for t in fitted.trials if (p := _precision(t, fitted, records)) is not None]
    if precise and isinstance(fitted.value, int) and min(precise) < 0.5:
        texts.append("to the step")
    elif precise:
        texts.append(f"± {min(precise):.2g}")
    if len({str(v) for v in fitted.wants.values()}) > 1:
        texts.append("benchmarks disagree: " + ", ".join(f"{n} {v}" for n, v in fitted.wants.items()))
    left = max(apart(t.found.get(fitted.value), t.measured) for t in fitted.trials)
    if left > SUFFICES:
        texts.append(f"{left:.0%} off at best" if left < math.inf else "none of its values agrees")
    return "; ".join(texts) or "best of its values"


def _precision(trials: Trials, fitted: Fit, records: Mapping[str, BenchmarkRecord]) -> float | None:
    return trials.precision(fitted.value, records[trials.benchmark].noise)
