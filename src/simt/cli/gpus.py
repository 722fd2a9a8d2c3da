"""`simt gpus`: the shipped GPUs, one in full, two compared, the fields, and import from Accel-Sim."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from simt.cli import COMMANDS
from simt.errors import SpecError
from simt.hints import did_you_mean
from simt.spec import Spec, available, describe, field_texts, from_gpgpusim, load_spec, write_toml
from simt.spec import to_json as spec_to_json

app = typer.Typer(
    help=COMMANDS["gpus"],
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="A shipped GPU, or the path of a TOML file.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="PATH=VALUE", help="Replace a value, for example sm.count=40; repeatable."),
]


@app.callback()
def table(context: typer.Context) -> None:
    """List the shipped GPUs."""
    if context.invoked_subcommand is None:
        specs = [load_spec(name) for name in available()]
        rows = [
            [
                spec.name,
                f"{spec.sm_version // 10}.{spec.sm_version % 10}",
                str(spec.sm.count),
                f"{spec.clock.core_mhz:g}",
                f"{spec.l2.slice.bytes * spec.address_map.slices / 2**20:g}",
                str(spec.address_map.channels),
                str(spec.dram.capacity_gib),
                spec.description,
            ]
            for spec in specs
        ]
        _print(["name", "cc", "SMs", "MHz", "L2 MiB", "channels", "GiB", "description"], rows)


@app.command()
def show(
    name: Name,
    overrides: Overrides = None,
    as_json: Annotated[
        Literal["-"] | None, typer.Option("--json", help="Print one JSON object on standard output.")
    ] = None,
    sources: Annotated[bool, typer.Option("--sources", help="Show where each value comes from.")] = False,
) -> None:
    """Show every value of a GPU, with its meaning or its source."""
    spec = load_spec(name, overrides or [])
    if as_json:
        sys.stdout.write(spec_to_json(spec))
        return
    meanings = describe()
    rows = [
        [path, _text(value), _source(spec, path) if sources else meanings[path]]
        for path, value in spec.leaves()
    ]
    _print(["field", "value", "source" if sources else "meaning"], rows)
    typer.echo(f"hash {spec.hash}")


@app.command()
def fields(
    prefix: Annotated[
        str, typer.Argument(metavar="[PATH]", help="Only fields with this prefix, for example sm.scheduler.")
    ] = "",
) -> None:
    """List the fields of a specification: unit, range or choices, and meaning."""
    known = field_texts()
    found = [text for text in known if text.path.startswith(prefix)]
    if not found:
        raise SpecError(
            f"no field begins with {prefix!r}{did_you_mean(prefix, [text.path for text in known])}"
        )
    _print(["field", "values", "meaning"], [[text.path, text.values, text.meaning] for text in found])
    for text in found:
        if policies := text.policies:
            typer.echo(f"\n{text.path}")
            _print(
                ["name", "meaning", "source"], [[n, p["meaning"], p["source"]] for n, p in policies.items()]
            )


@app.command()
def compare(first: Name, second: Name, overrides: Overrides = None) -> None:
    """Show the fields in which two GPUs differ, with their sources. --set applies to both."""
    a, b = load_spec(first, overrides or []), load_spec(second, overrides or [])
    rows = [
        [path, _text(here), _text(there), _source(a, path), _source(b, path)]
        for path, here, there in a.differences(b)
    ]
    if not rows:
        typer.echo(f"{a.name} and {b.name} are the same machine (hash {a.hash})")
        return
    _print(["field", a.name, b.name, f"source of {a.name}", f"source of {b.name}"], rows)


@app.command()
def errors(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="All if none.")] = None,
    benchmarks: Annotated[
        list[str] | None, typer.Option("--benchmark", "-b", help="Only this microbenchmark; repeatable.")
    ] = None,
    overrides: Overrides = None,
    as_json: Annotated[
        Literal["-"] | None, typer.Option("--json", help="Print one JSON object on standard output.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Compare GPUs with published values by simulating the same microbenchmarks."""
    # Imported here because it loads the engine.
    from simt.run.overrides import override_texts
    from simt.run.progress import reporting
    from simt.validate.specification import compare as compare_published
    from simt.validate.specification import mean_error, published_gpus, to_json
    from simt.validate.whole_programs import recorded

    whole: dict[str, list[str]] = {}
    for each in recorded():
        whole.setdefault(each.gpu, []).append(str(each))
    found = {}
    with reporting(not quiet and None) as report:
        for name in names or sorted({*published_gpus(), *whole}):
            load_spec(name)
            set_ = override_texts(overrides)
            found[name] = compare_published(name, benchmarks, set=set_, progress=report)
    if as_json:
        typer.echo(to_json(found))
        return
    rows = [
        [
            name,
            c.published.name,
            f"{c.published.low:,g}"
            + (f" to {c.published.high:,g}" if c.published.high > c.published.low else ""),
            f"{c.simulated:,.4g}",
            c.published.unit,
            f"{100 * c.error:+.1f} %",
            f"[{c.published.mark}] {c.published.source}",
        ]
        for name, comparisons in found.items()
        for c in comparisons
    ]
    if rows:
        _print(["GPU", "microbenchmark", "published", "simulated", "unit", "error", "source"], rows)
    for name, comparisons in found.items():
        mean = mean_error(comparisons)
        count = sum(c.reference for c in comparisons)
        typer.echo(
            f"{name}: unknown, no published value corresponds to a microbenchmark"
            if mean is None
            else f"{name}: mean error {100 * mean:.1f} % over {count} values"
        )
        for text in whole.get(name, ["unknown"]):
            typer.echo(f"{name}: whole programs: {text}")


@app.command("import")
def import_(
    gpgpusim_config: Annotated[Path, typer.Argument(metavar="GPGPUSIM.CONFIG")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="TOML file to write.")],
    trace_config: Annotated[
        Path | None,
        typer.Argument(metavar="[TRACE.CONFIG]", help="GPGPU-Sim's configurations have none."),
    ] = None,
    icnt: Annotated[
        Path | None,
        typer.Option("--icnt", help="Interconnect file; by default, the one that the configuration names."),
    ] = None,
) -> None:
    """Convert an Accel-Sim configuration to a specification."""
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        spec = from_gpgpusim(gpgpusim_config, trace_config, icnt, name=output.stem)
    write_toml(spec, output)
    for note in notes:
        typer.secho(f"warning: {note.message}", fg="yellow", err=True)
    typer.echo(f"wrote {output}: {spec!r}")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _source(spec: Spec, path: str) -> str:
    return spec.sources.get(path, "")


def _print(columns: list[str], rows: list[list[str]]) -> None:
    console = Console()
    if not console.is_terminal:  # whole lines, for grep and the like
        widths = [max(len(row[i]) for row in [columns, *rows]) for i in range(len(columns))]
        for row in [columns, *rows]:
            typer.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        return
    view = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        view.add_column(Text(column), overflow="fold")
    for row in rows:
        view.add_row(*(Text(cell) for cell in row))
    console.print(view)
