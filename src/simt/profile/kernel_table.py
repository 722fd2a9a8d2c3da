"""A Profile as text: its kernels as rows of a table, sentences, a fragment for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from simt.formatting import kernel_label, nanoseconds, percent, plural
from simt.pages import notebook

if TYPE_CHECKING:
    from simt.profile.profile import Profile


def left_out_sentences(profile: Profile) -> list[str]:
    """Sentences about what `Profile.kernels` dropped."""
    words = {"copy": "copy or fill", "communication": "communication"}
    return [
        f"Left out: {plural(part.launches, words[part.kind] + ' launch')}, {nanoseconds(part.duration_ns)}, "
        f"{percent(part.share, 1)} of the time in the profile."
        for part in profile.left_out
    ]


def kernel_rows(profile: Profile, limit: int) -> tuple[tuple[list[str], list[list[str]]], str]:
    """Time by kernel name, longest first, and a sentence about those beyond `limit`."""
    header = ["kernel", "launches", "time", "share", "mean", "CoV"]
    timed = profile.has("duration_ns")
    duration = pl.col("duration_ns") if timed else pl.lit(float("nan"))
    grouped = (
        profile.launches.group_by("name")
        .agg(
            pl.len().alias("launches"),
            duration.sum().alias("time"),
            duration.mean().alias("mean"),
            (duration.std(ddof=0) / duration.mean()).alias("cov"),
        )
        .with_columns(pl.col("name").cast(pl.String))
        .sort(["time", "launches", "name"], descending=[True, True, False])
    )
    total = profile.total_ns if timed else float("nan")
    rows = [
        [
            kernel_label(x["name"], 56),
            f"{x['launches']:,}",
            nanoseconds(x["time"]),
            percent(x["time"] / total if total else 0.0, 1),
            nanoseconds(x["mean"]),
            percent(x["cov"], 1),
        ]
        for x in grouped.head(limit).to_dicts()
    ]
    rest = len(grouped) - len(rows)
    return (header, rows), f"... and {rest:,} more kernel names" if rest else ""


def profile_notebook(profile: Profile) -> str:
    """A Profile as HTML for a notebook."""
    (header, rows), more = kernel_rows(profile, 15)
    where = f" on {profile.gpu}" if profile.gpu else ""
    time = f", {nanoseconds(profile.total_ns)}" if profile.has("duration_ns") else ""
    counters = f", {len(profile.counters)} counters" if profile.counters else ""
    return notebook(
        f"{plural(len(profile), 'launch')} of {len(profile.names):,} kernels{where}{time}{counters}",
        [(header, rows, (0,))],
        [more, *left_out_sentences(profile)],
        profile.warnings,
    )
