"""CSV of ROCm's profilers: rocprofv3's kernel trace and counter collection, and the tables of rocprofv2 and
rocprof.

Source of column meanings: ROCprofiler-SDK documentation, "Output file fields"; ROCProfiler documentation for
the older tools.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from simt.errors import ProfileError
from simt.profile.assemble import Findings
from simt.profile.csv_table import Header, numbers, read_text, require, try_numbers
from simt.profile.profile import COLUMNS, Profile
from simt.profile.rocprof import profile_of_dispatches
from simt.profile.source import ProfileSource

# Our column, and its names in rocprofv3, rocprofv2 and rocprof.
_NUMBERS = {
    "start": ("Start_Timestamp", "BeginNs"),
    "end": ("End_Timestamp", "EndNs"),
    **{f"block_{axis}": (f"Workgroup_Size_{axis.upper()}",) for axis in "xyz"},
    **{f"items_{axis}": (f"Grid_Size_{axis.upper()}",) for axis in "xyz"},
    "shared_bytes": ("LDS_Block_Size", "Group_Segment_Size", "LDS_Per_Workgroup", "lds"),
    "stream": ("Stream_Id", "Queue_Id", "Queue_ID", "queue-id"),
    "dispatch": ("Dispatch_Id", "Dispatch_ID", "Index"),
    "process": ("Process_Id", "PID", "pid"),
}
_VECTOR = ("VGPR_Count", "Arch_VGPR", "arch_vgpr", "vgpr")
_ACCUMULATION = ("Accum_VGPR_Count", "Accum_VGPR", "accum_vgpr")
_NAME = ("Kernel_Name", "KernelName")
_DEVICE = ("Agent_Id", "GPU_ID", "gpu-id")
_TOTALS = {"items_x": ("Grid_Size", "grd"), "block_x": ("Workgroup_Size", "wgr")}
_COUNTER, _VALUE = "Counter_Name", "Counter_Value"
# Columns of rocprofv2 and rocprof that are neither used nor counters; some kernel traces have them, too.
_PASSED_OVER = {
    "Kind", "Correlation_Id", "Correlation_ID", "Thread_Id", "TID", "tid", "Queue_Index", "queue-index",
    "Kernel_Id", "Scratch_Size", "Scratch_Per_Workitem", "scr", "SGPR_Count", "SGPR", "sgpr", "Wave_Size",
    "wave_size", "sig", "obj", "DispatchNs", "CompleteNs", "DurationNs",
}  # fmt: skip


def is_rocprof_header(names: Sequence[str]) -> bool:
    there = set(names)
    return (
        {"Kernel_Name", _COUNTER, _VALUE}.issubset(there)
        or {"Kernel_Name", "Start_Timestamp", "End_Timestamp"}.issubset(there)
        or {"KernelName", "gpu-id"}.issubset(there)
    )


def read_rocprof_csv(source: ProfileSource, process: int | None, header: Header) -> Profile:
    """One row per dispatch. A counter collection has a row for each dispatch and counter; values of the same
    counter are added up.

    Raises ProfileError if a cell is not a number or a column is missing.
    """
    frame = read_text(source, header)
    if "Kind" in frame.columns:
        frame = frame.filter(pl.col("Kind").fill_null("KERNEL_DISPATCH") == "KERNEL_DISPATCH")
    findings = Findings(source.name, process=process)
    table = pl.DataFrame(_about(frame, findings))
    if {_COUNTER, _VALUE}.issubset(frame.columns):
        table = _one_row_a_dispatch(table, frame, source.name)
    elif _found(frame, _TOTALS["items_x"]) is not None:  # rocprofv2 and rocprof: a column for each counter
        table = table.with_columns(_counters(frame, findings))
    return profile_of_dispatches(table, findings)


def _found(frame: pl.DataFrame, names: Sequence[str]) -> str | None:
    """The first of these columns that the table has."""
    return next((name for name in names if name in frame.columns), None)


def _about(frame: pl.DataFrame, findings: Findings) -> list[pl.Series]:
    """What the table says of each dispatch, apart from counters."""
    source = findings.source
    name = _found(frame, _NAME)
    if name is None or ("Start_Timestamp" in frame.columns and "End_Timestamp" not in frame.columns):
        require(frame, ["Kernel_Name", "Start_Timestamp", "End_Timestamp"], source)
    assert name is not None
    columns = [frame[name].str.replace(r"(?: \[clone \.kd\]|\.kd)$", "").alias("name")]
    for new, choices in _NUMBERS.items():
        if (old := _found(frame, choices)) is not None:
            columns.append(_exact(frame[old], source).alias(new))
    there = {column.name for column in columns}
    if not there.issuperset(("items_x", "block_x")):
        for new, choices in _TOTALS.items():
            if (old := _found(frame, choices)) is None:
                require(
                    frame, [f"{what}_Size_{axis}" for what in ("Workgroup", "Grid") for axis in "XYZ"], source
                )
            assert old is not None
            columns.append(_exact(frame[old], source).alias(new))
        one = pl.Series([1] * len(frame), dtype=pl.Int64)
        columns += [one.alias(f"{what}_{axis}") for what in ("items", "block") for axis in "yz"]
        findings.warnings.append(
            "only the totals of grid and block are known; they are given as grid_x and block_x"
        )
    vector = [
        _exact(frame[old], source).fill_null(0)
        for choices in (_VECTOR, _ACCUMULATION)
        if (old := _found(frame, choices)) is not None
    ]
    if vector:
        columns.append(sum(vector[1:], vector[0]).alias("registers"))
    if (old := _found(frame, _DEVICE)) is not None:
        columns.append(frame[old].str.extract(r"(\d+)\s*$").cast(pl.Int64, strict=False).alias("device"))
    return columns


def _exact(column: pl.Series, source: str) -> pl.Series:
    """Integers: a float64 would not hold timestamps."""
    exact: pl.Series = column.str.strip_chars().cast(pl.Int64, strict=False)
    if exact.null_count():
        exact = numbers(column, source).cast(pl.Int64, strict=False)
    return exact


def _one_row_a_dispatch(about: pl.DataFrame, frame: pl.DataFrame, source: str) -> pl.DataFrame:
    """The first row of each dispatch, with the sum of the values of each counter."""
    keys = [name for name in ("process", "dispatch") if name in about.columns]
    if "dispatch" not in keys:
        require(frame, ["Dispatch_Id"], source)
    counter = frame[_COUNTER].fill_null("").str.strip_chars()
    if taken := sorted(set(counter.unique()) & {*COLUMNS, *about.columns, ""}):
        raise ProfileError(f"{source}: column `{_COUNTER}`: a counter called {taken[0]!r}")
    long = about.select(keys).with_columns(
        counter.alias("counter"), numbers(frame[_VALUE], source).alias("value")
    )
    launches = about.unique(keys, keep="first", maintain_order=True)
    different = about.join(launches.select(*keys, first="name"), on=keys, nulls_equal=True).filter(
        pl.col("name") != pl.col("first")
    )
    if len(different):
        row = different.row(0, named=True)
        raise ProfileError(
            f"{source}: dispatch {row['dispatch']} is both {row['first']!r} and {row['name']!r}; this looks "
            f"like several runs in one file: read each on its own"
        )
    summed = long.group_by(*keys, "counter", maintain_order=True).agg(pl.col("value").sum())
    wide = summed.pivot("counter", index=keys, values="value")
    return launches.join(wide, on=keys, how="left", nulls_equal=True, maintain_order="left")


def _counters(frame: pl.DataFrame, findings: Findings) -> list[pl.Series]:
    """The columns of numbers that the tools do not write for every dispatch."""
    used = {name for choices in (*_NUMBERS.values(), *_TOTALS.values()) for name in choices}
    used |= {*_VECTOR, *_ACCUMULATION, *_NAME, *_DEVICE, *_PASSED_OVER, *COLUMNS}
    found, empty = [], []
    for column in frame.iter_columns():
        if column.name not in used:
            values, bad = try_numbers(column)
            if bad is None and values.null_count() < len(values):
                found.append(values)
            elif bad is None:
                empty.append(column.name)
    if empty and len(frame):
        findings.warnings.append(f"columns without a value in any row: {', '.join(empty)}")
    return found
