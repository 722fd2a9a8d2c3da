"""`simt run`: simulate the launches of a trace or of a program."""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from simt import program
from simt.cli import COMMANDS, LIMIT_EXIT, completion, ending_by_signals, record_options
from simt.cli.tables import show_result
from simt.errors import Interrupted, LaunchError, LimitReached, ResultError, SimtError, SimulationError
from simt.files import require_output, write_text
from simt.formatting import plural
from simt.options import ExecOptions, GpuOptions, Options, TraceOptions
from simt.result import Result
from simt.result.files import dump
from simt.run.interruption import Limits, deferred_stop, is_alarm, number_of, stoppable
from simt.run.overrides import override_texts
from simt.run.record import require_place
from simt.simulate import simulate
from simt.spec import load_spec

if TYPE_CHECKING:
    from simt.gpu import GPU
    from simt.workloads import Workload

EXAMPLES = """\b
Examples:
  simt run kernelslist.g --gpu qv100
  simt run traces/ --kernels "3-7,12"        ids and ranges
  simt run traces/ --kernels "*gemm*"        names, or /regular expressions/
  simt run traces/ --set sm.count=40 --threads 2
  simt run traces/ --output out --timeline 500 --perfetto out/trace.json
  simt run traces/ --output out --resume     continue after Ctrl-C, a crash or a limit
  simt run program.py --timeout 600          at most ten minutes; finished launches are kept
  simt run traces/ --json - | jq '.totals.cycles'
  simt run program.py --gpu h100             a program with a function main(gpu)
  simt run kernel.cu --gpu h100              with kernel.py beside it: main(gpu, module)
  simt run reduce.cu --gpu a100 -- -n 4096   with a main of its own: compiled by nvcc, run as by simt exec
  simt run gemm --gpu h100                   a ready example; simt run --examples lists them
  simt run resnet50 --size 64                a workload; simt run --workloads lists them
  simt run gemm --power --timeline 500       with energy and power (docs/power)
  simt run gemm --gpu h100 --power-cap 250   at the highest clock that stays under 250 W
\b
Simulating less (docs/control):
  simt run traces/ --sample pkp              simulate until the IPC has settled, project the rest
  simt run traces/ --sample pkp:artifact --sample-set threshold=0.5
  simt run traces/ --sample photon:warp      also photon, tbpoint, first-n:1e9, package.module:Class
  simt run gemm --sample pkp --verify 5%     also simulate 5 % of the cut launches in full
  simt run traces/ --sample pka --plan plan.json --verify 5%
  simt run traces/ --sample pkp --full out   errors against a saved full Result
"""
LIMITS = ("max_cycles", "timeout")

app = typer.Typer(add_completion=False, context_settings={"help_option_names": ["-h", "--help"]})


