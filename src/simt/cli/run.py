"""`simt run`: simulate the launches of a trace or of a program."""

from __future__ import annotations

import contextlib
import io
import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from simt import program
from simt.cli import COMMANDS, LIMIT_EXIT, ending_by_signals, run_options, sampling_options
from simt.cli.sampling_options import SamplingOptions
from simt.cli.tables import show_result
from simt.errors import Interrupted, LaunchError, LimitReached, ResultError, SimtError, SimulationError
from simt.files import require_output, write_text
from simt.formatting import plural
from simt.result import Result
from simt.result.files import dump
from simt.run.interruption import Limits, deferred_stop, is_alarm, number_of, stoppable
from simt.run.overrides import override_texts
from simt.run.record import require_place
from simt.simulate import simulate

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
def run(
    path: Annotated[
        Path | None,
        typer.Argument(
            help="A trace (kernelslist.g, a directory with one, a kernel trace, a .simt store), a program "
            "(.py, .cu, .ptx, .cubin, .fatbin), or the name of an example or a workload.",
        ),
    ] = None,
    gpu: Annotated[
        str, typer.Option("--gpu", help="GPU specification: a name listed by `simt gpus`, or a TOML file.")
    ] = "qv100",
    set_: run_options.Set = None,
    kernels: Annotated[
        str | None, typer.Option(help="Launches to simulate: ids, ranges, names, /regular expressions/.")
    ] = None,
    threads: run_options.Threads = 1,
    max_cycles: run_options.MaxCycles = None,
    timeout: run_options.Timeout = None,
    timeline: run_options.Timeline = None,
    power: run_options.Power = False,
    energies: run_options.Energies = None,
    clock: run_options.Clock = None,
    power_cap: Annotated[
        float | None,
        typer.Option(
            metavar="W",
            help="Run at the highest core clock whose average power is under this; the input is simulated "
            "several times.",
        ),
    ] = None,
    output: run_options.Output = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Continue the interrupted run with this --output; caches start afresh."
        ),
    ] = False,
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
    functional: run_options.Functional = False,
    code: run_options.Code = "ptx",
    tensor_arithmetic: run_options.TensorArithmetic = "hardware",
    size: Annotated[
        int | None, typer.Option(help="Size of a workload; by default the smallest that --workloads lists.")
    ] = None,
    workloads: Annotated[
        bool, typer.Option("--workloads", help="List the workloads with their sizes.")
    ] = False,
    examples: Annotated[bool, typer.Option("--examples", help="List the ready examples.")] = False,
    sample: run_options.Sample = None,
    sample_set: run_options.SampleSet = None,
    plan: run_options.Plan = None,
    launches: run_options.Launches = None,
    capture_range: run_options.CaptureRange = None,
    verify: Annotated[
        str | None,
        typer.Option(
            metavar="PERCENT",
            help="Share of the launches cut short by --sample that are also simulated in full, such as 5%. "
            "A program then runs a second time.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed for the launches that --verify chooses.")] = 0,
    full: run_options.Full = None,
    outside: Annotated[
        bool, typer.Option("--outside", help="Allow a launch list to name files outside its folder.")
    ] = False,
    quiet: run_options.Quiet = False,
) -> None:
    if examples:
        return _list_examples()
    if workloads:
        return _list_workloads()
    if path is None:
        raise typer.BadParameter("a trace or a program is missing")
    sampling = sampling_options.parse(sample, sample_set, plan, verify, seed, full)
    found = program.find_program(path)
    if functional:
        _require_functional(
            path, found, writes=bool(output or json_ or perfetto_), timed=max_cycles is not None or resume
        )
    if found is not None and kernels is not None:
        raise LaunchError(f"{path}: --kernels applies to traces only")
    if found is None and tensor_arithmetic != "hardware":
        raise LaunchError(f"{path}: --tensor-arithmetic applies to programs only; a trace holds no values")
    if found is None and capture_range is not None:
        raise LaunchError(f"{path}: --capture-range applies to programs only; a trace holds no ranges")
    if output is not None:
        require_place(output)
    for file in (perfetto_, Path(json_) if json_ and json_ != "-" else None):
        if file is not None:
            require_output(file)

    def once(core_mhz: float | None, output: Path | None) -> Result:
        if found is None:
            return simulate(
                path,
                gpu,
                set=set_,
                kernels=kernels,
                threads=threads,
                max_cycles=max_cycles,
                timeout=timeout,
                timeline=timeline,
                power=energies or power,
                clock=core_mhz,
                progress=not quiet,
                output=output,
                resume=resume,
                controller=sampling.controller,
                plan=sampling.plan,
                launches=launches,
                verify=sampling.share,
                seed=sampling.seed,
                outside=outside,
            )
        make = partial(
            _gpu,
            gpu,
            functional=functional,
            code=code,
            tensor_arithmetic=tensor_arithmetic,
            set=override_texts(set_),
            threads=threads,
            timeline=timeline,
            power=energies or power,
            clock=core_mhz,
            progress=not quiet,
        )
        kept = {
            "max_cycles": max_cycles,
            "output": output,
            "resume": resume,
            "launches": launches,
            "capture_range": capture_range,
        }
        # With --json - what the program prints goes where the table does.
        with contextlib.redirect_stdout(sys.stderr if json_ == "-" else sys.stdout):
            return _run_program(found, make, kept, driver, size, sampling, timeout)

    def simulated() -> Result:
        if power_cap is None:
            return once(clock, output)
        if resume or functional:
            raise SimtError("--power-cap goes with neither --resume nor --functional")
        result = _under_cap(once, gpu, set_, energies, clock, power_cap)
        if output is not None:
            result.save(output)
        return result

    with ending_by_signals():
        number = 0
        try:
            with stoppable():
                result = simulated()
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
                if not functional and result.status != "complete":
                    _say_how_to_go_on(result, output)
            elif not result.launches and not functional:
                none = "; ".join(result.warnings) if launches or capture_range else "no kernel was launched"
                typer.echo(f"{path}: {none}, so there is no Result.", err=True)
            if result.launches:
                compared = sampling.compared(result)
                if output is not None and compared is not result:
                    compared.save(output)
                _deliver(compared, perfetto_, json_, quiet)
    if number or limited:
        raise typer.Exit(128 + number if number else LIMIT_EXIT)


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
    once: Callable[[float | None, Path | None], Result],
    gpu: str,
    set_: list[str] | None,
    energies: str | None,
    clock: float | None,
    cap: float,
) -> Result:
    """The run at the highest clock whose power is under the cap; its warnings say what was tried."""
    from simt.power import at_clock, load_energies, under_cap
    from simt.spec import load_spec

    spec = load_spec(gpu, override_texts(set_))
    if clock is not None:
        spec = load_spec(spec, at_clock(spec, clock))
    capped = under_cap(lambda mhz: once(mhz, None), spec, load_energies(energies or spec.name), cap)
    return replace(capped.result, warnings=(*capped.result.warnings, capped.sentence))


