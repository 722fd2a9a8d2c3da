"""`simt validate`: published programs against measured times."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from simt.cli import COMMANDS, run_options
from simt.cli.tables import print_table
from simt.errors import ProfileError
from simt.files import replacing, require_output
from simt.formatting import percent
from simt.run.interruption import stoppable
from simt.run.overrides import override_texts
from simt.validate import Correlation, page
from simt.validate.correlate import CYCLES
from simt.validate.recipes import Row, read_recipes, rows_of
from simt.validate.whole_programs import (
    Outcome,
    Setting,
    clock_settings,
    correlation,
    record,
    run_rows,
    table,
)

EXAMPLES = """\b
Examples, in a checkout of simt:
  simt validate programs --gpu h100-pcie --measured silicon/ --sources checkouts/
  simt validate programs --gpu qv100 --code sass --suite polybench --limit 600
  simt validate programs --gpu titanv --only matmul --vary-clocks
"""
RECIPES = Path("validation/programs")
CLOCKS = {"core": (0.9, 1.05), "dram": (0.9, 1.05)}
"""Factors of --vary-clocks."""

app = typer.Typer(
    help=COMMANDS["validate"],
    no_args_is_help=True,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _root() -> None:
    pass


@app.command(epilog=EXAMPLES)
def programs(
    gpu: Annotated[str, typer.Option(help="A shipped GPU that has recipes.")],
    code: run_options.Code = "ptx",
    suite: Annotated[list[str] | None, typer.Option(help="Only this suite; repeatable.")] = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="Only rows whose name has this text; repeatable.")
    ] = None,
    use: Annotated[
        Literal["tuning", "held-out", "judging"], typer.Option(help="Which rows: see docs/whole-programs.md.")
    ] = "tuning",
    recipes: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the recipes.")] = RECIPES,
    sources: Annotated[
        Path | None,
        typer.Option(metavar="DIR", envvar="SIMT_PROGRAMS", help="Folder with a checkout of each source."),
    ] = None,
    measured: Annotated[
        Path | None,
        typer.Option(metavar="DIR", envvar="SIMT_MEASURED", help="Folder with the measured tables."),
    ] = None,
    out: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Keeps programs, finished rows and tables.")
    ] = Path("out/programs"),
    limit: Annotated[float, typer.Option(min=1, metavar="SECONDS", help="Time limit for a row.")] = 60,
    sample: Annotated[
        int, typer.Option(min=1, metavar="N", help="Only every Nth row of each program, by measured time.")
    ] = 1,
    set_: run_options.Set = None,
    threads: run_options.Threads = 1,
    vary_clocks: Annotated[
        bool, typer.Option("--vary-clocks", help="Also with other core and DRAM clocks.")
    ] = False,
    record_: Annotated[
        bool, typer.Option("--record", help="Record the error, for `simt gpus errors`.")
    ] = False,
    outliers: Annotated[int, typer.Option(min=0, help="How many of the largest errors to list.")] = 15,
    html: Annotated[Path | None, typer.Option(help="Write the correlator's page.")] = None,
    quiet: run_options.Quiet = False,
) -> None:
    """Simulate programs whose times on real GPUs are published, and compare.

    Neither the programs nor the measured values come with simt: the recipes say where they are found.
    Finished rows are kept and not simulated again. A row that takes longer than the limit is reported as not
    run.
    """
    if html is not None:
        require_output(html)
    console = Console()
    rows = _rows(gpu, suite, only, use, recipes, measured, sources, sample)
    overrides = override_texts(set_)
    settings = clock_settings(gpu, CLOCKS if vary_clocks else {}, overrides)
    found: dict[str, list[Outcome]] = {}
    with stoppable():
        for name, values in settings.items():
            setting = Setting(out, sources, code, limit, values, threads)
            found[name] = run_rows(rows, setting, lambda each: None if quiet else _tell(each))
    outcomes = found["as specified"]
    with replacing(out / f"{gpu}-{code}-{use}.parquet") as temporary:
        table(outcomes).write_parquet(temporary)
    _not_counted(console, outcomes)
    pairs = correlation(outcomes)
    _show(console, pairs)
    if record_:
        for each in record(outcomes):
            console.print(f"recorded: {each}", highlight=False, soft_wrap=True)
    _outliers(console, outcomes, outliers)
    if vary_clocks:
        _clocks(console, found)
    if html is not None:
        page.write(pairs, html, f"{gpu}, {code}: {use} rows of {recipes}")
        console.print(f"wrote {html}", highlight=False, soft_wrap=True)


def _rows(
    gpu: str,
    suite: list[str] | None,
    only: list[str] | None,
    use: str,
    recipes: Path,
    measured: Path | None,
    sources: Path | None,
    sample: int,
) -> list[Row]:
    found = []
    for recipe in read_recipes(recipes, gpu):
        if recipe.use == use and (not suite or recipe.suite in suite):
            rows = [
                row
                for row in rows_of(recipe, measured, sources)
                if not only or any(text in row.name for text in only)
            ]
            found += sorted(rows, key=lambda row: row.measured)[::sample]
    if not found:
        raise ProfileError(f"{recipes / gpu}.toml: no {use} row of this suite and name")
    return found


def _tell(each: Outcome) -> None:
    error = f"{100 * each.error:+7.1f} %" if each.status == "done" else each.status
    typer.echo(f"{each.suite} {each.row}: {error}  ({each.host_seconds:.1f} s)", err=True)


def _not_counted(console: Console, outcomes: list[Outcome]) -> None:
    late = [o for o in outcomes if o.status == "limit"]
    if late:
        first = f"{late[0].suite} {late[0].row}"
        console.print(
            f"not run within the time limit: {len(late)} rows, from {first}", highlight=False, soft_wrap=True
        )
    for outcome in outcomes:
        if outcome.status.startswith("failed"):
            console.print(
                f"{outcome.suite} {outcome.row}: {outcome.status}",
                style="red",
                highlight=False,
                soft_wrap=True,
            )
    for text in dict.fromkeys(o.unclear for o in outcomes if o.unclear):
        rows = [o for o in outcomes if o.unclear == text]
        console.print(
            f"not counted: {len(rows)} rows of {rows[0].program}: {text}", highlight=False, soft_wrap=True
        )


def _show(console: Console, pairs: Correlation) -> None:
    agreements = [pairs.agreement(by_suite=True), pairs.agreement()]
    header = ["suite", "counter", "rows", "MAE", "median", "≤ 20 %", "p90", "worst", "bias", "r", "NRMSE"]
    rows = [
        [
            row.get("suite", "all"),
            row["counter"],
            f"{row['n']:,}",
            percent(row["mae"], 1),
            percent(row["median"], 1),
            percent(row["within_20"], 0),
            *(percent(row[name], 1) for name in ("p90", "worst", "bias")),
            *("-" if row[name] is None else f"{row[name]:.3f}" for name in ("pearson", "nrmse")),
        ]
        for frame in agreements
        for row in sorted(frame.to_dicts(), key=lambda row: row["counter"] != CYCLES)
    ]
    print_table(console, header, rows, {0, 1})


def _outliers(console: Console, outcomes: list[Outcome], most: int) -> None:
    worst = sorted((o for o in outcomes if o.counts), key=lambda o: -abs(o.error))[:most]
    if worst:
        console.print("\nlargest errors", style="bold")
        print_table(
            console,
            ["row", "simulated", "measured", "error", "warps mostly in state"],
            [
                [
                    f"{o.suite} {o.row}",
                    f"{o.simulated:,.0f}",
                    f"{o.measured:,.0f}",
                    f"{100 * o.error:+.1f} %",
                    o.stall_text(),
                ]
                for o in worst
            ],
            {0, 4},
        )


def _clocks(console: Console, found: dict[str, list[Outcome]]) -> None:
    rows, errors = [], []
    for name, outcomes in found.items():
        (row,) = correlation(outcomes).only([CYCLES]).agreement().to_dicts()
        errors.append(row["mae"])
        rows.append([name, f"{row['n']:,}", *(percent(row[key], 1) for key in ("mae", "median", "bias"))])
    console.print("\nother clocks", style="bold")
    print_table(console, ["clocks", "rows", "MAE", "median", "bias"], rows, {0})
    console.print(
        f"MAE from {percent(min(errors), 1)} to {percent(max(errors), 1)}", highlight=False, soft_wrap=True
    )
