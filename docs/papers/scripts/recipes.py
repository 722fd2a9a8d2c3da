"""The programs of Accel-Sim's and PKA's lists that have a recipe, compiled and simulated; real profiles.

Sources are looked for in SIMT_PROGRAMS (as for `simt validate programs`), measured values in SIMT_MEASURED,
profiles in SIMT_PROFILES.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from papers import ROOT, WORK, NotMeasured, spent

from simt.errors import SimtError
from simt.files import write_text
from simt.profile import Profile, read_profile
from simt.result import Result
from simt.spec import load_spec
from simt.validate.recipes import Row, folder_of, read_recipes, rows_of
from simt.validate.whole_programs import Setting, build, recommended_code, run_program

RECIPES = ROOT / "validation" / "programs"


@dataclass(frozen=True)
class Run:
    """A program that ran to its end, or why it did not. seconds: of the processor."""

    row: Row
    result: Result | None
    seconds: float
    why: str = ""


def real_profile(file: str) -> Profile:
    """The kernels of a real profile, from the folder SIMT_PROFILES. Raises NotMeasured."""
    folder = Path(os.environ.get("SIMT_PROFILES", ROOT.parent / "shared" / "data" / "profiles"))
    if not (folder / file).is_file():
        raise NotMeasured(f"{folder / file}: no such file; SIMT_PROFILES names the folder of real profiles")
    return read_profile(folder / file).kernels()


def sources() -> Path:
    return Path(os.environ.get("SIMT_PROGRAMS", ROOT.parent / "src"))


def measured_values() -> Path:
    return Path(os.environ.get("SIMT_MEASURED", ROOT.parent / "shared" / "data" / "silicon"))


@cache
def rows(table: str = "accel-sim", gpu: str = "qv100") -> Sequence[Row]:
    """Those of a table of a card's recipes, the shortest first: Accel-Sim's V100 table (ISCA'20, table VIII),
    or another; empty: of all its tables."""
    found = [recipe for recipe in read_recipes(RECIPES, gpu) if recipe.table.file.startswith(table)]
    return sorted(
        (row for recipe in found for row in rows_of(recipe, measured_values(), sources())),
        key=lambda row: row.measured,
    )


def smaller(row: Row, name: str, values: Mapping[str, str], file: str = "") -> Row:
    """A program at another size, of which nothing was measured.

    values: of macros in its source, by name; and arguments, of the program and of what makes its inputs, by
    the one whose place they take. file: another source of the same suite.
    """
    recipe, folder = row.recipe, folder_of(row.recipe.source, row.recipe, sources())

    def changed(arguments: Sequence[str]) -> tuple[str, ...]:
        return tuple(values.get(text, text) for text in arguments)

    files, include = (file,) if file else recipe.files, recipe.include
    if macros := {key: value for key, value in values.items() if key.isidentifier()}:
        source = recipe.path_of(files[0], folder)
        text = source.read_text(encoding="utf-8")
        for key, value in macros.items():
            text, found = re.subn(rf"(?m)^(#\s*define\s+{key}\s).*$", rf"\g<1>{value}", text)
            if not found:
                raise NotMeasured(f"{source}: does not define {key}")
        copy = WORK / "programs" / f"{name}.cu"
        write_text(copy, text)
        files, include = (str(copy),), (*include, str(source.parent))
    return replace(
        row,
        recipe=replace(
            recipe,
            program=name,
            files=files,
            include=include,
            arguments=changed(recipe.arguments),
            inputs=tuple(replace(each, arguments=changed(each.arguments)) for each in recipe.inputs),
            launches=0,
        ),
        measured=0.0,
    )


def simulate(
    row: Row, gpu: str, limit: float, values: Mapping[str, Any] | None = None, code: str = "", **options: Any
) -> Run:
    """One program on one GPU.

    limit: seconds of the wall clock. values: of the specification. code: "ptx" or "sass"; empty: as `simt
    validate programs` does. options: of `simt.exec.run`.
    """
    spec = load_spec(gpu, dict(values or {}))
    setting = Setting(WORK / "programs", sources(), code or recommended_code(spec), limit, values)
    row = replace(row, recipe=replace(row.recipe, gpu=gpu))
    start = spent()
    try:
        program = build(row.recipe, spec.sm_version, setting.out.resolve(), setting.sources)
        start = spent()
        finished, log = run_program(row, program, spec, setting, **options)
    except SimtError as error:
        return Run(row, None, spent() - start, str(error).splitlines()[0])
    seconds = spent() - start
    if finished.stopped:
        return Run(row, None, seconds, f"not finished after {limit:.0f} s")
    untimed = "profile" in options  # nothing has a time, so there are no results
    if finished.status or not (finished.results or untimed):
        return Run(row, None, seconds, f"ended with status {finished.status}; {log.name} has its output")
    return Run(row, None if untimed else finished.results[0], seconds)


def executed(row: Row, gpu: str, limit: float) -> tuple[Profile, float]:
    """The profile of a program that is executed without timing, and the processor's seconds for it. limit: of
    the wall clock, s. Raises NotMeasured."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "profile.parquet"
        run = simulate(row, gpu, limit, profile=file)
        if run.why:
            raise NotMeasured(run.why)
        return read_profile(file).kernels(), run.seconds
