"""`simt tune`: a specification from measured microbenchmarks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from simt.cli import COMMANDS
from simt.cli.tables import print_table
from simt.errors import TuneError
from simt.files import require_output, write_text
from simt.progress import reporting
from simt.spec import write_toml
from simt.tuner import report as reports
from simt.tuner import tune
from simt.tuner.search import with_blocks
from simt.tuner.tune import BUDGET, Tuning

EXAMPLES = """\b
Examples:
  simt bench run --device 0 --json v100.json        measure (here, or on the machine with the GPU)
  simt tune v100.json -o my-v100.toml               nearest GPU, and the device's own attributes
  simt tune v100-sheet.toml v100.json -o my-v100.toml --report v100.html
  simt tune sheet.toml run1.json run2.json run3.json -o my.toml    several runs: their median and spread
  simt tune sheet.toml a100.json -o my.toml --base qv100 --without copy_bandwidth --without atomics
  simt tune sheet.toml a100.json -o my.toml --search dram.scheduler_queue=16,32,64
  simt tune sheet.toml a100.json -o my.toml --json - | jq '.parameters[] | select(.how == "measured")'

A description is TOML; every line is optional:

  sm_version = 80               memory = "HBM2E"          l2_bytes = 41943040
  sms = 108                     memory_bus_bits = 5120    l1_bytes = 196608
  core_mhz = 1410               memory_gbs = 2039         shared_bytes_per_sm = 167936
"""

app = typer.Typer(add_completion=False, context_settings={"help_option_names": ["-h", "--help"]})


@app.command("tune", help=COMMANDS["tune"], epilog=EXAMPLES, no_args_is_help=True)
def tune_(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="[DESCRIPTION] RECORDS...",
            help="A hardware description (.toml), and records of one device from `simt bench run --json`.",
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The specification to write, a TOML file.")],
    base: Annotated[
        str | None,
        typer.Option(help="The GPU to start from: a name or a TOML file; by default, the nearest."),
    ] = None,
    without: Annotated[
        list[str] | None, typer.Option(help="A microbenchmark or group to ignore; repeatable.")
    ] = None,
    search: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH[=A,B]", help="Also search this choice; repeatable."),
    ] = None,
    no_search: Annotated[
        bool, typer.Option("--no-search", help="Determine only what is measured directly.")
    ] = False,
    budget: Annotated[
        int, typer.Option(min=1, help="Maximum number of simulated values in the search.")
    ] = BUDGET,
    threads: Annotated[int, typer.Option(min=1, help="Host threads. Results do not depend on them.")] = 1,
    report: Annotated[
        list[Path] | None, typer.Option(help="Write a report: .html or .md; repeatable.")
    ] = None,
    json_: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="Write the report as JSON; - is stdout.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show neither progress nor tables.")] = False,
) -> None:
    descriptions = [file for file in files if file.suffix == ".toml"]
    records = [file for file in files if file.suffix != ".toml"]
    if len(descriptions) > 1:
        raise TuneError(f"{descriptions[1]}: a second description; give one .toml file")
    if output.suffix != ".toml":
        raise TuneError(f"{output}: found the ending {output.suffix!r}, expected .toml")
    for path in report or []:
        reports.require_format(path)
    for target in (output, *(report or []), *([Path(json_)] if json_ and json_ != "-" else [])):
        require_output(target)
    if no_search and search:
        raise TuneError("--search and --no-search contradict each other")
    blocks = [] if no_search else with_blocks(search or [])
    with reporting(not quiet) as show:
        found = tune(
            descriptions[0] if descriptions else None,
            records,
            name=output.stem,
            base=base,
            without=without or (),
            search=blocks,
            budget=budget,
            threads=threads,
            progress=show,
        )
    write_toml(found.spec, output)
    for path in report or []:
        reports.write(found, path)
    if json_ == "-":
        typer.echo(reports.to_json(found))
    elif json_:
        write_text(Path(json_), reports.to_json(found) + "\n")
    if not quiet:
        _show(Console(stderr=json_ == "-"), found, output)
    if found.interrupted:
        raise typer.Exit(130)


def _show(console: Console, found: Tuning, output: Path) -> None:
    print_table(console, reports.CHECKS, reports.check_rows(found), {0, 1, 7})
    console.print()
    print_table(console, reports.PARAMETERS, reports.parameter_rows(found), {0, 3, 4, 5})
    for choice in reports.choice_rows(found):
        console.print(f"\n{choice[0]} = {choice[1]}: {choice[3]}", highlight=False, soft_wrap=True)
    console.print()
    for line in found.notes:
        console.print(f"note: {line}", style="yellow", highlight=False, markup=False, soft_wrap=True)
    for line in (*reports.summary(found), f"wrote {output}"):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
