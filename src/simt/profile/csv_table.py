"""CSV as written by profilers: with text before the header, units in it, and thousands separators."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl

from simt.errors import ProfileError
from simt.profile.source import ProfileSource

_MAX_PREAMBLE = 2000  # lines before a header, written by the profiled program or the tool
_SEPARATORS = (",", ";", "\t")  # the latter two are a spreadsheet's, or a tool's in some languages
_DECIMAL_COMMA = r"^\s*-?\d+,\d+\s*$|^\s*-?\d{1,3}(\.\d{3})+,\d+\s*$|^\s*-?\d{1,3}(\.\d{3}){2,}\s*$"
_NUMBER_WITH_COMMA = r"^\s*-?[\d.]*\d(,\d+)?\s*$"
_NOTHING = ["", "n/a", "na", "nan", "-", "null", "none"]
_SI = {"": 1.0, "n": 1e-9, "u": 1e-6, "µ": 1e-6, "m": 1e-3, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}
_UNIT = re.compile(
    r"(?P<binary>[KMGT]i)?(?P<si>[nuµmkKMGT])?"
    r"(?P<base>seconds?|secs?|s|bytes?|B|hz|Hz|inst|cycles?|sectors?|requests?|warps?)"
)
_SECONDS = ("s", "sec", "secs", "second", "seconds")


@dataclass(frozen=True)
class Header:
    """offset: byte of the decompressed file at which the header line begins. separator: between fields."""

    offset: int
    names: list[str]
    separator: str = ","


def find_header(source: ProfileSource, fits: Callable[[Sequence[str]], bool]) -> Header | None:
    """The first line of the file's beginning whose fields fit; None if there is none."""
    offset = 0
    for number, line in enumerate(source.head.split(b"\n")):
        if number > _MAX_PREAMBLE:
            return None
        text = line.decode("utf-8", "replace").lstrip("\ufeff").rstrip("\r")
        for separator in _SEPARATORS:
            try:
                names = next(csv.reader([text], delimiter=separator), [])
            except csv.Error:
                names = []
            if (separator == "," or len(names) > 1) and fits([name.strip() for name in names]):
                return Header(offset, names, separator)
        offset += len(line) + 1
    return None


def read_text(source: ProfileSource, header: Header, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """The table below a header: the given columns, or all, as text.

    Names are stripped of blanks. Lines that begin with `==` are Nsight Compute's messages and are skipped, as
    are values beyond the header's columns. Where semicolons separate fields, decimal commas become points.
    Raises ProfileError if this is not a table.
    """
    with source.local(header.offset) as path:
        try:
            lazy = pl.scan_csv(
                path,
                infer_schema=False,
                separator=header.separator,
                comment_prefix="==",
                encoding="utf8-lossy",
                truncate_ragged_lines=True,
            )
            names = {name: name.strip() for name in lazy.collect_schema().names()}
            if missing := {name.strip() for name in header.names} - set(names.values()):
                raise ProfileError(f"{source.name}: a damaged header: no end of column {min(missing)!r}")
            if len(set(names.values())) == len(names):
                lazy = lazy.rename(names)
            frame = (lazy if columns is None else lazy.select(columns)).collect()
        except (pl.exceptions.PolarsError, OSError) as error:
            raise ProfileError(f"{source.name}: not a readable CSV table: {error}") from error
    return _with_points(frame) if header.separator == ";" else frame


def _with_points(frame: pl.DataFrame) -> pl.DataFrame:
    """`1.234,56` and `0,5` as `1234.56` and `0.5`, if any number is written so."""
    if not any(bool(column.str.contains(_DECIMAL_COMMA).any()) for column in frame.iter_columns()):
        return frame
    text = pl.all()
    point = text.str.replace_all(".", "", literal=True).str.replace(",", ".", literal=True)
    return frame.with_columns(pl.when(text.str.contains(_NUMBER_WITH_COMMA)).then(point).otherwise(text))


def require(frame: pl.DataFrame, columns: Sequence[str], source: str) -> None:
    """Raises ProfileError if columns are missing; it names them and those present."""
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        raise ProfileError(
            f"{source}: no column {', '.join(missing)}, found {', '.join(frame.columns) or 'none'}"
        )


def numbers(column: pl.Series, source: str, row: int = 1, european: bool = False) -> pl.Series:
    """Converts text to numbers: thousands separators are removed, empty cells and n/a become null.

    row: number of the column's first row, for messages.
    european: whether decimals follow a comma.

    Raises ProfileError with the column and row of a cell that is not a number.
    """
    if column.dtype != pl.String:
        if not (column.dtype.is_numeric() or column.dtype in (pl.Boolean, pl.Null)):
            raise ProfileError(f"{source}: column `{column.name}` holds {column.dtype}, expected numbers")
        return column
    result, bad = try_numbers(column, european)
    if bad is not None:
        raise ProfileError(
            f"{source}: column `{column.name}`, row {bad + row}: {column[bad]!r} is not a number"
        )
    return result


def try_numbers(column: pl.Series, european: bool = False) -> tuple[pl.Series, int | None]:
    """As `numbers`, with the position of the first cell that is not a number instead of an error."""
    text: pl.Series = column.str.strip_chars()
    if european:
        text = text.str.replace_all(".", "", literal=True).str.replace_all(",", ".", literal=True)
    else:
        text = text.str.replace_all(",", "", literal=True)
    text = text.set(text.str.to_lowercase().is_in(_NOTHING), None)
    result: pl.Series = text.cast(pl.Float64, strict=False)
    bad = (result.is_null() & text.is_not_null()) | result.is_infinite().fill_null(False)
    return result, bad.arg_max() if bad.any() else None


def base_unit(unit: str) -> float:
    """The factor from a unit to the base unit: ns, byte, hz, or per second for rates.

    Unknown units, such as `%` and `register/thread`, are base units.
    """
    factor = 1.0
    for position, part in enumerate(unit.strip().split("/")):
        found = _UNIT.fullmatch(part)
        if found is None:
            continue
        scale = _SI[found["si"] or ""] if found["binary"] is None else _BINARY[found["binary"]]
        if found["base"] in _SECONDS and position == 0:
            scale *= 1e9
        factor = factor * scale if position == 0 else factor / scale
    return factor


def triples(column: pl.Series, source: str) -> tuple[pl.Series, pl.Series, pl.Series]:
    """x, y and z of cells such as `(256, 1, 1)` or `256 1 1`; null for an empty cell."""
    found = column.str.extract_groups(r"^\s*\(?\s*(\d+)[\s,]+(\d+)[\s,]+(\d+)\s*\)?\s*$")
    x, y, z = (found.struct.field(str(i)).cast(pl.UInt32, strict=False) for i in (1, 2, 3))
    bad = (x.is_null() | y.is_null() | z.is_null()) & ~column.str.strip_chars().is_in(["", "None"]).fill_null(
        True
    )
    if bad.any():
        row = bad.arg_max()
        assert row is not None
        raise ProfileError(
            f"{source}: column `{column.name}`, row {row + 1}: {column[row]!r}, expected three numbers"
        )
    return x, y, z
