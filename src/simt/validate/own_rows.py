"""Rows of one's own measurement: a table of programs, their arguments, and measured times or counters.

The table takes the place of a recipe (`simt.validate.recipes`): it says by itself which program each row is.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from simt.errors import ProfileError
from simt.hints import did_you_mean
from simt.result.counters import COUNTERS
from simt.validate.correlation import CYCLES
from simt.validate.profilers import Profiler
from simt.validate.recipes import (
    NANOSECONDS,
    OWN,
    MeasuredTable,
    Recipe,
    RecipeSource,
    Row,
    Time,
    number,
    read_table,
)

UNITS = (*NANOSECONDS, "cycles")
"""Names of the column with measured times, or cycles."""
_OPTIONS = ("arguments", "flags", "time", "warm")


@dataclass(frozen=True)
class OwnRow(Row):
    """A measured run of a program with these arguments."""

    given: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return shlex.join([self.recipe.program, *self.given])

    @property
    def arguments(self) -> list[str]:
        return list(self.given)


def read_own_rows(path: str | os.PathLike[str], gpu: str, profiler: Profiler | None = None) -> list[Row]:
    """The rows of a CSV file, in its order.

    Its columns: `program`, a `.cu` file, a Python file with `run(gpu, *arguments)`, or a compiled program,
    relative to the table; one of `ns`, `us`, `ms`, `s` and `cycles`, or counters of simt that add up
    (`.sum`), or both, of which cells may be empty. If need be: `arguments`, `flags` of nvcc, `time`, `warm`
    (see `Recipe`). Lines that begin with # are comments.

    gpu: on which the programs run: a shipped GPU, or the path of a TOML file. profiler: what has measured
    them, whose conditions (`simt.validate.profilers`) the rows get.

    Raises:
        ProfileError: names the file, the line, and what is wrong there.
    """
    table, found = Path(path).resolve(), list[Row]()
    recipes = dict[tuple[str, ...], Recipe]()
    for place, fields in read_table(table):
        unit, counters = _columns(place, fields)
        options = {key: fields.get(key, "").strip() for key in ("program", "flags", "time", "warm")}
        recipe = recipes.setdefault(
            tuple(options.values()),
            _recipe(place, table, gpu, MeasuredTable(table.name, unit, unit, profiler=profiler), options),
        )
        measured = {name: _counted(place, name, fields[name]) for name in counters if fields[name].strip()}
        time = fields.get(unit, "").strip()
        if not time and not measured:
            raise ProfileError(f"{place}: neither a time nor a counter is given")
        found.append(
            OwnRow(
                recipe,
                {},
                _timed(place, unit, time) if time else 0.0,
                unit == "cycles",
                measured,
                tuple(_words(place, "arguments", fields.get("arguments", ""))),
            )
        )
    if not found:
        raise ProfileError(f"{table}: no row")
    return found


def _columns(place: str, fields: Mapping[str, str]) -> tuple[str, list[str]]:
    """The column of times, empty if there is none, and those of counters."""
    units = [name for name in fields if name in UNITS]
    additive = {each.name for each in COUNTERS if each.additive}
    counters = [name for name in fields if name in additive]
    for name in fields:
        if name in ("program", *_OPTIONS, *UNITS) or name in additive:
            continue
        known = ["program", *_OPTIONS, *UNITS, *additive]
        why = "it does not add up over launches" if name in {each.name for each in COUNTERS} else "unknown"
        if name == CYCLES:
            why = "its name here is cycles"
        hint = did_you_mean(name, known) or f"; there are {', '.join(known[: -len(additive)])}, and counters"
        raise ProfileError(f"{place}: column {name!r}: {why}{hint}")
    if "program" not in fields:
        raise ProfileError(f"{place}: no column 'program'")
    if len(units) > 1:
        raise ProfileError(f"{place}: columns {' and '.join(units)}: expected one of them")
    if not units and not counters:
        raise ProfileError(f"{place}: no measured value: expected a column {', '.join(UNITS)}, or counters")
    return (units or [""])[0], counters


def _recipe(place: str, table: Path, gpu: str, measured: MeasuredTable, options: Mapping[str, str]) -> Recipe:
    program = Path(options["program"])
    file = table.parent / program
    if not options["program"] or not file.is_file():
        raise ProfileError(f"{place}: program: {options['program']!r} is no file beside {table.name}")
    time, warm = options["time"] or "kernels", options["warm"] or "0"
    if time not in get_args(Time):
        raise ProfileError(
            f"{place}: time: found {time!r}, expected what a time is of, {', '.join(get_args(Time))}; times "
            f"themselves are in a column {', '.join(NANOSECONDS)}"
        )
    if not warm.isdecimal() or (time == "period") != (int(warm) > 0):
        raise ProfileError(
            f"{place}: warm: found {warm!r}, expected a number of launches, with a period only"
        )
    recipe = Recipe(
        gpu=gpu,
        suite=table.stem,
        program=program.name,
        use="own",
        source=RecipeSource(OWN, "", ""),
        table=measured,
        files=(options["program"],),
        where={},
        flags=tuple(_words(place, "flags", options["flags"])),
        time=time,  # type: ignore[arg-type]
        warm=int(warm),
        set=measured.conditions(gpu),
        place=table.parent,
    )
    if recipe.is_compiled and not os.access(file, os.X_OK):
        raise ProfileError(f"{place}: program: {file} is neither a source (.cu, .py) nor an executable file")
    return recipe


def _words(place: str, column: str, text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise ProfileError(f"{place}: {column}: {text!r}: {error}") from None


def _counted(place: str, column: str, text: str) -> float:
    value = number(text, f"{place}: {column}")
    if value < 0:
        raise ProfileError(f"{place}: {column} is {value:g}, expected 0 or more")
    return value


def _timed(place: str, column: str, text: str) -> float:
    """In ns, or cycles."""
    value = number(text, f"{place}: {column}")
    if value <= 0:
        raise ProfileError(f"{place}: {column} is {value:g}, expected more than 0")
    return value * NANOSECONDS.get(column, 1.0)
