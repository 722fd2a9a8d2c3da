"""`simt study`: many simulations described in one file."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperGroup

from simt.cli import COMMANDS, record_options
from simt.cli.json_output import Json, records, write_json
from simt.cli.tables import print_table
from simt.errors import StudyError
from simt.files import require_output, write_text
from simt.run.interruption import stoppable
from simt.study import Expression, Study

EXAMPLES = """\b
Examples:
  simt study study.toml                     run it, or go on with it
  simt study run study.toml --retry         also points that failed
  simt study show study.toml                tables: best points, Pareto front
  simt study show study.toml -o page.html   one page with plots
  simt study show out/ --columns "dram__bytes_read.sum / cycles" --minimise cycles --minimise joules
  simt study optimise study.toml            search instead of a sweep
  duckdb -c "select * from 'study.results/points/*.parquet'"
"""


class _RunUnlessNamed(TyperGroup):
    """`simt study FILE` is `simt study run FILE`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = ["run", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    help=COMMANDS["study"],
    cls=_RunUnlessNamed,
    no_args_is_help=True,
    epilog=EXAMPLES,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
Described = Annotated[Path, typer.Argument(metavar="STUDY", help="A study in TOML.")]
Results = Annotated[
    Path, typer.Argument(metavar="STUDY", help="A study in TOML, or the folder of its results.")
]


@app.command(epilog=EXAMPLES)
def run(
    study: Described,
    retry: Annotated[bool, typer.Option("--retry", help="Also simulate points again that failed.")] = False,
    list_: Annotated[
        bool, typer.Option("--list", help="Only list the points, and check what they are made of.")
    ] = False,
    json_: Json = None,
    quiet: record_options.Quiet = False,
) -> None:
    """Simulate the points of a study that nobody has simulated yet.

    Stopped by Ctrl-C or in any other way, the same command goes on.
    """
    found = Study.load(study)
    if list_:
        if not write_json(json_, [{"digest": x.digest, "point": x.label} for x in found.points]):
            _list(found)
        return
    with _kept(found):
        ran = found.run(progress=not quiet, retry=retry)
    if write_json(json_, {**asdict(ran), "results": found.results}) or quiet:
        return
    typer.echo(
        f"{ran.points:,} points: {ran.simulated:,} simulated, {ran.reused:,} taken over, "
        f"{ran.failed:,} failed; {ran.seconds:.1f} s"
    )
    if ran.failed:
        typer.echo(f"`simt study show {study}` has the errors; --retry simulates these points again.")
    typer.echo(f"results: {found.results}")


@app.command()
def show(
    study: Results,
    columns: Annotated[
        list[str] | None, typer.Option("--columns", metavar="EXPRESSION", help="Show this; repeatable.")
    ] = None,
    minimise: Annotated[
        list[str] | None,
        typer.Option(metavar="EXPRESSION", help="An axis of the Pareto front; repeatable."),
    ] = None,
    maximise: Annotated[list[str] | None, typer.Option(metavar="EXPRESSION", help="Likewise.")] = None,
    rows: Annotated[int, typer.Option(min=1, metavar="N", help="Points shown, the best first.")] = 20,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write a page with plots.")
    ] = None,
    csv: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the whole table.")] = None,
    json_: Json = None,
) -> None:
    """Show what a study has found so far: best points, Pareto front, failures."""
    from simt.study.analysis import objectives
    from simt.study.page import page
    from simt.study.report import Report

    for file in (output, csv):
        if file is not None:
            require_output(file)
    wanted = objectives(map(Expression, minimise or []), map(Expression, maximise or []))
    report = Report.of(Study.load(study), [Expression(text) for text in columns or []], wanted)
    console = Console(stderr=json_ == "-")
    header, found = report.points()
    data = {
        "points": records(header, found),
        "objectives": [x.name for x in report.wanted],
        "best": records(*report.front_table()) if report.front else [],
        "failures": report.failures.select(*report.identifying, "error").to_dicts(),
    }
    write_json(json_, data)
    _print(console, header, found[:rows], len(report.identifying))
    if len(found) > rows:
        console.print(f"... and {len(found) - rows:,} more (--rows)", highlight=False)
    if report.front and set(report.parameters) - {"seed"}:
        name = "Pareto front" if len(report.wanted) > 1 else "best"
        console.print(f"\n{name} across inputs: {', '.join(x.name for x in report.wanted)}", style="bold")
        header, rows_ = report.front_table()
        _print(console, header, rows_, len(header) - len(report.wanted))
    _failures(console, report.identifying, report.failures.to_dicts())
    if output is not None:
        write_text(output, page(report), StudyError)
        console.print(f"wrote {output}", highlight=False, soft_wrap=True)
    if csv is not None:
        write_text(csv, report.table.write_csv(), StudyError)
        console.print(f"wrote {csv}", highlight=False, soft_wrap=True)


