"""`simt validate`: published programs against measured times."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from simt.cli import COMMANDS, record_options
from simt.cli.json_output import Json, write_json
from simt.cli.tables import print_table
from simt.errors import ProfileError
from simt.files import replacing, require_output
from simt.formatting import percent, plural
from simt.options import Code, GpuOptions
from simt.run.interruption import stoppable
from simt.run.overrides import override_texts
from simt.spec import load_spec
from simt.spec.files import shipped_name
from simt.validate import Correlation, page
from simt.validate.correlation import CYCLES
from simt.validate.own_rows import read_own_rows
from simt.validate.profilers import Profiler
from simt.validate.recipes import Row, Use, read_recipes, rows_of
from simt.validate.whole_programs import (
    CORE,
    RowOutcome,
    Setting,
    clock_settings,
    correlation,
    recommended_code,
    record,
    run_rows,
    table,
)

EXAMPLES = """\b
Examples, in a checkout of simt:
  simt validate programs --gpu h100-pcie --measured silicon/ --sources checkouts/
  simt validate programs --gpu qv100 --suite polybench --limit 600
  simt validate programs --gpu titanv --only matmul --vary-clocks
  simt validate programs --gpu my.toml --recipes validation/programs/rtx2060.toml

Examples, anywhere:
  simt validate programs --gpu my.toml --rows measured.csv
