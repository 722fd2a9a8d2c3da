"""Any CSV or Parquet table whose columns are named: by our names, or by a mapping."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from simt.errors import ProfileError
from simt.profile.assemble import Findings, assemble
from simt.profile.profile import COLUMNS, Profile, metadata_of
from simt.profile.source import Source

SCALES = {
    "ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9,
    "b": 1.0, "kb": 1e3, "mb": 1e6, "gb": 1e9, "kib": 1024.0, "mib": 1024.0**2, "gib": 1024.0**3,
}  # fmt: skip
_TEXT = ("name", "annotation")


def read_parquet(source: Source, columns: Mapping[str, str] | None, process: int | None) -> Profile:
    """A Parquet table; one that `Profile.save` wrote comes back as it was."""
    with source.local() as path:
        try:
            schema = pl.read_parquet_schema(path)
            ours = metadata_of(path)
            picks = _picks(list(schema), columns, source.name, whole=ours is not None)
            frame = pl.read_parquet(
                path, columns=sorted({old for old, _ in picks.values()}), memory_map=False
            )
        except (pl.exceptions.PolarsError, OSError) as error:
            raise ProfileError(f"{source.name}: not a readable Parquet file: {error}") from error
    findings = Findings(source.name, process=process)
    _say_unused(list(schema), picks, findings)
    return _profile(frame, picks, findings, ours)


def read_csv(
    source: Source, columns: Mapping[str, str] | None, process: int | None, offset: int = 0
) -> Profile:
    """A CSV table with a header, which begins at byte `offset`."""
    with source.local(offset) as path:
        try:
            lazy = pl.scan_csv(path, infer_schema=False)
            header = lazy.collect_schema().names()
            picks = _picks(header, columns, source.name, whole=False)
            frame = lazy.select(sorted({old for old, _ in picks.values()})).collect()
        except (pl.exceptions.PolarsError, OSError) as error:
            raise ProfileError(f"{source.name}: not a readable CSV table: {error}") from error
    findings = Findings(source.name, process=process)
    _say_unused(header, picks, findings)
    return _profile(frame, picks, findings, None)


def numbers(column: pl.Series, source: str) -> pl.Series:
    """Numbers from text: thousands separators go, empty cells and n/a become null."""
    if column.dtype != pl.String:
        if not (column.dtype.is_numeric() or column.dtype in (pl.Boolean, pl.Null)):
            raise ProfileError(f"{source}: column `{column.name}` holds {column.dtype}, expected numbers")
        return column
    text: pl.Series = column.str.strip_chars().str.replace_all(",", "", literal=True)
    text = text.set(text.str.to_lowercase().is_in(["", "n/a", "nan", "-", "null", "none"]), None)
    result: pl.Series = text.cast(pl.Float64, strict=False)
    bad = result.is_null() & text.is_not_null()
    if bad.any():
        row = bad.arg_max()
        assert row is not None
        raise ProfileError(f"{source}: column `{column.name}`, row {row + 1}: {column[row]!r} is no number")
    return result


def _picks(
    there: list[str], columns: Mapping[str, str] | None, source: str, whole: bool
) -> dict[str, tuple[str, float]]:
    """For each column of the Profile, the table's column and the factor to its unit."""
    picks: dict[str, tuple[str, float]] = {}
    for new, old in (columns or {}).items():
        name, _, unit = old.rpartition(":")
        if old in there:
            picks[new] = old, 1.0
        elif name in there and unit.lower() in SCALES:
            picks[new] = name, SCALES[unit.lower()]
        else:
            raise ProfileError(
                f"{source}: no column `{old}` to take `{new}` from, found {', '.join(there)}; "
                f"a unit may follow a column's name as in `{name or old}:us`"
            )
    for name in there:
        if name not in picks and (whole or name in COLUMNS or name == "process" or "__" in name):
            picks[name] = name, 1.0
    if "name" not in picks:
        raise ProfileError(
            f"{source}: no column `name`, found {', '.join(there) or 'none'}; "
            f"expected a profile of a known tool, or say which columns to take: "
            f"columns={{'name': '…', 'duration_ns': '…:us'}}"
        )
    return picks


def _say_unused(there: list[str], picks: dict[str, tuple[str, float]], findings: Findings) -> None:
    used = {old for old, _ in picks.values()}
    unused = [name for name in there if name not in used]
    if unused:
        findings.warnings.append(f"columns not used: {', '.join(unused)}")


def _profile(
    frame: pl.DataFrame,
    picks: dict[str, tuple[str, float]],
    findings: Findings,
    ours: Mapping[str, Any] | None,
) -> Profile:
    taken = []
    for new, (old, scale) in picks.items():
        column = frame[old]
        if new in _TEXT:
            if column.dtype not in (pl.String, pl.Categorical, pl.Enum):
                column = column.cast(pl.String)
        else:
            column = numbers(column, findings.source)
            if scale != 1.0:
                column = column.cast(pl.Float64) * scale
        taken.append(column.alias(new))
    table = pl.DataFrame(taken)
    if ours is not None:
        return Profile(table, source=findings.source, **ours)
    if "launch" in table.columns:
        table = table.drop("process", strict=False)
        return Profile(table, None, findings.source, (), tuple(findings.warnings))
    return assemble(table, findings, ())
