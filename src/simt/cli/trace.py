"""`simt trace`: inspect, check, convert and generate traces."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from simt import trace as traces
from simt.cli import COMMANDS
from simt.errors import SimtError
from simt.files import write_text
from simt.trace.generate import KINDS, generate

app = typer.Typer(help=COMMANDS["trace"], no_args_is_help=True)

_out = Console()
_err = Console(stderr=True)

TracePath = Annotated[
    Path, typer.Argument(help="A kernelslist.g, a directory with one, a kernel trace, or a .simt store.")
]
Outside = Annotated[
    bool, typer.Option("--outside", help="Allow a launch list to name files outside its folder.")
]
Json = Annotated[
    str | None, typer.Option("--json", metavar="FILE", help="Write JSON to FILE instead; - is stdout.")
]


@contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except SimtError as error:
        _say("error", "red", str(error))
        raise typer.Exit(2) from error


def _say(kind: str, colour: str, text: str) -> None:
    _err.print(Text.assemble((f"{kind}: ", colour), text), soft_wrap=True)


def _write_json(target: str, value: object) -> None:
    text = json.dumps(value, indent=2)
    if target == "-":
        typer.echo(text)
    else:
        write_text(Path(target), text + "\n")


def _warn(warnings: list[str]) -> None:
    for warning in warnings:
        _say("warning", "yellow", warning)


def _xyz(size: tuple[int, int, int]) -> str:
    return "x".join(map(str, size))


@app.command()
def info(
    path: TracePath,
    counts: Annotated[
        bool, typer.Option("--counts", help="Also count instructions, which reads the whole trace.")
    ] = False,
    json_file: Json = None,
    outside: Outside = False,
) -> None:
    """Show the launches and copies of a trace.

    Examples:

      simt trace info traces/kernelslist.g

      simt trace info gemm.simt --counts --json -
    """
    with _errors():
        trace = traces.open_trace(path, outside)
        commands = [_describe(c, counts) for c in trace.commands]
    if json_file is not None:
        _write_json(json_file, {"path": str(trace.path), "commands": commands, "warnings": trace.warnings})
        return
    table = Table(title=str(trace.path))
    for heading in ("id", "name", "sm", "grid", "block", "shared", "registers", "stream"):
        table.add_column(heading, justify="left" if heading == "name" else "right", overflow="fold")
    if counts:
        table.add_column("warp instructions", justify="right")
    copied = sum(c.bytes for c in trace.commands if isinstance(c, traces.Copy))
    for c in commands:
        if "kernel" in c:
            k = c["kernel"]
            row = [k["id"], k["name"], k["sm_version"], _xyz(k["grid"]), _xyz(k["block"])]
            row += [k["shared_bytes"], k["registers"], k["stream"]]
            if counts:
                row.append(f"{k['counts']['instructions']:,}")
            table.add_row(*(Text(str(cell)) for cell in row))
    _out.print(table)
    copies = len(commands) - len(trace.kernels)
    _out.print(f"{len(trace.kernels)} launches, {copies} copies to the device ({copied:,} bytes)")
    _warn(trace.warnings)


def _describe(command: traces.Copy | traces.TraceKernel, counts: bool) -> dict[str, Any]:
    if isinstance(command, traces.Copy):
        return {"copy": {"address": command.address, "bytes": command.bytes}}
    names = ("id", "name", "grid", "block", "shared_bytes", "registers", "sm_version", "stream")
    described = {name: getattr(command, name) for name in names}
    described["path"] = str(command.path)
    if counts:
        described["counts"] = command.counts
    return {"kernel": described}


@app.command()
def check(path: TracePath, json_file: Json = None, outside: Outside = False) -> None:
    """Read a trace from beginning to end and report problems of every kernel.

    Exits with status 1 if a kernel cannot be read. Empty warps and thread blocks are noted only.

    Examples:

      simt trace check traces/

      simt trace check kernel-1.traceg.xz --json report.json
    """
    with _errors(), _err.status("checking") as status:

        def show(report: traces.KernelReport) -> None:
            status.update(f"checked {report.path.name}")

        reports, warnings = traces.check_trace(path, show, outside)
    bad = sum(r.problem is not None for r in reports)
    if json_file is not None:
        kernels = [
            {
                "path": str(r.path),
                "id": r.id,
                "name": r.name,
                "counts": r.counts,
                "problem": r.problem,
                "notes": r.notes,
            }
            for r in reports
        ]
        _write_json(json_file, {"kernels": kernels, "warnings": warnings, "problems": bad})
    else:
        table = Table(title=str(path))
        for heading in ("id", "name", "thread blocks", "warps", "warp instructions", "result"):
            justify = "left" if heading in ("name", "result") else "right"
            table.add_column(heading, justify=justify, overflow="fold")  # type: ignore[arg-type]
        for r in reports:
            numbers = [f"{r.counts[n]:,}" if r.counts else "-" for n in ("ctas", "warps", "instructions")]
            verdict = Text(r.problem, "red") if r.problem else Text("good", "green")
            verdict.append("".join(f"\n{note}" for note in r.notes), "default")
            table.add_row(str(r.id), Text(r.name), *numbers, verdict)
        _out.print(table)
        _warn(warnings)
    if bad:
        _say("error", "red", f"{bad} of {len(reports)} kernels cannot be read")
        raise typer.Exit(1)


@app.command()
def convert(
    source: TracePath,
    destination: Annotated[Path, typer.Argument(help="The .simt file to write; with --text, a directory.")],
    text: Annotated[bool, typer.Option("--text", help="Write tracer version 5 text instead.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")] = False,
    outside: Outside = False,
) -> None:
    """Write a trace into one trace store, or a store back as text.

    Examples:

      simt trace convert traces/kernelslist.g gemm.simt

      simt trace convert gemm.simt text-again/ --text
    """
    with _errors():
        if text:
            traces.to_text(source, destination)
        elif quiet:
            traces.convert(source, destination, None, outside)
        else:
            with _progress() as advance:
                traces.convert(source, destination, advance, outside)
    if not quiet:
        _out.print(f"wrote {destination}", highlight=False)


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    columns = (TextColumn("converting"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    progress = Progress(*columns, console=_err, transient=True)
    tasks: list[TaskID] = []  # empty until there is progress to show

    def advance(done: int, total: int) -> None:
        if not tasks:
            tasks.append(progress.add_task("converting"))
            progress.start()
        progress.update(tasks[0], completed=done, total=total)

    try:
        yield advance
    finally:
        if tasks:
            progress.stop()


@app.command(name="generate")
def generate_command(
    directory: Annotated[Path, typer.Argument(help="Directory to write the trace to.")],
    kinds: Annotated[list[str], typer.Argument(help=f"Kernels, in this order: {', '.join(KINDS)}.")],
    sm: Annotated[int, typer.Option(help="SM version: 70, 75, 80, 86, 89 or 90.")] = 80,
    size: Annotated[
        int | None,
        typer.Option(help="; ".join(f"{name}: {meaning}" for name, (_, _, meaning) in KINDS.items())),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of random accesses.")] = 0,
    compression: Annotated[str, typer.Option(help="none, xz, gz or zst.")] = "xz",
) -> None:
    """Generate a trace of typical kernels.

    Examples:

      simt trace generate demo/ streaming stencil gemm gather

      simt trace generate big/ gemm --sm 90 --size 2048
    """
    with _errors():
        path = generate(kinds, directory, sm=sm, size=size, seed=seed, compression=compression)
    _out.print(f"wrote {path}", highlight=False)
