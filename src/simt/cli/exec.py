"""`simt exec`: run a CUDA program as it is."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from simt.cli import LIMIT_EXIT
from simt.cli.tables import show_result
from simt.exec import run
from simt.files import require_output, write_text
from simt.result.files import dump
from simt.run.interruption import stoppable
from simt.run.overrides import override_texts
from simt.run.record import require_place

EXAMPLES = """\b
Examples:
  simt exec -- ./program --size 1024         compiled by nvcc, with -cudart shared
  simt exec --gpu a100 -- python train.py    Python: cuda-python, Numba, CuPy, Triton
  simt exec --functional -- ./program        values only: about a thousand times as fast
  simt exec --output out -- ./program        then: simt report out
  simt exec --gpu h100,h100 -- ./program     two devices
"""

app = typer.Typer()


@app.command(
    epilog=EXAMPLES, context_settings={"allow_interspersed_args": False, "ignore_unknown_options": False}
)
def exec_(
    command: Annotated[list[str], typer.Argument(metavar="-- PROGRAM [ARGUMENTS]...")],
    gpu: Annotated[
        str, typer.Option(help="A GPU's name or TOML file; several, with commas, for several devices.")
    ] = "h100",
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change the specification; repeatable."),
    ] = None,
    functional: Annotated[
        bool, typer.Option("--functional", help="Compute only the program's values, without timing.")
    ] = False,
    threads: Annotated[int, typer.Option(min=1, help="Host threads. Results do not depend on them.")] = 1,
    max_cycles: Annotated[
        int | None, typer.Option(min=1, help="Stop after about this many core cycles.")
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(min=0.001, metavar="SECONDS", help="Stop after about this many seconds.")
    ] = None,
    timeline: Annotated[
        int | None, typer.Option(min=1, metavar="CYCLES", help="Sample a timeline at this interval.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Save the Result: a directory (Parquet, JSON) or a .json file."),
    ] = None,
    json_: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the Result as one JSON object.")
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Show neither progress nor the table.")
    ] = False,
) -> None:
    """Run a CUDA program as it is, without a GPU: its values, cycles, and where they go.

    The program finds simt's libcuda and libcudart in place of NVIDIA's. Kernels must be there as PTX, and the
    CUDA runtime as a shared library: nvcc -cudart shared -gencode arch=compute_80,code=compute_80.
    """
    if output is not None:
        require_place(output)
    if json_ is not None:
        require_output(json_)
    try:
        with stoppable():
            finished = run(
                command,
                gpu.split(","),
                output=output,
                functional=functional,
                set=override_texts(set_),
                threads=threads,
                max_cycles=max_cycles,
                timeout=timeout,
                timeline=timeline,
                progress=not quiet and sys.stderr.isatty(),
            )
    except KeyboardInterrupt as stop:
        typer.echo("Interrupted.", err=True)
        raise typer.Exit(128 + getattr(stop, "number", signal.SIGINT)) from None
    for result in finished.results:
        if not quiet:
            show_result(result, Console(stderr=True))
        if json_ is not None:
            write_text(json_, dump(result.to_json()))
    if finished.stopped:
        typer.echo(f"Stopped: {finished.stopped} reached.", err=True)
        raise typer.Exit(LIMIT_EXIT)
    if finished.status:
        raise typer.Exit(finished.status if finished.status > 0 else 128 - finished.status)
