"""`simt exec`: run an unmodified CUDA program."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from simt.cli import LIMIT_EXIT, ending_by_signals, record_options
from simt.cli.tables import show_result
from simt.exec import ProgramInterrupted, numbered, run
from simt.files import require_output, write_text
from simt.options import ExecOptions
from simt.result.files import dump
from simt.run.interruption import deferred_stop
from simt.run.record import require_place

EXAMPLES = """\b
Examples:
  simt exec -- ./program --size 1024         compiled by nvcc
  simt exec --gpu a100 -- python train.py    Python: cuda-python, Numba, Triton
  simt exec --functional -- ./program        values only: about a thousand times as fast
  simt exec --output out -- ./program        then: simt report out
  simt exec --sample pkp -- ./program        stop each launch when its IPC has settled
  simt exec --profile p.parquet -- ./program    then: simt sample p.parquet --output plan.json
  simt exec --gpu h100,h100 -- ./program     two devices
  simt exec --checkpoint-at launch=1200 --checkpoint c -- ./program    execute up to launch 1200, save
  simt exec --checkpoint-at launch=7,cta=64,instruction=500 --checkpoint c -- ./program
  simt exec --resume-from c --gpu a100 -- ./program                    time the rest, on any GPU
"""

app = typer.Typer(add_completion=False, context_settings={"help_option_names": ["-h", "--help"]})


@app.command(
    epilog=EXAMPLES, context_settings={"allow_interspersed_args": False, "ignore_unknown_options": False}
)
@record_options.takes(ExecOptions)
def exec_(
    command: Annotated[list[str], typer.Argument(metavar="-- PROGRAM [ARGUMENTS]...")],
    energies: record_options.Energies = None,
    sample_set: record_options.SampleSet = None,
    full: record_options.Full = None,
    json_: Annotated[
        Path | None,
        typer.Option(
            "--json",
            metavar="FILE",
            help="Write the Result as one JSON object; further ones to numbered files.",
        ),
    ] = None,
    quiet: record_options.Quiet = False,
    **options: Any,
) -> None:
    """Run an unmodified CUDA program without a GPU: its values, cycles, and where the cycles go.

    Its calls go to simt's libcuda and libcudart in place of NVIDIA's. Its kernels must be present as PTX
    (nvcc -gencode arch=compute_80,code=compute_80), or as machine code that the GPU executes.
    """
    values = record_options.read(options, sample_set, energies, full)
    values["progress"] = not quiet and sys.stderr.isatty()
    if values["check"]:
        from simt.cli.check import report_on

        return report_on(command, values, None, None, None if json_ is None else str(json_), is_command=True)
    output, gpu = values["output"], values["gpu"]
    values["gpu"] = gpu.split(",") if gpu is not None else None
    if output is not None:
        require_place(output)
    for target in (json_, values["profile"]):
        if target is not None:
            require_output(target)
    run_to_end(command, record_options.record_of(ExecOptions, values, ""), full, json_, quiet)


def run_to_end(
    command: Sequence[str | os.PathLike[str]],
    options: ExecOptions,
    full: Path | None,
    json_: Path | None,
    quiet: bool,
) -> None:
    """Runs a program, shows and writes its Results, and ends the command with the program's exit status."""
    number, stopped, status = 0, "", 0
    with ending_by_signals():
        try:
            finished = run(command, **options.keywords())
            results, stopped, status = finished.results, finished.stopped, finished.status
        except ProgramInterrupted as stop:
            results, number = stop.results, stop.number
            typer.echo("Interrupted.", err=True)
        with deferred_stop():
            for found, place, file in zip(results, numbered(options.output), numbered(json_), strict=False):
                result = record_options.compared(found, full, options.plan)
                if place is not None and result is not found:
                    result.save(place)
                if not quiet:
                    show_result(result, Console(stderr=True))
                if file is not None:
                    write_text(Path(file), dump(result.to_json()))
    if number:
        raise typer.Exit(128 + number)
    if stopped:
        typer.echo(f"Stopped: {stopped} reached.", err=True)
        raise typer.Exit(LIMIT_EXIT)
    if status:
        raise typer.Exit(status if status > 0 else 128 - status)
