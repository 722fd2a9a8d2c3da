"""Builds a Profile from the rows that a reader found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import polars as pl

from simt.errors import ProfileError
from simt.profile.profile import COLUMNS, COPY, LeftOut, Profile, kind_of


@dataclass
class Findings:
    """What a reader knows apart from the rows.

    source: name of the file.
    gpu: name of the GPU.
    process: the requested process, or None for all.
    left_out: activities other than kernel launches, such as memory copies: (kind, number, ns).
    """

    source: str
    gpu: str | None = None
    process: int | None = None
    left_out: list[tuple[str, int, float]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def assemble(frame: pl.DataFrame, findings: Findings, order: Sequence[str] = ("start_ns",)) -> Profile:
    """Makes a Profile of the rows.

    Rows are sorted into launch order, by `order`, and numbered from 0. The column `process` is used and
    dropped, as are the columns of `order` that a Profile does not have. Times become relative to the first
    start because a float64 cannot hold nanoseconds since 1970. If there are copies among the rows, `position`
    counts only kernels, as simulators and tracers do.
    """
    frame = one_process(frame, findings)
    order = [name for name in order if name in frame.columns]
    if order:
        frame = frame.sort(order, nulls_last=True, maintain_order=True)
    frame = frame.drop({name for name in order if name not in COLUMNS} | {"launch"}, strict=False)
    if "start_ns" in frame.columns:
        frame = frame.with_columns((pl.col("start_ns") - pl.col("start_ns").min()).cast(pl.Float64))
    if "device" in frame.columns and (devices := frame["device"].n_unique()) > 1:
        findings.warnings.append(f"launches on {devices} devices; the column `device` tells them apart")
    keep = [c.name for c in frame.iter_columns() if c.name == "name" or c.null_count() < len(c)]
    frame = frame.select(keep).with_row_index("launch")
    copies = [name for name in frame["name"].unique().cast(pl.String) if name and kind_of(name) == COPY]
    if copies:
        kernel = ~pl.col("name").cast(pl.String).is_in(copies)
        frame = frame.with_columns((kernel.cum_sum() - kernel).alias("position"))
    total = float(frame["duration_ns"].sum()) if "duration_ns" in frame.columns else float("nan")
    total += sum(ns for _, _, ns in findings.left_out)
    summed: dict[str, tuple[int, float]] = {}
    for kind, number, ns in findings.left_out:
        before, before_ns = summed.get(kind, (0, 0.0))
        summed[kind] = before + number, before_ns + ns
    left_out = tuple(
        LeftOut(kind, number, ns, ns / total if total else 0.0)
        for kind, (number, ns) in summed.items()
        if number
    )
    return Profile(frame, findings.gpu, findings.source, left_out, tuple(findings.warnings))


def one_process(frame: pl.DataFrame, findings: Findings) -> pl.DataFrame:
    """The rows of the requested process or, by default, all rows, with a warning if there are several
    processes. Drops the column `process`.

    Raises ProfileError if there are no rows of that process.
    """
    wanted = findings.process
    if "process" not in frame.columns:
        if wanted is not None:
            raise ProfileError(
                f"{findings.source}: process {wanted} requested, but the file does not distinguish processes"
            )
        return frame
    frame = frame.with_columns(pl.col("process").cast(pl.Int64, strict=False))
    found = frame["process"].drop_nulls().unique().sort().to_list()
    if wanted is not None:
        if wanted not in found:
            raise ProfileError(
                f"{findings.source}: no launches of process {wanted}, found "
                f"{', '.join(map(str, found)) or 'none'}"
            )
        frame = frame.filter(pl.col("process") == wanted)
    elif len(found) > 1:
        findings.warnings.append(
            f"launches of {len(found)} processes are read as one sequence "
            f"(process {', '.join(map(str, found[:8]))}{', …' if len(found) > 8 else ''}); "
            f"choose one with `process`"
        )
    return frame.drop("process")
