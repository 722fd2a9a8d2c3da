"""Recipes of whole programs: where the source is found, how it is compiled and run, and which rows of a
published table it is compared with.

A recipe is data: a TOML file per GPU (docs/whole-programs.md gives the format). Neither the programs nor the
measured values are part of it; both are found where the user has put them.
"""

from __future__ import annotations

import csv
import math
import os
import string
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from simt.errors import ProfileError
from simt.files import parse_toml, require_regular
from simt.hints import did_you_mean
from simt.names import listed
from simt.spec import load_spec
from simt.spec.files import shipped_name
from simt.validate.profilers import Profiler, conditions
from simt.validate.published import published_path

SCHEMA = "simt.programs/1"
OWN = "simt"
"""Name of the source whose files lie beside the recipe."""
PARAMETERS = "parameters"
"""Column of a table whose cells are `name=value name=value ...`, each of which is a field of the row."""
Use = Literal["tuning", "held-out", "judging"]
Time = Literal["kernels", "period", "last", "difference"]
Known = Literal["locked", "published", "derived", "unknown"]
End = Literal["lowest", "highest"]
_SOURCES = (".cu", ".c", ".cc", ".cpp", ".cxx")
NANOSECONDS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}


@dataclass(frozen=True)
class RecipeSource:
    """A public repository, and the folder in which the user has a checkout of the commit."""

    name: str
    repository: str
    commit: str


@dataclass(frozen=True)
class RecipeInput:
    """What a program reads: a file of a source, or what a Python script, run with `arguments`, writes."""

    source: RecipeSource
    path: str
    arguments: tuple[str, ...] = ()

    @property
    def is_script(self) -> bool:
        return self.path.endswith(".py")


@dataclass(frozen=True)
class RecipeClock:
    """How the core clock is known at which a card was measured.

    known: "locked" to it, or "published" as what it ran at; "derived" from rows of the card; or "unknown".
    source: who says so, or how it was derived.
    core_mhz: the clock; 0 if it is unknown. range: lowest and highest one that it may have had, if it is.
    rows: programs it was derived from, whose rows are shown but not counted.
    """

    known: Known
    source: str
    core_mhz: float = 0.0
    range: tuple[float, float] | None = None
    rows: tuple[str, ...] = ()

    def mhz(self, end: End | None) -> float | None:
        """The core clock to run at: if it is unknown, that end of the range, or None, the specification's."""
        if self.range and end:
            return self.range[end == "highest"]
        return self.core_mhz or None

    def __str__(self) -> str:
        mhz = " to ".join(f"{value:,g}" for value in self.range or (self.core_mhz,))
        return f"{self.known}, {mhz} MHz: {self.source}"


@dataclass(frozen=True)
class MeasuredTable:
    """A table of measured values.

    file: its name in the source, or else in the user's folder of measurements; or that of a table that comes
        with simt.
    value, unit: its column of times, in ns, us, ms or s, or of cycles.
    counters: for each counter of simt, the columns of which it is the sum.
    clock: of the card when it was measured; None: that of the specification.
    profiler: what its cycles and counters were counted with; None: no profiler.
    """

    file: str
    value: str
    unit: str
    counters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    source: RecipeSource | None = None
    clock: RecipeClock | None = None
    profiler: Profiler | None = None

    def conditions(self, gpu: str) -> dict[str, Any]:
        """Of its measurement on this GPU, as values of the specification."""
        return conditions(self.profiler, load_spec(gpu).sm_version) if self.profiler else {}


