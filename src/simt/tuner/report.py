"""A Tuning as tables: on screen, as Markdown, HTML and JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from simt.errors import TuneError
from simt.files import write_text
from simt.formatting import percent
from simt.pages import Cell, Table, render
from simt.result.files import dump
from simt.tuner.tune import Check, Tuning

SCHEMA = "simt.tuning/1"
PARAMETERS = ["parameter", "value", "in base", "how", "measured by", "certainty"]
CHECKS = ["microbenchmark", "unit", "measured", "before", "after", "error before", "error after", "moves"]
CHOICES = ["choice", "best", "runner-up", "how well determined", "candidates"]
_FORMATS = {".html", ".md"}


def require_format(path: Path) -> None:
    """Raises TuneError for a report with an unknown ending."""
    if path.suffix not in _FORMATS:
        raise TuneError(f"{path}: found the ending {path.suffix!r}, expected {' or '.join(sorted(_FORMATS))}")


def parameter_rows(tuning: Tuning) -> list[list[str]]:
    """The values found, in the order of the specification; inherited ones only if a search or a benchmark
    addressed them.
    """
    return [
        [p.path, shown(p.value), shown(p.before), p.how, ", ".join(p.benchmarks), p.certainty]
        for p in tuning.parameters
        if p.how != "inherited" or p.certainty
    ]


def check_rows(tuning: Tuning) -> list[list[str]]:
    """Every benchmark, measured and simulated."""
    return [
        [
            c.name,
            c.unit,
            number(c.measured),
            number(c.before),
            number(c.after),
            percent(c.error(c.before), 1),
            percent(c.error(c.after), 1),
            ", ".join(c.parameters),
        ]
        for c in tuning.checks
    ]


def choice_rows(tuning: Tuning) -> list[list[str]]:
    """The choices that were searched."""
    return [
        [
            ", ".join(c.paths),
            ", ".join(map(shown, c.best)),
            "-" if c.runner_up is None else ", ".join(map(shown, c.runner_up)),
            c.verdict,
            f"{len(c.gaps)}",
        ]
        for c in tuning.choices
    ]


def summary(tuning: Tuning) -> list[str]:
    """Sentences about the whole tuning."""
    counts = {how: 0 for how in ("described", "measured", "searched", "inherited")}
    for p in tuning.parameters:
        counts[p.how] += 1
    before, after = tuning.mean_error("before"), tuning.mean_error("after")
    lines = [
        f"{tuning.spec.name}: {len(tuning.checks)} microbenchmarks of {tuning.device}, "
        f"starting from {tuning.base}.",
        f"Of {len(tuning.parameters)} values {counts['described']} are described, "
        f"{counts['measured']} measured, {counts['searched']} searched and {counts['inherited']} inherited "
        f"from {tuning.base}, unverified.",
        f"Mean absolute error over the benchmarks: {percent(before, 2)} before, {percent(after, 2)} after.",
        f"{tuning.simulated:,} simulations in {tuning.seconds:.0f} s; "
        f"{tuning.asked - tuning.simulated:,} values came from the cache.",
    ]
    if tuning.interrupted:
        lines.append("Interrupted: these are the results so far. Give the same command again to continue.")
    return lines


def number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.6g}"


def shown(value: Any) -> str:
    """A value as in TOML, without quotes."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def write(tuning: Tuning, path: Path) -> None:
    """Writes the report: HTML or Markdown, by the ending. Raises TuneError or ResultError."""
    require_format(path)
    write_text(path, html(tuning) if path.suffix == ".html" else markdown(tuning))


def markdown(tuning: Tuning) -> str:
    """The report as Markdown."""
    inherited = [[p.path, shown(p.value), p.source] for p in tuning.parameters if p.how == "inherited"]
    known = [[p.path, shown(p.value), p.source] for p in tuning.parameters if p.how != "inherited"]
    parts = [f"# {tuning.spec.name}", "\n".join(f"{line}  " for line in summary(tuning))]
    if tuning.notes:
        parts += ["## Notes", "\n".join(f"- {line}" for line in tuning.notes)]
    parts += ["## Values", _markdown(PARAMETERS, parameter_rows(tuning))]
    parts += ["## Benchmarks", _markdown(CHECKS, check_rows(tuning))]
    if tuning.choices:
        parts += ["## Choices", _markdown(CHOICES, choice_rows(tuning))]
    parts += ["## Sources", _markdown(["parameter", "value", "source"], known)]
    parts += ["## Inherited, unverified", _markdown(["parameter", "value", "source"], inherited)]
    return "\n\n".join(parts) + "\n"


