"""A self-contained HTML page of a Plan: the choice, the reasons, and the strata of the kernels' times."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from simt.files import write_text
from simt.formatting import nanoseconds, percent
from simt.pages import Cell, Table, render
from simt.plots import inline_svg
from simt.profile import Profile
from simt.profile.kernel_table import left_out_sentences
from simt.sampling import plan_tables
from simt.sampling.plan import Plan
from simt.sampling.plots import strata_figure

MAX_ROWS = 1000  # of a table, so that the page of a large Plan still opens


def page(plan: Plan, profile: Profile, strata: npt.NDArray[np.int64]) -> str:
    """The page as text.

    profile: the one from which the Plan was made; strata: each of its launches' stratum (`Sampler.strata_`).
    """
    figure = ""
    if profile.has("duration_ns"):
        figure = inline_svg(strata_figure(profile, plan, strata))
    return render(
        "plan.html",
        title="simt plan",
        about=f"method {plan.method}" + (f" on {plan.gpu}" if plan.gpu else ""),
        source=plan.source,
        tiles=_tiles(plan),
        sentences=_sentences(plan, profile),
        warnings=plan.warnings,
        strata=_strata(plan),
        strata_note="CoV: standard deviation of the launches' times over their mean. Click a header to sort."
        + _left(len(plan.strata)),
        launches=_launches(plan),
        launches_note="The launches to simulate: the total is the sum of weight times value."
        + _left(len(plan)),
        figure=figure,
        figure_note="The kernels that take longest. A colour is a stratum, a tick below the axis a chosen "
        "launch; where strata are ranges of time the background shows them.",
        provenance=_provenance(plan),
    )


def write(plan: Plan, profile: Profile, strata: npt.NDArray[np.int64], path: Path) -> None:
    """Writes the page. Raises ResultError."""
    write_text(path, page(plan, profile, strata))


def _tiles(plan: Plan) -> list[tuple[str, str]]:
    claimed = "-" if plan.claimed_error is None else f"± {percent(plan.claimed_error)}"
    return [
        (f"{len(plan):,}", f"of {plan.population:,} launches chosen"),
        (f"{len(plan.strata):,}", "stratum" if len(plan.strata) == 1 else "strata"),
        (plan_tables.times(plan.speedup), "speedup"),
        (plan_tables.times(plan.distinct_speedup), "each launch once"),
        (plan_tables.times(plan.makespan_speedup), "all side by side"),
        (nanoseconds(plan.sampled_ns), f"of {nanoseconds(plan.population_ns)} GPU time"),
        (
            claimed,
            f"claimed at {percent(plan.confidence, 1)} confidence" if plan.claimed_error else "no claim",
        ),
        (percent(plan.profile_error), "error on the profile"),
    ]


def _sentences(plan: Plan, profile: Profile) -> list[str]:
    sentences = [plan_tables.headline(plan) + ".", *left_out_sentences(profile)]
    if plan.claimed_error is not None:
        sentences.append(
            "The claimed error is about the profiled time on the profiled GPU; what a simulator or another "
            "GPU makes of the launches can differ by more."
        )
    return sentences


def _strata(plan: Plan) -> Table:
    rows: list[list[Cell]] = []
    total = plan.population_ns or 1.0
    ordered = plan.strata.sort(["time_ns", "stratum"], descending=[True, False])
    for x in ordered.head(MAX_ROWS).to_dicts():
        rows.append(
            [
                (x["name"], None),
                (f"{x['launches']:,}", x["launches"]),
                (nanoseconds(x["time_ns"]), x["time_ns"]),
                (percent(x["time_ns"] / total, 1), x["time_ns"]),
                (percent(x["cov"], 1), x["cov"]),
                (f"{x['draws']:,}", x["draws"]),
                (x["why"], None),
            ]
        )
    header = ["stratum", "launches", "time", "share", "CoV", "draws", "why"]
    return Table(header, rows)


def _launches(plan: Plan) -> Table:
    rows: list[list[Cell]] = []
    for x in (
        plan.launches.sort(pl.col("weight") * pl.col("time_ns"), descending=True).head(MAX_ROWS).to_dicts()
    ):
        rows.append(
            [
                (x["name"], None),
                (str(x["launch"]), x["launch"]),
                (str(x["stratum"]), x["stratum"]),
                (f"{x['draws']:,}", x["draws"]),
                (f"{x['weight']:,.4g}", x["weight"]),
                (nanoseconds(x["time_ns"]), x["time_ns"]),
                (nanoseconds(x["weight"] * x["time_ns"]), x["weight"] * x["time_ns"]),
            ]
        )
    header = ["kernel", "launch", "stratum", "draws", "weight", "time", "stands for"]
    return Table(header, rows)


def _left(rows: int) -> str:
    return f" The largest {MAX_ROWS:,} of {rows:,}." if rows > MAX_ROWS else ""


def _provenance(plan: Plan) -> dict[str, str]:
    values: dict[str, Any] = {
        "method": plan.method,
        **plan.parameters,
        "seed": plan.seed,
        "replacement": "with" if plan.replacement else "without",
        "profile": plan.source,
        "GPU": plan.gpu,
        **{f"learned: {key}": value for key, value in plan.fitted.items()},
        "simt": plan.version,
    }
    return {key: _plain(value) for key, value in values.items()}


def _plain(value: Any) -> str:
    if value is None:
        return "-"
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= 2000 else text[:2000] + " …"
