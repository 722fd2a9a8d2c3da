"""Two Results side by side: kernels matched by name, launches by their order among those of the name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from simt.formatting import format_time, text_table
from simt.names import kernel_labels
from simt.result.launch import LaunchResult
from simt.result.result import Result, Totals

MOST_ROWS = 20


@dataclass(frozen=True)
class KernelPair:
    """The launches of one kernel in both Results; one of them may have none.

    cycles: their part of each Result's total (`Result.shares`).
    """

    name: str
    first: tuple[LaunchResult, ...]
    second: tuple[LaunchResult, ...]
    cycles: tuple[float, float]
    totals: tuple[Totals, Totals]

    @property
    def ratio(self) -> float | None:
        """Cycles of the second divided by those of the first; None if either has none."""
        return self.cycles[1] / self.cycles[0] if self.cycles[0] and self.cycles[1] else None


@dataclass(frozen=True)
class LaunchPair:
    """A launch and its counterpart: the launch of the other Result with the same position among its kernel's
    launches.
    """

    first: LaunchResult
    second: LaunchResult

    @property
    def ratio(self) -> float | None:
        return self.second.cycles / self.first.cycles if self.first.cycles else None


@dataclass(frozen=True)
class ResultComparison:
    """Two Results. `kernels` are those of either, longest first."""

    first: Result
    second: Result

    @cached_property
    def kernels(self) -> tuple[KernelPair, ...]:
        parts = [_by_name(result) for result in (self.first, self.second)]
        found = []
        for name in dict.fromkeys([*parts[0], *parts[1]]):
            (a, cycles_a), (b, cycles_b) = (part.get(name, ((), 0.0)) for part in parts)
            totals = replace(self.first, launches=a).totals, replace(self.second, launches=b).totals
            found.append(KernelPair(name, a, b, (cycles_a, cycles_b), totals))
        return tuple(sorted(found, key=lambda k: -max(k.cycles)))

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
        """All cycles of the second Result divided by those of the first."""
        a, b = self.first.totals.cycles, self.second.totals.cycles
        return b / a if a and b else None

    def __str__(self) -> str:
        a, b = self.first, self.second
        header = ["kernel", "launches", "", "cycles", "", "ratio"]
        rows = []
        for k in self.kernels[:MOST_ROWS]:
            counts = [f"{len(k.first):,}", f"{len(k.second):,}"]
            rows.append([self.labels[k.name], *counts, *(f"{n:,.0f}" for n in k.cycles), ratio_text(k.ratio)])
        if rest := self.kernels[MOST_ROWS:]:
            counts = [f"{sum(len(k.first) for k in rest):,}", f"{sum(len(k.second) for k in rest):,}"]
            cycles = [f"{sum(k.cycles[i] for k in rest):,.0f}" for i in (0, 1)]
            rows.append([f"{len(rest)} others", *counts, *cycles, ""])
        only = self.unmatched
        lines = [
            f"{a.provenance.input} on {a.machine.name}: {_total(a)}",
            f"{b.provenance.input} on {b.machine.name}: {_total(b)}, {ratio_text(self.ratio)} times as many",
            *("  " + line for line in text_table(header, rows, (0,))),
        ]
        for name, launches in zip(("first", "second"), only, strict=True):
            if launches:
                n = len(launches)
                lines.append(f"only in the {name}: {n:,} launch{'es' * (n != 1)} ({_kernels(launches)})")
        return "\n".join(lines)


def ratio_text(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.3f}"


def _total(result: Result) -> str:
    t = result.totals
    return f"{t.cycles:,} cycles ({format_time(t.seconds)}) in {t.launches:,} launches"


def _kernels(launches: Sequence[LaunchResult]) -> str:
    labels = list(kernel_labels(x.name for x in launches).values())
    more = f", and {len(labels) - 5} more kernels" if len(labels) > 5 else ""
    return ", ".join(labels[:5]) + more


def _by_name(result: Result) -> dict[str, tuple[tuple[LaunchResult, ...], float]]:
    found: dict[str, list[tuple[LaunchResult, float]]] = {}
    for x, cycles in zip(result.launches, result.shares, strict=True):
        found.setdefault(x.name, []).append((x, cycles))
    return {name: (tuple(x for x, _ in both), sum(n for _, n in both)) for name, both in found.items()}
