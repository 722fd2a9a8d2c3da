"""The command `simt`. One file per command; the computation is elsewhere."""

from __future__ import annotations

import contextlib
import io
import os
import stat
import sys
import warnings
from collections.abc import Iterator
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from simt.errors import SimtError
from simt.extras import explained
from simt.names import printable
from simt.version import __version__

# Each is a file with an `app`; the text is that of `simt --help`.
COMMANDS = {
    "run": "Simulate the launches of a trace or a program, and report where the time goes.",
    "exec": "Run an unmodified CUDA program, compiled or in Python.",
    "check": "Find races, uninitialised memory, misused barriers, memory errors and leaks, without a GPU.",
    "power": "Show energy and power of a Result; measure and fit energies on a real GPU.",
    "explain": "Say why a launch takes its time, and what removing each cause would gain.",
    "report": "Make an HTML page with plots from a saved Result. It needs no network.",
    "sample": "Choose which launches of a profiled program to simulate, with weights and an error bound.",
    "correlate": "Compare simulated with measured counters, kernel by kernel.",
    "study": "Run many simulations described in one file, on one machine or a cluster; search for the best.",
    "rank": "Rank the configurations of a kernel by their simulated times.",
    "model": "Predict the time, energy and memory of a whole language model on a GPU.",
    "validate": "Run programs whose times on real GPUs are known, and compare.",
    "bench": "Run microbenchmarks, each of which determines one parameter of a GPU.",
    "tune": "Make a GPU's specification from measured microbenchmarks.",
    "gpus": "Show, compare, derive and import GPU specifications.",
    "policy": "Build warp schedulers, replacement policies and other policies of your own in C++.",
    "trace": "Inspect, check, convert and generate traces.",
    "sass": "Show the machine code of a program, with its control bits.",
    "debug": "Find where two executions of a program diverge.",
    "cache": "Show or clear the cache of converted traces and compiled programs.",
}

LIMIT_EXIT = 3
"""Exit status where a limit of a run was reached."""


class _Commands(TyperGroup):
    """Imports a command's file only when it is used, so that `simt --help` is fast."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in COMMANDS and cmd_name not in self.commands:
            self.commands[cmd_name] = TyperCommand(cmd_name, help=COMMANDS[cmd_name])
        return self.commands.get(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        for name in COMMANDS:  # so that the message about an unknown command can suggest another
            self.get_command(ctx, name)
        if (name := args[0]) in COMMANDS:
            command = typer.main.get_command(import_module(f"simt.cli.{name}").app)
            command.name = name
            self.commands[name] = command
        return super().resolve_command(ctx, args)


app = typer.Typer(
    name="simt",
    cls=_Commands,
    help="A fast, detailed, deterministic GPU simulator: programs or traces in, cycles and reasons out.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@contextlib.contextmanager
def ending_by_signals() -> Iterator[None]:
    """Signals that stop the command end it with one line and 128 + their number as the exit status."""
    from simt.run.interruption import number_of, stoppable

    try:
        with stoppable():
            yield
    except KeyboardInterrupt as stop:
        typer.echo("Interrupted.", err=True)
        raise typer.Exit(128 + number_of(stop)) from None


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


class _Pipe(io.FileIO):
    """Standard output to a pipe. Once the reader, such as head, has gone, further output is dropped: the
    command
    still does its work and saves it.
    """

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            with open(os.devnull, "wb") as nowhere:
                os.dup2(nowhere.fileno(), self.fileno())
            return len(data)


def _outlive_readers() -> None:
    output = sys.stdout
    with contextlib.suppress(OSError, ValueError):  # no standard output, or one that is not a file
        if stat.S_ISFIFO(os.fstat(output.fileno()).st_mode):
            pipe = io.BufferedWriter(_Pipe(output.fileno(), "w", closefd=False))
            sys.stdout = io.TextIOWrapper(pipe, output.encoding, output.errors)


def _warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    return f"warning: {printable(str(message))}\n"


_CHECK_NAMES = frozenset(("race", "init", "sync", "memory", "leak", "weak", "all"))


def with_values(arguments: list[str]) -> list[str]:
    """`--check` alone asks for all checks; of `simt check`, it has a value."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    given: list[str] = []
    for a in arguments[:end]:
        if given and given[-1] == "--check":
            of_check = arguments[0] == "check" and not a.startswith("-")
            if of_check or _CHECK_NAMES.issuperset(a.split(",")):
                given[-1] = f"--check={a}"
                continue
            given[-1] = "--check=default"
        given.append(a)
    if given and given[-1] == "--check":
        given[-1] = "--check=default"
    return given + arguments[end:]


def main() -> None:
    """Runs the command line. Bad input gives one line on standard error and exit status 2."""
    _outlive_readers()
    warnings.formatwarning = _warning
    arguments = sys.argv[1:]
    debug = "--debug" in arguments
    arguments = with_values(arguments)
    try:
        app([a for a in arguments if a != "--debug"], prog_name="simt")
    except (SimtError, ModuleNotFoundError) as problem:
        error = explained(problem, "this") if isinstance(problem, ModuleNotFoundError) else problem
        if debug or not isinstance(error, SimtError):
            raise
        typer.secho("error: ", fg="red", bold=True, err=True, nl=False)
        typer.echo(printable(str(error)), err=True)
        sys.exit(2)
