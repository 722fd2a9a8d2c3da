"""`simt sample`: choose launches of a profile, compare the methods, estimate totals from a Plan."""

from __future__ import annotations

import contextlib
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import polars as pl
import rich.progress as rp
import typer
from rich.console import Console
from typer.core import TyperGroup

from simt.cli import COMMANDS, what_if
from simt.cli.json_output import Json, write_json
from simt.cli.tables import print_table
from simt.errors import PlanError, ProfileError
from simt.files import require_output, write_text
from simt.formatting import percent, plural
from simt.methods.from_text import summary
from simt.options import DEFAULT_GPU
from simt.profile import Profile, read_profile
from simt.profile.kernel_table import left_out_sentences
from simt.profile.source import Report
from simt.program import SUFFIXES, examples, find_program, profiled
from simt.run.interruption import stoppable
from simt.sampling import Adaptive, Plan, Sampler, exports, plan_tables, registry
from simt.sampling.compare import SamplerComparison
from simt.sampling.compare import compare as compare_methods
from simt.sampling.results import Match, read_results
from simt.workloads import WORKLOADS

EXAMPLES = """\b
Examples:
  simt sample profile.sqlite --method root --error 0.05
  simt sample trace.json.gz --output plan.json --html plan.html
  simt sample launches.csv --columns name=Kernel,duration_ns=Time
  simt sample profile.sqlite -m pks --set features=artifact --json - | jq .speedup
  simt sample profile.sqlite --kernelslist traces/kernelslist-plan.g
  simt sample profile.sqlite --ncu profile.sh --program "python train.py"
  simt sample profile.sqlite -m adaptive --results results.csv
  simt sample compare profile.sqlite --seeds 30 --plot methods.png
  simt sample compare h100.json.gz --truth mi300x.json.gz
  simt sample estimate plan.json results/
  simt sample what-if results/ --sample pkp --sweep threshold=0.5,1,2
  simt sample program.py --gpu h100          without a profile: from what its launches execute
  simt sample methods
"""
DEFAULT = "neyman"


