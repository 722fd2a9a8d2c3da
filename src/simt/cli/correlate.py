"""`simt correlate`: simulated against measured."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer
from rich.console import Console

from simt.cli import COMMANDS
from simt.cli.tables import print_table
from simt.files import replacing, require_output
from simt.formatting import percent
from simt.names import short_name, shortened
from simt.result.files import dump
from simt.validate import Correlation, correlate, find_programs, page
from simt.validate.correlation import CYCLES
from simt.validate.published import published_path

EXAMPLES = """\b
Examples:
  simt correlate out ncu.csv                   one program: a saved Result and Nsight Compute's CSV
  simt correlate results/ measured/            programs with the same names; subfolders are suites
  simt correlate results/ measured/ --html page.html --csv pairs.csv
  simt correlate new/ measured/ --before old/  two versions of the model
  simt correlate results/ nvprof.csv --clock 1447 --json -
  simt correlate accel-sim-isca20-simulated accel-sim-isca20-silicon     published tables
"""

app = typer.Typer(add_completion=False, context_settings={"help_option_names": ["-h", "--help"]})


@app.command("correlate", help=COMMANDS["correlate"], epilog=EXAMPLES, no_args_is_help=True)
def correlate_(
    results: Annotated[
        Path, typer.Argument(help="A saved Result, a folder of them (suites as folders), or a table.")
    ],
    measured: Annotated[
        Path,
        typer.Argument(
            help="Nsight Compute or nvprof CSV, another profile, a table of programs, a folder of them, or "
            "the name of a published table."
        ),
    ],
    before: Annotated[
        Path | None, typer.Option(help="Results of an earlier version of the model to compare with.")
    ] = None,
    counter: Annotated[
        list[str] | None, typer.Option("--counter", "-c", help="Only this counter; repeatable.")
    ] = None,
    clock: Annotated[
        float | None,
        typer.Option(min=1, help="Core clock in MHz during the measurement, if only times were measured."),
    ] = None,
    sms: Annotated[
        int | None, typer.Option(min=1, help="SMs of the measured GPU, for nvprof's elapsed_cycles_sm.")
    ] = None,
    outliers: Annotated[int, typer.Option(min=0, help="How many of the largest errors to list.")] = 10,
    html: Annotated[Path | None, typer.Option(help="Write a page with scatter plots.")] = None,
    csv: Annotated[Path | None, typer.Option(help="Write every pair of values.")] = None,
    json_: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="Write the agreement as JSON; - is stdout.")
    ] = None,
) -> None:
    for file in (html, csv, Path(json_) if json_ and json_ != "-" else None):
        if file is not None:
            require_output(file)
    found = _correlation(results, measured, sms, clock, counter)
    earlier = _correlation(before, measured, sms, clock, counter) if before is not None else None
    console = Console(stderr=json_ == "-")
    _show(console, found, earlier, outliers)
    if csv is not None:
        with replacing(csv) as temporary:
            pl.concat([found.kernels, found.programs]).write_csv(temporary)
    if html is not None:
        page.write(found, html, f"{results} against {measured}", earlier)
        console.print(f"wrote {html}", highlight=False)
    if json_ is not None:
        text = dump(_json(found, earlier))
        if json_ == "-":
            typer.echo(text)
        else:
            Path(json_).write_text(text + "\n", encoding="utf-8")


def _correlation(
    results: Path, measured: Path, sms: int | None, clock: float | None, counters: list[str] | None
) -> Correlation:
    found = correlate(find_programs(published_path(results), published_path(measured), sms), clock)
    return found.only(counters) if counters else found


def _show(console: Console, found: Correlation, earlier: Correlation | None, outliers: int) -> None:
    for line in found.unpaired:
        console.print(f"note: {line}", style="yellow", highlight=False)
    header = ["counter", "n", "MAE", "NRMSE", "Pearson", "rank", "bias", "p90", "≤ 10 %", "≤ 25 %"]
    before = {} if earlier is None else {r["counter"]: r["mae"] for r in earlier.agreement().to_dicts()}
    if earlier is not None:
        header.insert(2, "MAE before")
    rows = []
    for row in found.agreement().to_dicts():
        cells = [row["counter"], f"{row['n']:,}", percent(row["mae"], 1), _number(row["nrmse"])]
        cells += [_number(row["pearson"]), _number(row["spearman"]), percent(row["bias"], 1)]
        cells += [percent(row["p90"], 1), percent(row["within_10"], 0), percent(row["within_25"], 0)]
        if earlier is not None:
            cells.insert(2, percent(before.get(row["counter"]), 1))
        rows.append(cells)
    print_table(console, header, rows, {0})
    if found.kernels["suite"].n_unique() > 1:
        of_suites = found.only([CYCLES]) if CYCLES in found.counters else found
        console.print()
        print_table(
            console,
            ["suite", "counter", "n", "MAE", "Pearson"],
            [
                [r["suite"], r["counter"], f"{r['n']:,}", percent(r["mae"], 1), _number(r["pearson"])]
                for r in of_suites.agreement(by_suite=True).to_dicts()
            ],
            {0, 1},
        )
    worst = found.outliers(most=outliers).to_dicts()
    if worst:
        console.print("\nlargest errors of cycles", style="bold")
        print_table(
            console,
            ["kernel", "program", "simulated", "measured", "error", "waits mostly for"],
            [
                [
                    shortened(short_name(row["name"]), 44),
                    f"{row['suite']}/{row['program']}".strip("/"),
                    f"{row['simulated']:,.0f}",
                    f"{row['measured']:,.0f}",
                    f"{100 * row['error']:+.1f} %",
                    row["stall"] or "-",
                ]
                for row in worst
            ],
            {0, 1, 5},
        )


def _number(value: float | None) -> str:
    return "-" if value is None or math.isnan(value) else f"{value:.3f}"


def _json(found: Correlation, earlier: Correlation | None) -> dict[str, Any]:
    data: dict[str, Any] = {
        "schema": "simt.correlation/1",
        "kernels": found.agreement().to_dicts(),
        "suites": found.agreement(by_suite=True).to_dicts(),
        "programs": found.agreement("programs").to_dicts(),
        "outliers": found.outliers().to_dicts(),
        "unpaired": list(found.unpaired),
    }
    if earlier is not None:
        data["before"] = earlier.agreement().to_dicts()
        data["changes"] = found.against(earlier).to_dicts()
    return data
