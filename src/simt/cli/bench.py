"""`simt bench`: microbenchmarks, on a simulated or a real GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from simt.cli import COMMANDS
from simt.cli.json_output import Json, records, write_json
from simt.cli.tables import print_table
from simt.files import require_output, write_text
from simt.formatting import percent
from simt.progress import reporting
from simt.run.overrides import override_texts
from simt.validate.device import SimulatedDevice
from simt.validate.microbenchmark import Measurement, microbenchmarks, run_microbenchmarks, to_json
from simt.validate.silicon import SiliconDevice

EXAMPLES = """\b
Examples:
  simt bench list
  simt bench run --gpu qv100                  all, in the simulator, beside the expected values
  simt bench run l1 l2 --gpu h100             two groups
  simt bench run fma_latency --gpu a100 --set sm.units.fp32.latency=6
  simt bench run --device 0 --json h200.json  all, on the first GPU of this machine
  simt bench run --gpu qv100 --json - | jq '.benchmarks[] | {name, value, unit}'
"""

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help=COMMANDS["bench"],
    epilog=EXAMPLES,
)


@app.command("list")
def list_(json_: Json = None) -> None:
    """List the microbenchmarks and what each determines."""
    rows = [[b.name, b.group, b.determines, b.unit, b.summary] for b in microbenchmarks().values()]
    if not write_json(json_, records(["name", "group", "determines", "unit", "summary"], rows)):
        print_table(Console(), ["name", "group", "determines", "unit", "what it does"], rows, range(5))


@app.command("run", epilog=EXAMPLES)
def run(
    names: Annotated[
        list[str] | None, typer.Argument(help="Microbenchmarks or groups; all by default.")
    ] = None,
    gpu: Annotated[
        str | None, typer.Option("--gpu", help="Simulated GPU: a name listed by `simt gpus`, or a TOML file.")
    ] = None,
    device: Annotated[
        int | None, typer.Option("--device", min=0, help="Number of a real GPU in this machine.")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Override a value of the specification (--gpu)."),
    ] = None,
    threads: Annotated[
        int, typer.Option(min=1, help="Host threads (--gpu). Results do not depend on them.")
    ] = 1,
    repeats: Annotated[
        int, typer.Option(min=1, help="Runs of each on a real GPU; their median is used (--device).")
    ] = 5,
    json_: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="Write the records as JSON; - is stdout.")
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Show neither progress nor the table.")
    ] = False,
) -> None:
    """Run microbenchmarks and print their results: --gpu in the simulator, --device on a real GPU."""
    if (gpu is None) == (device is None):
        raise typer.BadParameter("give either --gpu NAME (simulated) or --device N (a real GPU)")
    if device is not None and set_:
        raise typer.BadParameter("--set overrides a specification, and a real GPU (--device) has none")
    if json_ and json_ != "-":
        require_output(Path(json_))
    with reporting(not quiet) as report:
        measured: SimulatedDevice | SiliconDevice
        if gpu is not None:
            measured = SimulatedDevice(gpu, override_texts(set_), threads)
            found = run_microbenchmarks(measured, names, spec=measured.spec, progress=report)
        else:
            measured = SiliconDevice(device or 0)
            found = run_microbenchmarks(measured, names, repeats=repeats, progress=report)
    if not quiet:
        _show(Console(stderr=json_ == "-"), found, gpu is not None)
    if json_ == "-":
        typer.echo(to_json(found, measured))
    elif json_:
        write_text(Path(json_), to_json(found, measured) + "\n")


def _show(console: Console, found: list[Measurement], simulated: bool) -> None:
    """Compares a simulated GPU with its specification; shows the range of the runs for a real one."""
    between = ["specified", "error"] if simulated else ["least", "most"]
    header = ["microbenchmark", "found", "unit", *between, "determines", "note"]
    rows = []
    for m in found:
        cells = [_number(m.expected), percent(m.error, 1)] if simulated else [_number(m.low), _number(m.high)]
        rows.append([m.name, _number(m.value), m.unit, *cells, m.determines, m.note])
    print_table(console, header, rows, {0, 2, 5, 6})


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.6g}"
