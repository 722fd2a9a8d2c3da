"""`simt power`: energy and power of Results, and the energies of GPUs."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import polars as pl
import typer
from rich.console import Console

from simt.cli import COMMANDS, power_fit
from simt.cli.json_output import Json, write_json
from simt.cli.tables import print_table
from simt.formatting import format_energy, format_time, percent
from simt.power import AtLimit, Energy, ProgramEnergy, at_limit, available, load_energies
from simt.power.energies import SECTIONS, UNITS
from simt.result import Result
from simt.result.files import dump

EXAMPLES = """\b
Examples:
  simt run gemm --power --output out
  simt power show out                        by launch, component and instruction class
  simt power show out --lines                by source line, of the launch that takes most
  simt power show out --energies a100 --temperature 80
  simt power show out --json - | jq .joules
  simt power gpus                            GPUs whose energies are known
  simt power gpus h100                       each value with its uncertainty and source
"""

app = typer.Typer(
    add_completion=False,
    help=COMMANDS["power"],
    epilog=EXAMPLES,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("measure", epilog=power_fit.EXAMPLES)(power_fit.measure_)
app.command("fit", epilog=power_fit.EXAMPLES)(power_fit.fit_)
_MOST_LAUNCHES = 20


@app.command(epilog=EXAMPLES)
def show(
    result: Annotated[Path, typer.Argument(help="What `simt run --output` saved.")],
    energies: Annotated[
        str | None,
        typer.Option(metavar="GPU|FILE", help="Energies to use; by default the run's, or those of its GPU."),
    ] = None,
    temperature: Annotated[
        float | None, typer.Option(metavar="CELSIUS", help="Of the chip; by default that of the energies.")
    ] = None,
    limit: Annotated[
        float | None,
        typer.Option(metavar="W", help="Power limit of the board; by default its thermal design power."),
    ] = None,
    lines: Annotated[
        bool, typer.Option("--lines", help="Also energy by source line of the launch that takes most.")
    ] = False,
    instructions: Annotated[
        bool, typer.Option("--instructions", help="Also energy by machine instruction of that launch.")
    ] = False,
    json_: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="Write the tables as JSON; - is stdout.")
    ] = None,
) -> None:
    """Energy of a Result by launch, component and instruction class."""
    found = Result.load(result).energy_by(energies, temperature)
    limited = at_limit(found, limit)
    data = {
        "joules": found.joules,
        "interval": list(found.interval),
        "seconds": found.seconds,
        "watts": found.watts,
        "energy_delay": found.energy_delay,
        "energies": found.energies.name,
        "at_limit": asdict(limited),
        "components": found.table().to_dicts(),
        "classes": found.class_table().to_dicts(),
        "launches": [
            {"id": x.launch.id, "name": x.launch.name, "joules": x.joules, "watts": x.watts}
            for x in found.launches
        ],
    }
    if json_ == "-":
        sys.stdout.write(dump(data) + "\n")
        return
    if json_ is not None:
        Path(json_).write_text(dump(data) + "\n", encoding="utf-8")
    console = Console()
    _launches(console, found)
    _whole(console, found)
    console.print(_at_limit(found, limited), highlight=False)
    if found.launches and (lines or instructions):
        most = max(found.launches, key=lambda x: x.joules)
        if lines:
            _lines(console, most.lines(), "line")
        if instructions:
            _lines(console, most.instruction_table(), "pc")


@app.command()
def gpus(
    name: Annotated[
        str | None, typer.Argument(metavar="GPU|FILE", help="Show its values; without it, list all.")
    ] = None,
    json_: Json = None,
) -> None:
    """The GPUs whose energies are known, or the values of one with their sources."""
    console = Console()
    if name is None:
        listed = []
        for each in available():
            found = load_energies(each)
            origins = [x.origin for x in found.values.values()]
            counts = {x: origins.count(x) for x in ("published", "scaled", "fitted")}
            listed.append({"gpu": each, "tdp_w": found.reference["tdp_w"].value, **counts})
        if write_json(json_, listed):
            return
        rows = [[f"{row['gpu']}", f"{row['tdp_w']:g} W", *map(str, list(row.values())[2:])] for row in listed]
        print_table(console, ["GPU", "TDP", "published", "scaled", "fitted"], rows, (0,))
        return
    found = load_energies(name)
    data = {
        key: {
            "value": x.value, "unit": UNITS[key.partition(".")[0]], "uncertainty": x.uncertainty,
            "origin": x.origin, "source": x.source,
        }
        for key, x in found.values.items()
    }  # fmt: skip
    if write_json(json_, data):
        return
    rows = [
        [
            key,
            f"{each.value:g}",
            UNITS[key.partition(".")[0]],
            percent(each.uncertainty, 0),
            each.origin,
            each.source,
        ]
        for key, each in found.values.items()
    ]
    print_table(console, ["value", "", "unit", "±", "origin", "source"], rows, (0, 2, 4, 5))
    meanings = sum(len(keys) for keys in SECTIONS.values())
    console.print(f"\n{meanings} values; docs/power says what each means", highlight=False)


def _launches(console: Console, found: ProgramEnergy) -> None:
    shown = sorted(found.launches, key=lambda x: -x.joules)[:_MOST_LAUNCHES]
    shown.sort(key=lambda x: x.launch.index)
    rows = []
    for x in shown:
        low, high = x.interval
        rows.append(
            [
                str(x.launch.id),
                x.launch.name,
                format_time(x.seconds),
                format_energy(x.joules),
                f"{format_energy(low)} to {format_energy(high)}",
                f"{x.watts:,.1f} W",
                f"{x.energy_delay:.3g} J s",
            ]
        )
    print_table(
        console, ["id", "kernel", "time", "energy", "95 %", "average power", "energy-delay"], rows, (1,)
    )
    if left := len(found.launches) - len(shown):
        console.print(f"and {left:,} others", highlight=False)


def _whole(console: Console, found: Energy) -> None:
    for title, table in (("component", found.table()), ("class", found.class_table())):
        rows = [
            [str(row[0]), format_energy(row[1]), f"{row[1] / found.seconds:,.2f} W", percent(row[-1], 1)]
            for row in table.iter_rows()
        ]
        console.print()
        head = "component" if title == "component" else "instructions, in the SM's pipelines"
        print_table(console, [head, "energy", "average power", "share"], rows, (0,))
    low, high = found.interval
    console.print(
        f"\n{format_energy(found.joules)} ({format_energy(low)} to {format_energy(high)}, 95 % by the "
        "energies' "
        f"uncertainties) in {format_time(found.seconds)}: {found.watts:,.1f} W on average",
        highlight=False,
    )


def _at_limit(found: Energy, limited: AtLimit) -> str:
    what = f"Repeated under a limit of {limited.limit:g} W"
    if found.watts <= limited.limit:
        return f"{what}: the same clock, {limited.core_mhz:,.0f} MHz"
    if not limited.reached:
        return (
            f"{what}: even at {limited.core_mhz:,.0f} MHz, the lowest clock, it takes {limited.watts:,.1f} W"
        )
    return (
        f"{what}: about {limited.core_mhz:,.0f} MHz and {format_time(limited.seconds)}, "
        f"{limited.seconds / found.seconds:.2f} times as long"
    )


def _lines(console: Console, table: pl.DataFrame, place: str) -> None:
    rows = [
        [
            f"{row[place]:#x}" if place == "pc" else str(row[place]),
            row["text"].strip(),
            *(format_energy(row[name]) for name in ("dynamic", "static", "joules")),
        ]
        for row in table.iter_rows(named=True)
    ]
    console.print()
    print_table(console, [place, "", "dynamic", "static", "energy"], rows, (1,))
