"""Searches the choices that no single benchmark determines: candidates race, judged by measured rates.

A candidate's misfit is the sum, over rates (bytes, operations, lanes per cycle), of the squared logarithm of
simulated over measured, in units of the measurement's noise. The race proceeds from the SM outwards:
schedulers are judged by the rates of the SM; all that are equally good there are combined with every L2 hash
and interleaving at the L2, with refitted latencies; the best of these with every DRAM scheduler in memory. So
an outer level, which may have more errors left, never overrules an inner one, and interacting choices are
tried together. At each level benchmarks run one after another, and after the first three, candidates that are
behind the best by more than `GIVE_UP` are dropped. If even the best misses by more than the noise, the model
lacks a feature, and differences are scaled down: they are divided by the best's mean misfit per benchmark
(Birge ratio).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from simt.errors import TuneError
from simt.spec.files import choices
from simt.tuner.draft import Draft
from simt.tuner.records import BenchmarkRecord
from simt.tuner.simulator import Simulator
from simt.validate.microbenchmark import Microbenchmark

GIVE_UP = 25.0  # 5 sigma
EVIDENCE = (
    3  # benchmarks of a level that always run: a single one may match by chance if the model lacks a feature
)
DETERMINED, WEAK = 9.0, 1.0  # 3 sigma and 1
SHOWN = 0.03  # relative error of the best choice above which the verdict mentions it
LEVELS = 3  # the SM, the L2, memory
BEAM = 8  # maximum number of candidates for the next level
_LEVELS = {"l2": 1, "atomics": 1, "memory": 2}  # groups outside the SM
WORST = 1e6  # misfit of a benchmark that gives no value, so that all sums are finite

Block = dict[str, tuple[Any, ...]]


def default_blocks() -> list[Block]:
    """The choices of Accel-Sim's tuner (ISCA 2020, section V) with more candidates: scheduler, L2
    interleaving and hash, DRAM scheduling."""
    return [
        {"sm.scheduler.policy": _options("sm.scheduler.policy")},
        {
            "address_map.hash": _options("address_map.hash"),
            "address_map.channel_bit": (5, 7, 8, 10, 12),
        },
        {"dram.scheduler": _options("dram.scheduler")},
    ]


def with_blocks(texts: Sequence[str]) -> list[Block]:
    """The default blocks and those of `PATH` or `PATH=VALUE,VALUE`, which replace defaults with the same
    path."""
    own: Block = {}
    for text in texts:
        own |= block_of(text)
    kept = [{p: c for p, c in block.items() if p not in own} for block in default_blocks()]
    return [block for block in kept if block] + [{path: values} for path, values in own.items()]


def _options(path: str) -> tuple[Any, ...]:
    return choices(path) or ()


def block_of(text: str) -> Block:
    """The block of a command line's `PATH` or `PATH=VALUE,VALUE`. Raises SpecError or TuneError."""
    path, equals, values = text.partition("=")
    options = _options(path.strip())
    if equals:
        wanted = [v.strip() for v in values.split(",")]
        if choices(path.strip()) is None:
            try:
                return {path.strip(): tuple(int(v) for v in wanted)}
            except ValueError:
                raise TuneError(f"--search {text}: expected integers separated by commas") from None
        named = {str(v).lower(): v for v in options}
        if unknown := [v for v in wanted if v.lower() not in named]:
            raise TuneError(f"--search {text}: found {unknown[0]!r}, expected some of {', '.join(named)}")
        options = tuple(named[v.lower()] for v in wanted)
    if not options:
        raise TuneError(f"--search {text}: a number needs candidates, such as {path}=16,32,64")
    return {path.strip(): options}


