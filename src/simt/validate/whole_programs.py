"""Runs whole programs as their recipes say (`simt.validate.recipes`), and compares them with measured values.

Finished rows are kept in OUT/rows.jsonl, one line each. A row counts as done for one GPU (the hash of its
values), one engine (the hash of the compiled file), one code, and one way of running it (the hash of what the
recipe says): after a change, it is simulated again, and so is one that has failed.
"""

from __future__ import annotations

import csv
import hashlib
import json
import math
import runpy
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

import simt._engine
from simt.cuda.nvcc import LEAST_ARCH, command_for
from simt.cuda.ptxas import can_assemble
from simt.errors import CompileError, LimitReached, ProfileError, SimtError
from simt.files import require_folder
from simt.formatting import plural
from simt.options import Code
from simt.profile import Profile
from simt.result import LaunchResult, Result
from simt.sass.disassembler import is_installed
from simt.spec import Spec, load_spec
from simt.validate.correlation import CYCLES, Correlation, MeasuredProgram, correlate
from simt.validate.recipes import OWN, End, Recipe, Row, folder_of
from simt.validate.row_errors import (
    ROWS,
    ErrorRow,
    RunFeatures,
    error_rows,
    present_model,
    record_rows,
    shares_of_waiting,
)

if TYPE_CHECKING:
    from simt.exec import Finished

RECORD = Path(__file__).with_name("whole_programs.csv")
"""Errors of suites whose rows were recorded together, not one by one. Nothing is added to it."""
CORE = "clock.core_mhz"
CLOCKS = {"core": (CORE, "clock.interconnect_mhz", "clock.l2_mhz"), "dram": ("clock.dram_mhz",)}
"""Fields of the specification that follow a clock."""
_STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
# Discards what the program prints, and starts it in its folder.
_SHELL = 'cd "$1" && shift && log=$1 && shift && exec "$@" >"$log" 2>&1'


@dataclass(frozen=True)
class RowOutcome:
    """A row that was simulated, or could not be.

    status: "done", "limit" (not finished within the time limit), or "failed: ...".
    gpu: name of the specification.
    measured, simulated: core cycles; measured times are converted at the clock that the row ran at. measured
        is 0 if only counters were measured.
    unclear: why it is not part of the means; empty if it is.
    counters: simulated and measured value by counter.
    stalls: share of warp-cycles by state, largest first.
    sampling: the controller; empty: simulated whole. half_width: of the 95 % interval of simulated, as a
        share of it, as if all launches erred together; NaN if a launch states none.
    compared: how many launches the simulated value adds up; 0: all.
    """

    gpu: str
    spec: str
    engine: str
    run: str
    code: str
    suite: str
    program: str
    row: str
    use: str
    unclear: str
    status: str
    measured: float
    simulated: float
    launches: int
    instructions: int
    counters: Mapping[str, tuple[float, float]]
    stalls: Mapping[str, float]
    host_seconds: float
    sampling: str = ""
    half_width: float = 0.0
    compared: int = 0

    @property
    def key(self) -> tuple[str, ...]:
        return self.spec, self.engine, self.run, self.code, self.sampling, self.suite, self.row

    @property
    def error(self) -> float:
        """(simulated - measured) / measured; NaN where no time was measured."""
        return self.simulated / self.measured - 1 if self.measured else math.nan

    @property
    def counts(self) -> bool:
        """Whether it is part of the means."""
        return self.status == "done" and not self.unclear

    @property
    def is_sampled(self) -> bool:
        """Whether something was left out of it: a method may find nothing to leave out."""
        return bool(self.sampling) and self.half_width != 0

    def error_row(self, commit: str = "") -> ErrorRow:
        """What is recorded of it."""
        n = max(1, self.launches)
        cycles = self.simulated / (self.compared or n)
        sm_version = load_spec(self.gpu).sm_version
        features = RunFeatures(
            self.gpu,
            sm_version,
            self.code,
            cycles,
            self.instructions / n,
            shares_of_waiting(self.stalls),
        )
        about = self.suite, self.program, self.row, self.measured / self.simulated, self.use
        sampled = (self.sampling, self.half_width) if self.is_sampled else ("", 0.0)
        return ErrorRow(
            features, *about, *sampled, present_model(self.gpu), commit, time.strftime("%Y-%m-%d")
        )

    def stall_text(self, most: int = 3) -> str:
        """The states in which its warps were most of the time."""
        return ", ".join(f"{name} {100 * share:.0f} %" for name, share in list(self.stalls.items())[:most])


