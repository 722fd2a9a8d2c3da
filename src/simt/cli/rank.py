"""`simt rank`: which configuration of a kernel is fastest on a GPU."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from simt.cli import COMMANDS, completion, ending_by_signals
from simt.errors import SimtError
from simt.files import require_output, write_text
from simt.names import printable
from simt.options import DEFAULT_GPU
from simt.rank import rank as ranked
from simt.run.overrides import override_texts

EXAMPLES = """\b
Examples:
  simt rank kernel.py --gpu b200               CONFIGURATIONS of the file, or those of its @triton.autotune
  kernel simt rank kernel.cu --parameter BLOCK=64,128,256 --parameter UNROLL=1,4
  simt rank kernel.py --gpu h100 --json best.json
  simt rank kernel.py --sample systematic      simulate less of each launch
"""

app = typer.Typer(add_completion=False, context_settings={"help_option_names": ["-h", "--help"]})


@app.command(help=COMMANDS["rank"], epilog=EXAMPLES, no_args_is_help=True)
def rank(
    program: Annotated[Path, typer.Argument(help="A .py file, or a .cu file with a driver.")],
    gpu: Annotated[
        str,
        typer.Option(help="A name listed by `simt gpus`, or a TOML file.", autocompletion=completion.gpus),
    ] = DEFAULT_GPU,
    parameter: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=V1,V2,...", help="A parameter and its values; several for all combinations."
        ),
    ] = None,
    driver: Annotated[Path | None, typer.Option(metavar="FILE.py", help="Driver of a .cu file.")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Override a value of the specification."),
    ] = None,
    sample: Annotated[
        str | None, typer.Option(metavar="METHOD", help="Simulate less of each launch.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check/--no-check", help="Compare the values of the configurations.")
    ] = True,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="Folder of the results. [default: FILE.rank]"),
    ] = None,
    workers: Annotated[
        list[str] | None,
        typer.Option(
            metavar="N|KEY=VALUE",
            help="Processes (by default one for each core), or workers of a study (kind=slurm).",
        ),
    ] = None,
    triton_cache: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Put the times of an autotuned Triton kernel into this cache of Triton's."
        ),
    ] = None,
    json_: Annotated[
        str | None,
        typer.Option("--json", metavar="FILE", help="Write the ranking as JSON; - is standard output."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Do not show progress.")] = False,
) -> None:
    if json_ and json_ != "-":
        require_output(Path(json_))
    with ending_by_signals():
        found = ranked(
            program,
            dict(map(_values, parameter)) if parameter else None,
            gpu,
            driver=driver,
            set=override_texts(set_),
            sample=sample,
            check=check,
            results=output,
            workers=_workers(workers) if workers else None,
            triton_cache=triton_cache,
            progress=not quiet,
        )
    text = json.dumps(found.to_json(), indent=1) + "\n"
    if json_ == "-":
        sys.stdout.write(text)
        return
    for line in str(found).split("\n"):
        typer.echo(printable(line))
    if json_ is not None:
        write_text(Path(json_), text)
        typer.echo(f"wrote {json_}")
    if triton_cache is not None:
        typer.echo(f"times are in {triton_cache}, for TRITON_CACHE_DIR and TRITON_CACHE_AUTOTUNING=1")


def _workers(texts: list[str]) -> dict[str, Any]:
    """The table `workers` of a study; `options.walltime=01:00:00` is a value of a table within it."""
    found: dict[str, Any] = {}
    for text in texts:
        key, equals, value = ("count", "=", text) if text.isdigit() else text.partition("=")
        if not equals or not key or not value:
            raise SimtError(f"--workers {text}: expected a number, or KEY=VALUE such as kind=slurm")
        *tables, last = key.split(".")
        into = found
        for name in tables:
            into = into.setdefault(name, {})
        into[last] = _value(value)
    return found


def _values(text: str) -> tuple[str, list[Any]]:
    name, equals, values = text.partition("=")
    if not equals or not name or not values:
        raise SimtError(f"--parameter {text}: expected NAME=V1,V2,... such as BLOCK=64,128")
    return name, [_value(value.strip()) for value in values.split(",")]


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
