"""`simt report`: one self-contained HTML page, or a trace for Perfetto."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from simt.cli import COMMANDS
from simt.errors import SimtError
from simt.result import Result, perfetto
from simt.result.compare_page import write as write_comparison
from simt.result.report import write

EXAMPLES = """\b
Examples:
  simt run traces/ --output out --timeline 500
  simt report out -o report.html
  simt report before after -o compare.html     two Results side by side
  simt report out --perfetto trace.json        for ui.perfetto.dev, without the page
"""

app = typer.Typer(add_completion=False, context_settings={"help_option_names": ["-h", "--help"]})


@app.command(help=COMMANDS["report"], epilog=EXAMPLES, no_args_is_help=True)
def report(
    result: Annotated[
        Path, typer.Argument(help="What `simt run --output` saved: a directory or a .json file.")
    ],
    other: Annotated[
        Path | None, typer.Argument(help="Another Result: the page then shows the two side by side.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The page to write.", show_default="report.html"),
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option("--perfetto", metavar="FILE", help="Write a trace for ui.perfetto.dev."),
    ] = None,
) -> None:
    if trace is not None:
        if other is not None:
            raise SimtError("--perfetto takes one Result: write a trace of each")
        perfetto.write(Result.load(result), trace)
        typer.echo(f"wrote {trace}")
        if output is None:
            return
    output = output or Path("report.html")
    if other is not None:
        typer.echo(str(write_comparison(Result.load(result), Result.load(other), output)))
    else:
        write(Result.load(result), output)
    typer.echo(f"wrote {output}")