@app.command()
def optimise(
    study: Described,
    quiet: record_options.Quiet = False,
    csv: Annotated[Path | None, typer.Option(metavar="FILE", help="Write all trials.")] = None,
    json_: Json = None,
) -> None:
    """Search the values of a study for the best ones, as its table `search` says.

    Stopped by Ctrl-C or in any other way, the same command goes on.
    """
    if csv is not None:
        require_output(csv)
    found = Study.load(study)
    with _kept(found):
        best = found.optimise(progress=not quiet)
    console = Console(stderr=json_ == "-")
    names = [objective.name for objective in best.objectives]
    counts = {"assignments": best.size, "simulated": best.simulated, "reused": best.reused}
    write_json(json_, {"trials": best.table().to_dicts(), **counts})
    if best.best:
        header = [*best.best[0].values, *names]
        _print(
            console,
            header,
            [[*x.values.values(), *x.objectives] for x in best.best],
            len(header) - len(names),
        )
    else:
        console.print("no assignment is within the constraints, or all have failed")
    failed = [x for x in best.trials if x.status == "failed"]
    outside = sum(x.status == "outside" for x in best.trials)
    console.print(
        f"\n{len(best.trials):,} of {best.size:,} assignments tried: {outside:,} outside the constraints, "
        f"{len(failed):,} failed; points: {best.simulated:,} simulated, {best.reused:,} taken over",
        highlight=False,
        soft_wrap=True,
    )
    for trial in failed[:3]:
        console.print(
            f"failed: {dict(trial.values)}: {trial.why}", style="red", highlight=False, soft_wrap=True
        )
    if csv is not None:
        write_text(csv, best.table().write_csv(), StudyError)
        console.print(f"wrote {csv}", highlight=False, soft_wrap=True)


@contextmanager
def _kept(study: Study) -> Iterator[None]:
    """Says what is kept where a signal stops the study."""
    try:
        with stoppable():
            yield
    except KeyboardInterrupt as stop:
        typer.echo(f"Stopped. Finished points are in {study.results}; the same command goes on.", err=True)
        raise typer.Exit(128 + getattr(stop, "number", signal.SIGINT)) from None


def _list(study: Study) -> None:
    for point in study.points:
        typer.echo(f"{point.digest[:12]}  {point.label}")
    typer.echo(f"{len(study.points):,} points")


def _print(console: Console, header: Sequence[str], rows: Sequence[Sequence[Any]], text: int) -> None:
    from simt.study.report import shown

    print_table(console, header, [[shown(value) for value in row] for row in rows], range(text))


def _failures(console: Console, names: Sequence[str], rows: Sequence[dict[str, Any]]) -> None:
    for row in rows[:5]:
        label = ", ".join(str(row[name]) for name in names)
        console.print(f"failed: {label}: {row['error']}", style="red", highlight=False, soft_wrap=True)
    if len(rows) > 5:
        console.print(f"... and {len(rows) - 5:,} more failed points", style="red", highlight=False)
