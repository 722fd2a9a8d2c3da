"""Choices that no benchmark determines by itself: all are tried, and judged by the rates of the whole GPU.

A choice's misfit is the sum, over all rates measured (bytes, operations, lanes per cycle), of the squared
logarithm of simulated over measured, in units of the measurement's noise. Choices race: benchmarks run from
the cheapest group to the dearest, and what has fallen behind the best by more than `GIVE_UP` does not run the
rest. Parameters that act together are tried together; blocks follow each other until nothing changes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from simt.errors import TuneError
from simt.spec.files import choices
from simt.tuner.draft import Draft
from simt.tuner.records import Record
from simt.tuner.simulator import Simulator
from simt.validate.microbenchmark import GROUPS, Microbenchmark

GIVE_UP = 25.0  # 5 sigma
DETERMINED, WEAK = 9.0, 1.0  # 3 sigma and 1
ROUNDS = 3
WORST = 1e6  # misfit of a benchmark that gives no value, so that all sums are finite

Block = dict[str, tuple[Any, ...]]


def default_blocks() -> list[Block]:
    """As Accel-Sim's tuner (ISCA 2020, section V) with more candidates: scheduler, L2 interleaving and hash,
    DRAM scheduling."""
    return [
        {"sm.scheduler.policy": _options("sm.scheduler.policy")},
        {
            "address_map.hash": _options("address_map.hash"),
            "address_map.channel_bit": (5, 7, 8, 10, 12),
        },
        {"dram.scheduler": _options("dram.scheduler")},
    ]


def _options(path: str) -> tuple[Any, ...]:
    return tuple(v for v in choices(path) or () if v != "custom")


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
                raise TuneError(f"--search {text}: expected whole numbers between commas") from None
        named = {str(v).lower(): v for v in options}
        if unknown := [v for v in wanted if v.lower() not in named]:
            raise TuneError(f"--search {text}: found {unknown[0]!r}, expected some of {', '.join(named)}")
        options = tuple(named[v.lower()] for v in wanted)
    if not options:
        raise TuneError(f"--search {text}: a number needs candidates, such as {path}=16,32,64")
    return {path.strip(): options}


@dataclass(frozen=True)
class Choice:
    """What a block's search found.

    misfit: by candidate, in the order of the block's paths; of those that gave up, up to there. complete:
    candidates that ran all benchmarks. gap: by how much the runner-up is worse than the best. separated_by:
    the benchmark at which they differ most.
    """

    paths: tuple[str, ...]
    best: tuple[Any, ...]
    runner_up: tuple[Any, ...] | None
    gap: float
    misfit: Mapping[tuple[Any, ...], float]
    complete: frozenset[tuple[Any, ...]]
    separated_by: str | None

    @property
    def verdict(self) -> str:
        """How well it is determined, in words."""
        if self.runner_up is None:
            return "no other valid candidate"
        by = f", {self.separated_by}" if self.separated_by else ""
        gap = f"{'' if self.runner_up in self.complete else 'at least '}{math.sqrt(self.gap):.1f} sigma"
        if self.gap >= DETERMINED:
            return f"determined: {_text(self.runner_up)} is worse by {gap}{by}"
        if self.gap >= WEAK:
            return f"weakly determined: {_text(self.runner_up)} is worse by {gap}{by}"
        return f"not determined by these benchmarks: {_text(self.runner_up)} fits as well"


def _text(candidate: tuple[Any, ...]) -> str:
    return ", ".join(str(v) for v in candidate)


@dataclass
class Search:
    """A search on the rates among the records. budget: values that may be asked of the simulator."""

    simulator: Simulator
    benchmarks: Sequence[tuple[Microbenchmark, Record]]
    budget: int
    exhausted: bool = field(default=False, init=False)

    def run(self, draft: Draft, blocks: Sequence[Block]) -> list[Choice]:
        """Puts the best choices into the draft, and says how well each is determined."""
        ask_until = self.simulator.asked + self.budget
        found: dict[int, Choice] = {}
        for _ in range(ROUNDS):
            changed = False
            for i, block in enumerate(blocks):
                free = {p: c for p, c in block.items() if p not in draft.pinned}
                if not free:
                    continue
                if self.simulator.asked >= ask_until:
                    self.exhausted = True
                    return list(found.values())
                choice = self._race(draft, free, ask_until)
                now = tuple(draft.get(p) for p in choice.paths)
                # What is not determined stays as the base has it.
                if choice.best != now:
                    changed = True
                    draft.change(dict(zip(choice.paths, choice.best, strict=True)), "searched")
                found[i] = choice
            if not changed:
                break
        return list(found.values())

    def _race(self, draft: Draft, block: Block, ask_until: int) -> Choice:
        paths = tuple(block)
        now = tuple(draft.get(p) for p in paths)
        specs = {}
        for candidate in dict.fromkeys([now, *product(*block.values())]):
            spec = draft.tried(dict(zip(paths, candidate, strict=True)))
            if spec is not None:
                specs[candidate] = spec
        misfit = dict.fromkeys(specs, 0.0)
        terms: dict[tuple[Any, ...], dict[str, float]] = {c: {} for c in specs}
        running = list(specs)
        for benchmark, record in self._reached(paths):
            if len(running) == 1 or self.simulator.asked >= ask_until:
                self.exhausted |= len(running) > 1
                break
            for candidate in running:
                term = _term(self.simulator.value(benchmark, specs[candidate]), record)
                terms[candidate][benchmark.name] = term
                misfit[candidate] += term
            least = min(misfit[c] for c in running)
            running = [c for c in running if misfit[c] <= least + GIVE_UP]
        order = sorted(running, key=lambda c: (misfit[c], c != now))
        best = order[0]
        if now in running and misfit[now] - misfit[best] < WEAK:
            best = now
        gaps = {c: _gap(terms[c], terms[best]) for c in specs if c != best}
        runner_up = min(gaps, key=lambda c: (gaps[c], str(c)), default=None)
        separated = None
        if runner_up is not None:
            most = {b: abs(t - terms[best][b]) for b, t in terms[runner_up].items()}
            separated = max(most, key=lambda b: most[b], default=None)
        gap = 0.0 if runner_up is None else max(0.0, gaps[runner_up])
        return Choice(
            paths, best, runner_up, gap, misfit, frozenset(running), separated if gap >= WEAK else None
        )

    def _reached(self, paths: Sequence[str]) -> list[tuple[Microbenchmark, Record]]:
        """Rates on which these parameters can act: what is behind the L1 has no part in those before it."""
        first = 0
        if all(p.startswith("dram.") for p in paths):
            first = GROUPS.index("memory")
        elif all(p.startswith(("address_map.", "l2.", "dram.", "interconnect.")) for p in paths):
            first = GROUPS.index("l2")
        rates = [(b, r) for b, r in self.benchmarks if b.unit.endswith("/cycle")]
        atomics_before_memory = sorted(rates, key=lambda item: item[0].group == "memory")
        return [(b, r) for b, r in atomics_before_memory if GROUPS.index(b.group) >= first]


def _gap(candidate: Mapping[str, float], best: Mapping[str, float]) -> float:
    """Difference of misfit over the benchmarks that the candidate ran."""
    return sum(term - best[name] for name, term in candidate.items())


def _term(simulated: float | None, record: Record) -> float:
    if simulated is None or simulated <= 0:
        return WORST
    return min(WORST, (math.log(simulated / record.value) / record.noise) ** 2)