@dataclass(frozen=True)
class Setting:
    """Where things are, and how rows are run.

    out: folder for programs, logs and finished rows.
    sources: folder with a checkout of each source under its name.
    code: "ptx" or "sass"; see `recommended_code`.
    limit: host seconds for a row. set: values of the specification to override; with a core clock among
        them, that of the recipe does not count.
    end: at which end of the range rows run whose clock is unknown; None: at the specification's.
    scale: factors of clocks ("core", "dram").
    controller: how launches are sampled, as in `simt.options`; None: simulated whole.
    """

    out: Path
    sources: Path | None
    code: str = "ptx"
    limit: float = 60.0
    set: Mapping[str, Any] | None = None
    threads: int = 1
    end: End | None = None
    scale: Mapping[str, float] = field(default_factory=dict)
    controller: str | None = None


def run_rows(rows: Iterable[Row], setting: Setting, told: Callable[[RowOutcome], None]) -> list[RowOutcome]:
    """Simulates rows of one GPU, those measured to be short first. Rows that are done already are not
    simulated again; one that failed is. Once a row of a program takes longer than the limit, so do its longer
    ones, which are not tried.

    told: is called with each row that was simulated now.

    Raises SimtError for what concerns all rows of a program, such as a source that is not there.
    """
    require_folder(setting.out)
    setting.out.mkdir(parents=True, exist_ok=True)
    known = {outcome.key: outcome for outcome in read_outcomes(setting.out)}
    found, built, late = [], dict[int, Path](), set[int]()
    for row in sorted(rows, key=lambda row: row.measured):
        values = clocked(row.recipe, setting)
        spec = load_spec(row.recipe.gpu, values)
        measured = row.measured if row.in_cycles else row.measured * spec.clock.core_mhz / 1e3
        key: tuple[str, ...] = (spec.hash[:16], engine_hash(), run_hash(row), setting.code)
        key += (setting.controller or "", row.recipe.suite, row.name)
        done = known.get(key)
        if done is None or done.status != "done":
            recipe = row.recipe
            if id(recipe) not in built:
                built[id(recipe)] = build(recipe, spec.sm_version, setting.out.resolve(), setting.sources)
            start = time.monotonic()
            status, launches = "limit", list[LaunchResult]()
            if id(recipe) not in late:
                status, launches = _simulated(row, built[id(recipe)], spec, replace(setting, set=values))
            if status == "limit":
                late.add(id(recipe))
            outcome = _outcome(row, spec, setting, status, launches, measured, time.monotonic() - start)
            if done is None or status != done.status:
                _append(setting.out / "rows.jsonl", outcome)
            told(outcome)
            done = outcome
        found.append(replace(done, measured=measured, use=row.recipe.use, unclear=row.recipe.not_counted))
    return found


def clocked(recipe: Recipe, setting: Setting) -> dict[str, Any]:
    """Overrides of the specification for a row: those of the setting, with the clocks that it runs at.
    Crossbar and L2 follow the core."""
    values, stated = dict(setting.set or {}), recipe.table.clock
    clock = load_spec(recipe.gpu, values).clock
    mhz = {"core": clock.core_mhz, "dram": clock.dram_mhz}
    wanted = dict(mhz)
    if stated and CORE not in values:
        wanted["core"] = stated.mhz(setting.end) or clock.core_mhz
    for name, fields_ in CLOCKS.items():
        wanted[name] *= setting.scale.get(name, 1.0)
        if wanted[name] != mhz[name]:
            for path in fields_:
                values[path] = getattr(clock, path.removeprefix("clock.")) * wanted[name] / mhz[name]
    return values


def recommended_code(spec: Spec) -> Code:
    """What to execute where times are compared: machine code, as the measured GPU did, where it can be made,
    decoded and executed; else PTX (docs/machine-code-and-ptx.md)."""
    from_volta = spec.sm_version >= 70
    return "sass" if from_volta and can_assemble(f"sm_{spec.sm_version}") and is_installed() else "ptx"