def _gpu(*arguments: Any, **options: Any) -> GPU:
    from simt.gpu import GPU

    return GPU(*arguments, **options)


def _run_program(
    path: Path | Workload,
    make: Callable[..., GPU],
    kept: Mapping[str, Any],
    driver: Path | None,
    size: int | None,
    sampling: SamplingOptions,
    timeout: float | None,
) -> Result:
    """Runs a program, and a second time if launches are verified.

    make: makes a GPU for it.
    kept: options of the GPU whose Result is saved.

    Raises Interrupted with the finished launches; saves the finished launches before exceptions of the
    program propagate.
    """
    limits = Limits(timeout=timeout)
    device = make(controller=sampling.controller, plan=sampling.plan, **kept)
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
            _say_how_to_go_on(_saved(device, "failed"), kept["output"])
        raise
    if not sampling.share:
        return result
    try:
        with stoppable(limits.timeout_left):
            result = _verified(
                result, lambda gpu: program.run_program(path, gpu, driver, size), make, sampling
            )
    except KeyboardInterrupt as stop:
        if not is_alarm(number_of(stop)):
            raise Interrupted(result, number_of(stop)) from None
        result = replace(result, status="timeout")
    device.save(result)
    return result


def _verified(
    result: Result, run: Callable[[GPU], None], make: Callable[..., GPU], sampling: SamplingOptions
) -> Result:
    """The Result with the errors of some of the launches cut short, which a second run simulates in full."""
    from simt.control.accuracy import choose, verification, with_accuracy

    wanted = choose(result, sampling.share, sampling.seed)
    if not wanted:
        return result
    again = make(plan=wanted)
    with contextlib.redirect_stdout(io.StringIO()):  # its output has been printed already
        run(again)
    verified = verification(result, again.result(), sampling.share, sampling.seed)
    return with_accuracy(result, sampling.plan, verified)


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


def _say_how_to_go_on(result: Result, output: Path | None) -> None:
    """Saves the finished launches if no output was given, and says where they are."""
    if not result.launches and not result.unfinished:
        typer.echo("No launch had finished.", err=True)
        return
    saved = output or result.save(_free_name(Path("simt-interrupted")))
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
