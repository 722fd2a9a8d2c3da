"""A Result on disk: one JSON file, or a directory of JSON and Parquet.

polars is imported where it is needed: it takes longer than all else, and does not load under ThreadSanitizer.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simt.errors import ResultError
from simt.files import replacing, require_file, write_text
from simt.result.columns import compact, expanded

if TYPE_CHECKING:
    import polars as pl

    from simt.result.result import Result


def dump(data: Any) -> str:
    """Compact JSON of the standard: no NaN."""
    return json.dumps(data, allow_nan=False, separators=(",", ":"))


def save(result: Result, path: Path) -> Path:
    """See Result.save."""
    from simt.result.tables import TABLES, TRANSFERS

    if path.suffix == ".json":
        write_text(path, dump(compact(result.to_json(detail=True))))
        return path
    try:
        path.mkdir(parents=True, exist_ok=True)
        for name in (*TABLES, TRANSFERS):
            frame, target = result.to_polars(name), path / f"{name}.parquet"
            if frame.width == 0:
                target.unlink(missing_ok=True)
                continue
            with replacing(target) as temporary:
                frame.write_parquet(temporary)
    except OSError as error:
        raise ResultError(f"{path}: cannot save the Result: {error.strerror}") from error
    write_text(path / "result.json", dump(compact(result.to_json())))
    return path


def load(path: Path) -> Any:
    """The JSON object of a saved Result, with its details."""
    if not path.is_dir():
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
    if not file.exists():
        raise ResultError("no such file, expected a saved Result")
    require_file(file, "a saved Result", ResultError)
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
    try:
        return pl.read_parquet(file)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise ResultError(f"{file.name}: not a Parquet file: {error}") from error
