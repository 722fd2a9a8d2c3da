"""Reads tables of SQLite files that profilers write."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from urllib.parse import quote

import polars as pl

from simt.errors import ProfileError
from simt.profile.source import ProfileSource

BATCH = 1 << 16
"""Rows that are fetched together."""


@contextmanager
def opened(source: ProfileSource) -> Iterator[Tables]:
    """The tables of a file. Errors of SQLite within the block are raised as ProfileError."""
    with source.local() as path:
        try:
            uri = f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1"
            with closing(sqlite3.connect(uri, uri=True)) as database:
                yield Tables(database, source.name, source.report)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise ProfileError(
                f"{source.name}: SQLite cannot read it: {error}; the file may be damaged"
            ) from error


class Tables:
    """The tables of a database; knows which columns this schema has.

    source: name of the file, for messages.
    report: called with the fraction and the number of rows read of a table whose size is known.
    """

    def __init__(
        self,
        database: sqlite3.Connection,
        source: str,
        report: Callable[[float, int], None] = lambda fraction, rows: None,
    ) -> None:
        database.text_factory = lambda data: data.decode("utf-8", "replace")
        self.database, self.source, self._report = database, source, report
        self.columns: dict[str, set[str]] = {
            str(name): self._columns(str(name), str(kind))
            for name, kind in database.execute(
                "SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view')"
            )
        }

    def _columns(self, name: str, kind: str) -> set[str]:
        try:
            return {str(row[1]) for row in self.database.execute(f"PRAGMA table_info({quoted(name)})")}
        except sqlite3.OperationalError:
            if kind == "view":  # it calls a function of the tool that wrote the file
                return set()
            raise

    def has(self, table: str, *columns: str) -> bool:
        return table in self.columns and self.columns[table].issuperset(columns)

    def read(self, table: str, columns: Sequence[str], where: str = "1", whole: float = 0.0) -> pl.DataFrame:
        """Integer columns. Raises ProfileError if one holds anything else."""
        names = ", ".join(map(quoted, columns))
        cursor = self.database.execute(f"SELECT {names} FROM {quoted(table)} WHERE {where}")
        parts = []
        done = 0
        while rows := cursor.fetchmany(BATCH):
            part = {}
            for column, values in zip(columns, zip(*rows, strict=True), strict=True):
                try:
                    part[column] = pl.Series(column, values, pl.Int64, strict=True)
                except (TypeError, OverflowError, pl.exceptions.PolarsError) as error:
                    bad = next((v for v in values if not isinstance(v, int | None)), None)
                    raise ProfileError(
                        f"{self.source}: {table}.{column} holds {bad!r}, expected an integer"
                    ) from error
            parts.append(pl.DataFrame(part))
            done += len(rows)
            if whole:
                self._report(min(done / whole, 1.0), done)
        return pl.concat(parts) if parts else pl.DataFrame(schema={column: pl.Int64 for column in columns})


def quoted(name: str) -> str:
    """A name of a table or column as SQL takes it."""
    return '"' + name.replace('"', '""') + '"'
