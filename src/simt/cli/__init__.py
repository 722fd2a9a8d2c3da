"""The command `simt`. One file per command; nothing here computes anything."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from simt.errors import SimtError
from simt.version import __version__

app = typer.Typer(
    name="simt",
    help="A fast, detailed, deterministic GPU simulator: SASS traces in, cycles and their reasons out.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"simt {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show tracebacks; works with every command.")
    ] = False,
) -> None:
    pass


def _add_commands() -> None:
    from simt.cli import gpus, report, run, trace

    app.command("run", epilog=run.EXAMPLES, no_args_is_help=True)(run.run)
    app.command("report", epilog=report.EXAMPLES, no_args_is_help=True)(report.report)
    app.add_typer(gpus.app, name="gpus")
    app.add_typer(trace.app, name="trace")


_add_commands()


def main() -> None:
    """Runs the command line. Bad input is one line on standard error and exit status 2."""
    arguments = sys.argv[1:]
    debug = "--debug" in arguments
    try:
        app([a for a in arguments if a != "--debug"], prog_name="simt")
    except SimtError as error:
        if debug:
            raise
        typer.secho("error: ", fg="red", bold=True, err=True, nl=False)
        typer.echo(str(error), err=True)
        sys.exit(2)
    except BrokenPipeError:  # the reader of a pipe, such as head, has gone
        sys.stderr.close()
        sys.exit(1)