@app.command(help=COMMANDS["run"], epilog=EXAMPLES, no_args_is_help=True)
@record_options.takes(TraceOptions, GpuOptions)
def run(
    path: Annotated[
        Path | None,
        typer.Argument(
            help="A trace (kernelslist.g, a directory with one, a kernel trace, a .simt store), a program "
            "(.py, .cu, .ptx, .cubin, .fatbin), or the name of an example or a workload.",
            autocompletion=completion.programs,
        ),
    ] = None,
    arguments: Annotated[
        list[str] | None,
        typer.Argument(help="Arguments of a .cu program with its own main; after -- if they begin with -."),
    ] = None,
    energies: record_options.Energies = None,
    power_cap: Annotated[
        float | None,
        typer.Option(
            metavar="W",
            help="Run at the highest core clock whose average power is under this; the input is simulated "
            "several times.",
        ),
    ] = None,
    json_: Annotated[
        str | None,
        typer.Option("--json", metavar="FILE", help="Write the Result as one JSON object; - is stdout."),
    ] = None,
    perfetto_: Annotated[
        Path | None, typer.Option("--perfetto", metavar="FILE", help="Write a trace for ui.perfetto.dev.")
    ] = None,
    driver: Annotated[
        Path | None,
        typer.Option(metavar="FILE.py", help="Driver of a program not in Python: main(gpu, module)."),
    ] = None,
    size: Annotated[
        int | None, typer.Option(help="Size of a workload; by default the smallest that --workloads lists.")
    ] = None,
    workloads: Annotated[
        bool, typer.Option("--workloads", help="List the workloads with their sizes.")
    ] = False,
    examples: Annotated[bool, typer.Option("--examples", help="List the ready examples.")] = False,
    sample_set: record_options.SampleSet = None,
    full: record_options.Full = None,
    quiet: record_options.Quiet = False,
    **options: Any,
) -> None:
    if examples:
        return _list_examples()
    if workloads:
        return _list_workloads()
    if path is None:
        raise typer.BadParameter("a trace or a program is missing")
    values = record_options.read(options, sample_set, energies, full) | {"progress": not quiet}
    found = program.find_program(path)
    if values["check"]:
        from simt.cli.check import report_on

        command = [str(path), *(arguments or [])]
        return report_on(command, values, driver, size, None if json_ is None else json_)
    output, functional = values["output"], values["functional"]
    if functional:
        timed = values["max_cycles"] is not None or values["resume"]
        _require_functional(path, found, writes=bool(output or json_ or perfetto_), timed=timed)
    if isinstance(found, Path) and program.is_whole(found, driver):
        others = {
            "--resume": values.pop("resume"), "--power-cap": power_cap, "--size": size,
            "--perfetto": perfetto_, "--json -": json_ == "-",
        }  # fmt: skip
        chosen = _options_of_exec(path, values, others)
        return _run_whole_program(found, arguments or [], chosen, full, Path(json_) if json_ else None, quiet)
    given, verified = _options_of(path, found, values, arguments)
    _require_outputs(output, perfetto_, Path(json_) if json_ and json_ != "-" else None)

    def once(options: Options) -> Result:
        if isinstance(options, TraceOptions):
            return simulate(path, **options.keywords())
        assert isinstance(options, GpuOptions) and found is not None
        # With --json - what the program prints goes where the table does.
        with contextlib.redirect_stdout(sys.stderr if json_ == "-" else sys.stdout):
            return _run_program(found, options, driver, size, verified)

    with ending_by_signals():
        number = 0
        try:
            with stoppable():
                result = once(given) if power_cap is None else _under_cap(once, given, power_cap, output)
        except LimitReached as stop:
            result = stop.result
        except Interrupted as stop:
            result, number = stop.result, stop.number
        except SimulationError as error:
            if error.result.launches:
                _say_how_to_go_on(error.result, output)
            raise
        with deferred_stop():
            limited = result.status in LIMITS
            if number or limited:
                typer.echo("Interrupted." if number else f"Stopped: {result.status} reached.", err=True)
            if not functional:
                _say_what_is_left(path, result, output, stopped=bool(number or limited), region=given.region)
            if result.launches:
                compared = record_options.compared(result, full, given.plan)
                if output is not None and compared is not result:
                    compared.save(output)
                _deliver(compared, perfetto_, json_, quiet)
    if number or limited:
        raise typer.Exit(128 + number if number else LIMIT_EXIT)


def _options_of(
    path: Path, found: Path | Workload | None, values: dict[str, Any], arguments: list[str] | None
) -> tuple[Options, _Verified]:
    """The options of a trace (`found` is None) or a program, and what is verified of a program."""
    if arguments:
        raise LaunchError(
            f"{path}: takes no arguments ({arguments[0]!r}); only a .cu program with its own main does"
        )
    if found is None:
        refusal = f"{path}: {{}} applies to programs only; a trace holds neither values nor their ranges"
        return record_options.record_of(TraceOptions, values, refusal), _Verified(0.0, 0)
    verified = _Verified(values.pop("verify"), values.pop("seed"))
    return record_options.record_of(GpuOptions, values, f"{path}: {{}} applies to traces only"), verified


def _options_of_exec(path: Path, values: dict[str, Any], others: dict[str, Any]) -> ExecOptions:
    """The options of a program with its own main. others: those it does not take, by what is given."""
    as_by_exec = f"{path}: a program with its own main runs as by simt exec, without {{}}"
    if unknown := [name for name, value in others.items() if value]:
        raise LaunchError(as_by_exec.format(unknown[0]))
    return record_options.record_of(ExecOptions, values, as_by_exec)


