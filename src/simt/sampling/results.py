"""Measured or simulated values of a Plan's launches, from a file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import polars as pl

from simt.errors import PlanError
from simt.files import require_regular
from simt.profile import read_profile
from simt.sampling.estimate import measurements
from simt.sampling.exports import in_order, same_kernel
from simt.sampling.plan import Plan

Match = Literal["auto", "id", "order"]


def read_results(
    plan: Plan,
    path: str | os.PathLike[str],
    *,
    columns: Mapping[str, str] | None = None,
    match: Match = "auto",
) -> pl.DataFrame:
    """Values of launches, for `Plan.estimate`: a column `launch` with the plan's ids, and one per metric.

    path: anything that `read_profile` reads (a Result of simt, a profile of another GPU), or a CSV or Parquet
        table with a column `launch` that contains the plan's ids.
    columns: as for `read_profile`.
    match: `id`: the file's launch ids are the plan's. `order`: it contains the plan's launches in order,
        since tools number the launches that they measure from 0. `auto`: by id if the file has every launch
        of the plan, otherwise in order if it has as many launches as the plan, and of the same kernels.

    Raises PlanError or ProfileError if the file cannot be read, or none of its launches is in the plan.
    """
    table = _table(Path(path)) if columns is None else None
    if table is not None:
        return table
    measured = read_profile(path, columns=columns)
    if match == "order":
        return measurements(in_order(plan, measured), plan)
    both = plan.launches.join(
        measured.launches.select("launch", pl.col("name").cast(pl.String).alias("found")), on="launch"
    )
    same = [same_kernel(a, b) for a, b in both.select("name", "found").iter_rows()]
    complete = len(both) == len(plan) and all(same)
    if match == "auto" and not complete and len(measured) == len(plan):
        return measurements(in_order(plan, measured), plan)
    if not all(same):
        row = both.row(same.index(False), named=True)
        raise PlanError(
            f"{measured.source}: launch {row['launch']} is {row['found']!r}, expected {row['name']!r}: are "
            f"its ids the plan's?"
        )
    if not len(both):
        raise PlanError(f"{measured.source}: has none of the plan's {len(plan)} launches")
    return measurements(measured, plan)


def _table(path: Path) -> pl.DataFrame | None:
    """A table with a column `launch` and no names, None for any other file."""
    try:
        require_regular(path)
        if path.suffix == ".parquet":
            frame = pl.read_parquet(path)
        elif path.suffix == ".csv":
            frame = pl.read_csv(path, infer_schema_length=None)
        else:
            return None
    except (OSError, pl.exceptions.PolarsError):
        return None  # read_profile reports the error
    return frame if "launch" in frame.columns and "name" not in frame.columns else None