def read_outcomes(out: Path) -> list[RowOutcome]:
    """The rows in OUT/rows.jsonl, without a last line that an interruption has cut off.

    Raises ProfileError for a damaged line.
    """
    path = out / "rows.jsonl"
    if not path.exists():
        return []
    found = []
    whole, _, _unfinished = path.read_text(encoding="utf-8").rpartition("\n")
    for number, line in enumerate(whole.splitlines(), 1):
        try:
            data = json.loads(line)
            data["counters"] = {name: tuple(pair) for name, pair in data["counters"].items()}
            found.append(RowOutcome(**data))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ProfileError(f"{path}:{number}: not a finished row: {error}") from None
    return found


def _append(path: Path, outcome: RowOutcome) -> None:
    """Adds a line, in place of one that an interruption has cut off."""
    with path.open("ab+") as file:
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)
        file.write(json.dumps(asdict(outcome)).encode() + b"\n")


def run_hash(row: Row) -> str:
    """Tells apart what is simulated for a row: source, how it is compiled and run, what is compared."""
    recipe = row.recipe
    about: tuple[Any, ...] = (
        recipe.source,
        recipe.files,
        recipe.include,
        recipe.flags,
        recipe.folder,
        row.arguments,
    )
    about = (about, recipe.time, recipe.warm, recipe.timed, sorted(recipe.set.items()))
    digest = hashlib.sha256(repr(about).encode())
    if recipe.inputs:
        digest.update(inputs_hash(recipe).encode())
    for file in recipe.own_files():
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


@lru_cache(maxsize=1)
def engine_hash() -> str:
    """Tells one compiled engine from another."""
    return hashlib.sha256(Path(simt._engine.__file__).read_bytes()).hexdigest()[:16]


def build(recipe: Recipe, spec_sm: int, out: Path, sources: Path | None) -> Path:
    """Compiles a program once, with PTX and machine code for the GPU; one in Python stays as it is.

    Raises CompileError with nvcc's message, ToolkitError, ProfileError.
    """
    folder, arch = folder_of(recipe.source, recipe, sources), max(spec_sm, LEAST_ARCH)
    files = [recipe.path_of(name, folder) for name in recipe.files]
    for file in files:
        if not file.is_file():
            raise ProfileError(f"{file}: no such file, which {recipe.program} is compiled from")
    if recipe.in_python or recipe.is_compiled:
        return files[0]
    command = [*command_for(arch, out), "-w"]
    # CUDA 13 has no longer the old names of these two functions, which published programs use.
    command += ["-DcudaThreadSynchronize=cudaDeviceSynchronize", "-DcudaThreadExit=cudaDeviceReset"]
    command += [f"-I{recipe.path_of(name, folder)}" for name in recipe.include]
    command += [*recipe.flags, *files]
    digest = hashlib.sha256(b"\0".join(file.read_bytes() for file in (*files, *recipe.own_files())))
    digest.update(repr([str(part) for part in command]).encode())
    program = out / "programs" / f"{recipe.program}-{digest.hexdigest()[:12]}"
    if not program.is_file():
        program.parent.mkdir(parents=True, exist_ok=True)
        partial = program.with_suffix(".partial")
        done = subprocess.run([*command, "-o", partial], capture_output=True, text=True, check=False)
        if done.returncode:
            raise CompileError(f"{recipe.program}: nvcc: {(done.stderr or done.stdout).strip()}")
        partial.rename(program)
    return program


def inputs_hash(recipe: Recipe) -> str:
    """Tells one set of inputs from another: what is linked, and the scripts beside the recipe."""
    digest = hashlib.sha256(repr(recipe.inputs).encode())
    for each in recipe.inputs:
        if each.source.name == OWN:
            digest.update((recipe.place / each.path).read_bytes())
    return digest.hexdigest()[:12]