@dataclass(frozen=True)
class Recipe:
    """A program and the rows of a table that it makes.

    gpu: a shipped GPU, or the path of a TOML file.
    use: "tuning" if the model may be adjusted to its rows; "held-out" if it is a similar program that nobody
        looks at before the end; "judging" if it belongs to a suite that is only for judging; "own" if the
        user has measured it.
    files, include, flags: what nvcc is given; paths are relative to the source, or, if they begin with
        "simt:", to the recipe. Or one Python file, whose function run(gpu, *arguments) launches the kernels,
        or one compiled program.
    arguments: of the program, with fields of the row as {field}.
    inputs: what lies in an otherwise empty folder before the program starts there: files of sources, under
        their paths, and what scripts write.
    folder: where a program that has inputs runs, relative to their folder.
    where: values of a row's fields that make it a row of this program: one of those listed; "*" any value, ""
        none.
    time: what is compared: "kernels", the sum of all kernels' durations, as profilers report them; "period",
        the time between the ends of launches in one stream, after the first `warm`, as of events around a
        loop; "last", the duration of the last timed launch; "difference", that without the duration of the
        launch before it, where `offset` takes away what each launch takes.
    offset: what the measured values contain besides, in the unit of the table; it is subtracted.
    set: values of the specification for the conditions of the measurement: those of the table's profiler,
        and others, such as the clock of the memory.
    launches: how many kernels it launches, where that is known; a run with another number is refused.
    timed: launches (from 1) that are timed, the others are only executed; empty: all.
    unclear: why it is not certain that this is what was measured; such rows are shown but not counted.
    """

    gpu: str
    suite: str
    program: str
    use: Use | Literal["own"]
    source: RecipeSource
    table: MeasuredTable
    files: tuple[str, ...]
    where: Mapping[str, tuple[str, ...]]
    include: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    inputs: tuple[RecipeInput, ...] = ()
    folder: str = ""
    time: Time = "kernels"
    warm: int = 0
    offset: float = 0.0
    set: Mapping[str, Any] = field(default_factory=dict)
    launches: int = 0
    timed: tuple[int, ...] = ()
    unclear: str = ""
    place: Path = Path()

    @property
    def in_python(self) -> bool:
        return self.files[0].endswith(".py")

    @property
    def not_counted(self) -> str:
        """Why its rows are shown but not part of the means; empty if they are part of them."""
        clock = self.table.clock
        if not self.unclear and clock and self.program in clock.rows:
            return "the clock of the card was derived from them"
        return self.unclear

    @property
    def is_compiled(self) -> bool:
        """Whether its file is a program that runs as it is."""
        return len(self.files) == 1 and Path(self.files[0]).suffix not in (*_SOURCES, ".py")

    def path_of(self, file: str, source: Path) -> Path:
        """One of `files` or `include`, with the source in that folder."""
        own = file.removeprefix(f"{OWN}:")
        return source / file if own == file else self.place / own

    def own_files(self) -> list[Path]:
        """Those of `files`, and of the headers in `include`, that lie beside the recipe."""
        found = []
        for name in (*self.files, *self.include):
            if self.source.name == OWN or name.startswith(f"{OWN}:"):
                path = self.path_of(name, self.place)
                found += sorted(path.iterdir()) if path.is_dir() else [path]
        return [path for path in found if path.is_file()]


