"""`simt check`: find what is wrong with a program's kernels."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simt import program
from simt.cli import COMMANDS, ending_by_signals, record_options
from simt.errors import LaunchError, ProgramFault
from simt.files import require_output, write_text
from simt.options import DEFAULT_GPU, ExecOptions, GpuOptions

if TYPE_CHECKING:
    from simt.check import Finding

EXAMPLES = """\b
Examples:
  simt check kernel.cu                       with kernel.py beside it: main(gpu, module)
  simt check program.py --check race,init    only these
  simt check reduce.cu -- -n 4096            with a main of its own
  simt check -- python train.py              an unmodified program, as by simt exec
  simt check gemm                            an example or a workload
  simt check kernel.cu --sarif check.sarif   for code hosts, which annotate the lines
"""
FOUND_EXIT = 1
"""Exit status where something was found."""
LIMIT = 20
"""Findings that are shown."""

app = typer.Typer(add_completion=False, context_settings={"help_option_names": ["-h", "--help"]})


@app.command(
    help=COMMANDS["check"],
    epilog=EXAMPLES,
    no_args_is_help=True,
    context_settings={"allow_interspersed_args": True},
)
def check(
    command: Annotated[
        list[str],
        typer.Argument(
            metavar="PROGRAM [ARGUMENTS]...",
            help="A program (.py, .cu, .ptx, .cubin), an example or a workload; or, after --, any command.",
        ),
    ],
    gpu: Annotated[str, typer.Option(help="GPU specification: a name or a TOML file.")] = DEFAULT_GPU,
    checks: Annotated[
        str,
        typer.Option(
            "--check", metavar="CHECKS", help="Some of race, init, sync, memory, leak, weak; or all."
        ),
    ] = "default",
    driver: Annotated[
        Path | None, typer.Option(metavar="FILE.py", help="Driver of a program not in Python.")
    ] = None,
    size: Annotated[int | None, typer.Option(help="Size of a workload.")] = None,
    timeout: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Stop after about this many seconds.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Findings that are shown.")] = LIMIT,
    suppressions: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Findings that are known, one rule a line.")
    ] = None,
    json_: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="Write the findings as JSON; - is stdout.")
    ] = None,
    sarif_: Annotated[Path | None, typer.Option("--sarif", metavar="FILE", help="Write a SARIF log.")] = None,
) -> None:
    report_on(
        command,
        {"gpu": gpu, "check": checks, "timeout": timeout},
        driver,
        size,
        json_,
        sarif_,
        suppressions,
        limit,
    )


def report_on(
    command: Sequence[str],
    options: Mapping[str, Any],
    driver: Path | None,
    size: int | None,
    json_: str | None,
    sarif_: Path | None = None,
    suppressions: Path | None = None,
    limit: int = LIMIT,
    *,
    is_command: bool = False,
) -> None:
    """Checks a program, writes what is found, and ends the command with FOUND_EXIT if that is anything.

    options: values of those of `simt exec`. is_command: it is run as by `simt exec`, whatever it is.
    """
    from simt.check import Suppressions, sarif, show

    known = None if suppressions is None else Suppressions(suppressions)
    for file in (sarif_, None if json_ in (None, "-") else Path(str(json_))):
        if file is not None:
            require_output(file)
    with ending_by_signals():
        found, fault, status = _findings(command, options, driver, size, is_command)
    if known is not None:
        found = known.apply(found)
    if sarif_ is not None:
        write_text(sarif_, json.dumps(sarif(found), indent=2))
    text = json.dumps([each.to_json() for each in found], indent=2)
    if json_ == "-":
        typer.echo(text)
    elif json_ is not None:
        write_text(Path(json_), text)
    show(found, lambda line: typer.echo(line, err=json_ == "-"), limit)
    if fault and not found:
        typer.echo(fault, err=True)
    if found or fault or status:
        raise typer.Exit(FOUND_EXIT if found or fault else status)


def _findings(
    command: Sequence[str],
    options: Mapping[str, Any],
    driver: Path | None,
    size: int | None,
    is_command: bool,
) -> tuple[list[Finding], str, int]:
    """What is found in a program, the fault that ended it, and its exit status."""
    from simt.gpu import GPU

    path = Path(command[0])
    known = path.suffix in program.SUFFIXES or not path.exists()
    place = program.find_program(path) if known and len(command) == 1 and not is_command else None
    if place is None or (isinstance(place, Path) and program.is_whole(place, driver)):
        return _of_process(command, options)
    device = GPU(**record_options.record_of(GpuOptions, options, "").keywords())
    fault = ""
    try:
        program.run_program(place, device, driver, size)
        device.synchronize()
    except ProgramFault as error:
        fault = str(error)
    except LaunchError as error:
        if not device.findings():
            raise
        fault = str(error)
    return device.findings(), fault, 0


def _of_process(command: Sequence[str], options: Mapping[str, Any]) -> tuple[list[Finding], str, int]:
    """The same of a program that is run as by `simt exec`, compiled before if it is a source."""
    from simt.cuda.nvcc import LEAST_ARCH, compiled_program
    from simt.exec import run
    from simt.spec import load_spec

    given = record_options.record_of(ExecOptions, options, "")
    path = Path(command[0])
    if path.suffix != ".cu":
        finished = run(command, **given.keywords())
    else:
        gpu = given.gpu if isinstance(given.gpu, str) else DEFAULT_GPU
        arch = load_spec(gpu).sm_version
        if arch < LEAST_ARCH:
            given = replace(given, set={"sm_version": str(LEAST_ARCH)})
        with compiled_program(path, max(arch, LEAST_ARCH)) as compiled:
            finished = run([compiled, *command[1:]], **given.keywords())
    return list(finished.findings), "", finished.status
