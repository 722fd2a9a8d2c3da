"""Several Results at once: the time of each kernel in each of them."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simt.errors import ResultError
from simt.files import write_bytes, write_text
from simt.formatting import format_time, text_table
from simt.names import kernel_labels
from simt.pages import Cell, Table, notebook, render
from simt.result.compare import by_name, side
from simt.result.launch import LaunchResult
from simt.result.result import Result
from simt.result.summary import bottleneck

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Entry:
    """A kernel in a Result.

    launches: how many. seconds, cycles: their part of the Result's total. bound: by what the longest is.
    """

    launches: int
    seconds: float
    cycles: float
    bound: str


@dataclass(frozen=True)
class ResultMatrix:
    """Kernels by Results, such as one program on several GPUs. Kernels are matched by name."""

    results: tuple[Result, ...]

    def __post_init__(self) -> None:
        if not self.results:
            raise ResultError("a matrix needs Results: none is given")

    @property
    def sides(self) -> list[str]:
        """What each Result is of: program, GPU, clock, code and configuration."""
        return [side(result) for result in self.results]

    @cached_property
    def columns(self) -> list[str]:
        """A short name for each Result: its GPU where that tells them apart, otherwise numbered."""
        names = [result.machine.name for result in self.results]
        if len(set(names)) == len(names):
            return names
        return [f"{i}: {name}" for i, name in enumerate(names, 1)]

    @cached_property
    def entries(self) -> dict[str, list[Entry | None]]:
        """By kernel, longest first: its entry in each Result; None where it has no launch."""
        parts = [by_name(result) for result in self.results]
        found: dict[str, list[Entry | None]] = {}
        for name in dict.fromkeys(name for part in parts for name in part):
            found[name] = [_entry(*part[name]) if name in part else None for part in parts]
        return dict(sorted(found.items(), key=lambda row: -max(e.seconds for e in row[1] if e is not None)))

    @property
    def table(self) -> tuple[list[str], list[list[str]]]:
        """Header and rows of times; the last row is of all launches."""
        labels = kernel_labels(self.entries, 40)
        rows = [
            [labels[name], *("-" if e is None else format_time(e.seconds) for e in row)]
            for name, row in self.entries.items()
        ]
        rows.append(["all", *(format_time(result.totals.seconds) for result in self.results)])
        return ["kernel", *self.columns], rows

    def to_polars(self) -> pl.DataFrame:
        """A row per kernel and Result: `kernel`, `result` (its column), `input`, `gpu`, `core_mhz`, `code`,
        `configuration`, `launches`, `seconds`, `cycles`, `bound`."""
        import polars as pl

        rows = [
            {
                "kernel": name,
                "result": column,
                "input": result.provenance.input,
                "gpu": result.machine.name,
                "core_mhz": result.machine.core_khz / 1000,
                "code": result.provenance.code,
                "configuration": result.provenance.configuration,
                "launches": entry.launches,
                "seconds": entry.seconds,
                "cycles": entry.cycles,
                "bound": entry.bound,
            }
            for name, row in self.entries.items()
            for column, result, entry in zip(self.columns, self.results, row, strict=True)
            if entry is not None
        ]
        return pl.DataFrame(rows)

    def to_json(self) -> dict[str, Any]:
        """The sides, and the rows of `to_polars`."""
        return {"sides": self.sides, "rows": self.to_polars().to_dicts()}

    def write_parquet(self, path: Path) -> None:
        """Writes `to_polars` as Parquet; the file appears whole or not at all. Raises ResultError."""
        content = io.BytesIO()
        self.to_polars().write_parquet(content)
        write_bytes(path, content.getvalue(), ResultError)

    def write(self, path: Path) -> None:
        """Writes the page. Raises ResultError."""
        write_text(path, self.page())

    def page(self) -> str:
        """The page as text."""
        header = ["kernel", *(f"{what} {column}" for column in self.columns for what in ("time", "bound"))]
        rows: list[list[Cell]] = []
        for name, row in self.entries.items():
            cells: list[Cell] = [(name, None)]
            for e in row:
                cells += (
                    [("-", 0.0), ("-", None)]
                    if e is None
                    else [
                        (format_time(e.seconds), e.seconds),
                        (e.bound, None),
                    ]
                )
            rows.append(cells)
        totals = [result.totals for result in self.results]
        return render(
            "matrix.html",
            title=f"{len(self.results)} Results",
            about="kernels by Results",
            source=", ".join(dict.fromkeys(result.provenance.input for result in self.results)),
            tiles=[(format_time(t.seconds), c) for t, c in zip(totals, self.columns, strict=True)],
            kernels=Table(header, rows),
            facts=dict(zip(self.columns, self.sides, strict=True)),
        )

    def __str__(self) -> str:
        header, rows = self.table
        sides = [f"{column}: {text}" for column, text in zip(self.columns, self.sides, strict=True)]
        return "\n".join([*sides, *("  " + line for line in text_table(header, rows, (0,)))])

    def _repr_html_(self) -> str:
        return notebook(f"{len(self.results)} Results", [(*self.table, (0,))], self.sides)


def _entry(launches: Sequence[LaunchResult], cycles: float) -> Entry:
    machine = launches[0].machine
    seconds = cycles / (1000 * machine.core_khz) if machine is not None else float("nan")
    return Entry(len(launches), seconds, cycles, bottleneck(max(launches, key=lambda x: x.cycles)).kind)
