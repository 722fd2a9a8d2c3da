"""`simt power measure` and `simt power fit`: energies from measured power."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from simt.cli.json_output import Json, write_json
from simt.cli.tables import print_table
from simt.errors import PowerError
from simt.files import require_output
from simt.formatting import percent
from simt.power.benchmarks import BENCHMARKS, choose
from simt.power.energies import UNITS, Energies, load_energies
from simt.power.fit import EnergyFit, fit, mean_absolute, write_toml
from simt.power.measure import Board, RealBoard, SimulatedBoard, measure
from simt.power.measurements import PowerMeasurement, chosen, read_measurements, write_measurements
from simt.progress import reporting
from simt.validate.device import SimulatedDevice
from simt.version import __version__

EXAMPLES = """\b
Examples:
  simt power measure --device 0 --gpu h100 -o rows.json    on the first GPU of this machine
  simt power measure --gpu qv100 -o rows.json fp32_fma l2  a simulated GPU, with its energies
  simt power fit rows.json --energies h100 -o mine.toml    energies from the measurements
  simt power fit rows.json --energies h100 --rows fp32_fma,idle,dram -o mine.toml    the others judge
  simt run gemm --gpu h100 --energies mine.toml            use them
"""

Output = Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The file to write.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show neither progress nor tables.")]


def measure_(
    output: Output,
    names: Annotated[list[str] | None, typer.Argument(help="Energy microbenchmarks; all by default.")] = None,
    gpu: Annotated[
        str | None,
        typer.Option("--gpu", help="Specification of the GPU, which gives the events: a name or TOML file."),
    ] = None,
    device: Annotated[
        int | None,
        typer.Option("--device", min=0, help="Number of a real GPU in this machine. [default: simulated]"),
    ] = None,
    energies: Annotated[
        str | None,
        typer.Option(help="Name or TOML file of its energies. [default: those of --gpu]"),
    ] = None,
    seconds: Annotated[float, typer.Option(min=0.1, help="Duration of each measurement (--device).")] = 10.0,
    settle: Annotated[
        float, typer.Option(min=0.0, help="Seconds of the same load before it (--device).")
    ] = 5.0,
    json_: Json = None,
    quiet: Quiet = False,
) -> None:
    """Measure the power of energy microbenchmarks: each repeats one kind of instruction or access."""
    if gpu is None:
        raise typer.BadParameter("give --gpu NAME: its simulation says what happens in a microbenchmark")
    require_output(output, PowerError)
    benchmarks = choose(names)
    known = load_energies(energies or gpu)
    model = SimulatedDevice(gpu)
    real = None if device is None else RealBoard(device, seconds=seconds, settle=settle)
    board: Board = real or SimulatedBoard(model, known)
    with reporting(not quiet) as report:
        rows = measure(board, model, known, benchmarks, report)
    provenance = {"gpu": model.name, "version": __version__, **board.provenance}
    if real is not None:
        real.close()
    write_measurements(output, rows, provenance)
    data = [
        {"name": x.name, "watts": x.watts, "deviation": x.deviation, "predicted": x.predicted(known)}
        for x in rows
    ]
    if not write_json(json_, data) and not quiet:
        shown = [
            [
                row.name,
                f"{row.watts:.1f}",
                f"{row.deviation:.2g}",
                f"{row.predicted(known):.1f}",
                BENCHMARKS[row.name].what if row.name in BENCHMARKS else "nothing runs",
            ]
            for row in rows
        ]
        print_table(Console(), ["microbenchmark", "W", "+-", "predicted W", "what it does"], shown, {0, 4})


def fit_(
    files: Annotated[list[Path], typer.Argument(help="Measured powers, from `simt power measure`.")],
    output: Output,
    energies: Annotated[
        str, typer.Option(help="Name or TOML file of the energies known before: the priors.")
    ],
    rows: Annotated[
        str | None,
        typer.Option(metavar="NAME,...", help="Rows to fit to; the others judge. [default: all]"),
    ] = None,
    error: Annotated[
        float, typer.Option(min=0.0, help="Relative error of rows beyond their deviation.")
    ] = 0.02,
    widen: Annotated[
        float, typer.Option(min=1e-6, help="Factor on the uncertainties of the known energies.")
    ] = 1.0,
    json_: Json = None,
    quiet: Quiet = False,
) -> None:
    """Fit energies to measured powers, by non-negative least squares. Values that the rows do not determine
    keep what was known."""
    prior = load_energies(energies)
    every = [row for file in files for row in read_measurements(file)]
    require_output(output, PowerError)
    fitted = chosen(every, rows.split(",")) if rows else every
    found = fit(fitted, prior, error=error, widen=widen)
    write_toml(found.energies, output)
    names = {row.name for row in fitted}
    if not write_json(json_, _fit_json(found, prior, every, names)) and not quiet:
        console = Console()
        _show_values(console, found)
        _show_rows(console, found, prior, every, names)
        console.print(f"wrote {output}", highlight=False, markup=False, soft_wrap=True)


def _fit_json(
    found: EnergyFit, prior: Energies, rows: list[PowerMeasurement], fitted: set[str]
) -> dict[str, Any]:
    values = {
        key: {
            "before": found.prior.values[key].value,
            "fitted": found.energies.values[key].value,
            "unit": UNITS[key.partition(".")[0]],
            "uncertainty": found.energies.values[key].uncertainty,
            "from_rows": share,
        }
        for key, share in found.learned.items()
    }
    powers = [
        {
            "name": row.name,
            "fitted": row.name in fitted,
            "watts": row.watts,
            "before": row.predicted(prior),
            "after": row.predicted(found.energies),
        }
        for row in rows
    ]
    return {"values": values, "rows": powers}


def _show_values(console: Console, found: EnergyFit) -> None:
    header = ["value", "before", "fitted", "unit", "+-", "from the rows"]
    shown = []
    for key, share in found.learned.items():
        old, new = found.prior.values[key], found.energies.values[key]
        unit = UNITS[key.partition(".")[0]]
        deviation = percent(new.uncertainty, 1)
        shown.append([key, f"{old.value:.4g}", f"{new.value:.4g}", unit, deviation, percent(share, 0)])
    print_table(console, header, shown, {0, 3})
    console.print()


def _show_rows(
    console: Console, found: EnergyFit, prior: Energies, rows: list[PowerMeasurement], fitted: set[str]
) -> None:
    header = ["row", "", "measured W", "before", "error", "after", "error"]
    shown = []
    for row in rows:
        before, after = row.predicted(prior), row.predicted(found.energies)
        shown.append(
            [
                row.name,
                "fitted" if row.name in fitted else "judges",
                f"{row.watts:.1f}",
                f"{before:.1f}",
                percent(before / row.watts - 1, 1),
                f"{after:.1f}",
                percent(after / row.watts - 1, 1),
            ]
        )
    print_table(console, header, shown, {0, 1})
    for title, half in (
        ("fitted to", [row for row in rows if row.name in fitted]),
        ("that judge", [row for row in rows if row.name not in fitted]),
    ):
        if half:
            mean = percent(mean_absolute(found.errors(half)), 1)
            console.print(f"mean absolute error of the {len(half)} rows {title}: {mean}", highlight=False)
