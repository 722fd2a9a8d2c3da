"""CSV of Nsight Systems' trace reports: `nsys stats -r cuda_gpu_trace` and `-r cuda_kern_exec_trace`.

Older versions call them gputrace and kernexectrace. Units stand in the column names: `Start (ns)`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import polars as pl

from simt.errors import ProfileError
from simt.profile.assemble import Findings, assemble
from simt.profile.csv_table import Header, base_unit, numbers, read_text, require, triples
from simt.profile.profile import COPY, Profile
from simt.profile.source import ProfileSource

_WITH_UNIT = re.compile(r"(.*?)\s*\(([^()]+)\)")
_GPU_TRACE = {
    "GrdX": "grid_x", "GrdY": "grid_y", "GrdZ": "grid_z",
    "BlkX": "block_x", "BlkY": "block_y", "BlkZ": "block_z",
    "Reg/Trd": "registers", "Strm": "stream",
}  # fmt: skip
_EXEC_TRACE = {"DevId": "device", "PID": "process"}


def is_nsys_header(names: Sequence[str]) -> bool:
    plain = {_plain(name)[0] for name in names}
    return plain.issuperset({"Start", "Duration", "Name", "GrdX"}) or plain.issuperset(
        {"Kernel Start", "Kernel Dur", "Kernel Name"}
    )


def is_nsys_summary_header(names: Sequence[str]) -> bool:
    """Whether this is a table of totals per kernel, which has no launches."""
    return {"Instances", "Name"}.issubset(names) and any(name.startswith("Total Time") for name in names)


def refuse_nsys_summary(source: ProfileSource, process: int | None, header: Header) -> Profile:
    raise ProfileError(
        f"{source.name}: a summary per kernel (`Instances`), expected one row per launch: "
        f"nsys stats -r cuda_gpu_trace --format csv REPORT"
    )


def read_nsys_csv(source: ProfileSource, process: int | None, header: Header) -> Profile:
    """One row per launch. Raises ProfileError if a cell is not a number or a column is missing."""
    frame = read_text(source, header)
    scales: dict[str, float] = {}
    renamed: dict[str, str] = {}
    for name in frame.columns:
        plain, unit = _plain(name)
        scales[plain] = base_unit(unit)
        renamed[name] = plain
    if len(set(renamed.values())) < len(renamed):
        raise ProfileError(f"{source.name}: a column occurs twice in {', '.join(frame.columns)}")
    frame = frame.rename(renamed)

    def number(name: str) -> pl.Series:
        return numbers(frame[name], source.name) * scales[name]

    findings = Findings(source.name, process=process)
    if "Kernel Name" in frame.columns:
        require(frame, ["Kernel Start", "Kernel Dur"], source.name)
        columns = {
            "name": frame["Kernel Name"],
            "start_ns": number("Kernel Start"),
            "duration_ns": number("Kernel Dur"),
            "order": number("API Start" if "API Start" in frame.columns else "Kernel Start"),
            **{new: number(old) for old, new in _EXEC_TRACE.items() if old in frame.columns},
        }
        for old, new in (("GridXYZ", "grid"), ("BlockXYZ", "block")):
            if old in frame.columns:
                x, y, z = triples(frame[old], source.name)
                columns |= {f"{new}_x": x, f"{new}_y": y, f"{new}_z": z}
        return assemble(_table(columns, source.name), findings, ("order", "start_ns"))
    columns = {
        "name": frame["Name"],
        "start_ns": number("Start"),
        "duration_ns": number("Duration"),
        **{new: number(old) for old, new in _GPU_TRACE.items() if old in frame.columns},
    }
    shared = [number(name).fill_null(0) for name in ("StcSMem", "DymSMem") if name in frame.columns]
    if shared:
        columns["shared_bytes"] = sum(shared[1:], shared[0]).round()
    if "Device" in frame.columns:
        device = frame["Device"].str.extract(r"\((\d+)\)\s*$").cast(pl.Int32, strict=False)
        columns["device"] = device
        gpus = frame["Device"].str.replace(r"\s*\(\d+\)\s*$", "").drop_nulls().unique().sort().to_list()
        if len(gpus) == 1:
            findings.gpu = str(gpus[0])
        elif gpus:
            findings.warnings.append(f"several kinds of GPU: {', '.join(gpus)}")
    order = number("CorrId").alias("order") if "CorrId" in frame.columns else None
    if order is not None:
        columns["order"] = order
    table = _table(columns, source.name)
    copies = table.filter(pl.col("grid_x").is_null())
    findings.left_out.append((COPY, len(copies), float(copies["duration_ns"].sum())))
    return assemble(table.filter(pl.col("grid_x").is_not_null()), findings, ("order", "start_ns"))


def _table(columns: dict[str, pl.Series], source: str) -> pl.DataFrame:
    table = pl.DataFrame([series.alias(name) for name, series in columns.items()])
    for name in ("name", "start_ns", "duration_ns"):
        if table[name].null_count():
            row = table[name].is_null().arg_max()
            assert row is not None
            raise ProfileError(f"{source}: row {row + 1}: no {name}")
    return table


def _plain(name: str) -> tuple[str, str]:
    """`Start (ns)` as `Start` and `ns`."""
    found = _WITH_UNIT.fullmatch(name.strip())
    return (found[1], found[2]) if found else (name.strip(), "")
