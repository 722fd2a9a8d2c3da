"""`simt explain`: why a launch takes its time, and what would help."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from simt.cli import COMMANDS, completion, ending_by_signals
from simt.errors import SimtError
from simt.explain import CAUSES
from simt.explain import explain as explained
from simt.files import require_output, write_text
from simt.names import printable
from simt.options import DEFAULT_GPU
from simt.result import Result

EXAMPLES = """\b
Examples:
  simt explain bank_conflicts --gpu a100       a ready example
  simt explain program.py --launch 3 -o why.html
  simt explain program.cu --gpu h100 1024      with its own main: compiled, and executed for each cause
  simt explain -- python train.py --steps 2    any command, as by simt exec; also an executable file
  simt explain out                             what `simt run --output out` saved; its program is run again
  simt explain traces/kernelslist.g --gpu qv100
  simt explain kernel.cu --cause "bank conflicts" --cause barriers --json -
"""


@contextlib.contextmanager
def _printing_to_stderr() -> Iterator[None]:
    """What programs print meanwhile, in this process or one of their own, goes to standard error."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


app = typer.Typer(add_completion=False, context_settings={"help_option_names": ["-h", "--help"]})


@app.command(help=COMMANDS["explain"], epilog=EXAMPLES, no_args_is_help=True)
def explain(
    target: Annotated[
        Path,
        typer.Argument(
            metavar="RESULT|PROGRAM",
            autocompletion=completion.programs,
            help="A saved Result, a program, an example, a workload, a trace, an executable file.",
        ),
    ],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            help="Arguments of a .cu program with its own main or of an executable file; after -- if they "
            "begin with -."
        ),
    ] = None,
    gpu: Annotated[
        str | None,
        typer.Option(
            help="GPU of a program or trace: a name or a TOML file.",
            show_default=DEFAULT_GPU,
            autocompletion=completion.gpus,
        ),
    ] = None,
    launch: Annotated[int | None, typer.Option(help="Id of the launch; by default the longest.")] = None,
    cause: Annotated[
        list[str] | None,
        typer.Option(help=f"Remove only this cause; several. One of {', '.join(c.name for c in CAUSES)}."),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            autocompletion=completion.fields,
            help="Override a value of the specification.",
        ),
    ] = None,
    code: Annotated[str, typer.Option(help="What is executed where there is a choice: ptx or sass.")] = "ptx",
    driver: Annotated[
        Path | None, typer.Option(metavar="FILE.py", help="Driver of a program not in Python.")
    ] = None,
    size: Annotated[int | None, typer.Option(help="Size of a workload.")] = None,
    threads: Annotated[int, typer.Option(help="Host threads.")] = 1,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE.html", help="Also write a page.")
    ] = None,
    json_: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="Write JSON; - is standard output.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Do not say what is simulated.")] = False,
) -> None:
    names = {c.name for c in CAUSES}
    if unknown := [name for name in cause or () if name not in names]:
        raise SimtError(f"--cause {unknown[0]!r}: expected one of {', '.join(sorted(names))}")
    if code not in ("ptx", "sass"):
        raise SimtError(f"--code {code}: expected ptx or sass")
    for file in (output, Path(json_) if json_ and json_ != "-" else None):
        if file is not None:
            require_output(file)
    of_result = (
        any((target / name).exists() for name in ("result.json", "result.journal"))
        or target.suffix == ".json"
    )
    if of_result and (gpu or set_ or driver or size or arguments):
        raise SimtError(
            f"{target}: a Result has its GPU and program: leave out --gpu, --set, --driver, --size and "
            "arguments"
        )
    with ending_by_signals(), _printing_to_stderr():
        found = explained(
            Result.load(target) if of_result else target,
            gpu or DEFAULT_GPU,
            arguments=arguments or (),
            launch=launch,
            set=set_,
            code="sass" if code == "sass" else "ptx",
            driver=driver,
            size=size,
            threads=threads,
            causes=cause,
            report=None if quiet else lambda text: typer.echo(text, err=True),
        )
    if output is not None:
        write_text(output, found.page())
    if json_ == "-":
        sys.stdout.write(json.dumps(found.to_json(), indent=1) + "\n")
        return
    for line in str(found).split("\n"):
        typer.echo(printable(line))
    if json_ is not None:
        write_text(Path(json_), json.dumps(found.to_json(), indent=1) + "\n")
    if output is not None:
        typer.echo(f"wrote {output}")
