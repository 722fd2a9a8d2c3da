"""Reads CSV and Parquet tables with known column names: ours, or given by a mapping."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from simt.errors import ProfileError
from simt.profile.assemble import Findings, assemble, one_process
from simt.profile.csv_table import find_header, numbers, read_text
from simt.profile.profile import COLUMNS, Profile, metadata_of
from simt.profile.source import ProfileSource

SCALES = {
    "ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9,
    "b": 1.0, "kb": 1e3, "mb": 1e6, "gb": 1e9, "kib": 1024.0, "mib": 1024.0**2, "gib": 1024.0**3,
}  # fmt: skip
_TEXT = ("name", "annotation", "tensors")


def read_parquet(source: ProfileSource, columns: Mapping[str, str] | None, process: int | None) -> Profile:
    """A Parquet table; one written by `Profile.save` is restored exactly."""
    with source.local() as path:
        try:
            schema = pl.read_parquet_schema(path)
            ours = metadata_of(path)
            if ours is not None and process is not None:
                raise ProfileError(
                    f"{source.name}: process {process} requested, but a saved profile does not "
                    f"distinguish processes"
                )
            picks = _picks(list(schema), columns, source.name, whole=ours is not None)
            frame = pl.read_parquet(
                path, columns=sorted({old for old, _ in picks.values()}), memory_map=False
            )
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            raise ProfileError(f"{source.name}: not a readable Parquet file: {error}") from error
    findings = Findings(source.name, process=process)
    _say_unused(list(schema), picks, findings)
    return _profile(frame, picks, findings, ours)


def read_csv(source: ProfileSource, columns: Mapping[str, str] | None, process: int | None) -> Profile:
    """A CSV table that begins with its header."""
    header = find_header(source, lambda names: len(names) > 1)
    if header is None or header.offset:  # a table of one column
        header = find_header(source, lambda names: True)
    if header is None:
        raise ProfileError(f"{source.name}: no table")
    names = [name.strip() for name in header.names]
    picks = _picks(names, columns, source.name, whole=False)
    frame = read_text(source, header, sorted({old for old, _ in picks.values()}))
    findings = Findings(source.name, process=process)
    _say_unused(names, picks, findings)
    return _profile(frame, picks, findings, None)


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
    if not set(picks) - {"name", "launch", "annotation", "process"}:
        raise ProfileError(
            f"{source}: names of kernels but no measurements, found {', '.join(there)}; "
            f"say which column holds the times: columns={{'name': 'name', 'duration_ns': '…:us'}}"
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
        elif new == "after":
            if not isinstance(column.dtype, pl.List):
                raise ProfileError(
                    f"{findings.source}: column `{old}` holds {column.dtype}, expected lists of launch ids"
                )
        else:
            column = numbers(column, findings.source)
            if scale != 1.0:
                column = column.cast(pl.Float64) * scale
        taken.append(column.alias(new))
    table = pl.DataFrame(taken)
    if ours is not None:
        return Profile(table, source=findings.source, **ours)
    if "launch" in table.columns:
        table = one_process(table, findings)
        return Profile(table, None, findings.source, (), tuple(findings.warnings))
    return assemble(table, findings, ())
