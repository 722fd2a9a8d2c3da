"""`simt exec`: run an unmodified CUDA program."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from simt.cli import LIMIT_EXIT, ending_by_signals, run_options, sampling_options
from simt.cli.tables import show_result
from simt.exec import ProgramInterrupted, numbered, run
from simt.files import require_output, write_text
from simt.result.files import dump
from simt.run.interruption import deferred_stop
from simt.run.overrides import override_texts
from simt.run.record import require_place

EXAMPLES = """\b
Examples:
  simt exec -- ./program --size 1024         compiled by nvcc, with -cudart shared
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
def exec_(
    command: Annotated[list[str], typer.Argument(metavar="-- PROGRAM [ARGUMENTS]...")],
    gpu: Annotated[
        str | None,
        typer.Option(
            help="Name or TOML file of a GPU; comma-separated for several devices. "
            "[default: h100, or that of the checkpoint]",
        ),
    ] = None,
    set_: run_options.Set = None,
    functional: run_options.Functional = False,
    code: run_options.Code = "ptx",
    tensor_arithmetic: run_options.TensorArithmetic = "hardware",
    threads: run_options.Threads = 1,
    max_cycles: run_options.MaxCycles = None,
    timeout: run_options.Timeout = None,
    timeline: run_options.Timeline = None,
    power: run_options.Power = False,
    energies: run_options.Energies = None,
    clock: run_options.Clock = None,
    sample: run_options.Sample = None,
    sample_set: run_options.SampleSet = None,
    plan: run_options.Plan = None,
    launches: run_options.Launches = None,
    capture_range: run_options.CaptureRange = None,
    full: run_options.Full = None,
    checkpoint_at: Annotated[
        str | None,
        typer.Option(
            metavar="launch=N[,cta=M][,instruction=I[,ctas=T]]",
            help="Execute the launches before number N (from 1) without timing, its CTAs before M (from 0), "
            "and I instructions of each warp of the next T CTAs; write a checkpoint, and end the program.",
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The new directory of that checkpoint.")
    ] = None,
    resume_from: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Run the program from a checkpoint: earlier launches are not executed again; the rest is "
            "timed.",
        ),
    ] = None,
    output: run_options.Output = None,
    profile: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.parquet",
            help="Execute without timing, and save what each launch executes, for `simt sample`; further "
            "devices and processes have numbered files.",
        ),
    ] = None,
    json_: Annotated[
        Path | None,
        typer.Option(
            "--json",
            metavar="FILE",
            help="Write the Result as one JSON object; further ones to numbered files.",
        ),
    ] = None,
    quiet: run_options.Quiet = False,
) -> None:
    """Run an unmodified CUDA program without a GPU: its values, cycles, and where the cycles go.

    The program loads simt's libcuda and libcudart in place of NVIDIA's. Its kernels must be present as PTX,
    or as machine code that the GPU executes, and the CUDA runtime as a shared library: nvcc -cudart shared
    -gencode arch=compute_80,code=compute_80.
    """
    sampling = sampling_options.parse(sample, sample_set, plan, None, 0, full)
    if output is not None:
        require_place(output)
    for target in (json_, profile):
        if target is not None:
            require_output(target)
    number, stopped, status = 0, "", 0
    with ending_by_signals():
        try:
            finished = run(
                command,
                gpu.split(",") if gpu is not None else None,
                checkpoint_at=checkpoint_at,
                checkpoint=checkpoint,
                resume_from=resume_from,
                output=output,
                profile=profile,
                functional=functional,
                code=code,
                tensor_arithmetic=tensor_arithmetic,
                set=override_texts(set_),
                threads=threads,
                max_cycles=max_cycles,
                timeout=timeout,
                timeline=timeline,
                power=energies or power,
                clock=clock,
                controller=sampling.controller,
                plan=sampling.plan,
                launches=launches,
                capture_range=capture_range,
                progress=not quiet and sys.stderr.isatty(),
            )
            results, stopped, status = finished.results, finished.stopped, finished.status
        except ProgramInterrupted as stop:
            results, number = stop.results, stop.number
            typer.echo("Interrupted.", err=True)
        with deferred_stop():
            for found, place, file in zip(results, numbered(output), numbered(json_), strict=False):
                result = sampling.compared(found)
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
