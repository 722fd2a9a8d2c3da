"""Values that microbenchmarks determine, adjusted until the simulated benchmark matches the measurement."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from scipy.optimize import brentq

from simt.spec import describe
from simt.spec.files import choices
from simt.tuner.draft import Draft
from simt.tuner.records import BenchmarkRecord
from simt.tuner.simulator import Simulator
from simt.validate.microbenchmark import Microbenchmark

CYCLES_OFF, SHARE_OFF = 0.25, 0.002
"""A simulated value agrees with a measured one within this many cycles, or this share in other units."""
SUFFICES = 0.03
"""If the error of a benchmark exceeds this and its tolerance, its next parameter is tried."""
EXTRAPOLATIONS = 8
RESPONDS = 0.9  # largest ratio of distances after and before a guess in the right direction


@dataclass(frozen=True)
class Trials:
    """Results of a benchmark for several values of one parameter."""

    benchmark: str
    measured: float
    found: Mapping[Any, float]

    def precision(self, value: Any, noise: float) -> float | None:
        """The uncertainty of the parameter, given the measurement's relative noise: from the slope between
        the value and its nearest tried neighbour. None if unknown; inf if the benchmark does not depend on
        it.
        """
        others = [p for p in self.found if p != value and isinstance(p, (int, float))]
        if value not in self.found or not others:
            return None
        other = min(others, key=lambda p: (abs(p - value), p))
        slope = (self.found[other] - self.found[value]) / (other - value)
        return math.inf if slope == 0 else noise * abs(self.measured / slope)


@dataclass(frozen=True)
class Fit:
    """The value of a parameter that agrees best with its benchmarks.

    wants: the value that each benchmark alone would require, if it responds to the parameter.
    """

    path: str
    value: Any
    wants: Mapping[str, Any]
    trials: tuple[Trials, ...]


def parameters(benchmark: Microbenchmark) -> tuple[str, ...]:
    """Paths that the tuner moves for a benchmark, in the order in which they are tried; () for none."""
    if benchmark.moves:
        return benchmark.moves
    head = benchmark.determines.split(" ")[0].rstrip(",")
    return (head,) if head in describe() else ()


def agrees(benchmark: Microbenchmark, simulated: float | None, measured: float) -> bool:
    """Whether the two are so close that no parameter can improve the match."""
    if simulated is None:
        return False
    return abs(simulated - measured) <= (CYCLES_OFF if benchmark.unit == "cycle" else SHARE_OFF * measured)


def apart(simulated: float | None, measured: float) -> float:
    """Distance of a simulated from a measured value: |log(ratio)|; 0 is close to 0 only."""
    if simulated is None or simulated < 0:
        return math.inf
    if simulated == 0 or measured == 0:
        return 0.0 if simulated == measured else math.inf
    return abs(math.log(simulated / measured))


def nearest_valid(draft: Draft, path: str, wanted: float) -> Any:
    """The value closest to the wanted one, by ratio, for which the specification is valid; None if there is
    none nearby."""
    if isinstance(draft.get(path), float):
        value = round(wanted, 3)
        return value if draft.tried({path: value}) is not None else None
    low = math.floor(wanted)
    near = {max(0, low + i) for i in range(-2, 4)}
    for power in range(1, 24):
        near |= {low >> power << power, (low >> power) + 1 << power}
    for value in sorted((v for v in near if v < 1 << 32), key=lambda v: (_ratio(v, wanted), v)):
        if draft.tried({path: value}) is not None:
            return value
    return None


def _ratio(value: float, wanted: float) -> float:
    """A distance that puts 0 after every other value, unless 0 is wanted."""
    if value == wanted:
        return 0.0
    return abs(math.log(value / wanted)) if value > 0 and wanted > 0 else math.inf if wanted >= 1 else value


def fit(
    simulator: Simulator,
    draft: Draft,
    path: str,
    benchmarks: Iterable[tuple[Microbenchmark, BenchmarkRecord]],
    before: Fit | None = None,
) -> Fit:
    """The value of one parameter with which its benchmarks agree best; the draft is not changed.

    before: the earlier result, with other values of the other parameters; kept if its benchmarks still give
    the same.
    """
    benchmarks = list(benchmarks)
    if before is not None and _same(simulator, draft, before, benchmarks):
        return before
    start = draft.get(path)
    trials, wants = [], {}
    for benchmark, record in benchmarks:
        found = _trials(simulator, draft, path, benchmark, record.value)
        best = min(found, key=lambda p: (apart(found[p], record.value), p != start), default=start)
        if len(set(found.values())) > 1:
            wants[benchmark.name] = best
        trials.append((benchmark, record, found))

    def total(value: Any) -> float:
        spec = draft.tried({path: value})
        assert spec is not None
        return sum(apart(simulator.value(b, spec), r.value) for b, r, _ in trials)

    candidates = list(dict.fromkeys([start, *wants.values()]))
    best = start if len(candidates) == 1 else min(candidates, key=lambda p: (total(p), p != start))
    return Fit(path, best, wants, tuple(Trials(b.name, r.value, found) for b, r, found in trials))


def _same(
    simulator: Simulator,
    draft: Draft,
    before: Fit,
    benchmarks: Iterable[tuple[Microbenchmark, BenchmarkRecord]],
) -> bool:
    """Whether benchmarks give the same results as before for the draft's current value."""
    found = {trials.benchmark: trials.found.get(draft.get(before.path)) for trials in before.trials}
    for benchmark, _ in benchmarks:
        then, now = found.get(benchmark.name), simulator.value(benchmark, draft.spec)
        if then is None or now is None or not math.isclose(then, now, rel_tol=1e-6):
            return False
    return True


