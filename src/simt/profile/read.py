"""Reads profiles of every format, which it recognises by content."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from simt.errors import ProfileError
from simt.files import is_folder
from simt.profile import accelsim, ncu_csv, nsys_csv, nvprof_csv, rocprof, rocprof_csv
from simt.profile.csv_table import Header, find_header
from simt.profile.folder import profiles_in, read_folder
from simt.profile.kineto import read_kineto
from simt.profile.nsys_folder import is_nsys_folder, read_nsys_folder
from simt.profile.nsys_sqlite import read_nsys_tables
from simt.profile.profile import Profile
from simt.profile.reports import is_report, read_report
from simt.profile.rocpd import is_rocpd, read_rocpd
from simt.profile.simulated import read_result
from simt.profile.source import ProfileSource, Report
from simt.profile.sqlite_tables import opened
from simt.profile.table import read_csv, read_parquet

CsvReader = Callable[[ProfileSource, int | None, Header], Profile]
# Tables of tools, by their header.
_TABLES: tuple[tuple[Callable[[Sequence[str]], bool], CsvReader], ...] = (
    (ncu_csv.is_ncu_header, ncu_csv.read_ncu_csv),
    (nsys_csv.is_nsys_header, nsys_csv.read_nsys_csv),
    (nsys_csv.is_nsys_summary_header, nsys_csv.refuse_nsys_summary),
    (nvprof_csv.is_nvprof_header, nvprof_csv.read_nvprof_csv),
    (rocprof_csv.is_rocprof_header, rocprof_csv.read_rocprof_csv),
    (accelsim.is_tracer_stats_header, accelsim.read_tracer_stats),
    (accelsim.is_get_stats_header, accelsim.read_get_stats),
)
_TRACE = re.compile(rb"^(?:kernel-\S*\.trace|MemcpyHtoD,0x|-kernel name = )", re.MULTILINE)
_CUPTI_TEXT = re.compile(rb"^(?:CONC(?:URRENT)?[ _])?KERNEL\b.*\[ ?\d+ ?[,-] ?\d+ ?\]", re.MULTILINE)
_NSYS_LINES = re.compile(rb'^\{"Type":\s*\d+|"(?:CudaEvent|NvtxEvent|TraceProcessEvent)":')
_RESULT = re.compile(rb'"schema"\s*:\s*"simt\.result/')
_XZ, _STORE = b"\xfd7zXZ\0", b"SIMTRACE"


def read_profile(
    path: str | os.PathLike[str],
    *,
    columns: Mapping[str, str] | None = None,
    process: int | None = None,
    progress: Report | None = None,
) -> Profile:
    """Reads a profile; docs/profiles.md lists the formats and how each is read.

    columns: for a CSV or Parquet table of no known tool, a map from our column (or a counter's name) to the
        table's column, optionally followed by a unit: `{"name": "kernel", "duration_ns": "time:us"}`.
    process: id of the process whose launches are read, if the file holds several.
    progress: called occasionally with the fraction read so far.

    Raises ProfileError with the file, the place, what was found and what was expected; TraceError or
    ResultError for errors in a trace or a saved Result.
    """
    folder = Path(path)
    if is_folder(folder):
        return _read_folder(folder, columns, process, progress)
    source = ProfileSource(path, progress)
    try:
        profile = _read(source, columns, process)
    except pl.exceptions.PolarsError as error:
        raise ProfileError(f"{source.name}: inconsistent values: {error}") from error
    source.report(1.0, len(profile))
    return profile


def _read_folder(
    folder: Path, columns: Mapping[str, str] | None, process: int | None, progress: Report | None
) -> Profile:
    if (folder / "result.json").is_file():
        return read_result(folder, process)
    if is_nsys_folder(folder):
        return read_nsys_folder(folder, process, progress)
    if not _has_launch_list(folder) and (paths := profiles_in(folder)):
        return read_folder(
            folder,
            paths,
            lambda path: read_profile(path, columns=columns, process=process, progress=progress),
        )
    return accelsim.read_traces(folder, process)


def _has_launch_list(folder: Path) -> bool:
    return any(folder.glob("*kernelslist*")) or any(folder.glob("ctx_*/*kernelslist*"))


def _read(source: ProfileSource, columns: Mapping[str, str] | None, process: int | None) -> Profile:
    head = source.head
    if not head:
        raise ProfileError(f"{source.name}: the file is empty, expected a profile")
    if head.startswith(b"PAR1"):
        return read_parquet(source, columns, process)
    if columns is not None:
        return read_csv(source, columns, process)
    if head.startswith(b"SQLite format 3\0"):
        with opened(source) as tables:
            if tables.has("StringTable") and not tables.has("StringIds"):
                raise ProfileError(
                    f"{source.name}: activities of CUPTI in a database of nvprof, which is not read; "
                    f"nvprof -i FILE --csv --print-gpu-trace writes a table that is"
                )
            return (read_rocpd if is_rocpd(tables) else read_nsys_tables)(tables, process)
    if head.startswith((_XZ, _STORE)):
        return accelsim.read_traces(source.path, process)
    if is_report(source):
        profile = read_report(source, lambda export: read_profile(export, process=process))
        return replace(profile, source=source.name)
    if b"\0" in head:
        raise ProfileError(
            f"{source.name}: begins with {head[:8]!r}, which is not a profile of any known tool; "
            f"docs/profiles.md lists the formats"
        )
    if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"{", b"[")):
        return _read_json(source, process)
    for fits, read in _TABLES:
        header = find_header(source, fits)
        if header is not None:
            return read(source, process, header)
    if _CUPTI_TEXT.search(head):
        raise ProfileError(
            f"{source.name}: activity records as CUPTI's samples print them, which are not read; record a "
            f"profile with Nsight Systems, for example: docs/profiles.md"
        )
    if _TRACE.search(head):
        return accelsim.read_traces(source.path, process)
    return read_csv(source, None, process)


def _read_json(source: ProfileSource, process: int | None) -> Profile:
    if _NSYS_LINES.search(source.head):
        raise ProfileError(
            f"{source.name}: Nsight Systems' export as JSON lines, which is not read; "
            f"nsys export --type sqlite REPORT makes one that is"
        )
    if b'"rocprofiler-sdk-tool"' in source.head:
        return rocprof.read_rocprof_json(source, process)
    if _RESULT.search(source.head):
        with source.local() as path:
            return replace(read_result(path, process), source=source.name)
    return read_kineto(source, process)