class _PlanUnlessNamed(TyperGroup):
    """`simt sample FILE` is `simt sample plan FILE`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = ["plan", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_PlanUnlessNamed,
    help=COMMANDS["sample"] + " `simt sample FILE` is short for `simt sample plan FILE`; "
    "`simt sample plan --help` lists its options.",
    epilog=EXAMPLES,
    no_args_is_help=True,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("what-if", epilog=what_if.EXAMPLES, no_args_is_help=True)(what_if.what_if)
_err = Console(stderr=True)

ProfilePath = Annotated[
    Path,
    typer.Argument(
        metavar="PROFILE",
        help="A file from Nsight Systems, Nsight Compute, PyTorch or rocprofv3, a table (CSV, Parquet), "
        "Accel-Sim's stats.csv or kernelslist.g, a saved Result; or a program, example or workload as for "
        "`simt run`, which is then executed without timing.",
    ),
]
OnGpu = Annotated[
    str, typer.Option("--gpu", help="For a program: the GPU on which times are expected, as for `simt run`.")
]
Size = Annotated[int | None, typer.Option(help="For a workload: its size.")]
Driver = Annotated[
    Path | None, typer.Option(metavar="FILE.py", help="For a program not in Python: its driver.")
]
Columns = Annotated[
    str | None,
    typer.Option(metavar="OURS=THEIRS,...", help="Names of a table's columns, such as name=Kernel."),
]
Communication = Annotated[
    bool,
    typer.Option(
        "--include-communication", help="Keep collectives and copies, which are left out by default."
    ),
]
Stream = Annotated[int | None, typer.Option(help="Only the launches of this stream.")]
Process = Annotated[int | None, typer.Option(help="Only the launches of the process with this id.")]
Device = Annotated[int | None, typer.Option(help="Only the launches of this GPU.")]
Error = Annotated[
    float | None,
    typer.Option("--error", "-e", help="Relative error of the total: 0.05 is 5 %."),
]
Confidence = Annotated[float | None, typer.Option(help="Confidence of the bound: 0.95 is 95 %.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show neither progress nor tables.")]


@app.command(epilog=EXAMPLES, no_args_is_help=True)
def plan(
    profile: ProfilePath,
    method: Annotated[
        str, typer.Option("--method", "-m", help="One of `simt sample methods`, or package.module:Class.")
    ] = DEFAULT,
    error: Error = None,
    confidence: Confidence = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the random draws.")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Another parameter of the method; repeatable."),
    ] = None,
    columns: Columns = None,
    include_communication: Communication = False,
    stream: Stream = None,
    device: Device = None,
    process: Process = None,
    gpu: OnGpu = DEFAULT_GPU,
    size: Size = None,
    driver: Driver = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Save the Plan (JSON).")] = None,
    json_: Json = None,
    csv: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the launches as CSV.")] = None,
    kernelslist: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write Accel-Sim's launch list with these launches, beside the full one."
        ),
    ] = None,
    full_list: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The full list; by default, kernelslist.g beside it.")
    ] = None,
    ncu: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a script that profiles them with Nsight Compute."),
    ] = None,
    program: Annotated[
        str | None, typer.Option(metavar="COMMAND", help="The program for --ncu, with its arguments.")
    ] = None,
    tracer: Annotated[
        bool, typer.Option("--tracer", help="Print the ranges that Accel-Sim's tracer accepts.")
    ] = False,
    results: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="adaptive: the measurements so far; prints what to measure next."),
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page with tables and plots.")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Plot the strata of the longest kernels (.png, .svg, .pdf)."),
    ] = None,
    strata: Annotated[int, typer.Option(min=1, metavar="N", help="Strata to list.")] = 20,
    quiet: Quiet = False,
) -> None:
    """Choose launches, with weights and an error bound."""
    for file in (output, csv, kernelslist, ncu, html, plot, Path(json_) if json_ and json_ != "-" else None):
        if file is not None:
            require_output(file)
    if ncu is not None and program is None:
        raise PlanError("--ncu needs --program: the command that Nsight Compute starts")
    sampler = registry.make(method, set_ or [], error=error, confidence=confidence, seed=seed)
    executed = _Program(gpu, size, driver)
    whole = _read(profile, columns, process, stream, device, quiet, executed)
    population = whole if include_communication else whole.kernels()
    with _busy(f"choosing launches ({method})", quiet):
        made = sampler.fit_plan(population)
    measured = None if results is None else _resume(sampler, made, population, results, quiet)
    if measured is not None:
        made = sampler.plan_
    if output is not None:
        made.save(output)
    if json_ is not None and json_ != "-":
        made.save(json_)
    if csv is not None:
        write_text(csv, exports.to_csv(made))
    if kernelslist is not None:
        full = full_list or kernelslist.with_name("kernelslist.g")
        exports.write_kernelslist(made, full, kernelslist, profile=whole)
    if ncu is not None:
        _write_ncu_script(made, whole, program or "", ncu)
    if html is not None:
        from simt.sampling import report

        report.write(made, population, sampler.strata_, html)
    if plot is not None:
        from simt.plots import save
        from simt.sampling.plots import strata_figure

        save(strata_figure(population, made, sampler.strata_), plot)
    if not quiet:
        console = Console(stderr=json_ == "-")
        _show_plan(made, population, strata, console)
        if isinstance(sampler, Adaptive) and measured is not None:
            _show_rounds(sampler, measured, console)
    if tracer:
        typer.echo(f'DYNAMIC_KERNEL_RANGE="{exports.tracer_ranges(made, whole)}"', err=json_ == "-")
    if json_ == "-":
        sys.stdout.write(made.to_json() + "\n")


def _resume(sampler: Sampler, made: Plan, population: Profile, results: Path, quiet: bool) -> set[int]:
    """Gives the measurements so far to the method, and returns the launches that they are of."""
    if not isinstance(sampler, Adaptive):
        raise PlanError(f"--results applies to the method adaptive only; {sampler.method} uses none")
    values = read_results(made, results, match="id")
    with _busy("looking at the results", quiet):
        sampler.resume(population, values)
    return set(values["launch"])


def _write_ncu_script(made: Plan, whole: Profile, program: str, path: Path) -> None:
    by: Literal["launch", "name"] = "name" if made.launches["name"].n_unique() < len(made) else "launch"
    commands = exports.ncu_commands(made, shlex.split(program), profile=whole, by=by)
    write_text(path, "\n".join(["#!/bin/sh", "set -e", *commands]) + "\n")


@app.command(no_args_is_help=True)
def compare(
    profile: ProfilePath,
    truth: Annotated[
        Path | None,
        typer.Option(metavar="PROFILE", help="Take the true values from this profile of another GPU or run."),
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(help='"root allocation=leaf, neyman": parameters follow after spaces.'),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Draws of each method.")] = 30,
    error: Error = 0.05,
    confidence: Confidence = None,
    columns: Columns = None,
    include_communication: Communication = False,
    stream: Stream = None,
    device: Device = None,
    process: Process = None,
    gpu: OnGpu = DEFAULT_GPU,
    size: Size = None,
    driver: Driver = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Save every run: .parquet, .csv or .json.")
    ] = None,
    json_: Json = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Plot error against speedup, and coverage.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Try every method with many seeds: error, speedup, and how often the claimed bound holds."""
    for file in (output, plot, Path(json_) if json_ and json_ != "-" else None):
        if file is not None:
            require_output(file)
    labels = registry.lines(methods) if methods else list(registry.METHODS)
    samplers = {label: registry.from_text(label, error=error, confidence=confidence) for label in labels}
    read = partial(
        _read,
        columns=columns,
        process=process,
        stream=stream,
        device=device,
        quiet=quiet,
        program=_Program(gpu, size, driver),
    )
    population = read(profile) if include_communication else read(profile).kernels()
    other = None
    if truth is not None:
        other = read(truth) if include_communication else read(truth).kernels()
    with _advance(quiet) as advance:
        found = compare_methods(population, samplers, seeds, other, advance=advance)
    if output is not None:
        found.save(output)
    if json_ is not None and json_ != "-":
        write_text(Path(json_), found.to_json() + "\n")
    if plot is not None:
        from simt.plots import save
        from simt.sampling.plots import comparison_figure

        save(comparison_figure(found), plot)
    if not quiet:
        _show_comparison(found, population, Console(stderr=json_ == "-"))
    if json_ == "-":
        sys.stdout.write(found.to_json() + "\n")


