"""Two Results side by side: kernels matched by name, launches by their order among those of the name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from simt.formatting import format_time, plural, text_table
from simt.names import kernel_labels
from simt.pages import notebook
from simt.result.difference import difference
from simt.result.launch import LaunchResult
from simt.result.result import Result, Totals
from simt.result.stack import machine_text

MOST_ROWS = 20
_MOST_PARTS = 6


@dataclass(frozen=True)
class KernelPair:
    """The launches of one kernel in both Results; one of them may have none.

    cycles, seconds: their part of each Result's total (`Result.shares`).
    """

    name: str
    first: tuple[LaunchResult, ...]
    second: tuple[LaunchResult, ...]
    cycles: tuple[float, float]
    seconds: tuple[float, float]
    totals: tuple[Totals, Totals]

    @property
    def ratio(self) -> float | None:
        """Time of the second divided by that of the first; None if either has none."""
        return self.seconds[1] / self.seconds[0] if self.seconds[0] and self.seconds[1] else None

    @property
    def parts(self) -> tuple[tuple[str, float, float], ...]:
        """Parts of the time of its longest launch: name and seconds in both, largest differences first."""
        if not self.first or not self.second:
            return ()
        longest = [max(xs, key=lambda x: x.seconds) for xs in (self.first, self.second)]
        return difference(*longest).parts


@dataclass(frozen=True)
class LaunchPair:
    """A launch and its counterpart: the launch of the other Result with the same position among its kernel's
    launches.
    """

    first: LaunchResult
    second: LaunchResult

    @property
    def ratio(self) -> float | None:
        """Time of the second divided by that of the first."""
        return self.second.seconds / self.first.seconds if self.first.seconds else None


@dataclass(frozen=True)
class ResultComparison:
    """Two Results. `kernels` are those of either, longest first."""

    first: Result
    second: Result

    @cached_property
    def kernels(self) -> tuple[KernelPair, ...]:
        parts = [by_name(result) for result in (self.first, self.second)]
        found = []
        for name in dict.fromkeys([*parts[0], *parts[1]]):
            (a, cycles_a), (b, cycles_b) = (part.get(name, ((), 0.0)) for part in parts)
            totals = replace(self.first, launches=a).totals, replace(self.second, launches=b).totals
            seconds = (
                cycles_a / (1000 * self.first.machine.core_khz),
                cycles_b / (1000 * self.second.machine.core_khz),
            )
            found.append(KernelPair(name, a, b, (cycles_a, cycles_b), seconds, totals))
        return tuple(sorted(found, key=lambda k: -max(k.seconds)))

    @cached_property
    def launches(self) -> tuple[LaunchPair, ...]:
        """Launches in both Results, in the order of the first."""
        pairs = [LaunchPair(a, b) for k in self.kernels for a, b in zip(k.first, k.second, strict=False)]
        return tuple(sorted(pairs, key=lambda pair: pair.first.index))

    @cached_property
    def unmatched(self) -> tuple[tuple[LaunchResult, ...], tuple[LaunchResult, ...]]:
        """Launches in the first Result only, and in the second only."""
        first = [x for k in self.kernels for x in k.first[len(k.second) :]]
        second = [x for k in self.kernels for x in k.second[len(k.first) :]]
        a, b = (tuple(sorted(xs, key=lambda x: x.index)) for xs in (first, second))
        return a, b

    @cached_property
    def labels(self) -> dict[str, str]:
        """Short texts for the kernels of both Results."""
        return kernel_labels((k.name for k in self.kernels), 40)

    @property
    def ratio(self) -> float | None:
        """Time of all launches of the second Result divided by that of the first."""
        a, b = self.first.totals.seconds, self.second.totals.seconds
        return b / a if a and b else None

    @property
    def sides(self) -> tuple[str, str]:
        """What each Result is of: program, GPU, clock, code and configuration."""
        return side(self.first), side(self.second)

    @property
    def table(self) -> tuple[list[str], list[list[str]]]:
        """Header and rows by kernel, longest first: launches, times, their ratio, cycles."""
        header = ["kernel", "launches A", "B", "time A", "B", "B / A", "cycles A", "B"]
        rows = []
        for k in self.kernels[:MOST_ROWS]:
            counts = [f"{len(k.first):,}", f"{len(k.second):,}"]
            times = [format_time(s) if s else "-" for s in k.seconds]
            cycles = [f"{n:,.0f}" for n in k.cycles]
            rows.append([self.labels[k.name], *counts, *times, ratio_text(k.ratio), *cycles])
        if rest := self.kernels[MOST_ROWS:]:
            counts = [f"{sum(len(k.first) for k in rest):,}", f"{sum(len(k.second) for k in rest):,}"]
            times = [format_time(sum(k.seconds[i] for k in rest)) for i in (0, 1)]
            cycles = [f"{sum(k.cycles[i] for k in rest):,.0f}" for i in (0, 1)]
            rows.append([f"{len(rest)} others", *counts, *times, "", *cycles])
        return header, rows

    @property
    def notes(self) -> list[str]:
        """The Results' totals, and the launches that only one has."""
        totals = [_total(result) for result in (self.first, self.second)]
        lines = [
            f"A: {self.sides[0]}: {totals[0]}",
            f"B: {self.sides[1]}: {totals[1]}, {ratio_text(self.ratio)} times the time of A",
        ]
        for name, launches in zip(("first", "second"), self.unmatched, strict=True):
            if launches:
                lines.append(f"only in the {name}: {plural(len(launches), 'launch')} ({_kernels(launches)})")
        return lines

    @property
    def why(self) -> tuple[str, list[list[str]]]:
        """Of the kernel whose times differ most: its label, and rows of the parts of its longest launch's
        time; no rows where nothing differs."""
        both = [k for k in self.kernels if k.first and k.second]
        if not both:
            return "", []
        k = max(both, key=lambda k: abs(k.seconds[1] - k.seconds[0]))
        rows = [[name, format_time(x), format_time(y), more(x, y)] for name, x, y in k.parts[:_MOST_PARTS]]
        return self.labels[k.name], rows

    def __str__(self) -> str:
        header, rows = self.table
        lines = [*self.notes[:2], *("  " + line for line in text_table(header, rows, (0,))), *self.notes[2:]]
        label, parts = self.why
        if parts:
            lines.append(f"{label} differs in these parts of its longest launch's time:")
            lines += ["  " + line for line in text_table(["", "A", "B", "B - A"], parts, (0,))]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        label, parts = self.why
        why = [([f"{label}: part of the time", "A", "B", "B - A"], parts, (0,))] if parts else []
        return notebook("Two Results", [(*self.table, (0,)), *why], self.notes)

    def to_json(self) -> dict[str, Any]:
        """The comparison as one JSON object: the sides, and a row by kernel with seconds and cycles of
        each, and the parts in which the times of its longest launches differ."""
        return {
            "sides": list(self.sides),
            "seconds": [r.totals.seconds for r in (self.first, self.second)],
            "cycles": [r.totals.cycles for r in (self.first, self.second)],
            "ratio": self.ratio,
            "kernels": [
                {
                    "name": k.name,
                    "launches": [len(k.first), len(k.second)],
                    "seconds": list(k.seconds),
                    "cycles": list(k.cycles),
                    "ratio": k.ratio,
                    "parts": [{"part": name, "seconds": [x, y]} for name, x, y in k.parts],
                }
                for k in self.kernels
            ],
        }


