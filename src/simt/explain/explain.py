"""`explain`: takes a program, a trace or a Result apart, and simulates its longest launch without each
cause."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simt.errors import ResultError, SimtError
from simt.options import DEFAULT_GPU, Code
from simt.program import SUFFIXES, binds_main, find_program, is_whole, run_program, script_of
from simt.result import LaunchResult, Result
from simt.result.stack import stack
from simt.run.overrides import override_texts
from simt.simulate import simulate
from simt.spec import Spec, load_spec

from .bounds import bounds
from .causes import CAUSES, Cause, Gain
from .chains import blamed, chains
from .explanation import Explanation

if TYPE_CHECKING:
    from simt.gpu import GPU

Program = Callable[["GPU"], object]
_SPECIFIC = 0.7  # of a general cause's saving: a cause within it that saves as much is named first
_SAME = 0.01  # relative: a replayed trace that takes another time is said


def explain(
    target: Result | str | os.PathLike[str] | Program,
    gpu: str | os.PathLike[str] | Spec = DEFAULT_GPU,
    *,
    arguments: Sequence[str] = (),
    launch: int | None = None,
    run: Program | None = None,
    set: Mapping[str, Any] | Iterable[str] | None = None,
    code: Code = "ptx",
    driver: Path | None = None,
    size: int | None = None,
    threads: int = 1,
    causes: Collection[str] | None = None,
    report: Callable[[str], None] | None = None,
) -> Explanation:
    """Why a launch takes its time, and what would help: the parts of its time, lower bounds by resource, who
    waits for whom, and the gain of removing each cause, found by simulating the launch again without it.

    target: a Result; or a program, example or workload as for `simt run`, a trace, or a function of a GPU.
        A program with its own `main` (`.cu`), an executable file and a command are executed as by `simt
        exec`, once for each cause that a value of the specification removes.
    arguments: of a program with its own `main`, an executable file or a command.
    gpu, set, code: where a target that is no Result is simulated. driver, size: of a program, as for `simt
    run`.
    launch: its id; None: the longest.
    run: what made the Result, if its `provenance.input` is no program that can be run again.
    threads: host threads. causes: names of those to remove, maybe none; None: all that the launch has.
    report: is called with a line before each simulation.

    A program is executed once more to record a trace, on which the simulations without causes run: its values
    do not change. Raises ResultError for a Result without launches, and SimtError for bad input.
    """
    wanted = [c for c in CAUSES if causes is None or c.name in causes]
    with contextlib.ExitStack() as held:
        subject = _subject(
            target, arguments, gpu, override_texts(set), code, run, driver, size, threads, bool(wanted), held
        )
        return _explained(subject, launch, wanted, report or (lambda _: None))


def _explained(
    subject: _Subject, launch: int | None, wanted: Collection[Cause], report: Callable[[str], None]
) -> Explanation:
    result = subject.result
    if not result.launches:
        raise ResultError("nothing to explain: the Result has no finished launches")
    chosen = max(result.launches, key=lambda x: x.cycles) if launch is None else _of_id(result, launch)
    spec, notes = subject.spec, list(subject.notes)
    gains: tuple[Gain, ...] = ()
    if wanted and (subject.run is not None or subject.trace is not None or subject.execute is not None):
        with tempfile.TemporaryDirectory(prefix="simt-explain-") as folder:
            gains = _gains(subject, chosen, wanted, Path(folder), notes, report)
    share = dict(zip((x.id for x in result.launches), result.shares, strict=True))[chosen.id]
    return Explanation(
        chosen,
        share / max(1, result.totals.cycles),
        stack(chosen),
        () if spec is None else bounds(chosen, spec),
        chains(chosen),
        gains,
        tuple(notes),
    )


def _of_id(result: Result, launch: int) -> LaunchResult:
    try:
        return result[launch]
    except KeyError:
        ids = [x.id for x in result.launches]
        raise ResultError(
            f"launch {launch}: no finished launch has this id; there are {len(ids):,}, from {min(ids)} to "
            f"{max(ids)}"
        ) from None


@dataclass
class _Subject:
    """What is explained. run: executes it again; trace: its trace, if it is one. execute: of a process, runs
    it with these overrides, and one of its launches or all with timing.
    """

    result: Result
    spec: Spec | None
    overrides: dict[str, Any]
    gpu: str | os.PathLike[str] | Spec
    code: Code
    threads: int
    run: Program | None = None
    trace: Path | None = None
    execute: Callable[[Mapping[str, Any], int | None], Result] | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def is_machine_code(self) -> bool:
        return self.result.provenance.code == "machine code"


def _subject(
    target: Result | str | os.PathLike[str] | Program,
    arguments: Sequence[str],
    gpu: str | os.PathLike[str] | Spec,
    overrides: dict[str, Any],
    code: Code,
    run: Program | None,
    driver: Path | None,
    size: int | None,
    threads: int,
    simulates: bool,
    held: contextlib.ExitStack,
) -> _Subject:
    path = None if isinstance(target, Result) or callable(target) else Path(target)
    command = path is not None and _is_command(path, arguments)
    found = None if path is None or command else find_program(path)
    whole = isinstance(found, Path) and is_whole(found, driver)
    if arguments and not (command or whole):
        raise SimtError(
            f"{target if path else 'a Result or a function'}: takes no arguments ({arguments[0]!r}); a .cu "
            "program with its own main, an executable file and a command do"
        )
    if isinstance(target, Result):
        return _of_result(target, run, threads, simulates)
    spec = load_spec(gpu, overrides)
    if callable(target):
        return _Subject(
            _timed(target, gpu, overrides, code, threads), spec, overrides, gpu, code, threads, target
        )
    assert path is not None
    if command or whole:
        execute = _executing(path, arguments, spec, code, threads, held)
        return _Subject(execute(overrides, None), spec, overrides, gpu, code, threads, execute=execute)
    if found is None:
        result = simulate(path, gpu=gpu, set=overrides, threads=threads)
        return _Subject(result, spec, overrides, gpu, code, threads, trace=path)

    def again(device: GPU) -> None:
        run_program(found, device, driver, size)

    return _Subject(_timed(again, gpu, overrides, code, threads), spec, overrides, gpu, code, threads, again)


def _is_command(path: Path, arguments: Sequence[str]) -> bool:
    """Whether this is an executable file, or the name of one that the shell would find, with arguments."""
    if path.suffix in SUFFIXES:
        return False
    if path.is_file():
        return os.access(path, os.X_OK)
    return bool(arguments) and not path.exists() and shutil.which(path) is not None


def _executing(
    path: Path,
    arguments: Sequence[str],
    spec: Spec,
    code: Code,
    threads: int,
    held: contextlib.ExitStack,
) -> Callable[[Mapping[str, Any], int | None], Result]:
    """Runs a program as by `simt exec`; what a source file is compiled to exists until `held` ends."""
    from simt.cuda.nvcc import LEAST_ARCH, compiled_program
    from simt.exec import run

    program, newer = path, dict[str, str]()
    if path.suffix == ".cu":
        arch = max(spec.sm_version, LEAST_ARCH)
        program = held.enter_context(compiled_program(path, arch))
        if arch != spec.sm_version and code == "ptx":
            newer["sm_version"] = str(arch)

    def execute(overrides: Mapping[str, Any], launch: int | None) -> Result:
        region = None if launch is None else str(launch)
        ended = run(
            [program, *arguments],
            gpu=spec,
            set={**overrides, **newer},
            code=code,
            threads=threads,
            launches=region,
            name=str(path),
        )
        if ended.status or not ended.results:
            raise SimtError(
                f"{path}: it ended with status {ended.status}, after {len(ended.results)} Results"
            )
        return max(ended.results, key=lambda result: result.totals.cycles)

    return execute


def _of_result(result: Result, run: Program | None, threads: int, simulates: bool) -> _Subject:
    p, spec, notes = result.provenance, None, []
    try:
        spec = load_spec(p.gpu, p.overrides)
        if spec.hash != p.spec_hash:
            spec = None
    except SimtError:
        pass
    if spec is None:
        notes.append(
            f"{p.gpu}: the specification that the Result was simulated with is not here, so there are "
            f"neither lower "
            "bounds nor gains"
        )
    code: Code = "sass" if p.code == "machine code" else "ptx"
    found = _Subject(result, spec, dict(p.overrides), p.gpu, code, threads, run, notes=notes)
    if run is None and spec is not None and simulates:
        path = Path(p.input)
        if p.code == "trace" and path.exists():
            found.trace = path
        elif path.suffix in SUFFIXES and path.exists() and not is_whole(path) and _has_main(path):
            found.run = lambda device: run_program(path, device)
        elif not path.suffix and (program := _named(path)) is not None:
            found.run = lambda device: run_program(program, device)
        else:
            notes.append(
                f"{p.input}: what made the Result cannot be run again from here, so causes are not removed: "
                f"give "
                "`run`, or explain the program"
            )
    if spec is None:
        found.run = found.trace = None
    return found


def _has_main(path: Path) -> bool:
    try:
        return binds_main(script_of(path, None))
    except SimtError:
        return False


def _named(path: Path) -> Any:
    try:
        return find_program(path)
    except SimtError:
        return None


def _timed(
    run: Program, gpu: str | os.PathLike[str] | Spec, overrides: dict[str, Any], code: Code, threads: int
) -> Result:
    from simt.gpu import GPU

    device = GPU(gpu, set=overrides, code=code, threads=threads)
    run(device)
    return device.result()


def _record(subject: _Subject, path: Path, **options: Any) -> Path:
    from simt.gpu import GPU

    assert subject.run is not None
    device = GPU(
        subject.gpu, set=subject.overrides, code=subject.code, functional=True, threads=subject.threads
    )
    with device.trace(path, **options), contextlib.redirect_stdout(io.StringIO()):
        subject.run(device)
    return path


def _gains(
    subject: _Subject,
    launch: LaunchResult,
    wanted: Iterable[Cause],
    folder: Path,
    notes: list[str],
    report: Callable[[str], None],
) -> tuple[Gain, ...]:
    assert subject.spec is not None
    trace = subject.trace or folder / "trace.simt"
    if subject.trace is None and subject.run is not None:
        report("recording a trace")
        trace = _record(subject, trace)

    def cycles(overrides: Mapping[str, Any], of: Path) -> int:
        if subject.execute is not None:
            return subject.execute({**subject.overrides, **overrides}, launch.id)[launch.id].cycles
        result = simulate(
            of,
            gpu=subject.gpu,
            set={**subject.overrides, **overrides},
            threads=subject.threads,
            launches=[launch.id],
        )
        return result[launch.id].cycles

    report("simulating the launch alone" if subject.execute else "simulating the trace")
    before = cycles({}, trace)
    if abs(before - launch.cycles) > _SAME * launch.cycles:
        notes.append(
            f"the launch takes {before:,} cycles when it is simulated alone and {launch.cycles:,} in the "
            "Result: gains are of the former"
        )
    found: list[Gain] = []
    for cause in wanted:
        if not cause.occurs(launch) or (subject.is_machine_code and cause.of_ptx):
            continue
        overrides, of = cause.removed(subject.spec), trace
        try:
            if cause.recorded and subject.run is not None:
                overrides, of = {}, _record(subject, folder / "without.simt", **cause.recorded)
            elif overrides is None:
                if cause.recorded:
                    what = "a program in a process of its own" if subject.execute else "a trace"
                    notes.append(f"{cause.name}: cannot be removed from {what}; explain its kernel")
                continue
            report(f"simulating without {cause.name}")
            after = cycles(overrides, of)
        except SimtError as error:
            notes.append(f"{cause.name}: could not be removed: {error}")
            continue
        with_it = launch.cycles if cause.ordered and subject.run is not None else before
        found.append(Gain(cause, after, with_it / max(1, after), blamed(launch, cause.states, cause.opcodes)))
    return tuple(_ordered(found))


def _ordered(gains: list[Gain]) -> list[Gain]:
    """Largest first; but a cause within a more general one before that, if it saves nearly as much."""
    order = sorted(gains, key=lambda g: -g.speedup)
    by_name = {g.cause.name: g for g in gains}
    for gain in sorted(gains, key=lambda g: g.speedup):
        general = by_name.get(gain.cause.within)
        if general is None or order.index(gain) < order.index(general):
            continue
        if gain.saved >= _SPECIFIC * general.saved > 0:
            order.remove(gain)
            order.insert(order.index(general), gain)
    return order
