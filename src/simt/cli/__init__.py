"""The command `simt`. One file per command; nothing here computes anything."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from simt.errors import SimtError
from simt.version import __version__

COMMANDS = (
    "run",
    "report",
    "sample",
    "correlate",
    "bench",
    "tune",
    "gpus",
    "trace",
    "debug",
)  # each a file with an `app`


class _Commands(TyperGroup):
    """Imports a command's file when it is used: `simt sample` must not wait for, or need, the engine."""

    def list_commands(self, ctx: Any) -> list[str]:
        for name in COMMANDS:
            self.get_command(ctx, name)
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            self.list_commands(ctx)  # so that the message can suggest one
        elif cmd_name not in self.commands:
            command = typer.main.get_command(import_module(f"simt.cli.{cmd_name}").app)
            command.name = cmd_name
            self.commands[cmd_name] = command
        return self.commands.get(cmd_name)


app = typer.Typer(
    name="simt",
    cls=_Commands,
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