def _markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"

    return "\n".join([line(header), "|" + "---|" * len(header), *map(line, rows)])


def html(tuning: Tuning) -> str:
    """The report as one page."""
    before, after = tuning.mean_error("before"), tuning.mean_error("after")
    found = [p for p in tuning.parameters if p.how != "inherited"]
    benchmarks_note = "Before: the base with what is described. Click a header to sort."
    tables = [
        ("Benchmarks", benchmarks_note, Table(CHECKS, [_check_cells(c) for c in tuning.checks])),
        ("Values found", "", _texts(PARAMETERS, parameter_rows(tuning))),
    ]
    if tuning.choices:
        note = "Misfit in units of the measurements' noise, at least 1 % of each."
        tables.append(("Choices", note, _texts(CHOICES, choice_rows(tuning))))
    sources = [[p.path, shown(p.value), p.how, p.source] for p in tuning.parameters]
    tables.append(("All values", "", _texts(["parameter", "value", "how", "source"], sources)))
    return render(
        "tuning.html",
        title="simt tune",
        about=tuning.spec.name,
        source=f"{tuning.device}: {', '.join(tuning.files)}",
        tiles=[
            (f"{len(tuning.checks)}", "benchmarks"),
            (percent(before, 1), "mean absolute error before"),
            (percent(after, 1), "mean absolute error after"),
            (f"{len(found)} of {len(tuning.parameters)}", "values known"),
            (f"{tuning.seconds:.0f} s", f"{tuning.simulated:,} simulations"),
        ],
        notes=[*summary(tuning)[-1:] * tuning.interrupted, *tuning.notes],
        tables=tables,
    )


def _texts(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    return Table(header, [[(cell, None) for cell in row] for row in rows])


def _check_cells(check: Check) -> list[Cell]:
    def cell(value: float | None, text: str) -> Cell:
        return text, math.inf if value is None else value

    errors = [check.error(check.before), check.error(check.after)]
    return [
        (check.name, None),
        (check.unit, None),
        *(cell(v, number(v)) for v in (check.measured, check.before, check.after)),
        *(cell(e, percent(e, 1)) for e in errors),
        (", ".join(check.parameters), None),
    ]


def to_json(tuning: Tuning) -> str:
    """One JSON object of schema simt.tuning/1: parameters, benchmarks, choices, notes."""
    data = {
        "schema": SCHEMA,
        "name": tuning.spec.name,
        "hash": tuning.spec.hash,
        "base": tuning.base,
        "device": tuning.device,
        "files": list(tuning.files),
        "interrupted": tuning.interrupted,
        "error_before": tuning.mean_error("before"),
        "error_after": tuning.mean_error("after"),
        "seconds": round(tuning.seconds, 1),
        "simulations": tuning.simulated,
        "parameters": [
            {
                "path": p.path,
                "value": p.value,
                "base": p.before,
                "how": p.how,
                "source": p.source,
                "benchmarks": list(p.benchmarks),
                "certainty": p.certainty,
            }
            for p in tuning.parameters
        ],
        "benchmarks": [
            {
                "name": c.name,
                "group": c.group,
                "unit": c.unit,
                "measured": c.measured,
                "spread": c.spread,
                "before": c.before,
                "after": c.after,
                "moves": list(c.parameters),
            }
            for c in tuning.checks
        ],
        "choices": [
            {
                "paths": list(c.paths),
                "best": list(c.best),
                "runner_up": None if c.runner_up is None else list(c.runner_up),
                "gap": c.gap,
                "verdict": c.verdict,
                "candidates": [{"values": list(k), "gap": v} for k, v in c.gaps.items()],
            }
            for c in tuning.choices
        ],
        "notes": list(tuning.notes),
    }
    return dump(data)
