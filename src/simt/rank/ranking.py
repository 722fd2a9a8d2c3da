"""Configurations in the order of their times, as text, JSON and HTML."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from simt.formatting import format_time, text_table
from simt.pages import notebook


@dataclass(frozen=True)
class Ranked:
    """A configuration. seconds: of all its launches; low, high: within which they are if not all was
    simulated.

    error: why it is not ranked: wrong values, or it cannot be launched; then seconds is NaN.
    """

    configuration: dict[str, Any]
    seconds: float
    low: float
    high: float
    cycles: float
    error: str = ""

    @property
    def name(self) -> str:
        return ", ".join(f"{key}={value}" for key, value in self.configuration.items())


@dataclass(frozen=True)
class Ranking:
    """Configurations, the fastest first; those that failed come last. checked: what values were compared
    with. triton: of an autotuned kernel, what Triton's autotuner would have kept of these times."""

    program: str
    gpu: str
    rows: tuple[Ranked, ...]
    checked: str
    triton: dict[str, Any] | None = None

    @property
    def best(self) -> dict[str, Any]:
        """The fastest configuration; empty if all have failed."""
        return self.rows[0].configuration if self.rows and not self.rows[0].error else {}

    @property
    def tied(self) -> tuple[Ranked, ...]:
        """The configurations whose intervals reach into that of the fastest."""
        good = [row for row in self.rows if not row.error]
        return tuple(row for row in good if row.low <= good[0].high)

    @property
    def table(self) -> tuple[list[str], list[list[str]]]:
        good = [row for row in self.rows if not row.error]
        rows = []
        for i, row in enumerate(self.rows, 1):
            interval = (
                ""
                if row.error or row.low == row.high
                else f"{format_time(row.low)} to {format_time(row.high)}"
            )
            slower = "-" if row.error else f"{row.seconds / good[0].seconds:.2f}"
            time = "-" if row.error else format_time(row.seconds)
            rows.append([str(i), row.name, time, slower, interval, row.error])
        header = ["", "configuration", "time", "times the best", "interval", "error"]
        if not any(row[4] for row in rows):
            header, rows = header[:4] + header[5:], [row[:4] + row[5:] for row in rows]
        return header, rows

    @property
    def notes(self) -> list[str]:
        tied = len(self.tied)
        also = f"{tied - 1} others may be as fast within their intervals. " if tied > 1 else ""
        return [f"{also}Values: {self.checked}."]

    def to_json(self) -> dict[str, Any]:
        """One JSON object: `best`, and a row by configuration."""
        rows = [
            {
                "configuration": row.configuration,
                "seconds": None if math.isnan(row.seconds) else row.seconds,
                "interval": None if math.isnan(row.low) else [row.low, row.high],
                "cycles": None if math.isnan(row.cycles) else row.cycles,
                "error": row.error or None,
            }
            for row in self.rows
        ]
        return {
            "program": self.program,
            "gpu": self.gpu,
            "best": self.best,
            "checked": self.checked,
            "rows": rows,
        } | ({} if self.triton is None else {"triton": self.triton})

    def __str__(self) -> str:
        header, rows = self.table
        lines = [f"{self.program} on {self.gpu}: {len(self.rows)} configurations"]
        return "\n".join(
            [*lines, *("  " + x for x in text_table(header, rows, (1, len(header) - 1))), *self.notes]
        )

    def _repr_html_(self) -> str:
        header, rows = self.table
        return notebook(f"{self.program} on {self.gpu}", [(header, rows, (1, len(header) - 1))], self.notes)
