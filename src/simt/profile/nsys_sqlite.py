"""Nsight Systems' SQLite export (`nsys export --type sqlite`), schemas of 2020 and later.

Source of table and column meanings: the comments in the exports' own CREATE statements, and the Nsight
Systems User Guide, section "SQLite Schema Reference".
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import polars as pl

from simt.errors import ProfileError
from simt.profile.assemble import Findings, assemble
from simt.profile.profile import COPY, GRAPH, Profile
from simt.profile.ranges import innermost
from simt.profile.sqlite_tables import BATCH, Tables

KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
_CALLS = "CUPTI_ACTIVITY_KIND_RUNTIME"
_COPIES = ("CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET")
_GRAPHS = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
_GPUS = ("TARGET_INFO_GPU", "TARGET_INFO_CUDA_GPU")
_NAMES = ("demangledName", "shortName", "mangledName", "name")  # in order of preference
_PUSH_POP, _START_END = 59, 60  # NVTX_EVENTS.eventType of ranges
_THREAD_BITS = 24  # of a serialised global id: the thread; above it process, VM and hardware
_PROCESS_MASK = (1 << 24) - 1
_COLUMNS = {
    "gridX": "grid_x",
    "gridY": "grid_y",
    "gridZ": "grid_z",
    "blockX": "block_x",
    "blockY": "block_y",
    "blockZ": "block_z",
    "registersPerThread": "registers",
    "streamId": "stream",
    "deviceId": "device",
}
_INTERVAL = ("start", "end", "globalPid")
READ = {
    KERNELS: frozenset(
        {*_INTERVAL, *_COLUMNS, *_NAMES, "correlationId", "staticSharedMemory", "dynamicSharedMemory"}
    ),
    _CALLS: frozenset({"start", "end", "globalTid", "correlationId"}),
    "NVTX_EVENTS": frozenset({"start", "end", "globalTid", "eventType", "text", "textId"}),
    "StringIds": frozenset({"id", "value"}),
    **dict.fromkeys((*_COPIES, _GRAPHS), frozenset(_INTERVAL)),
    **dict.fromkeys(_GPUS, frozenset({"name"})),
}
"""The tables and columns that are read."""
_RUNNING_NUMBER = re.compile(r", (?:seq|op_id) = \d+")  # PyTorch's emit_nvtx numbers each call of an operator


def read_nsys_tables(tables: Tables, process: int | None) -> Profile:
    """Kernel launches in the order of their launching calls, with the NVTX range around each call.

    Raises ProfileError if these are not the tables of such an export, or they are damaged.
    """
    findings = Findings(tables.source, process=process)
    if not tables.has(KERNELS, "start", "end"):
        found = ", ".join(sorted(name for name in tables.columns if not name.startswith("ENUM_"))[:12])
        raise ProfileError(
            f"{tables.source}: no table {KERNELS}, found {found or 'no table'}; "
            f"expected an export of Nsight Systems that traced CUDA (nsys profile --trace=cuda,nvtx), or "
            f"a rocpd database of rocprofv3 --kernel-trace"
        )
    strings = _strings(tables)
    frame = _kernels(tables, strings)
    calls = _calls(tables, frame)
    frame = frame.with_columns(
        pl.coalesce(calls["call_start"], frame["start_ns"]).alias("order"),
        _annotations(tables, strings, calls),
    )
    findings.gpu = _gpu(tables, frame, findings)
    _others(tables, findings)
    if "globalPid" in frame.columns:
        frame = frame.with_columns(
            (pl.col("globalPid") // (1 << _THREAD_BITS) & _PROCESS_MASK).alias("process")
        )
    return assemble(frame.drop("globalPid", "correlationId", strict=False), findings, ("order", "start_ns"))


def _strings(tables: Tables) -> dict[int, str]:
    if not tables.has("StringIds", "id", "value"):
        return {}
    return {key: str(value) for key, value in tables.database.execute("SELECT id, value FROM StringIds")}


def _kernels(tables: Tables, strings: dict[int, str]) -> pl.DataFrame:
    there = tables.columns[KERNELS]
    wanted = ["start", "end", *(c for c in _COLUMNS if c in there)]
    wanted += [
        c for c in ("staticSharedMemory", "dynamicSharedMemory", "globalPid", "correlationId") if c in there
    ]
    count = int(tables.database.execute(f"SELECT count(*) FROM {KERNELS}").fetchone()[0])
    frame = tables.read(KERNELS, wanted, whole=count)
    shared = [pl.col(c) for c in ("staticSharedMemory", "dynamicSharedMemory") if c in there]
    return frame.select(
        _names(tables, strings, len(frame)),
        pl.col("start").alias("start_ns"),
        (pl.col("end") - pl.col("start")).alias("duration_ns"),
        *(pl.col(old).alias(new) for old, new in _COLUMNS.items() if old in there),
        *([pl.sum_horizontal(shared).alias("shared_bytes")] if shared else []),
        *(pl.col(c) for c in ("globalPid", "correlationId") if c in there),
    )


def _names(tables: Tables, strings: dict[int, str], rows: int) -> pl.Series:
    """Names of the kernels: ids of StringIds, or text in the table itself."""
    columns = [name for name in _NAMES if name in tables.columns[KERNELS]]
    if not columns:
        raise ProfileError(
            f"{tables.source}: {KERNELS} has no column for the kernel's name, expected demangledName"
        )
    chosen = ", ".join(columns)
    labels: dict[Any, int] = {}
    names: dict[str, int] = {}
    codes = np.empty(rows, np.uint32)
    cursor = tables.database.execute(f"SELECT {chosen} FROM {KERNELS}")
    at = 0
    while batch := cursor.fetchmany(BATCH):
        for row in batch:
            if row not in labels:
                labels[row] = names.setdefault(_name(row, strings, tables.source, at), len(names))
        codes[at : at + len(batch)] = [labels[row] for row in batch]
        at += len(batch)
    return pl.Series("name", list(names), pl.String).gather(codes)


def _name(row: tuple[Any, ...], strings: dict[int, str], source: str, at: int) -> str:
    for value in row:
        text = strings.get(value) if isinstance(value, int) else value
        if isinstance(text, str) and text:
            return text
    raise ProfileError(f"{source}: {KERNELS} row {at + 1}: the name {row[0]!r} is not in StringIds")


def _calls(tables: Tables, kernels: pl.DataFrame) -> pl.DataFrame:
    """For each kernel, start, end and thread of the CPU call that launched it; null where not traced."""
    nothing = pl.DataFrame(
        {c: [None] * len(kernels) for c in ("call_start", "call_end", "call_thread")}
    ).cast(pl.Int64)
    if "correlationId" not in kernels.columns or not tables.has(
        _CALLS, "start", "end", "globalTid", "correlationId"
    ):
        return nothing
    # Other calls have no kernel with their id; leaving them in SQLite saves reading them.
    calls = tables.read(
        _CALLS,
        ("start", "end", "globalTid", "correlationId"),
        f"correlationId IN (SELECT correlationId FROM {KERNELS})",
    )
    process = (pl.col("globalTid") // (1 << _THREAD_BITS)).alias("of")
    calls = calls.with_columns(process)
    keys = ["correlationId", "of"] if "globalPid" in kernels.columns else ["correlationId"]
    if "globalPid" in kernels.columns:
        kernels = kernels.with_columns((pl.col("globalPid") // (1 << _THREAD_BITS)).alias("of"))
    calls = calls.sort("start").unique(keys, keep="first", maintain_order=True)
    joined = kernels.select(keys).join(calls, on=keys, how="left", maintain_order="left")
    return joined.select(
        pl.col("start").alias("call_start"),
        pl.col("end").alias("call_end"),
        pl.col("globalTid").alias("call_thread"),
    )


def _annotations(tables: Tables, strings: dict[int, str], calls: pl.DataFrame) -> pl.Series:
    empty = pl.Series("annotation", [None] * len(calls), pl.Categorical)
    if not tables.has("NVTX_EVENTS", "start", "end", "globalTid") or calls["call_start"].null_count() == len(
        calls
    ):
        return empty
    there = tables.columns["NVTX_EVENTS"]
    ranges = (
        f"end IS NOT NULL AND eventType IN ({_PUSH_POP}, {_START_END})"
        if "eventType" in there
        else "end IS NOT NULL"
    )
    events = tables.read("NVTX_EVENTS", ("start", "end", "globalTid"), ranges)
    texts = [c for c in ("text", "textId") if c in there]
    if not len(events) or not texts:
        return empty
    known = calls.with_row_index("row").drop_nulls()
    chosen = innermost(
        events["globalTid"].fill_null(-1).to_numpy(),
        events["start"].fill_null(0).to_numpy(),
        events["end"].fill_null(0).to_numpy(),
        known["call_thread"].to_numpy(),
        ((known["call_start"] + known["call_end"]) // 2).to_numpy(),
    )
    cursor = tables.database.execute(f"SELECT {', '.join(texts)} FROM NVTX_EVENTS WHERE {ranges}")
    known_texts: dict[Any, str | None] = {}
    labels = [
        known_texts[row] if row in known_texts else known_texts.setdefault(row, _text(row, strings))
        for row in cursor
    ]
    result: list[str | None] = [None] * len(calls)
    for row, index in zip(known["row"].to_list(), chosen.tolist(), strict=True):
        if index >= 0:
            result[row] = labels[index]
    return pl.Series("annotation", result, pl.Categorical)


def _text(row: tuple[Any, ...], strings: dict[int, str]) -> str | None:
    for value in row:
        text = strings.get(value) if isinstance(value, int) else value
        if isinstance(text, str) and text:
            return _RUNNING_NUMBER.sub("", text)
    return None


def _others(tables: Tables, findings: Findings) -> None:
    """GPU activities other than kernels: memory copies, and CUDA graphs traced as a whole."""
    copies = [_sum(tables, table, findings.process) for table in _COPIES]
    findings.left_out.append((COPY, sum(n for n, _ in copies), sum(ns for _, ns in copies)))
    count, ns = _sum(tables, _GRAPHS, findings.process)
    findings.left_out.append((GRAPH, count, ns))
    if count:
        findings.warnings.append(
            f"{count:,} launches of CUDA graphs ({ns / 1e6:,.3f} ms) were traced as a whole and are missing; "
            f"profile with --cuda-graph-trace=node to see their kernels"
        )


def _sum(tables: Tables, table: str, process: int | None) -> tuple[int, float]:
    """Number and time, ns, of a table's activities; only those of one process if one is requested."""
    if not tables.has(table, "start", "end"):
        return 0, 0.0
    where = "1"
    if process is not None and tables.has(table, "globalPid"):
        where = f"((globalPid >> {_THREAD_BITS}) & {_PROCESS_MASK}) = {process}"
    query = f"SELECT count(*), total(end - start) FROM {table} WHERE {where}"
    count, ns = tables.database.execute(query).fetchone()
    return int(count), float(ns)


def _gpu(tables: Tables, frame: pl.DataFrame, findings: Findings) -> str | None:
    for table in _GPUS:
        if tables.has(table, "name"):
            rows = tables.database.execute(
                f"SELECT DISTINCT name FROM {table} WHERE name IS NOT NULL"
            ).fetchall()
            names = sorted(str(name) for (name,) in rows)
            if len(names) > 1:
                findings.warnings.append(f"the machine has several kinds of GPU: {', '.join(names)}")
            if names:
                return names[0] if len(names) == 1 else None
    return None
