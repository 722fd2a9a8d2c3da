"""One self-contained HTML page of a study: Pareto front, effects of parameters, points."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simt.errors import StudyError
from simt.extras import explained
from simt.files import write_text
from simt.formatting import percent
from simt.pages import Cell, Table, render
from simt.study.report import Report, shown

if TYPE_CHECKING:
    from simt.study.study import Study

MOST_POINTS = 2000
MOST_INTERACTIONS = 4
_LEAST_EFFECT = 0.005  # of the variance, for an interaction to be drawn


def write(study: Study, path: Path) -> None:
    """Writes the page. Raises StudyError."""
    write_text(path, page(Report.of(study)), StudyError)


def page(report: Report) -> str:
    """The page as text."""
    try:
        from simt.study import plots
    except ModuleNotFoundError as error:
        raise explained(error, "the page of a study") from error
    table, study = report.table, report.study
    parameters = [name for name in report.parameters if name != "seed"]
    pairs = [
        (each.names[0], each.names[1])
        for each in report.effects
        if len(each.names) == 2 and each.share >= _LEAST_EFFECT
    ]
    header, rows = report.points()
    failures = report.failures
    installed = table.select("version", "engine").unique(maintain_order=True).rows()
    versions = ", ".join(f"simt {version} ({engine[:12]})" for version, engine in installed)
    several = len(report.wanted) > 1 and report.front
    return render(
        "study.html",
        title=Path(study.file).stem,
        about=study.description.description,
        source=str(study.results),
        tiles=[
            (f"{report.done:,}", "points done"),
            (f"{len(failures):,}", "points failed"),
            (f"{table['input'].n_unique():,}", "inputs"),
            (f"{table.select('gpu', 'spec_hash').n_unique():,}", "specifications"),
            (f"{float(table['wall_seconds'].sum()) / 3600:,.2f}", "hours of simulation"),
        ],
        front=_table(*report.front_table()),
        front_title="Pareto front" if len(report.wanted) > 1 else "Best configuration",
        front_note=(
            f"Configurations by {', '.join(each.name for each in report.wanted)}, across inputs and seeds, "
            "of those that all of them finished with. No other is better in one and as good in the others."
        ),
        front_plot=plots.front_svg(report.configurations, report.front, report.wanted) if several else "",
        value=report.value,
        parameter_plots=[(name, plots.parameter_svg(table, name, report.value)) for name in parameters],
        effects=_effects(report),
        interaction_plots=[
            (" and ".join(pair), plots.interaction_svg(table, pair, report.value))
            for pair in pairs[:MOST_INTERACTIONS]
        ],
        points=_table(header, rows[:MOST_POINTS]),
        points_note=f"The first {MOST_POINTS:,} of {len(rows):,}." if len(rows) > MOST_POINTS else "",
        failures=_failures(report),
        facts={"simulated by": versions, "results": str(study.results), "study": study.file},
    )


def _cell(value: Any) -> Cell:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return shown(value), float(value) if number else None


def _table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    return Table(header, [[_cell(value) for value in row] for row in rows])


def _effects(report: Report) -> Table:
    rows: list[list[Cell]] = [
        [(" × ".join(effect.names), None), (percent(effect.share, 1), effect.share)]
        for effect in report.effects
    ]
    return Table(["parameter", "share of the variance"], rows)


def _failures(report: Report) -> Table:
    names = report.identifying
    rows: list[list[Cell]] = [
        [*((_cell(row[name])[0], None) for name in names), (str(row["error"]), None)]
        for row in report.failures.iter_rows(named=True)
    ]
    return Table([*names, "error"], rows)
