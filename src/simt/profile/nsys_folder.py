"""Nsight Systems' exports of a file for each table: `nsys export --type parquetdir` and `--type arrowdir`.

The tables have the names and columns of the SQLite export. What is read of them is copied into a temporary
database, so that one reader knows the schema.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import polars as pl

from simt.errors import ProfileError
from simt.profile.nsys_sqlite import KERNELS, READ, read_nsys_tables
from simt.profile.profile import Profile
from simt.profile.source import ProfileSource, Report
from simt.profile.sqlite_tables import BATCH, Tables, quoted

_SUFFIXES = (".parquet", ".arrow")


def is_nsys_folder(folder: Path) -> bool:
    """Whether a folder is such an export: it has the table of kernels, or the names of a program's tables."""
    return any(
        (folder / f"{table}{suffix}").is_file() for table in (KERNELS, "StringIds") for suffix in _SUFFIXES
    )


def read_nsys_folder(folder: Path, process: int | None, progress: Report | None = None) -> Profile:
    """Kernel launches in the order of their launching calls, with the NVTX range around each call.

    Raises ProfileError with the file that is damaged or missing.
    """
    with closing(sqlite3.connect("")) as database:  # on disk, and gone when it is closed
        database.execute("PRAGMA journal_mode = OFF")
        for table, columns in READ.items():
            path = next((p for s in _SUFFIXES if (p := folder / f"{table}{s}").is_file()), None)
            if path is not None:
                _copy(path, table, columns, database)
        source = ProfileSource(next(p for p in folder.iterdir() if p.suffix in _SUFFIXES), progress)
        return read_nsys_tables(Tables(database, str(folder), source.report), process)


def _copy(path: Path, table: str, columns: frozenset[str], database: sqlite3.Connection) -> None:
    ProfileSource(path)  # refuses what is no regular file
    try:
        if path.suffix == ".parquet":
            there = list(pl.read_parquet_schema(path))
            frame = pl.read_parquet(path, columns=[c for c in there if c in columns], memory_map=False)
        else:
            data = path.read_bytes()
            read = pl.read_ipc if data.startswith(b"ARROW1") else pl.read_ipc_stream
            frame = read(data)
            frame = frame.select(c for c in frame.columns if c in columns)
        frame = frame.with_columns(
            column.cast(pl.String if _is_text(column.dtype) else pl.Int64) for column in frame.iter_columns()
        )
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise ProfileError(f"{path}: not a readable table: {error}") from error
    if not frame.columns:
        return
    database.execute(f"CREATE TABLE {quoted(table)} ({', '.join(map(quoted, frame.columns))})")
    insert = f"INSERT INTO {quoted(table)} VALUES ({', '.join('?' * frame.width)})"
    for part in frame.iter_slices(BATCH):
        database.executemany(insert, part.iter_rows())


def _is_text(dtype: pl.DataType) -> bool:
    return dtype in (pl.String, pl.Categorical, pl.Enum)