@dataclass(frozen=True)
class TunedChoice:
    """The result of the search for the values of a block.

    gaps: how much worse each candidate is than the best, over the benchmarks that it ran. gap: the
        runner-up's. whole: whether the runner-up ran as many benchmarks as the best. separated_by: the
        benchmark in which the two differ most. missed: the benchmark with the largest error of the best, and
        that relative error.
    """

    paths: tuple[str, ...]
    best: tuple[Any, ...]
    runner_up: tuple[Any, ...] | None
    gap: float
    gaps: Mapping[tuple[Any, ...], float]
    whole: bool
    separated_by: str | None
    missed: tuple[str, float] | None

    @property
    def verdict(self) -> str:
        """How well it is determined, as text."""
        if self.runner_up is None:
            return "no other valid candidate"
        by = f", {self.separated_by}" if self.separated_by else ""
        if self.missed and self.missed[1] > SHOWN:
            by += f"; even the best misses {self.missed[0]} by {self.missed[1]:.0%}"
        gap = f"{'' if self.whole else 'at least '}{math.sqrt(self.gap):.1f} sigma"
        if self.gap >= DETERMINED:
            return f"determined: {_text(self.runner_up)} is worse by {gap}{by}"
        if self.gap >= WEAK:
            return f"weakly determined: {_text(self.runner_up)} is worse by {gap}{by}"
        return f"not determined by these benchmarks: {_text(self.runner_up)} fits as well{by}"


def _text(candidate: tuple[Any, ...]) -> str:
    return ", ".join(str(v) for v in candidate)


@dataclass
class _Candidate:
    """The draft with the values chosen so far; by benchmark, the terms of its misfit and its relative errors;
    and the number of values that differ from the start."""

    values: dict[str, Any]
    draft: Draft
    terms: dict[str, float]
    errors: dict[str, float]
    moved: int = 0

    @property
    def misfit(self) -> float:
        return sum(self.terms.values())


@dataclass
class TunerSearch:
    """A search on the rates among the records.

    budget: maximum number of values requested from the simulator. refit: adjusts, in a draft, the parameters
        that benchmarks of a level determine, so that each candidate is judged with suitable latencies.
    """

    simulator: Simulator
    benchmarks: Sequence[tuple[Microbenchmark, BenchmarkRecord]]
    budget: int
    refit: Callable[[Draft, int], None]
    exhausted: bool = field(default=False, init=False)

    def run(self, draft: Draft, blocks: Sequence[Block]) -> list[TunedChoice]:
        """Puts the best choices into the draft, and reports how well each is determined.

        Skips blocks whose values the description pins, and values that make no valid specification.
        """
        self._until = self.simulator.asked + self.budget
        free = [{p: c for p, c in block.items() if p not in draft.pinned} for block in blocks]
        free = [block for block in free if block]
        running, gone = [_Candidate({}, draft, {}, {})], []
        for at in range(LEVELS):
            own = [block for block in free if _level_of(block) == at]
            gone += running[BEAM:] if own else []
            running = running[:BEAM] if own else running
            for block in own:
                running = [c for one in running for c in _expanded(one, block)]
            if own and at and len(running) > 1:
                for candidate in running:
                    self.refit(candidate.draft, at)
            running, lost = self._race(running, at)
            gone += lost
        best = running[0]
        draft.spec = best.draft.spec
        others = [c for c in (*running, *gone) if c is not best]
        return [_choice(tuple(block), best, others) for block in free]

    def _race(self, running: list[_Candidate], at: int) -> tuple[list[_Candidate], list[_Candidate]]:
        """Candidates not significantly worse than the best of a level, and the others."""
        gone: list[_Candidate] = []
        ran = 0
        for benchmark, record in self.benchmarks:
            if level(benchmark) != at or not benchmark.unit.endswith("/cycle"):
                continue
            if len(running) == 1 or self.simulator.asked >= self._until:
                self.exhausted |= len(running) > 1
                return running, gone
            for candidate in running:
                value = self.simulator.value(benchmark, candidate.draft.spec)
                candidate.terms[benchmark.name] = _term(value, record)
                candidate.errors[benchmark.name] = _error(value, record)
            ran += 1
            if ran >= EVIDENCE:
                running, lost = _split(running, GIVE_UP)
                gone += lost
        running, lost = _split(running, DETERMINED)
        return running, [*gone, *lost]