def _require_outputs(output: Path | None, *files: Path | None) -> None:
    """Refuses what cannot be written before anything is simulated."""
    if output is not None:
        require_place(output)
    for file in files:
        if file is not None:
            require_output(file)


def _say_what_is_left(
    path: Path, result: Result, output: str | os.PathLike[str] | None, *, stopped: bool, region: Any
) -> None:
    """How a stopped run goes on, or why there is no Result."""
    if stopped:
        if result.status != "complete":
            _say_how_to_go_on(result, output)
    elif not result.launches:
        none = "; ".join(result.warnings) if region else "no kernel was launched"
        typer.echo(f"{path}: {none}, so there is no Result.", err=True)


def _run_whole_program(
    path: Path,
    arguments: list[str],
    options: ExecOptions,
    full: Path | None,
    json_: Path | None,
    quiet: bool,
) -> None:
    """Compiles a program and runs it as `simt exec` does; exits as the program does."""
    from simt.cli.exec import run_to_end
    from simt.cuda.nvcc import LEAST_ARCH, compiled_program

    assert isinstance(options.gpu, str)
    overrides = override_texts(options.set)
    spec = load_spec(options.gpu, overrides)
    arch = max(spec.sm_version, LEAST_ARCH)
    for file in (options.output, json_):
        if file is not None:
            (require_place if file is options.output else require_output)(Path(file))
    with ending_by_signals(), compiled_program(path, arch) as program:
        if arch != spec.sm_version and options.code == "ptx":  # else it would refuse the PTX
            typer.echo(f"{path}: compiled for sm_{arch}, nvcc's oldest; {spec.name} executes that", err=True)
            overrides = {**overrides, "sm_version": str(arch)}
        shown = not quiet and sys.stderr.isatty()
        given = replace(options, set=overrides, name=str(path), progress=shown)
        run_to_end([program, *arguments], given, full, json_, quiet)


def _list_examples() -> None:
    for name, text in program.examples().items():
        typer.echo(f"{name:16} {text}")


def _list_workloads() -> None:
    from simt.workloads import WORKLOADS

    for workload in WORKLOADS.values():
        sizes = ", ".join(str(n) for n in workload.sizes)
        typer.echo(f"{workload.name:12} {workload.summary}\n{'':12} {workload.unit}: {sizes}")


def _require_functional(path: Path, found: Path | Workload | None, *, writes: bool, timed: bool) -> None:
    """Raises LaunchError for what --functional does not go with.

    found: the program. writes: files are to be written. timed: options of a timed run are given.
    """
    if found is None:
        raise LaunchError(f"{path}: --functional applies to programs only; a trace holds no values")
    if writes:
        raise LaunchError(
            f"{path}: --functional computes values only, so there is no Result to write; "
            "leave out --functional, or --output, --json and --perfetto"
        )
    if timed:
        raise LaunchError(
            f"{path}: --functional has neither cycles nor a Result; leave out --max-cycles and --resume"
        )


def _under_cap(
    once: Callable[[Options], Result], options: Options, cap: float, output: Path | None
) -> Result:
    """The run at the highest clock whose power is under the cap, saved; its warnings say what was tried."""
    from simt.power import at_clock, energies_of, under_cap

    assert isinstance(options, (TraceOptions, GpuOptions))
    if options.resume or (isinstance(options, GpuOptions) and options.functional):
        raise SimtError("--power-cap goes with neither --resume nor --functional")
    spec = load_spec(options.gpu, override_texts(options.set))
    energies = energies_of(options.power or True, spec.name)
    assert energies is not None
    if options.clock is not None:
        spec = load_spec(spec, at_clock(spec, options.clock))
    capped = under_cap(lambda mhz: once(replace(options, clock=mhz, output=None)), spec, energies, cap)
    result = replace(capped.result, warnings=(*capped.result.warnings, capped.sentence))
    if output is not None:
        result.save(output)
    return result


@dataclass(frozen=True)
class _Verified:
    """Which launches cut short a second run of a program simulates in full: a share of them, and a seed."""

    share: float
    seed: int