def _trials(
    simulator: Simulator, draft: Draft, path: str, benchmark: Microbenchmark, measured: float
) -> dict[Any, float]:
    """Simulated values by parameter value, including the best that was found."""
    found: dict[Any, float] = {}
    start = draft.get(path)

    def off(value: Any) -> float | None:
        """Simulated minus measured, with this value."""
        if value not in found:
            spec = draft.tried({path: value})
            simulated = None if spec is None else simulator.value(benchmark, spec)
            if simulated is None:
                return None
            found[value] = simulated
        return found[value] - measured

    options = choices(path)
    if options is not None:
        for value in (start, *options):
            off(value)
        return found
    if not isinstance(start, (int, float)):
        return found
    first = off(start)
    if first is None:
        return found
    if agrees(benchmark, found[start], measured):
        _neighbour(draft, path, start, off)
        return found
    _approach(draft, path, benchmark, start, first, measured, off)
    if len(found) == 1:
        _neighbour(draft, path, start, off)
    return found


def _neighbour(draft: Draft, path: str, value: float, off: Callable[[Any], float | None]) -> None:
    """Tries one more value, so that the report can state the sensitivity."""
    step = max(1.0, 0.03 * value)
    for wanted in (value + step, value - step, 2 * value, value / 2):
        other = nearest_valid(draft, path, wanted) if wanted > 0 else None
        if other is not None and other != value and off(other) is not None:
            return


def _approach(
    draft: Draft,
    path: str,
    benchmark: Microbenchmark,
    start: float,
    first: float,
    measured: float,
    off: Callable[[Any], float | None],
) -> None:
    """Tries values until one agrees, or until no untried value lies between two that do not."""
    simulated = first + measured
    guesses = [start * measured / simulated, start * simulated / measured] if simulated > 0 else []
    if benchmark.unit == "cycle":
        # Rounding in other clock domains can hide a change of a few cycles, but not a large one.
        guesses = [start - first, start - 4 * first - math.copysign(4, first), *guesses]
    last, left = start, first
    for guess in guesses:
        value = nearest_valid(draft, path, guess) if guess > 0 else None
        if value == start and isinstance(start, int):  # after rounding, the neighbour may be closer
            value = nearest_valid(draft, path, start + math.copysign(1, guess - start))
        if value is None or value == start:
            continue
        now = off(value)
        if now is None:
            continue
        if agrees(benchmark, now + measured, measured):
            return
        if now * first < 0:
            _between(draft, path, start, value, off)
            return
        if abs(now) < RESPONDS * abs(first):
            last, left = value, now
            break
    else:
        return
    before, there = start, first
    for _ in range(EXTRAPOLATIONS):
        if left == there:  # the change was lost in rounding: continue
            wanted = last + 2 * (last - before)
        else:
            wanted = last - left * (last - before) / (left - there)
        value = nearest_valid(draft, path, min(max(wanted, last / 4), last * 4))
        if value == last and isinstance(last, int):  # after rounding, the neighbour may be closer still
            value = nearest_valid(draft, path, last + math.copysign(1, wanted - last))
        if value is None or value == last:
            return
        now = off(value)
        if now is None or agrees(benchmark, now + measured, measured):
            return
        if now * left < 0:
            _between(draft, path, last, value, off)
            return
        before, there, last, left = last, left, value, now


def _between(draft: Draft, path: str, one: float, other: float, off: Callable[[Any], float | None]) -> None:
    """Values between two with errors of opposite sign, by Brent's method restricted to valid ones."""
    memory = {one: off(one), other: off(other)}

    def at(wanted: float) -> float:
        value = nearest_valid(draft, path, wanted)
        if value not in memory:
            memory[value] = off(value)
        found = memory[value]
        if found is None:  # no valid value: use that of the closer end
            end = min((one, other), key=lambda p: abs(p - wanted))
            found = memory[end]
        assert found is not None
        return found

    fine = 1e-3 if isinstance(one, float) else 0.5
    brentq(at, float(one), float(other), xtol=fine, rtol=1e-5, maxiter=24, disp=False)


def first_parameter(benchmark: Microbenchmark, draft: Draft, tried: Iterable[str]) -> str | None:
    """The parameter to adjust for a benchmark: the first that was not tried; None if there is none, or if the
    description pins one, since the benchmark then tests the description.
    """
    paths, done = parameters(benchmark), set(tried)
    if any(path in draft.pinned for path in paths):
        return None
    return next((path for path in paths if path not in done), None)