def _expanded(candidate: _Candidate, block: Block) -> list[_Candidate]:
    """The draft with every valid combination of a block's values; its own values come first."""
    now = tuple(candidate.draft.get(p) for p in block)
    found = []
    for values in dict.fromkeys([now, *product(*block.values())]):
        changes = dict(zip(block, values, strict=True))
        if candidate.draft.tried(changes) is not None:
            draft = candidate.draft.copy()
            draft.change(changes, "searched")
            moved = candidate.moved + sum(a != b for a, b in zip(values, now, strict=True))
            known = dict(candidate.terms), dict(candidate.errors)
            found.append(_Candidate({**candidate.values, **changes}, draft, *known, moved))
    return found


def _split(running: Sequence[_Candidate], behind: float) -> tuple[list[_Candidate], list[_Candidate]]:
    """Candidates within this distance of the best, and the others. Sorted: first those as good as the best
    and, among them, those closest to the start, so that undetermined values do not change."""
    best = min(running, key=lambda c: c.misfit)
    unit = _unit(best, best.terms)

    def order(candidate: _Candidate) -> tuple[float, float]:
        if candidate.misfit < best.misfit + unit * WEAK:
            return best.misfit, candidate.moved
        return candidate.misfit, candidate.moved

    limit = best.misfit + unit * behind
    return sorted((c for c in running if c.misfit <= limit), key=order), [
        c for c in running if c.misfit > limit
    ]


def _unit(best: _Candidate, names: Iterable[str]) -> float:
    """Divisor for differences of misfit: the best's mean over benchmarks, at least 1."""
    terms = [best.terms.get(name, 0.0) for name in names]
    return max(1.0, sum(terms) / len(terms)) if terms else 1.0


def _choice(paths: tuple[str, ...], best: _Candidate, others: Sequence[_Candidate]) -> TunedChoice:
    """How well a block's values are determined: compares with the best of the candidates that have others."""

    def mine(candidate: _Candidate) -> tuple[Any, ...]:
        return tuple(candidate.values[p] for p in paths)

    gaps: dict[tuple[Any, ...], tuple[float, _Candidate]] = {}
    for other in others:
        if not all(p in other.values for p in paths) or mine(other) == mine(best):
            continue
        gap = sum(term - best.terms.get(name, 0.0) for name, term in other.terms.items())
        gap /= _unit(best, other.terms)
        if mine(other) not in gaps or gap < gaps[mine(other)][0]:
            gaps[mine(other)] = (gap, other)
    if not gaps:
        return TunedChoice(paths, mine(best), None, 0.0, {mine(best): 0.0}, False, None, None)
    runner_up = min(gaps, key=lambda values: gaps[values][0])
    gap, other = gaps[runner_up]
    differ = {name: abs(term - best.terms.get(name, 0.0)) for name, term in other.terms.items()}
    most = max(differ, key=lambda name: differ[name], default=None)
    return TunedChoice(
        paths,
        mine(best),
        runner_up,
        max(0.0, gap),
        {mine(best): 0.0, **{values: gap for values, (gap, _) in gaps.items()}},
        len(other.terms) == len(best.terms),
        most if gap >= WEAK else None,
        _missed(best, other.terms),
    )


def _missed(best: _Candidate, names: Iterable[str]) -> tuple[str, float] | None:
    """Of the benchmarks that separate the best from another candidate, the one with its largest error."""
    errors = {name: best.errors[name] for name in names if name in best.errors}
    name = max(errors, key=lambda n: errors[n], default=None)
    return None if name is None else (name, errors[name])


def level(benchmark: Microbenchmark) -> int:
    """The level of a benchmark: 0 for the SM, 1 for the L2, 2 for memory."""
    return _LEVELS.get(benchmark.group, 0)


def _level_of(block: Block) -> int:
    """The innermost level that parameters affect."""
    if all(p.startswith("dram.") for p in block):
        return 2
    return 1 if all(p.startswith(("address_map.", "l2.", "dram.", "interconnect.")) for p in block) else 0


def _error(simulated: float | None, record: BenchmarkRecord) -> float:
    """Relative to the measurement; 1 if nothing was simulated or measured."""
    return abs((simulated or 0.0) / record.value - 1) if record.value else float(bool(simulated))


def _term(simulated: float | None, record: BenchmarkRecord) -> float:
    if simulated is None or simulated <= 0 or record.value <= 0:
        return 0.0 if simulated == record.value else WORST
    return min(WORST, (math.log(simulated / record.value) / record.noise) ** 2)