@app.command(no_args_is_help=True)
def estimate(
    plan: Annotated[Path, typer.Argument(metavar="PLAN", help="A file saved by `simt sample --output`.")],
    results: Annotated[
        Path,
        typer.Argument(
            metavar="RESULTS",
            help="Values of the chosen launches: a Result, any profile, or a table with a column `launch`.",
        ),
    ],
    metrics: Annotated[
        str | None,
        typer.Option(help="Additive metrics, separated by commas; by default, all known to be additive."),
    ] = None,
    match: Annotated[
        Match, typer.Option(help="Whether RESULTS has the plan's ids, or its launches in order.")
    ] = "auto",
    confidence: Confidence = None,
    columns: Columns = None,
    kernels: Annotated[int, typer.Option(min=0, metavar="N", help="Kernel names to list.")] = 0,
    json_: Json = None,
) -> None:
    """Estimate totals of the whole program from values of the chosen launches, with confidence intervals."""
    made = Plan.load(plan)
    measured = read_results(made, results, columns=_columns(columns), match=match)
    wanted = [name.strip() for name in metrics.split(",")] if metrics else None
    found = made.estimate(measured, wanted, confidence=confidence)
    if json_ is not None and json_ != "-":
        write_text(Path(json_), found.to_json() + "\n")
    console = Console(stderr=json_ == "-")
    print_table(console, *plan_tables.estimate_rows(found, kernels), plan_tables.ESTIMATE_LEFT)
    say = _sayer(console)
    for note in found.notes:
        say(f"note: {note}")
    if json_ == "-":
        sys.stdout.write(found.to_json() + "\n")


@app.command()
def methods(
    json_: Json = None,
) -> None:
    """List the methods with their parameters."""
    found = {name: registry.find(name) for name in registry.METHODS}
    parameters = {
        name: {p.name: p.default for p in kind.parameters().values()} for name, kind in found.items()
    }
    data = [
        {"method": name, "summary": summary(kind), "parameters": parameters[name]}
        for name, kind in found.items()
    ]
    if write_json(json_, data):
        return
    rows = [
        [name, summary(kind), ", ".join(f"{key}={value!r}" for key, value in parameters[name].items())]
        for name, kind in found.items()
    ]
    print_table(Console(), ["method", "what it does", "parameters"], rows, (0, 1, 2))


@dataclass(frozen=True)
class _Program:
    """How a program is executed for a profile."""

    gpu: str
    size: int | None
    driver: Path | None


