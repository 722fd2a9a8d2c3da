"""Configurations as programs: what a study simulates for each of them.

A file says what its configurations are: `CONFIGURATIONS`, a dict of parameters and their values, or a list of
dicts; or it has one `@triton.autotune` kernel, whose configurations they are. Each becomes a program, a file
that runs the original with its configuration.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import runpy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from simt.errors import SimtError
from simt.files import require_file, write_text

from .triton_cache import TritonTuning

if TYPE_CHECKING:
    from simt.gpu import GPU

Parameters = Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Any]]
_NAME = "CONFIGURATIONS"


@dataclass(frozen=True)
class Candidates:
    """A file, and its configurations. script: the Python file with `main`; source: of a CUDA program; None:
    the script launches its kernels by itself. autotuned: they are those of a Triton kernel."""

    script: Path
    source: Path | None
    configurations: tuple[dict[str, Any], ...]
    autotuned: bool

    @classmethod
    def read(cls, program: Path, parameters: Parameters | None, driver: Path | None) -> Candidates:
        """Raises SimtError for a program without configurations, or whose configurations are of no use."""
        require_file(program, "a program", SimtError)
        source = program if program.suffix == ".cu" else None
        script = (driver or program.with_suffix(".py")) if source is not None else program
        require_file(script, "a Python program", SimtError)
        names = runpy.run_path(str(script))
        if not callable(names.get("main")):
            raise SimtError(f"{script}: has no function `main(gpu, ...)`")
        given = parameters if parameters is not None else names.get(_NAME)
        if given is not None:
            return cls(script, source, _product(given, script), False)
        tuned = _autotuners(names)
        if len(tuned) != 1:
            raise SimtError(
                f"{script}: {len(tuned)} autotuned kernels and no {_NAME}: give `parameters`, or a dict of "
                f"lists, or a "
                f"list of dicts, {_NAME}; or have one @triton.autotune kernel"
            )
        return cls(script, source, tuple(dict(c.all_kwargs()) for c in tuned[0].configs), True)

    def tuning(self, gpu: GPU, best: Mapping[str, Any]) -> TritonTuning:
        """For what the Triton kernel's autotuner is asked when the program runs, with its best
        configuration."""
        names = runpy.run_path(str(self.script))
        (tuner,) = _autotuners(names)
        return TritonTuning.recorded(tuner, lambda: names["main"](gpu), best)

    def run(self, gpu: GPU, configuration: Mapping[str, Any]) -> Any:
        """Runs the program with a configuration. Returns what its `main` does."""
        names = runpy.run_path(str(self.script))
        if self.autotuned:
            (tuner,) = _autotuners(names)
            tuner.configs = [c for c in tuner.configs if dict(c.all_kwargs()) == dict(configuration)]
            return names["main"](gpu)
        if self.source is None:
            return names["main"](gpu, **configuration)
        module = gpu.load(
            self.source, options=[f"-D{key}={_macro(value)}" for key, value in configuration.items()]
        )
        return names["main"](gpu, module, **configuration)

    def write(self, folder: Path) -> list[Path]:
        """Writes a program for each configuration, and returns their files."""
        folder.mkdir(parents=True, exist_ok=True)
        found = []
        for configuration in self.configurations:
            text = _PROGRAM.format(
                script=str(self.script.absolute()),
                source=None if self.source is None else str(self.source.absolute()),
                configuration=configuration,
                autotuned=self.autotuned,
            )
            name = hashlib.sha256(
                json.dumps(configuration, sort_keys=True, default=str).encode()
            ).hexdigest()[:12]
            found.append(folder / f"configuration-{name}.py")
            if not found[-1].exists() or found[-1].read_text(encoding="utf-8") != text:
                write_text(found[-1], text, SimtError)
        return found

    @cached_property
    def files(self) -> list[str]:
        """Files that a change of makes all configurations new."""
        return [str(path.absolute()) for path in (self.script, self.source) if path is not None]


_PROGRAM = '''"""A configuration, written by simt.rank."""

from pathlib import Path

from simt.rank.programs import Candidates

SOURCE = {source!r}
CONFIGURATION = {configuration!r}


def main(gpu):
    source = None if SOURCE is None else Path(SOURCE)
    Candidates(Path({script!r}), source, (CONFIGURATION,), {autotuned}).run(gpu, CONFIGURATION)
'''


def _product(given: Any, script: Path) -> tuple[dict[str, Any], ...]:
    if isinstance(given, Mapping):
        if bad := [
            key
            for key, values in given.items()
            if not isinstance(values, Sequence) or isinstance(values, str)
        ]:
            raise SimtError(
                f"{script}: parameter {bad[0]!r}: expected a list of its values, found {given[bad[0]]!r}"
            )
        rows = [dict(zip(given, values, strict=True)) for values in itertools.product(*given.values())]
    else:
        rows = [dict(row) for row in given]
    unique = list({json.dumps(row, sort_keys=True, default=str): row for row in rows}.values())
    if not unique or not all(unique):
        raise SimtError(
            f"{script}: no configurations: expected a dict of lists, or a list of dicts, none empty"
        )
    return tuple(unique)


def _autotuners(names: Mapping[str, Any]) -> list[Any]:
    found = {id(x): x for x in names.values() if hasattr(x, "configs") and hasattr(x, "prune_configs")}
    return list(found.values())


def _macro(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def values_of(returned: Any) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays that a `main` returned, by name; empty if it returned none."""
    if isinstance(returned, Mapping):
        return {str(name): np.asarray(x) for name, x in returned.items()}
    if isinstance(returned, Sequence) and not isinstance(returned, str):
        return {str(i): np.asarray(x) for i, x in enumerate(returned)}
    return {} if returned is None else {"0": np.asarray(returned)}


def difference_of(
    values: Mapping[str, np.ndarray[Any, Any]], wanted: Mapping[str, np.ndarray[Any, Any]], rtol: float
) -> str:
    """How values differ from those wanted; empty if they do not."""
    if values.keys() != wanted.keys():
        return f"returned {', '.join(values) or 'nothing'}, expected {', '.join(wanted) or 'nothing'}"
    for name, x in values.items():
        y = wanted[name]
        if x.shape != y.shape:
            return f"{name} has the shape {x.shape}, expected {y.shape}"
        scale = float(np.max(np.abs(y))) if y.size and np.issubdtype(y.dtype, np.number) else 0.0
        same = np.isclose(x, y, rtol=rtol, atol=rtol * scale) if math.isfinite(scale) else x == y
        if not np.all(same):
            return f"{np.count_nonzero(~same):,} of {x.size:,} values of {name} differ"
    return ""
