"""Stores a saved Result's launches as columns, so that data common to thousands of launches is written once.

A column is one of

- a list: one value per launch;
- `{"same": value}`: the same value for every launch;
- `{"pool": [values], "index": [numbers]}`: for each launch, the position of its value in `pool`, or -1 for
  none;
- `{"fields": {name: column}, "absent": [launches]}`: one object per launch, except those in `absent`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from simt.errors import ResultError
from simt.result.launch import DERIVED

ROWS, COLUMNS, BLOCKS = "simt.result/1", "simt.result/2", "simt.result/3"

_KEY = "index"  # a list whatever it holds, so that its length is the number of launches
_ABSENT: Any = object()
_encode = json.JSONEncoder(allow_nan=False).encode  # json.dumps would make one for each value


def compact(data: Mapping[str, Any]) -> dict[str, Any]:
    """Converts a Result's JSON object with one row per launch (simt.result/1) to one with columns
    (simt.result/2).
    """
    return {**data, "schema": COLUMNS, "launches": columns_of(data["launches"])}


def columns_of(launches: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The columns of these rows."""
    rows = [{k: v for k, v in row.items() if k not in DERIVED} for row in launches]
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {name: _packed([row.get(name, _ABSENT) for row in rows]) for name in names}
    return {**columns, _KEY: [row[_KEY] for row in rows]}


def expanded(data: Any) -> Any:
    """The inverse of compact, and of a list of columns of some launches each (simt.result/3); anything else
    is returned unchanged. Raises ResultError.
    """
    if not isinstance(data, Mapping) or data.get("schema") not in (COLUMNS, BLOCKS):
        return data
    blocks = data.get("launches")
    if data["schema"] == COLUMNS:
        blocks = [blocks]
    elif not isinstance(blocks, list):
        raise ResultError("broken Result: launches is not a list of blocks")
    return {**data, "schema": ROWS, "launches": [row for block in blocks for row in _rows_of(block)]}


def _rows_of(columns: Any) -> list[dict[str, Any]]:
    if not isinstance(columns, Mapping) or not isinstance(columns.get(_KEY), list):
        raise ResultError(f"broken Result: launches is not an object of columns with a list {_KEY!r}")
    count = len(columns[_KEY])
    values = {name: _unpacked(column, count, f"launches.{name}") for name, column in columns.items()}
    return [
        {name: column[i] for name, column in values.items() if column[i] is not _ABSENT} for i in range(count)
    ]


def _text(value: Any) -> str:
    return str(value) if type(value) is int else _encode(value)


def _packed(values: Sequence[Any]) -> Any:
    present = [value for value in values if value is not _ABSENT]
    if any(present) and all(isinstance(value, dict) for value in present):
        names = dict.fromkeys(name for value in present for name in value)
        fields = {
            name: _packed([_ABSENT if value is _ABSENT else value.get(name, _ABSENT) for value in values])
            for name in names
        }
        return {"fields": fields, "absent": [i for i, value in enumerate(values) if value is _ABSENT]}
    texts = [None if value is _ABSENT else _text(value) for value in values]
    pool = dict.fromkeys(text for text in texts if text is not None)
    if len(pool) == 1 and None not in texts:
        return {"same": values[0]}
    numbers = {text: i for i, text in enumerate(pool)}
    index = [-1 if text is None else numbers[text] for text in texts]
    pooled = sum(map(len, pool)) + len(str(index))
    if len(present) < len(values) or pooled < sum(len(text) + 2 for text in texts if text is not None):
        return {"pool": [json.loads(text) for text in pool], "index": index}
    return list(values)


def _unpacked(column: Any, count: int, place: str) -> list[Any]:
    """A value per launch, `_ABSENT` where it has none."""
    if isinstance(column, list) and len(column) == count:
        return column
    if isinstance(column, Mapping):
        if column.keys() == {"same"}:
            return [column["same"]] * count
        if column.keys() == {"pool", "index"}:
            return _from_pool(column["pool"], column["index"], count, place)
        if column.keys() == {"fields", "absent"} and isinstance(column["fields"], Mapping):
            return _objects(column["fields"], column["absent"], count, place)
    raise ResultError(f"broken Result: {place} is not a column of {count} launches")


def _from_pool(pool: Any, index: Any, count: int, place: str) -> list[Any]:
    if isinstance(pool, list) and isinstance(index, list) and len(index) == count:
        found = [*pool, _ABSENT]  # -1 is the last
        if all(type(i) is int and -1 <= i < len(pool) for i in index):
            return [found[i] for i in index]
    raise ResultError(f"broken Result: {place} needs {count} positions in a pool, or -1")


def _objects(fields: Mapping[str, Any], absent: Any, count: int, place: str) -> list[Any]:
    if not isinstance(absent, list) or not all(type(i) is int and 0 <= i < count for i in absent):
        raise ResultError(f"broken Result: {place}.absent is not a list of positions below {count}")
    values = {name: _unpacked(column, count, f"{place}.{name}") for name, column in fields.items()}
    missing = frozenset(absent)
    return [
        _ABSENT
        if i in missing
        else {name: column[i] for name, column in values.items() if column[i] is not _ABSENT}
        for i in range(count)
    ]