def side(result: Result) -> str:
    """What a Result is of: program, GPU, clock, code and configuration."""
    configuration = result.provenance.configuration
    return f"{result.provenance.input} on {machine_text(result.machine)}" + (
        f" ({configuration})" if configuration else ""
    )


def more(first: float, second: float) -> str:
    """By how many seconds the second is longer."""
    sign = "-" if second < first else "+"
    return sign + format_time(abs(second - first)) if second != first else "0"


def ratio_text(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.3f}"


def _total(result: Result) -> str:
    t = result.totals
    return f"{format_time(t.seconds)} ({t.cycles:,} cycles) in {plural(t.launches, 'launch')}"


def _kernels(launches: Sequence[LaunchResult]) -> str:
    labels = list(kernel_labels(x.name for x in launches).values())
    more = f", and {len(labels) - 5} more kernels" if len(labels) > 5 else ""
    return ", ".join(labels[:5]) + more


def by_name(result: Result) -> dict[str, tuple[tuple[LaunchResult, ...], float]]:
    found: dict[str, list[tuple[LaunchResult, float]]] = {}
    for x, cycles in zip(result.launches, result.shares, strict=True):
        found.setdefault(x.name, []).append((x, cycles))
    return {name: (tuple(x for x, _ in both), sum(n for _, n in both)) for name, both in found.items()}
