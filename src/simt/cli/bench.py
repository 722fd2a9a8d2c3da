"""`simt bench`: microbenchmarks, on a simulated or a real GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from simt.cli.tables import print_table
from simt.result.display import percent
from simt.result.files import require_writable, write_text
from simt.simulate import override_texts, reporting
from simt.validate.device import SimulatedDevice
from simt.validate.microbenchmark import Measurement, microbenchmarks, run_microbenchmarks, to_json

EXAMPLES = """\b
Examples:
  simt bench list
  simt bench run --gpu qv100                  all, in the simulator, beside what the specification says
  simt bench run l1 l2 --gpu h100             two groups
  simt bench run fma_latency --gpu a100 --set sm.units.fp32.latency=6
  simt bench run --gpu qv100 --json - | jq '.benchmarks[] | {name, value, unit}'
"""

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Microbenchmarks that determine a GPU's parameters, one by one.",
    epilog=EXAMPLES,
)


@app.command("list")
def list_() -> None:
    """List the microbenchmarks and what each determines."""
    rows = [[b.name, b.group, b.determines, b.unit, b.summary] for b in microbenchmarks().values()]
    print_table(Console(), ["name", "group", "determines", "unit", "what it does"], rows, range(5))


@app.command("run", epilog=EXAMPLES)
def run(
    names: Annotated[list[str] | None, typer.Argument(help="Microbenchmarks or groups; all if none.")] = None,
    gpu: Annotated[
        str, typer.Option("--gpu", help="Simulated GPU: a name of `simt gpus`, or a TOML file.")
    ] = "qv100",
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Override a value of the specification."),
    ] = None,
    threads: Annotated[int, typer.Option(min=1, help="Host threads. Does not change any result.")] = 1,
    json_: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="Write the records as JSON; - is stdout.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no table.")] = False,
) -> None:
    """Run microbenchmarks and print what each found."""
    if json_ and json_ != "-":
        require_writable(Path(json_).parent)
    device = SimulatedDevice(gpu, override_texts(set_), threads)
    with reporting(not quiet and None) as report:
        found = run_microbenchmarks(device, names, spec=device.spec, progress=report)
    if not quiet:
        _show(Console(stderr=json_ == "-"), found)
    if json_ == "-":
        typer.echo(to_json(found, device))
    elif json_:
        write_text(Path(json_), to_json(found, device) + "\n")


def _show(console: Console, found: list[Measurement]) -> None:
    rows = [
        [
            m.name,
            "-" if m.value is None else f"{m.value:,.6g}",
            m.unit,
            "-" if m.expected is None else f"{m.expected:,.6g}",
            percent(m.error, 1),
            m.determines,
            m.note,
        ]
        for m in found
    ]
    header = ["microbenchmark", "found", "unit", "specified", "error", "determines", "note"]
    print_table(console, header, rows, {0, 2, 5, 6})