def _read(
    path: Path,
    columns: str | None,
    process: int | None,
    stream: int | None,
    device: int | None,
    quiet: bool,
    program: _Program,
) -> Profile:
    found = None
    if path.suffix in SUFFIXES or path.name in WORKLOADS or path.name in examples():
        found = find_program(path)
    if found is not None:
        with contextlib.redirect_stdout(sys.stderr), stoppable():
            profile = profiled(found, program.gpu, program.driver, program.size)
    else:
        with _reading(quiet) as report:
            profile = read_profile(path, columns=_columns(columns), process=process, progress=report)
    for column, value in (("stream", stream), ("device", device)):
        if value is not None:
            profile = _only(profile, column, value)
    return profile


def _only(profile: Profile, column: str, value: int) -> Profile:
    if not profile.has(column):
        raise ProfileError(f"{profile.source}: has no {column} of launches")
    launches = profile.launches.filter(pl.col(column) == value)
    if launches.is_empty():
        there = profile.launches[column].drop_nulls().unique().sort().to_list()
        listed = ", ".join(map(str, there))
        raise ProfileError(f"{profile.source}: no launch on {column} {value}, there are {listed}")
    return replace(profile, launches=launches)


def _columns(text: str | None) -> dict[str, str] | None:
    if text is None:
        return None
    pairs = [part.partition("=") for part in text.split(",")]
    for ours, equals, theirs in pairs:
        if not (ours and equals and theirs):
            raise ProfileError(
                f"--columns {text}: expected OURS=THEIRS separated by commas, such as name=Kernel"
            )
    return {ours.strip(): theirs.strip() for ours, _, theirs in pairs}


def _show_plan(made: Plan, population: Profile, limit: int, console: Console) -> None:
    (header, rows), more = plan_tables.strata_rows(made, limit, width=44 if console.is_terminal else 80)
    print_table(console, header, rows, plan_tables.STRATA_LEFT)
    say = _sayer(console)
    if more:
        say(more)
    say("")
    facts = plan_tables.facts(made)
    for label, value in facts:
        say(f"{label:<{max(len(name) for name, _ in facts)}}  {value}")
    say("")
    for text in left_out_sentences(population):
        say(f"{text} --include-communication keeps them.")
    for text in made.warnings:
        say(f"warning: {text}", style="yellow")


def _show_rounds(sampler: Adaptive, measured: set[int], console: Console) -> None:
    say = _sayer(console)
    for number, done in enumerate(sampler.rounds_, start=1):
        widths = ", ".join(f"{k} ± {percent(v)}" for k, v in done["half_widths"].items())
        say(f"round {number}: {plural(done['launches'], 'launch')} measured, {widths}")
    wanted = [str(i) for i in sampler.plan_.launches["launch"] if i not in measured]
    if wanted:
        say(f"measure next: {plural(len(wanted), 'launch')}: {', '.join(wanted)}")
    else:
        say("nothing more to measure:")
        say(repr(sampler.estimate_))


def _show_comparison(found: SamplerComparison, population: Profile, console: Console) -> None:
    header, rows = plan_tables.comparison_rows(found)
    print_table(console, header, rows, plan_tables.COMPARISON_LEFT)
    say = _sayer(console)
    say("")
    for text in (*plan_tables.comparison_sentences(found), *left_out_sentences(population)):
        say(text)


def _sayer(console: Console) -> Callable[..., None]:
    def say(text: str, **style: Any) -> None:
        console.print(text, highlight=False, markup=False, soft_wrap=True, **style)

    return say


@contextmanager
def _busy(what: str, quiet: bool) -> Iterator[None]:
    if quiet or not _err.is_terminal:
        yield
        return
    with _err.status(what):
        yield


def _bar(*columns: rp.ProgressColumn) -> rp.Progress:
    text = rp.TextColumn("{task.description}")
    return rp.Progress(text, rp.BarColumn(), *columns, console=_err, transient=True)


@contextmanager
def _reading(quiet: bool) -> Iterator[Report | None]:
    """A bar that appears when a file takes long to read."""
    if quiet or not _err.is_terminal:
        yield None
        return
    with _bar(rp.TaskProgressColumn()) as bar:
        task = bar.add_task("reading", total=1.0)
        yield lambda progress: bar.update(task, completed=progress.fraction)


@contextmanager
def _advance(quiet: bool) -> Iterator[Callable[[str, int, int], None] | None]:
    if quiet or not _err.is_terminal:
        yield None
        return
    with _bar(rp.MofNCompleteColumn(), rp.TimeRemainingColumn()) as bar:
        task = bar.add_task("comparing")
        yield lambda label, done, total: bar.update(task, description=label, completed=done, total=total)