def prepare(recipe: Recipe, out: Path, sources: Path | None) -> Path:
    """The folder with a program's inputs, which is made once. Raises ProfileError."""
    folder = out / "inputs" / f"{recipe.program}-{inputs_hash(recipe)}"
    if folder.is_dir():
        return folder
    partial = folder.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    for each in recipe.inputs:
        file = folder_of(each.source, recipe, sources) / each.path
        if not file.is_file():
            raise ProfileError(f"{file}: no such file, which {recipe.program} needs")
        if not each.is_script:
            link = partial / each.path
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(file.resolve())
            continue
        command: list[str | Path] = [sys.executable, file.resolve(), *each.arguments]
        done = subprocess.run(command, cwd=partial, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ProfileError(f"{recipe.program}: {file} failed: {done.stderr.strip()}")
    partial.rename(folder)
    return folder


def _options(row: Row, setting: Setting) -> dict[str, Any]:
    """Options of a run that the row and the setting say."""
    return {
        "code": setting.code,
        "threads": setting.threads,
        "controller": setting.controller,
        "timeout": setting.limit,
        "set": {**(setting.set or {}), **row.recipe.set},
        "plan": set(row.recipe.timed) or None,
    }


def run_program(
    row: Row, program: Path, spec: Spec, setting: Setting, **options: Any
) -> tuple[Finished, Path]:
    """Runs a compiled program as its row says: what came out, and the file with what the program printed.

    options: further ones of `simt.exec.run`. Raises SimtError.
    """
    from simt.exec import run

    recipe, folder = row.recipe, setting.out
    given = {**_options(row, setting), **options}
    if recipe.inputs:
        folder = prepare(recipe, folder.resolve(), setting.sources) / recipe.folder
        folder.mkdir(parents=True, exist_ok=True)
    name = f"{recipe.suite} {row.name}.txt".replace("/", "-").replace(" ", "_")
    log = setting.out.resolve() / "logs" / name
    log.parent.mkdir(parents=True, exist_ok=True)
    command: list[str | Path] = ["sh", "-c", _SHELL, "sh", folder.resolve(), log, program, *row.arguments]
    if setting.code == "ptx" and spec.sm_version < LEAST_ARCH:  # else it would refuse nvcc's PTX
        given["set"]["sm_version"] = LEAST_ARCH
    return run(command, recipe.gpu, **given), log


def _simulated(row: Row, program: Path, spec: Spec, setting: Setting) -> tuple[str, list[LaunchResult]]:
    """Runs a program: status of its row, and the timed launches."""
    recipe = row.recipe
    if recipe.in_python:
        return _simulated_python(row, program, setting)
    try:
        finished, log = run_program(row, program, spec, setting)
    except SimtError as error:
        return f"failed: {error}", []
    launches = [launch for result in finished.results for launch in timed_launches(result, recipe)]
    if finished.stopped:
        return "limit", launches
    if finished.status:
        return f"failed: the program ended with status {finished.status}; {log} has its output", launches
    if not launches:
        return f"failed: no kernel was launched; {log} has the program's output", launches
    return _status(launches, recipe), launches


def _simulated_python(row: Row, program: Path, setting: Setting) -> tuple[str, list[LaunchResult]]:
    from simt.gpu import GPU

    options = _options(row, setting)
    try:
        gpu = GPU(row.recipe.gpu, **options)
        runpy.run_path(str(program))["run"](gpu, *row.arguments)
        launches = timed_launches(gpu.result(), row.recipe)
    except LimitReached:
        return "limit", []
    except ImportError as error:
        return f"failed: {program}: {error}", []
    except SimtError as error:
        return f"failed: {error}", []
    return _status(launches, row.recipe), launches


def _status(launches: Sequence[LaunchResult], recipe: Recipe) -> str:
    if recipe.launches and len(launches) != recipe.launches:
        return f"failed: {len(launches)} launches, expected {recipe.launches}"
    return "done"


def _outcome(
    row: Row,
    spec: Spec,
    setting: Setting,
    status: str,
    launches: Sequence[LaunchResult],
    measured: float,
    seconds: float,
) -> RowOutcome:
    recipe, compared = row.recipe, compared_launches(launches, row.recipe)
    return RowOutcome(
        gpu=spec.name,
        spec=spec.hash[:16],
        engine=engine_hash(),
        run=run_hash(row),
        code=setting.code,
        suite=recipe.suite,
        program=recipe.program,
        row=row.name,
        use=recipe.use,
        unclear=recipe.not_counted,
        status=status,
        measured=measured,
        simulated=cycles_of(launches, recipe) if status == "done" else 0.0,
        launches=len(launches),
        instructions=sum(launch.warp_instructions for launch in launches),
        counters={
            name: (sum(float(x.counters[name] or 0) for x in compared), value)
            for name, value in row.counters.items()
        },
        stalls=shares(compared),
        host_seconds=seconds,
        sampling=setting.controller or "",
        half_width=_half_width(compared),
        compared=0 if recipe.time == "kernels" else 1,
    )


def _half_width(launches: Sequence[LaunchResult]) -> float:
    cycles = sum(launch.cycles for launch in launches)
    widths = (
        launch.cycles * (each.half_widths.get("cycles", 0.0 if each.decision == "full" else math.nan))
        for launch in launches
        if (each := launch.sampled)
    )
    return sum(widths) / cycles if cycles else 0.0


def timed_launches(result: Result, recipe: Recipe) -> list[LaunchResult]:
    return [launch for launch in result.launches if not recipe.timed or launch.id in recipe.timed]


def compared_launches(launches: Sequence[LaunchResult], recipe: Recipe) -> Sequence[LaunchResult]:
    """The launches whose time is compared."""
    return launches[-1:] if recipe.time in ("last", "difference") else launches[recipe.warm :]


def cycles_of(launches: Sequence[LaunchResult], recipe: Recipe) -> float:
    """The simulated core cycles that the measured value stands for. Raises ProfileError for too few
    launches."""
    if recipe.time == "last":
        return float(launches[-1].cycles)
    if recipe.time == "kernels":
        return float(sum(launch.cycles for launch in launches))
    if recipe.time == "difference":
        if len(launches) < 2:
            raise ProfileError(
                f"{recipe.program}: a difference of {len(launches)} launches, expected 2 or more"
            )
        return float(launches[-1].cycles - launches[-2].cycles)
    if not 0 < recipe.warm < len(launches):
        raise ProfileError(f"{recipe.program}: a period after {recipe.warm} of {len(launches)} launches")
    return (launches[-1].end_cycle - launches[recipe.warm - 1].end_cycle) / (len(launches) - recipe.warm)


def shares(launches: Iterable[LaunchResult]) -> dict[str, float]:
    """Share of warp-cycles by state, largest first."""
    total: Counter[str] = Counter()
    for launch in launches:
        total.update(launch.warp_stalls)
    every = sum(total.values())
    return {name: n / every for name, n in total.most_common() if n}


def correlation(outcomes: Iterable[RowOutcome]) -> Correlation:
    """The rows that count, as pairs for the correlator. Raises ProfileError if there are none."""
    return correlate(_program(outcome) for outcome in outcomes if outcome.counts)


def _program(outcome: RowOutcome) -> MeasuredProgram:
    about = {"launch": [0], "name": [outcome.row]}
    ours, theirs = dict[str, list[float]](), dict[str, list[float]]()
    if outcome.measured:
        ours[CYCLES], theirs[CYCLES] = [outcome.simulated], [outcome.measured]
    for name, (simulated, measured) in outcome.counters.items():
        ours[name], theirs[name] = [simulated], [measured]
    states = {_STALL.format(name): [share] for name, share in outcome.stalls.items()}
    return MeasuredProgram(
        outcome.row,
        Profile(pl.DataFrame({**about, **ours, **states}), outcome.gpu, "simulated"),
        (Profile(pl.DataFrame({**about, **theirs}), outcome.gpu, "measured"),),
        outcome.suite,
    )


def table(outcomes: Sequence[RowOutcome]) -> pl.DataFrame:
    """One line for each row, for Parquet."""
    rows = [
        {
            **{name: value for name, value in asdict(o).items() if name not in ("counters", "stalls")},
            "error": o.error if o.status == "done" and o.measured else None,
            "stalls": o.stall_text(),
            "counters": json.dumps(o.counters),
        }
        for o in outcomes
    ]
    return pl.DataFrame(rows, infer_schema_length=None)


@dataclass(frozen=True)
class Recorded:
    """Error of a GPU's specification over the recorded rows of one suite and use, in one code, as fractions.

    older: how many rows are of an older model. present_mae: of the others; None: there are none.
    sampled: how many rows are sampled.
    first, last: dates at which rows were recorded.
    one_by_one: whether its rows are known, and not only their mean.
    """

    gpu: str
    suite: str
    code: str
    use: str
    rows: int
    mae: float
    within_20: float
    older: int
    present_mae: float | None
    sampled: int
    first: str
    last: str
    one_by_one: bool = True

    def __str__(self) -> str:
        code = "PTX" if self.code == "ptx" else "machine code"
        over = f"{100 * self.mae:.1f} % over {plural(self.rows, f'{self.use} row')}"
        dates = self.first if self.first == self.last else f"{self.first} to {self.last}"
        about = [dates]
        if not self.one_by_one:
            about.append("an older model, rows not recorded one by one")
        elif self.present_mae is None:
            about.append("an older model")
        elif self.older:
            others = f"the other {self.rows - self.older}: {100 * self.present_mae:.1f} %"
            about.append(f"{self.older} of an older model, {others}")
        if self.sampled:
            about.append(f"{self.sampled} sampled")
        within = f"{100 * self.within_20:.0f} % of them within 20 %"
        return f"{self.suite}, {code}: {over}, {within} ({'; '.join(about)})"

    @property
    def about(self) -> tuple[str, ...]:
        return self.gpu, self.suite, self.code, self.use


def recorded(rows: Path = ROWS, together: Path = RECORD) -> list[Recorded]:
    """What is recorded, by GPU, suite, code and use: from the rows. Where fewer are recorded than were once
    recorded together, the mean of these is a line of its own."""
    by_about: dict[tuple[str, ...], list[ErrorRow]] = {}
    for row in error_rows(rows):
        if row.use:
            about = row.features.gpu, row.suite, row.features.code, row.use
            by_about.setdefault(about, []).append(row)
    found = [_recorded(about, of) for about, of in by_about.items()]
    with together.open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            about = line["gpu"], line["suite"], line["code"], line["use"]
            n, date = int(line["rows"]), line["date"]
            if n > len(by_about.get(about, ())):
                errors = float(line["mae"]), float(line["within_20"])
                found.append(Recorded(*about, n, *errors, n, None, 0, date, date, one_by_one=False))
    return sorted(found, key=lambda each: (each.about, not each.one_by_one))


def _recorded(about: tuple[str, ...], rows: Sequence[ErrorRow]) -> Recorded:
    gpu, suite, code, use = about
    errors = [abs(row.error) for row in rows]
    present = [abs(row.error) for row in rows if not row.is_older]
    dates = sorted(row.date for row in rows)
    return Recorded(
        gpu,
        suite,
        code,
        use,
        len(rows),
        sum(errors) / len(errors),
        sum(error <= 0.2 for error in errors) / len(errors),
        len(errors) - len(present),
        sum(present) / len(present) if present else None,
        sum(bool(row.sampling) for row in rows),
        dates[0],
        dates[-1],
    )


def record(outcomes: Sequence[RowOutcome], rows: Path = ROWS, together: Path = RECORD) -> list[Recorded]:
    """Puts the rows that count into the record, each in the place of the same row; all others stay as they
    are. Sampled rows have to state an interval. Returns what is recorded of these rows' suites by now."""
    commit, timed = checked_out(), [each for each in outcomes if each.status == "done" and each.measured]
    new = [each.error_row(commit) for each in timed if each.counts and not math.isnan(each.half_width)]
    record_rows(new, rows, [each.error_row() for each in timed if each.unclear])
    abouts = {(row.features.gpu, row.suite, row.features.code, row.use) for row in new}
    return [each for each in recorded(rows, together) if each.about in abouts]


def checked_out() -> str:
    """The commit of this checkout, with a + if what cycles follow from was changed; empty: no checkout."""
    git = ["git", "-C", str(Path(__file__).parent)]
    head = subprocess.run(
        [*git, "rev-parse", "--short=8", "HEAD"], capture_output=True, text=True, check=False
    )
    if head.returncode:
        return ""
    timed = (":/engine", ":/src/simt/spec")
    changed = subprocess.run([*git, "diff", "--quiet", "HEAD", "--", *timed], check=False).returncode
    return head.stdout.strip() + ("+" if changed else "")


def clock_settings(
    setting: Setting, rows: Iterable[Row], factors: Mapping[str, Sequence[float]]
) -> dict[str, Setting]:
    """Settings by a name: as it is; if the clock of a row is unknown, at both ends of its range; and with
    each clock ("core" or "dram") times each factor."""
    found = {"as stated": setting}
    clocks = {row.recipe.table.clock for row in rows}
    if CORE not in (setting.set or {}) and any(clock and clock.range for clock in clocks):
        found["lowest possible"] = replace(setting, end="lowest")
        found["highest possible"] = replace(setting, end="highest")
    for clock, of in factors.items():
        for factor in of:
            found[f"{clock} clock {100 * (factor - 1):+.0f} %"] = replace(setting, scale={clock: factor})
    return found
