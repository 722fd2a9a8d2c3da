"""`--json` of commands that print tables."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from simt.files import require_output, write_text

Json = Annotated[
    str | None,
    typer.Option("--json", metavar="FILE", help="Write JSON; - is stdout, which then holds nothing else."),
]


def write_json(json_: str | None, data: Any) -> bool:
    """Writes JSON where it is wanted (None: nowhere); whether standard output is now taken by it. What is no
    JSON is written as text, and no number as null."""
    if json_ is None:
        return False
    text = json.dumps(_plain(data), indent=1, default=str, allow_nan=False) + "\n"
    if json_ == "-":
        sys.stdout.write(text)
        return True
    require_output(Path(json_))
    write_text(Path(json_), text)
    return False


def records(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
    """The rows of a table, each by column, for JSON."""
    return [dict(zip(header, row, strict=True)) for row in rows]


def _plain(data: Any) -> Any:
    if isinstance(data, dict):
        return {str(key): _plain(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_plain(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data