"""
RECIPES = Path("validation/programs")
FACTORS = {"core": (0.9, 1.05), "dram": (0.9, 1.05)}
"""Of clocks, for --vary-clocks."""

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
@record_options.takes(GpuOptions, only=("set", "threads", "controller"))
def programs(
    gpu: Annotated[str, typer.Option(help="A shipped GPU that has recipes, or a TOML file.")],
    rows_file: Annotated[
        Path | None,
        typer.Option(
            "--rows",
            metavar="FILE",
            help="A CSV file of your own in place of recipes: program, arguments, and ns, us, ms, s, cycles "
            "or counters (docs/whole-programs.md).",
        ),
    ] = None,
    profiler: Annotated[
        Profiler | None,
        typer.Option(
            help="What has measured the rows of your own: sets its conditions, such as cold caches."
        ),
    ] = None,
    code: Annotated[
        Code | None,
        typer.Option(
            help="What is executed; by default machine code where it can be made and executed, else PTX."
        ),
    ] = None,
    suite: Annotated[list[str] | None, typer.Option(help="Only this suite; repeatable.")] = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="Only rows whose name has this text; repeatable.")
    ] = None,
    use: Annotated[
        Use | None, typer.Option(help="Which rows: see docs/whole-programs.md.", show_default="tuning")
    ] = None,
    recipes: Annotated[
        Path,
        typer.Option(
            metavar="DIR|FILE", help="Folder of the recipes, or those of the card whose values are meant."
        ),
    ] = RECIPES,
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
    every: Annotated[
        int, typer.Option(min=1, metavar="N", help="Only every Nth row of each program, by measured time.")
    ] = 1,
    vary_clocks: Annotated[
        bool, typer.Option("--vary-clocks", help="Also with other core and DRAM clocks.")
    ] = False,
    record_: Annotated[
        bool,
        typer.Option(
            "--record",
            help="Put these rows' errors into the record, for `simt gpus errors` and intervals of times; "
            "others stay.",
        ),
    ] = False,
    outliers: Annotated[int, typer.Option(min=0, help="How many of the largest errors to list.")] = 15,
    html: Annotated[Path | None, typer.Option(help="Write the correlator's page.")] = None,
    json_: Json = None,
    quiet: record_options.Quiet = False,
    **options: Any,
) -> None:
    """Simulate programs whose times on real GPUs are published, or measured by you, and compare.

    Neither the programs nor the measured values come with simt: the recipes say where they are found.
    Finished rows are kept and not simulated again. A row that takes longer than the limit is reported as not
    run.
    """
    if html is not None:
        require_output(html)
    console = Console(stderr=json_ == "-")
    overrides = override_texts(options["set"])
    spec = load_spec(gpu, overrides)
    code = code or recommended_code(spec)
    if record_ and (rows_file is not None or recipes.suffix or shipped_name(gpu) is None):
        raise ProfileError("--record is for a shipped GPU with its own recipes")
    if record_ and (changed := [key for key in overrides if not key.startswith("clock.")]):
        raise ProfileError(f"--record is for a GPU as shipped, at any clock; found --set {changed[0]}")
    if profiler is not None and rows_file is None:
        raise ProfileError(
            f"--profiler {profiler}: recipes say what has measured their rows; expected with --rows"
        )
    if rows_file is None:
        origin = f"{use or 'tuning'} rows of {recipes}"
        rows = _rows(gpu, suite, only, use or "tuning", recipes, measured, sources, every)
    elif use is None:
        origin, rows = str(rows_file), _of(read_own_rows(rows_file, gpu, profiler), suite, only, every)
    else:
        raise ProfileError(f"--use {use}: chooses among rows of recipes, expected without --rows")
    if not rows:
        raise ProfileError(f"{origin}: no row of this suite and name")
    if vary_clocks and not any(row.measured for row in rows):
        raise ProfileError(f"--vary-clocks: {origin} has counters only, expected times")
    controller = options["controller"]
    setting = Setting(out, sources, code, limit, overrides, options["threads"], controller=controller)
    found: dict[str, list[RowOutcome]] = {}
    with stoppable():
        for name, varied in clock_settings(setting, rows, FACTORS if vary_clocks else {}).items():
            found[name] = run_rows(rows, varied, lambda each: None if quiet else _tell(each))
    outcomes = found["as stated"]
    with replacing(out / f"{spec.name}-{code}-{outcomes[0].use}.parquet") as temporary:
        table(outcomes).write_parquet(temporary)
    title = f"{spec.name}, {'machine code' if code == 'sass' else 'PTX'}: {origin}{_sampled(outcomes)}"
    console.print(title, highlight=False, soft_wrap=True)
    for clock in dict.fromkeys(row.recipe.table.clock for row in rows):
        if clock and CORE not in overrides:
            console.print(f"core clock {clock}", highlight=False, soft_wrap=True)
    _not_counted(console, outcomes)
    pairs = correlation(outcomes)
    _show(console, pairs, outcomes)
    if record_:
        for each in record(outcomes):
            console.print(f"recorded: {each}", highlight=False, soft_wrap=True)
        unstated = [o for o in outcomes if o.counts and math.isnan(o.half_width)]
        if unstated:
            text = f"not recorded, as {controller} states no interval: {plural(len(unstated), 'row')}"
            console.print(text, highlight=False, soft_wrap=True)
    _outliers(console, outcomes, outliers)
    if len(found) > 1:
        _clocks(console, found)
    data = {
        "title": title,
        "rows": table(outcomes).to_dicts(),
        "agreement": pairs.agreement(by_suite=True).to_dicts(),
    }
    write_json(json_, data)
    if html is not None:
        page.write(pairs, html, title)
        console.print(f"wrote {html}", highlight=False, soft_wrap=True)


def _rows(
    gpu: str,
    suite: list[str] | None,
    only: list[str] | None,
    use: str,
    recipes: Path,
    measured: Path | None,
    sources: Path | None,
    every: int,
) -> list[Row]:
    """Those of recipes."""
    found = []
    for recipe in read_recipes(recipes, gpu):
        if recipe.use == use and (not suite or recipe.suite in suite):
            found += _of(rows_of(recipe, measured, sources), suite, only, every)
    return found


def _of(rows: list[Row], suite: list[str] | None, only: list[str] | None, every: int) -> list[Row]:
    """Every Nth of those of the suites and names, by measured time."""
    found = [
        row
        for row in rows
        if (not suite or row.recipe.suite in suite) and (not only or any(text in row.name for text in only))
    ]
    return sorted(found, key=lambda row: row.measured)[::every]


def _tell(each: RowOutcome) -> None:
    error = (
        f"{100 * each.error:+7.1f}{_margin(each)} %"
        if each.status == "done" and each.measured
        else each.status
    )
    typer.echo(f"{each.suite} {each.row}: {error}  ({each.host_seconds:.1f} s)", err=True)


def _margin(each: RowOutcome) -> str:
    """Of the error, in points: half of the interval of a sampled row."""
    if not each.is_sampled:
        return ""
    points = 100 * each.half_width * each.simulated / each.measured
    return " ± ?" if math.isnan(points) else f" ± {points:.1f}"


def _sampled(outcomes: list[RowOutcome]) -> str:
    """How many of the rows that count are sampled, if any."""
    counted = [o for o in outcomes if o.counts]
    n = sum(o.is_sampled for o in counted)
    return f", {n} of {plural(len(counted), 'row')} sampled" if n else ""


def _not_counted(console: Console, outcomes: list[RowOutcome]) -> None:
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


def _show(console: Console, pairs: Correlation, outcomes: list[RowOutcome]) -> None:
    """The table of suites. sampled: of the rows of a suite, whatever the counter."""
    agreements = [pairs.agreement(by_suite=True), pairs.agreement()]
    sampled = Counter(o.suite for o in outcomes if o.counts and o.is_sampled)
    header = [
        "suite",
        "counter",
        "rows",
        "sampled",
        "MAE",
        "median",
        "≤ 20 %",
        "p90",
        "worst",
        "bias",
        "r",
        "NRMSE",
    ]
    rows = [
        [
            row.get("suite", "all"),
            row["counter"],
            f"{row['n']:,}",
            f"{sampled[row['suite']] if 'suite' in row else sampled.total():,}",
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


def _outliers(console: Console, outcomes: list[RowOutcome], most: int) -> None:
    worst = sorted((o for o in outcomes if o.counts and o.measured), key=lambda o: -abs(o.error))[:most]
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
                    f"{100 * o.error:+.1f}{_margin(o)} %",
                    o.stall_text(),
                ]
                for o in worst
            ],
            {0, 4},
        )


def _clocks(console: Console, found: dict[str, list[RowOutcome]]) -> None:
    """Errors at each clock, of the rows that were run and count at all of them."""
    counted = [{o.row for o in outcomes if o.counts and o.measured} for outcomes in found.values()]
    common = set.intersection(*counted)
    if not common:
        return
    rows, errors = [], []
    for name, outcomes in found.items():
        pairs = correlation(o for o in outcomes if o.row in common).only([CYCLES])
        (row,) = pairs.agreement().to_dicts()
        errors.append(row["mae"])
        rows.append([name, f"{row['n']:,}", *(percent(row[key], 1) for key in ("mae", "median", "bias"))])
    console.print("\nother clocks", style="bold")
    print_table(console, ["clocks", "rows", "MAE", "median", "bias"], rows, {0})
    console.print(
        f"MAE from {percent(min(errors), 1)} to {percent(max(errors), 1)}", highlight=False, soft_wrap=True
    )
