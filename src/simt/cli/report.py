"""`simt report`: one self-contained HTML page, a trace for Perfetto, or tables on screen."""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from simt.cli import COMMANDS, ending_by_signals
from simt.errors import SimtError
from simt.files import write_text
from simt.names import printable
from simt.result import LaunchResult, Result, perfetto
from simt.result.compare import ResultComparison
from simt.result.compare_page import write as write_comparison
from simt.result.matrix import ResultMatrix
from simt.result.report import write

EXAMPLES = """\b
Examples:
  simt run traces/ --output out --timeline 500
  simt report out -o report.html
  simt report before after -o compare.html     two Results side by side
  simt report a100 h100 b200 -o matrix.html    kernels by Results
  simt report a100 h100 --parquet times.parquet
  simt report out --explain                    what removing each cause of its time would gain
  simt report out --lines                      the lines at which warps wait, on screen
  simt report out --perfetto trace.json        for ui.perfetto.dev, without the page
"""

app = typer.Typer(add_completion=False, context_settings={"help_option_names": ["-h", "--help"]})


@app.command(help=COMMANDS["report"], epilog=EXAMPLES, no_args_is_help=True)
def report(
    results: Annotated[
        list[Path],
        typer.Argument(
            metavar="RESULT...",
            help="What `simt run --output` saved: directories or .json files. Of two, the page shows them "
            "side by side; of more, the time of each kernel in each.",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The page to write.", show_default="report.html"),
    ] = None,
    lines: Annotated[
        bool,
        typer.Option(
            "--lines", help="Show the lines at which the warps of each kernel wait; without the page."
        ),
    ] = False,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Simulate the longest launch without each cause of its time, and show in the page what that "
            "gains.",
        ),
    ] = False,
    parquet: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a row per kernel and Result as Parquet; without the page."),
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            "--perfetto", metavar="FILE", help="Write a trace for ui.perfetto.dev; without the page."
        ),
    ] = None,
    json_: Annotated[
        str | None,
        typer.Option("--json", metavar="FILE", help="Write what is shown as JSON; - is standard output."),
    ] = None,
) -> None:
    if len(results) > 1:
        _refuse_several(len(results), {"--perfetto": trace, "--lines": lines, "--explain": explain})
    found = [Result.load(path) for path in results]
    shown: Any = None
    data: Any = None
    if lines:
        shown, data = _lines(found[0])
    elif len(found) == 1:
        data = found[0].to_json()
    elif len(found) == 2:
        shown = ResultComparison(*found)
        data = shown.to_json()
    if trace is not None:
        perfetto.write(found[0], trace)
    if parquet is not None or len(found) > 2:
        matrix = ResultMatrix(tuple(found))
        if len(found) > 2:
            shown, data = matrix, matrix.to_json()
        if parquet is not None:
            matrix.write_parquet(parquet)
    if json_ == "-":
        sys.stdout.write(json.dumps(data, indent=1) + "\n")
    else:
        if shown is not None:
            for text in str(shown).split("\n"):
                typer.echo(printable(text))
        if json_ is not None:
            write_text(Path(json_), json.dumps(data, indent=1) + "\n")
    page = output
    if page is None and (explain or not any((lines, trace, parquet, json_))):
        page = Path("report.html")
    if page is not None:
        _write_page(found, page, explain)
    if json_ != "-":
        for file in (trace, parquet, page):
            if file is not None:
                typer.echo(f"wrote {file}")


def _refuse_several(count: int, of_one: dict[str, Path | bool | None]) -> None:
    for option, given in of_one.items():
        if given:
            raise SimtError(f"{option} takes one Result, not {count}")


def _write_page(found: list[Result], page: Path, explain: bool) -> None:
    if explain:
        with ending_by_signals(), contextlib.redirect_stdout(sys.stderr):  # what programs print
            explanation = found[0].explain(report=lambda text: typer.echo(text, err=True))
        write(found[0], page, explanation)
    elif len(found) == 1:
        write(found[0], page)
    elif len(found) == 2:
        write_comparison(found[0], found[1], page)
    else:
        ResultMatrix(tuple(found)).write(page)


def _lines(result: Result) -> tuple[str, list[dict[str, Any]]]:
    """The lines of the longest launch of each kernel."""
    longest: dict[str, LaunchResult] = {}
    for launch in result.launches:
        if launch.name not in longest or launch.cycles > longest[launch.name].cycles:
            longest[launch.name] = launch
    launches = sorted(longest.values(), key=lambda x: -x.cycles)
    rows = [{"kernel": x.name, "launch": x.id, "lines": x.lines().to_json()} for x in launches]
    return "\n\n".join(str(x.lines()) for x in launches), rows