@dataclass(frozen=True)
class Row:
    """One measured run of a program.

    measured: ns, or cycles if the table has those (`in_cycles`); 0 if only counters were measured.
    counters: measured values by counter of simt.
    """

    recipe: Recipe
    parameters: Mapping[str, str]
    measured: float
    in_cycles: bool
    counters: Mapping[str, float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return " ".join([self.recipe.program, *(f"{key}={value}" for key, value in self.parameters.items())])

    @property
    def arguments(self) -> list[str]:
        return [text.format(**self.parameters) for text in self.recipe.arguments]


def read_recipes(place: str | os.PathLike[str], gpu: str) -> list[Recipe]:
    """The recipes in a file, or, in a folder, those of one GPU (FOLDER/GPU.toml).

    gpu: on which the programs run: a shipped GPU, or the path of a TOML file. Raises ProfileError, which
    names the file and place.
    """
    folder, path = Path(place), Path(place)
    if path.suffix == ".toml":
        folder = path.parent
    else:
        path /= f"{shipped_name(gpu) or Path(gpu).stem}.toml"
    try:
        require_regular(path)
        data = parse_toml(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        have = sorted(p.stem for p in folder.glob("*.toml"))
        raise ProfileError(
            f"{path}: no such file: there are recipes for {listed(have)}; --recipes names their folder "
            "(validation/programs of a checkout), or the file of the card whose measured values are meant; "
            "--rows names a table of your own"
        ) from None
    except OSError as error:
        raise ProfileError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ProfileError(f"{path}: cannot be read: {error}") from None
    top = _Section(data, str(path))
    if (schema := top.text("schema")) != SCHEMA:
        raise ProfileError(f"{path}: schema is {schema!r}, expected {SCHEMA!r}")
    sources = {
        name: RecipeSource(name, part.text("repository"), part.text("commit"))
        for name, part in top.sections("sources").items()
    }
    sources[OWN] = RecipeSource(OWN, "", "")
    tables = {
        name: MeasuredTable(
            part.text("file"),
            part.text("value"),
            part.choice("unit", (*NANOSECONDS, "cycles")),
            {key: part.part("counters").texts(key) for key in part.part("counters").data},
            sources[part.choice("source", sources)] if "source" in part.data else None,
            _clock((part if "clock" in part.data else top).part("clock")),
            part.choice("profiler", get_args(Profiler)) if "profiler" in part.data else None,  # type: ignore[arg-type]
        )
        for name, part in top.sections("tables").items()
    }
    parts = top.data.pop("program", [])
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        raise ProfileError(f"{path}: program: expected tables [[program]]")
    found = []
    for number, values in enumerate(parts, 1):
        part = _Section(values, f"{path}: program {number} ({values.get('name', 'without a name')})")
        source, table = part.choice("source", sources), part.choice("table", tables)
        wanted = part.part("where")
        recipe = Recipe(
            gpu=gpu,
            suite=part.text("suite"),
            program=part.text("name"),
            use=part.choice("use", get_args(Use)),  # type: ignore[arg-type]
            source=sources[source],
            table=tables[table],
            files=part.texts("files"),
            where={key: wanted.alternatives(key) for key in wanted.data},
            include=part.texts("include", ()),
            flags=part.texts("flags", ()),
            arguments=part.texts("arguments", ()),
            inputs=part.inputs(sources),
            folder=part.text("folder", ""),
            time=part.choice("time", get_args(Time), "kernels"),  # type: ignore[arg-type]
            warm=part.number("warm"),
            offset=part.positive("offset") if "offset" in part.data else 0.0,
            set=tables[table].conditions(gpu) | part.part("set").scalars(),
            launches=part.number("launches"),
            timed=part.numbers("timed"),
            unclear=part.text("unclear", ""),
            place=path.parent,
        )
        if not recipe.files:
            raise ProfileError(f"{part.place}: files: expected at least one")
        if recipe.folder and not recipe.inputs:
            raise ProfileError(f"{part.place}: folder: expected inputs, as it is a folder among them")
        part.end()
        found.append(recipe)
    top.end("sources", "tables", "note", "clock")
    for measured in tables.values():
        if measured.clock:
            _require_rows(path, measured.clock, found)
    return found


def _clock(part: _Section) -> RecipeClock:
    known: Known = part.choice("known", get_args(Known))  # type: ignore[assignment]
    source = part.text("source")
    if known == "unknown":
        clock = RecipeClock(known, source, range=part.megahertz_range("range"))
    else:
        rows = part.texts("rows") if known == "derived" else ()
        clock = RecipeClock(known, source, part.positive("core_mhz", "a frequency in MHz"), rows=rows)
    part.end()
    return clock


def _require_rows(path: Path, clock: RecipeClock, among: Sequence[Recipe]) -> None:
    """Raises ProfileError if it was derived from no program, or from one that there is not."""
    names = [each.program for each in among if each.table.clock == clock]
    wrong = [name for name in clock.rows if name not in names]
    if wrong or (clock.known == "derived" and not clock.rows):
        raise ProfileError(
            f"{path}: clock: rows is {list(clock.rows)!r}, expected names of programs below, from whose rows "
            "it was derived"
        )


def folder_of(source: RecipeSource, recipe: Recipe, sources: Path | None) -> Path:
    """Where a source lies. Raises ProfileError if it is not there."""
    if source.name == OWN:
        return recipe.place
    where = f"a checkout of {source.repository} at {source.commit}"
    if sources is None:
        raise ProfileError(
            f"{recipe.program} needs {where}; --sources DIR, or the variable SIMT_PROGRAMS, names the folder "
            f"that has it as {source.name}"
        )
    folder = sources / source.name
    if not folder.is_dir():
        raise ProfileError(f"{folder}: no such folder; {recipe.program} needs {where} there")
    head = subprocess.run(
        ["git", "-C", folder, "rev-parse", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    if head and head != source.commit:
        raise ProfileError(f"{folder}: is at {head}; {recipe.program} needs {source.commit}")
    return folder


def rows_of(recipe: Recipe, measurements: Path | None, sources: Path | None = None) -> list[Row]:
    """The rows of its table that a program makes, in the order of the table.

    measurements: the folder with the user's tables; sources: that with the checkouts. Raises ProfileError if
    the table is not there, has no such column, or no row of this program.
    """
    table = recipe.table
    if table.source is None:
        path = _table_path(table, measurements)
    else:
        path = folder_of(table.source, recipe, sources) / table.file
    found = []
    for place, fields in read_table(path):
        for column in (table.value, *(name for names in table.counters.values() for name in names)):
            if column not in fields:
                raise ProfileError(f"{place}: no column {column!r}{did_you_mean(column, list(fields))}")
        if not all(_matches(fields.get(key, ""), value) for key, value in recipe.where.items()):
            continue
        needed = {name for text in recipe.arguments for name in placeholders(text)}
        if missing := sorted(needed - fields.keys()):
            raise ProfileError(f"{place}: no field {missing[0]!r}, which {recipe.program}'s arguments use")
        named = needed | {key for key, values in recipe.where.items() if values == ("*",) or len(values) > 1}
        measured = number(fields[table.value], f"{place}: {table.value}") - recipe.offset
        if measured <= 0:
            without = f" without the offset of {recipe.offset:g}" if recipe.offset else ""
            raise ProfileError(f"{place}: {table.value} is {measured:g}{without}, expected more than 0")
        found.append(
            Row(
                recipe,
                {key: value for key, value in fields.items() if key in named},
                measured * NANOSECONDS.get(table.unit, 1.0),
                table.unit == "cycles",
                {
                    counter: math.fsum(number(fields[c], f"{place}: {c}") for c in columns)
                    for counter, columns in table.counters.items()
                },
            )
        )
    if not found:
        wanted = {
            key: values[0] if len(values) == 1 else list(values) for key, values in recipe.where.items()
        }
        raise ProfileError(f"{path}: no row with {wanted}, which {recipe.program} should have")
    return found


def read_table(path: Path) -> list[tuple[str, dict[str, str]]]:
    """Place and fields of each row of a CSV file. Lines that begin with # are comments; so is what precedes
    the header of a table that comes with simt. Raises ProfileError."""
    try:
        require_regular(path)
        lines = list(enumerate(path.read_text(encoding="utf-8").splitlines(), 1))
    except OSError as error:
        raise ProfileError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ProfileError(f"{path}: not a text file (byte {error.start} is not UTF-8)") from None
    kept = [(number, line) for number, line in lines if line.strip() and not line.startswith("#")]
    if kept and "," not in kept[0][1]:  # the source of a table that comes with simt
        kept = kept[1:]
    try:
        cells = list(csv.reader([line for _, line in kept], strict=True))
    except csv.Error as error:
        raise ProfileError(f"{path}: not a CSV file: {error}") from None
    if not cells:
        raise ProfileError(f"{path}: no header")
    header, rows = cells[0], []
    for (number, _), values in zip(kept[1:], cells[1:], strict=False):
        place = f"{path}:{number}"
        if len(values) != len(header):
            raise ProfileError(f"{place}: {len(values)} cells, expected {len(header)}")
        fields = dict(zip(header, values, strict=True))
        for pair in fields.pop(PARAMETERS, "").split():
            key, equals, value = pair.partition("=")
            if not equals or not key or key in fields:
                raise ProfileError(f"{place}: {PARAMETERS}: {pair!r}, expected a new name=value")
            fields[key] = value
        rows.append((place, fields))
    return rows


def placeholders(text: str) -> list[str]:
    """The fields that an argument uses."""
    return [name for _, name, _, _ in string.Formatter().parse(text) if name is not None]


def _matches(value: str, wanted: tuple[str, ...]) -> bool:
    return bool(value) if wanted == ("*",) else value in wanted


def number(text: str, place: str) -> float:
    """A cell's number. Raises ProfileError."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ProfileError(f"{place}: {text!r} is not a number")
    return value


def _table_path(table: MeasuredTable, measurements: Path | None) -> Path:
    shipped = published_path(Path(table.file))
    if shipped.is_file() and shipped.name != table.file:
        return shipped
    if measurements is None:
        raise ProfileError(
            f"{table.file}: where is it? --measured DIR, or the variable SIMT_MEASURED, names the folder of "
            "the published tables"
        )
    path = measurements / table.file
    if not path.is_file():
        raise ProfileError(f"{path}: no such file; --measured names the folder of the published tables")
    return path


class _Section:
    """A table of a TOML file, of which each value must be used."""

    def __init__(self, data: dict[str, Any], place: str) -> None:
        self.data, self.place, self._used = dict(data), place, set[str]()

    def _take(self, key: str, default: Any, kind: type | tuple[type, ...], text: str) -> Any:
        self._used.add(key)
        value = self.data.get(key, default)
        if value is None:
            raise ProfileError(f"{self.place}: no {key}")
        if not isinstance(value, kind) or isinstance(value, bool):
            raise ProfileError(f"{self.place}: {key} is {value!r}, expected {text}")
        return value

    def text(self, key: str, default: str | None = None) -> str:
        return str(self._take(key, default, str, "text"))

    def texts(self, key: str, default: tuple[str, ...] | None = None) -> tuple[str, ...]:
        values = self._take(key, None if default is None else list(default), list, "a list of texts")
        if not all(isinstance(value, str) for value in values):
            raise ProfileError(f"{self.place}: {key} is {values!r}, expected a list of texts")
        for value in values:
            try:
                names = placeholders(value) if key == "arguments" else []
            except ValueError as error:
                raise ProfileError(f"{self.place}: {key}: {value!r}: {error}") from None
            if any(not name or name[0].isdigit() or set(name) & set(".[]") for name in names):
                raise ProfileError(f"{self.place}: {key}: {value!r}, expected {{name}} around a field's name")
        return tuple(values)

    def inputs(self, sources: Mapping[str, RecipeSource]) -> tuple[RecipeInput, ...]:
        """Each of `inputs`: SOURCE:FILE, or SOURCE:SCRIPT.py and its arguments."""
        found = []
        for value in self.texts("inputs", ()):
            name, _, rest = value.partition(":")
            path, *arguments = rest.split() or [""]
            if name not in sources or not path or (arguments and not path.endswith(".py")):
                raise ProfileError(
                    f"{self.place}: inputs: {value!r}, expected SOURCE:FILE, or SOURCE:SCRIPT.py and its "
                    f"arguments; sources are {', '.join(sources)}"
                )
            found.append(RecipeInput(sources[name], path, tuple(arguments)))
        return tuple(found)

    def alternatives(self, key: str) -> tuple[str, ...]:
        """A text, or each of a list of them."""
        value = self.data[key]
        values = self.texts(key) if isinstance(value, list) else (self.text(key, ""),)
        if not values:
            raise ProfileError(f"{self.place}: {key} is [], expected at least one value")
        return values

    def number(self, key: str) -> int:
        value = int(self._take(key, 0, int, "a whole number"))
        if value < 0:
            raise ProfileError(f"{self.place}: {key} is {value}, expected 0 or more")
        return value

    def positive(self, key: str, text: str = "a number above 0") -> float:
        value = self._take(key, None, (int, float), text)
        if not 0 < value < math.inf:
            raise ProfileError(f"{self.place}: {key} is {value!r}, expected {text}")
        return float(value)

    def megahertz_range(self, key: str) -> tuple[float, float]:
        text = "[lowest, highest] in MHz"
        values = self._take(key, None, list, text)
        plain = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values)
        if len(values) != 2 or not plain or not 0 < values[0] < values[1] < math.inf:
            raise ProfileError(f"{self.place}: {key} is {values!r}, expected {text}")
        return float(values[0]), float(values[1])

    def numbers(self, key: str) -> tuple[int, ...]:
        values = self._take(key, [], list, "a list of launches, from 1")
        if not all(isinstance(v, int) and not isinstance(v, bool) and v > 0 for v in values):
            raise ProfileError(f"{self.place}: {key} is {values!r}, expected a list of launches, from 1")
        return tuple(values)

    def choice(self, key: str, among: Sequence[str] | Mapping[str, Any], default: str | None = None) -> str:
        value = self.text(key, default)
        if value not in among:
            raise ProfileError(f"{self.place}: {key} is {value!r}, expected one of {', '.join(among)}")
        return value

    def scalars(self) -> dict[str, Any]:
        for key, value in self.data.items():
            if not isinstance(value, (bool, int, float, str)):
                raise ProfileError(f"{self.place}: {key} is {value!r}, expected a value of the specification")
        return self.data

    def part(self, key: str) -> _Section:
        return _Section(self._take(key, {}, dict, "a table"), f"{self.place}: {key}")

    def sections(self, key: str) -> dict[str, _Section]:
        parts = self.part(key)
        return {name: parts.part(name) for name in parts.data}

    def end(self, *known: str) -> None:
        """Raises ProfileError for a value that nothing has asked for."""
        for key in self.data:
            if key not in self._used and key not in known:
                raise ProfileError(f"{self.place}: unknown {key}{did_you_mean(key, sorted(self._used))}")
