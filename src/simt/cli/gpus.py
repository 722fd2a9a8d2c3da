"""`simt gpus`: the shipped GPUs, one in full, two compared, the fields, new cards, Accel-Sim's."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from simt.cli import COMMANDS
from simt.cli.json_output import Json, records, write_json
from simt.errors import SpecError
from simt.files import write_text
from simt.hints import did_you_mean
from simt.spec import (
    DataSheet,
    Derivation,
    Spec,
    available,
    derive,
    describe,
    field_texts,
    from_gpgpusim,
    load_spec,
    peaks,
    write_toml,
)
from simt.spec import to_json as spec_to_json
from simt.spec.files import ANY_NAME

NEW_EXAMPLES = """\b
Examples:
  simt gpus new --like rtx2060 --sms 68 --bandwidth 616GB/s --l2 5.5MB --clock 1545
  simt gpus new --like rtx3070 --sms 48 --clock 1770 --bus-width 256 --memory-clock 19Gbit/s -o rtx3070ti.toml
  simt gpus new --like l40s --clock 2505 --bandwidth 960GB/s --memory-clock 20Gbit/s --fp32 91.1
"""

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
def table(context: typer.Context, json_: Json = None) -> None:
    """List the shipped GPUs."""
    if context.invoked_subcommand is not None:
        return
    rows = [
        [
            spec.name,
            spec.sm_version / 10,
            spec.sm.count,
            spec.clock.core_mhz,
            spec.l2.slice.bytes * spec.address_map.slices / 2**20,
            spec.address_map.channels,
            peaks(spec).memory_gbs,
            spec.dram.capacity_gib,
            spec.description,
        ]
        for spec in map(load_spec, available())
    ]
    header = ["name", "cc", "SMs", "MHz", "L2 MiB", "channels", "GB/s", "GiB", "description"]
    if write_json(json_, records(header, rows)):
        return
    forms = ("{}", "{:.1f}", "{}", "{:g}", "{:g}", "{}", "{:,.0f}", "{}", "{}")
    _print(header, [[form.format(cell) for form, cell in zip(forms, row, strict=True)] for row in rows])


@app.command()
def show(
    name: Name,
    overrides: Overrides = None,
    json_: Json = None,
    sources: Annotated[bool, typer.Option("--sources", help="Show where each value comes from.")] = False,
) -> None:
    """Show every value of a GPU, with its meaning or its source."""
    spec = load_spec(name, overrides or [])
    if write_json(json_, json.loads(spec_to_json(spec))):
        return
    meanings = describe()
    rows = [
        [path, _text(value), _source(spec, path) if sources else _meaning(meanings, path)]
        for path, value in spec.leaves()
    ]
    _print(["field", "value", "source" if sources else "meaning"], rows)
    typer.echo(f"hash {spec.hash}")


def _meaning(meanings: Mapping[str, str], path: str) -> str:
    """What a value means; a special unit has its name in the path."""
    unit, _, field = path.rpartition(".")
    return meanings.get(path) or meanings[f"{unit.rpartition('.')[0]}.{ANY_NAME}.{field}"]


@app.command()
def fields(
    prefix: Annotated[
        str, typer.Argument(metavar="[PATH]", help="Only fields with this prefix, for example sm.scheduler.")
    ] = "",
    json_: Json = None,
) -> None:
    """List the fields of a specification: unit, range or choices, and meaning."""
    known = field_texts()
    found = [text for text in known if text.path.startswith(prefix)]
    if not found:
        raise SpecError(
            f"no field begins with {prefix!r}{did_you_mean(prefix, [text.path for text in known])}"
        )
    data = [
        {"field": x.path, "values": x.values, "meaning": x.meaning, "policies": x.policies or None}
        for x in found
    ]
    if write_json(json_, data):
        return
    _print(["field", "values", "meaning"], [[text.path, text.values, text.meaning] for text in found])
    for text in found:
        if policies := text.policies:
            typer.echo(f"\n{text.path}")
            _print(
                ["name", "meaning", "source"], [[n, p["meaning"], p["source"]] for n, p in policies.items()]
            )


@app.command()
def compare(first: Name, second: Name, overrides: Overrides = None, json_: Json = None) -> None:
    """Show the fields in which two GPUs differ, with their sources. --set applies to both."""
    a, b = load_spec(first, overrides or []), load_spec(second, overrides or [])
    data = [
        {
            "field": path,
            "first": here,
            "second": there,
            "first_source": _source(a, path),
            "second_source": _source(b, path),
        }
        for path, here, there in a.differences(b)
    ]
    if write_json(json_, {"first": a.name, "second": b.name, "fields": data}):
        return
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
    json_: Json = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Compare GPUs with published values by simulating the same microbenchmarks."""
    # Imported here because it loads the engine.
    from simt.progress import reporting
    from simt.run.overrides import override_texts
    from simt.validate.specification import compare as compare_published
    from simt.validate.specification import mean_error, origins, published_gpus, to_json
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
    if write_json(json_, json.loads(to_json(found))):
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
        typer.echo(f"{name}: {origins(name)}")


