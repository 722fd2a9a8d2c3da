"""Plans, comparisons and estimates as text: rows of tables, sentences, fragments for notebooks."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING

import polars as pl

from simt.formatting import format_time, kernel_label, nanoseconds, percent, plural, text_table
from simt.pages import notebook

if TYPE_CHECKING:
    from simt.sampling.compare import SamplerComparison
    from simt.sampling.estimate import Estimate
    from simt.sampling.plan import Plan

Rows = tuple[list[str], list[list[str]]]  # header and rows
STRATA_LEFT = (0, 6)  # columns that are text
COMPARISON_LEFT = (0,)
ESTIMATE_LEFT = (0, 1)


def times(value: float) -> str:
    """A speedup with three significant digits, such as `27.1 x`."""
    if not math.isfinite(value):
        return "-"
    return f"{value:,.0f} x" if value >= 100 else f"{value:.3g} x"


def strata_rows(plan: Plan, limit: int, width: int = 44) -> tuple[Rows, str]:
    """The strata with the most time, and a sentence on those beyond `limit` (empty if there are none)."""
    header = ["stratum", "launches", "time", "share", "CoV", "draws", "why"]
    strata = plan.strata.sort(["time_ns", "stratum"], descending=[True, False])
    total = plan.population_ns or 1.0
    rows = [
        [
            kernel_label(x["name"], width),
            f"{x['launches']:,}",
            nanoseconds(x["time_ns"]),
            percent(x["time_ns"] / total, 1),
            percent(x["cov"], 1),
            f"{x['draws']:,}",
            x["why"],
        ]
        for x in strata.head(limit).to_dicts()
    ]
    rest = strata.slice(limit)
    if rest.is_empty():
        return (header, rows), ""
    more = "1 more stratum" if len(rest) == 1 else f"{len(rest):,} more strata"
    return (header, rows), (
        f"... and {more} with {percent(float(rest['time_ns'].sum()) / total, 1)} of the time and "
        f"{int(rest['draws'].sum()):,} draws"
    )


def facts(plan: Plan) -> list[tuple[str, str]]:
    """Cost and claims of a Plan: label and value."""
    drawn = int(plan.launches["draws"].sum())
    twice = f" ({drawn:,} draws, with replacement)" if drawn != len(plan) else ""
    share = len(plan) / plan.population if plan.population else 0.0
    strata = "1 stratum" if len(plan.strata) == 1 else f"{len(plan.strata):,} strata"
    where = f"expected on {plan.gpu}, not measured" if plan.expected else "on the profiled GPU"
    claim = "none: the method gives no bound"
    if plan.expected:
        claim = "none, as times are not measured; values have the interval of their estimate"
    if plan.claimed_error is not None:
        sure = percent(plan.confidence, 1)
        claim = (
            f"± {percent(plan.claimed_error)} at {sure} confidence, of the profiled time on the profiled GPU "
            "only; other values have the interval of their estimate"
        )
    return [
        ("chosen", f"{len(plan):,} of {plural(plan.population, 'launch')} ({percent(share)}){twice}"),
        ("strata", strata),
        ("time", f"{nanoseconds(plan.sampled_ns)} of {nanoseconds(plan.population_ns)} {where}"),
        ("speedup", times(plan.speedup)),
        ("distinct speedup", f"{times(plan.distinct_speedup)}   each chosen launch simulated once"),
        (
            "makespan speedup",
            f"{times(plan.makespan_speedup)}   all side by side: the longest launch decides",
        ),
        ("claimed error", claim),
        (
            "error on what is expected" if plan.expected else "error on the profile",
            f"{percent(plan.profile_error)}   estimated {nanoseconds(plan.estimated_ns)}, "
            f"true {nanoseconds(plan.population_ns)}",
        ),
    ]


def headline(plan: Plan) -> str:
    where = f" on {plan.gpu}" if plan.gpu else ""
    return (
        f"{plan.method}: {len(plan):,} of {plural(plan.population, 'launch')} of {plan.source}{where}, "
        f"{times(plan.speedup)} less to simulate, {percent(plan.profile_error)} off on the profile"
    )


def comparison_rows(comparison: SamplerComparison) -> Rows:
    """A line per method, in the order of `SamplerComparison.summary`."""
    header = ["method", "seeds", "mean err", "p95", "worst", "claimed", "covered", "speedup", "gmean"]
    header += ["distinct", "makespan", "launches", "plan time"]
    rows = []
    for x in comparison.summary.to_dicts():
        covered = "-"
        if x["coverage"] is not None:
            covered = f"{percent(x['coverage'], 1)} ± {100 * x['coverage_se']:.1f}"
        rows.append(
            [
                x["method"],
                f"{x['seeds']}",
                percent(x["mean_error"]),
                percent(x["p95_error"]),
                percent(x["worst_error"]),
                percent(x["claimed_error"]),
                covered,
                times(x["speedup_hmean"]),
                times(x["speedup_gmean"]),
                times(x["distinct_speedup"]),
                times(x["makespan_speedup"]),
                f"{x['launches']:,.0f}",
                format_time(x["seconds"]),
            ]
        )
    return header, rows


def comparison_sentences(comparison: SamplerComparison) -> list[str]:
    """What was compared, and how to interpret it."""
    found = []
    if comparison.alignment is not None:
        a = comparison.alignment
        found.append(
            f"{plural(len(a), 'launch')} aligned {a.how}: {percent(a.share, 1)} of the time of "
            f"{comparison.source} and {percent(a.truth_share, 1)} of {comparison.truth_source}. Plans are "
            f"made from the first; errors and speedups are the second's. What is claimed is the interval of "
            f"the estimate, as the plan's own claim is of the first."
        )
    for method, text in comparison.left_out.items():
        reason = textwrap.shorten(text.removeprefix(f"{comparison.source}: "), 110, placeholder=" …")
        found.append(f"{method} left out: {reason}")
    return found


def plan_notebook(plan: Plan) -> str:
    """A Plan as HTML for a notebook."""
    table, more = strata_rows(plan, 15)
    about = (["", ""], [list(fact) for fact in facts(plan)], (0, 1))
    return notebook(headline(plan), [about, (*table, STRATA_LEFT)], [more], plan.warnings)


def estimate_rows(estimate: Estimate, kernels: int) -> Rows:
    """Totals of every metric, and those of the `kernels` kernel names with the largest totals."""
    header = ["metric", "kernel", "total", "±", "relative", "from", "to", "measured", "estimator"]
    rows = []
    for metric, kind in estimate.estimators.items():
        table = estimate.table.filter(pl.col("metric") == metric)
        named = table.filter(pl.col("name").is_not_null()).sort("total", descending=True).head(kernels)
        for x in [*table.filter(pl.col("name").is_null()).to_dicts(), *named.to_dicts()]:
            rows.append(
                [
                    metric,
                    "all" if x["name"] is None else kernel_label(x["name"]),
                    f"{x['total']:.6g}",
                    f"{x['half_width']:.3g}",
                    percent(x["relative"]),
                    f"{x['low']:.6g}",
                    f"{x['high']:.6g}",
                    f"{x['measured']:,} of {x['launches']:,}",
                    kind,
                ]
            )
        if (whole := estimate.overlapping.get(metric)) is not None:
            ends = [f"{whole.low:.6g}", f"{whole.high:.6g}"]
            rows.append([metric, "end to end", f"{whole.total:.6g}", "", "", *ends, "", "schedule"])
    return header, rows


def plan_text(plan: Plan) -> str:
    """A Plan as lines of plain text."""
    (header, rows), more = strata_rows(plan, 15)
    lines = text_table(header, rows, STRATA_LEFT) + [more] * bool(more)
    lines += [f"{label}: {value}" for label, value in facts(plan)]
    return "\n".join(lines + [f"warning: {text}" for text in plan.warnings])


def comparison_text(comparison: SamplerComparison) -> str:
    """A Comparison as lines of plain text."""
    header, rows = comparison_rows(comparison)
    return "\n".join([*text_table(header, rows, COMPARISON_LEFT), *comparison_sentences(comparison)])


def comparison_notebook(comparison: SamplerComparison) -> str:
    """A Comparison as HTML for a notebook."""
    header, rows = comparison_rows(comparison)
    title = f"{len(rows)} methods on {comparison.source}"
    return notebook(title, [(header, rows, COMPARISON_LEFT)], comparison_sentences(comparison))
