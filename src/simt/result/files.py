"""A Result on disk: one JSON file, or a directory of JSON and Parquet.

polars is imported where it is needed: it takes longer than all else.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simt.errors import ResultError
from simt.files import kind_of, replacing, unreadable
from simt.result.columns import BLOCKS, columns_of, compact, expanded

if TYPE_CHECKING:
    import polars as pl

    from simt.result.result import Result


_BLOCK = 1024
"""Launches that are converted and written at once; a Result of more is saved as simt.result/3."""


def dump(data: Any) -> str:
    """Compact JSON of the standard: no NaN."""
    return json.dumps(data, allow_nan=False, separators=(",", ":"))


def save(result: Result, path: Path) -> Path:
    """See Result.save."""
    try:
        if path.suffix == ".json":
            path.parent.mkdir(parents=True, exist_ok=True)
            _write_json(result, path, detail=True)
            return path
        path.mkdir(parents=True, exist_ok=True)
        _write_tables(result, path)
        _write_json(result, path / "result.json", detail=False)
    except OSError as error:
        raise ResultError(f"{path}: cannot save the Result: {error.strerror}") from error
    return path


def _blocks(result: Result) -> Iterator[Result]:
    """The Result in parts of few launches, which fit in memory."""
    for first in range(0, len(result.launches), _BLOCK):
        yield replace(result, launches=result.launches[first : first + _BLOCK])


def _write_json(result: Result, target: Path, detail: bool) -> None:
    with replacing(target) as temporary, temporary.open("w", encoding="utf-8") as file:
        if len(result.launches) <= _BLOCK:
            rows = [launch.to_json(detail, derived=False) for launch in result.launches]
            file.write(dump(compact(result.around(rows))))
            return
        before, after = dump({**result.around([]), "schema": BLOCKS}).split('"launches":[]', 1)
        file.write(f'{before}"launches":[')
        for number, block in enumerate(_blocks(result)):
            rows = [launch.to_json(detail, derived=False) for launch in block.launches]
            file.write("," * (number > 0) + dump(columns_of(rows)))
        file.write(f"]{after}")


def _write_tables(result: Result, path: Path) -> None:
    import polars as pl

    from simt.result.tables import TABLES, TRANSFERS

    with tempfile.TemporaryDirectory(prefix=".tables.", dir=path) as folder:
        parts: dict[str, list[Path]] = {name: [] for name in (*TABLES, TRANSFERS)}

        def add(part: Result, names: Iterable[str]) -> None:
            for name in names:
                frame, file = part.to_polars(name), Path(folder) / f"{name}.{len(parts[name])}.parquet"
                if frame.width:
                    frame.write_parquet(file)
                    parts[name].append(file)

        for block in _blocks(result):
            add(block, TABLES)
        add(result, [TRANSFERS])
        for name, files in parts.items():
            target = path / f"{name}.parquet"
            if not files:
                target.unlink(missing_ok=True)
                continue
            with replacing(target) as temporary:
                if len(files) == 1:
                    files[0].replace(temporary)
                else:
                    whole = pl.concat([pl.scan_parquet(file) for file in files], how="diagonal_relaxed")
                    whole.sink_parquet(temporary)


def load(path: Path) -> Any:
    """The JSON object of a saved Result, with its details."""
    if kind_of(path) != "a directory":
        return _read_json(path)
    data = expanded(_read_json(path / "result.json"))
    if isinstance(data, dict) and isinstance(data.get("launches"), list):
        found = _details(path)
        for launch in data["launches"]:
            if isinstance(launch, dict) and isinstance(launch.get("index"), int):
                launch.update(found.get(launch["index"], {}))
    return data


def _details(path: Path) -> dict[int, dict[str, Any]]:
    import polars as pl

    from simt.result.tables import DETAILS, details

    frames = {name: _read_parquet(path / f"{name}.parquet") for name in DETAILS}
    try:
        return details(frames)
    except (pl.exceptions.PolarsError, KeyError, TypeError, ZeroDivisionError, ValueError) as error:
        raise ResultError(f"its Parquet tables are not those of a Result: {error!r}") from error


def _read_json(file: Path) -> Any:
    if why := unreadable(file, "a saved Result"):
        raise ResultError(why)
    try:
        data = json.loads(file.read_text(encoding="utf-8"), parse_constant=_no_constant)
        _require_text(data)
        return data
    except RecursionError:
        raise ResultError("its JSON is nested too deeply; expected a saved Result") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ResultError(f"cannot read: {error}") from error
    except json.JSONDecodeError as error:
        raise ResultError(f"line {error.lineno}: not JSON: {error.msg}") from error
    except ValueError as error:  # a number of too many digits
        raise ResultError(f"not a Result: {error}") from error


def _no_constant(name: str) -> Any:
    raise ResultError(f"found the number {name}, which is not valid JSON")


def _require_text(data: Any) -> None:
    """Refuses halves of surrogate pairs, which JSON can write and no file can hold."""
    try:
        json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise ResultError(f"found text that is not Unicode: {error.object[error.start]!r}") from error


def _read_parquet(file: Path) -> pl.DataFrame:
    import polars as pl

    if not file.exists():
        return pl.DataFrame()
    if why := unreadable(file, "a Parquet file"):
        raise ResultError(f"{file.name}: {why}")
    try:
        return pl.read_parquet(file)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise ResultError(f"{file.name}: not a Parquet file: {error}") from error