@app.command(epilog=NEW_EXAMPLES)
def new(
    like: Annotated[
        str, typer.Option(metavar="GPU", help="A card of the same generation: a shipped GPU, or a TOML file.")
    ],
    sms: Annotated[str | None, typer.Option("--sms", metavar="N", help="SMs.")] = None,
    clock: Annotated[
        str | None, typer.Option("--clock", metavar="MHZ", help="Core clock: boost, or what it ran at.")
    ] = None,
    bandwidth: Annotated[
        str | None, typer.Option("--bandwidth", metavar="GB/S", help="Peak bandwidth of device memory.")
    ] = None,
    bus_width: Annotated[
        str | None, typer.Option("--bus-width", metavar="BITS", help="Width of the memory's bus.")
    ] = None,
    memory_clock: Annotated[
        str | None,
        typer.Option(
            "--memory-clock",
            metavar="MHZ",
            help="Memory clock as the driver gives it, or the rate of a pin (14Gbit/s).",
        ),
    ] = None,
    l2: Annotated[str | None, typer.Option("--l2", metavar="SIZE", help="L2, such as 5.5MB.")] = None,
    memory: Annotated[str | None, typer.Option("--memory", metavar="SIZE", help="Device memory.")] = None,
    tensor: Annotated[
        str | None,
        typer.Option("--tensor", metavar="TFLOPS", help="Peak of dense FP16 products accumulated in FP32."),
    ] = None,
    fp32: Annotated[
        str | None, typer.Option("--fp32", metavar="TFLOPS", help="Peak of FP32, which is only compared.")
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="TOML file to write, which must not exist.")
    ] = Path("my-gpu.toml"),
    json_: Json = None,
) -> None:
    """Derive a card from another one of its generation and from its data sheet.

    Writes a TOML file with what is given and what follows from it: channels of memory, slices of the L2 and
    their size, DRAM timings at another clock. Lists what does not follow, and warns of figures that
    contradict each other.
    """
    texts = {
        "sms": ("--sms", sms),
        "core_mhz": ("--clock", clock),
        "memory_gbs": ("--bandwidth", bandwidth),
        "memory_bus_bits": ("--bus-width", bus_width),
        "memory_mhz": ("--memory-clock", memory_clock),
        "l2_bytes": ("--l2", l2),
        "memory_bytes": ("--memory", memory),
        "tensor_tflops": ("--tensor", tensor),
        "fp32_tflops": ("--fp32", fp32),
    }
    sheet = DataSheet.read(
        {key: text for key, (_, text) in texts.items()}, {key: flag for key, (flag, _) in texts.items()}
    )
    if output.exists():
        raise SpecError(f"{output}: exists; name another file with --output, or remove it")
    found = derive(like, sheet, name=output.stem)
    write_text(output, found.to_toml(output.parent), SpecError)
    data = {
        "file": output,
        "like": found.like,
        "values": [
            {"field": x.path, "before": x.before, "value": x.value, "source": x.source} for x in found.values
        ],
        "kept": dict(found.kept),
        "peaks": asdict(found.peaks),
        "warnings": list(found.warnings),
    }
    if write_json(json_, data):
        return
    _print_derivation(found)
    typer.echo(f"wrote {output}: {load_spec(output)!r}")


def _print_derivation(found: Derivation) -> None:
    rows = [[each.path, _text(each.before), _text(each.value), each.source] for each in found.values]
    _print(["field", found.like, "here", "source"], rows)
    has = found.peaks
    tensor = f", {has.tensor_tflops:,.1f} TFLOPS of dense FP16 products" if has.tensor_tflops else ""
    typer.echo(
        f"\npeaks: {has.fp32_tflops:,.2f} TFLOPS of FP32{tensor}; {has.memory_gbs:,.1f} GB/s of memory "
        f"({has.memory_bus_bits} bits, {2 * has.memory_mhz / 1e3:.4g} Gbit/s a pin); "
        f"{has.l2_bytes / 2**20:g} MB of L2 ({found.spec.address_map.slices} slices, {has.l2_gbs:,.0f} GB/s)"
    )
    typer.echo("\nnot derived")
    _print(["field", "taken"], [[path, text] for path, text in found.kept.items()])
    typer.echo()
    for text in found.warnings:
        typer.secho(f"warning: {text}", fg="yellow", err=True)


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