def _run_program(
    path: Path | Workload, options: GpuOptions, driver: Path | None, size: int | None, verified: _Verified
) -> Result:
    """Runs a program, and a second time if launches are verified.

    Raises Interrupted with the finished launches; saves the finished launches before exceptions of the
    program propagate.
    """
    from simt.gpu import GPU

    limits = Limits(timeout=options.timeout)
    options = replace(options, timeout=None)
    device = GPU(**options.keywords())
    result: Result | None = None
    try:
        with stoppable(limits.timeout_left):
            try:
                program.run_program(path, device, driver, size)
            except SystemExit as end:
                if end.code:
                    raise
            device.synchronize()
        with deferred_stop():
            result = _saved(device, "complete")
    except KeyboardInterrupt as stop:
        number = number_of(stop)
        if is_alarm(number):
            return _saved(device, "timeout")
        raise Interrupted(result or _saved(device, "interrupted"), number) from None
    except SimulationError as error:
        device.save(error.result)
        raise
    except BaseException as error:  # of the program: raised again after the finished launches are saved
        if not isinstance(error, ResultError) and not device.functional:
            _say_how_to_go_on(_saved(device, "failed"), options.output)
        raise
    if not verified.share:
        return result
    try:
        with stoppable(limits.timeout_left):
            result = _verify(
                result, lambda gpu: program.run_program(path, gpu, driver, size), options, verified
            )
    except KeyboardInterrupt as stop:
        if not is_alarm(number_of(stop)):
            raise Interrupted(result, number_of(stop)) from None
        result = replace(result, status="timeout")
    device.save(result)
    return result


def _verify(result: Result, run: Callable[[GPU], None], options: GpuOptions, verified: _Verified) -> Result:
    """The Result with the errors of some of the launches cut short, which a second run simulates in full."""
    from simt.control.accuracy import choose, verification, with_accuracy
    from simt.gpu import GPU

    wanted = choose(result, verified.share, verified.seed)
    if not wanted:
        return result
    again = GPU(**replace(options.in_full(), plan=wanted).keywords())
    with contextlib.redirect_stdout(io.StringIO()):  # its output has been printed already
        run(again)
    found = verification(result, again.result(), verified.share, verified.seed)
    assert not isinstance(options.plan, Collection)  # numbers of launches are for Python
    return with_accuracy(result, options.plan, found)


def _saved(device: GPU, status: str) -> Result:
    """Saves the finished launches of a device and returns them."""
    result = device.result(status)
    device.save(result)
    return result


def _deliver(result: Result, perfetto_: Path | None, json_: str | None, quiet: bool) -> None:
    if perfetto_ is not None:
        from simt.result import perfetto

        perfetto.write(result, perfetto_)
    if json_ is not None and json_ != "-":
        write_text(Path(json_), dump(result.to_json()))
    if not quiet:
        show_result(result, Console(stderr=json_ == "-"))
    if json_ == "-":
        sys.stdout.write(dump(result.to_json()) + "\n")


def _say_how_to_go_on(result: Result, output: str | os.PathLike[str] | None) -> None:
    """Saves the finished launches if no output was given, and says where they are."""
    if not result.launches and not result.unfinished:
        typer.echo("No launch had finished.", err=True)
        return
    saved = Path(output) if output else result.save(_free_name(Path("simt-interrupted")))
    done, left = len(result.launches), len(result.unfinished)
    count = f"{done} of {done + left} launches" if left else plural(done, "launch")
    are = "is" if done == 1 and not left else "are"
    typer.echo(f"{count} {are} finished and saved in {saved}. Continue with:", err=True)
    typer.echo(f"  {_resume_command(saved)}", err=True)


def _free_name(path: Path) -> Path:
    candidate, n = path, 1
    while candidate.exists():
        n += 1
        candidate = path.with_name(f"{path.name}-{n}")
    return candidate


def _resume_command(saved: Path) -> str:
    """The command line that resumes this run."""
    arguments = [a for a in sys.argv[1:] if a != "--resume"]
    if not any(a in ("-o", "--output") or a.startswith("--output=") for a in arguments):
        arguments += ["--output", str(saved)]
    return shlex.join(["simt", *arguments, "--resume"])
