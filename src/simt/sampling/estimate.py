"""Estimates totals of the whole program, with confidence intervals, from measured launches of a Plan."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.stats import t as student

from simt import parameter_checks as check
from simt.errors import PlanError
from simt.profile import Profile
from simt.profile.profile import COLUMNS as PROFILE_COLUMNS
from simt.sampling.makespan import TIMES, Makespan, Order

if TYPE_CHECKING:
    from simt.sampling.plan import Plan

Floats = npt.NDArray[np.float64]
SCHEMA = "simt.estimate/1"
COLUMNS = {
    "metric": pl.String,
    "name": pl.String,  # kernel; null for the whole program
    "launches": pl.UInt32,  # chosen by the Plan
    "measured": pl.UInt32,  # those of them with a value
    "total": pl.Float64,
    "half_width": pl.Float64,  # of the confidence interval
    "relative": pl.Float64,  # half width / total; null for a total of 0
    "low": pl.Float64,  # of counts not below what was measured
    "high": pl.Float64,
    "df": pl.Float64,  # degrees of freedom of the variance; null if nothing can vary
}
_INTENSIVE = re.compile(r"^launch__|\.(ratio|pct|per_\w+|avg|min|max|peak\w*)(\.|$)")
_ELAPSED = re.compile(r"cycles_elapsed\.(avg|max)$")  # equal for all SMs: additive over launches
_CTAS = "sm__ctas_launched.sum"
"""What a plan knows exactly, by its launches' grids."""
ASSUMED = 0.05  # relative spread of values around expected times, before any was measured
_PRIOR = 2.0  # prior degrees of freedom: all kernels' spread for a kernel's, a kernel's for a stratum's


@dataclass(frozen=True)
class Estimate:
    """Totals of additive metrics with confidence intervals.

    table: columns COLUMNS; for each metric, the total of all launches, then of each kernel name.
    estimators: metric -> `expansion` (sum of weight * value) or `ratio` (profiled time * value per time).
    missing: chosen launches without a value of some metric.
    notes: the assumptions, as text.
    makespan: metric -> end-to-end time with overlap, for those that are a launch's time. Empty if it is not
        known which launches may overlap.
    """

    table: pl.DataFrame
    confidence: float
    estimators: Mapping[str, str]
    missing: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    makespan: Mapping[str, Makespan] = field(default_factory=dict)

    def __getitem__(self, metric: str) -> dict[str, Any]:
        """The row of a metric's total. Raises KeyError."""
        rows = self.table.filter(pl.col("metric") == metric, pl.col("name").is_null())
        if not len(rows):
            raise KeyError(f"no metric {metric!r}, there are {', '.join(self.estimators)}")
        return rows.row(0, named=True)

    @property
    def overlapping(self) -> Mapping[str, Makespan]:
        """Of `makespan`, what differs from the sum of the launches' times."""
        return {metric: x for metric, x in self.makespan.items() if (x.low, x.high) != self._interval(metric)}

    def _interval(self, metric: str) -> tuple[float, float]:
        row = self[metric]
        return row["low"], row["high"]

    def to_json(self) -> str:
        """JSON of schema `simt.estimate/1`."""
        return json.dumps(
            {
                "schema": SCHEMA,
                "confidence": self.confidence,
                "estimators": dict(self.estimators),
                "missing": list(self.missing),
                "notes": list(self.notes),
                "makespan": {metric: asdict(each) for metric, each in self.makespan.items()},
                "totals": self.table.to_dicts(),
            },
            indent=1,
        )

    def __repr__(self) -> str:
        lines = []
        for metric in self.estimators:
            row = self[metric]
            bound = "" if row["relative"] is None else f" (± {100 * row['relative']:.2g} %)"
            lines.append(f"{metric}: {row['total']:.6g} ± {row['half_width']:.3g}{bound}")
            if metric in self.overlapping:
                x = self.overlapping[metric]
                lines.append(f"{metric}, end to end: {x.total:.6g} ({x.low:.6g} to {x.high:.6g})")
        lines.append(f"{100 * self.confidence:g} % confidence; {len(self.missing)} chosen launches missing")
        return "\n".join([*lines, *self.notes])


def estimate(
    plan: Plan,
    results: Any,
    metrics: Sequence[str] | None = None,
    *,
    confidence: float | None = None,
    estimator: Literal["auto", "expansion", "ratio"] = "auto",
    widen: Callable[[Total], Total] = lambda total: total,
) -> Estimate:
    """Totals of the plan's population from values of its launches.

    results: a simt Result, of the whole program or of just the plan's launches; or a Profile (from any tool),
        a frame with a column `launch`, or launch id -> {metric: value}, with the plan's ids. Launches that
        are not in the plan are ignored.
    metrics: names of additive metrics; by default, all that are recognisably additive.
    confidence: by default, the plan's own.
    estimator: `auto` uses for each metric the one with the smaller variance.
    widen: applied to every total before its half width is taken, for more caution.

    Variances are those of stratified sampling without (or with) replacement. With few draws, the variance is
    shrunk towards, and with a single draw it equals, a prior from the profile's spread of times and the
    spread of value per time over the stratum's kernel. Degrees of freedom: Satterthwaite, "An approximate
    distribution of estimates of variance components", 1946. Formulas: Cochran, "Sampling Techniques", 1977,
    chapters 5 and 6; docs/sampling/estimates.md.

    Raises PlanError if nothing was measured, or if a metric is missing or is not a sum over launches.
    """
    level = plan.confidence if confidence is None else confidence
    check.real("confidence", level, 0, 1, open_low=True, open_high=True)
    check.one_of("estimator", estimator, ("auto", "expansion", "ratio"))
    frame = measurements(results, plan)
    values = _values(plan, frame, metrics)
    order = None
    if plan.order is not None:
        measured = plan.launches.select("launch").join(frame, on="launch", how="left", maintain_order="left")
        order = Order(plan, plan.order, measured)
    makespans: dict[str, Makespan] = {}
    rows: list[dict[str, Any]] = []
    used: dict[str, str] = {}
    notes: dict[str, None] = {}
    lacking = np.zeros(len(plan), bool)
    for metric, y in values.items():
        sample = Sample(plan, y)
        lacking |= ~sample.measured
        kind = sample.best()[0] if estimator == "auto" else estimator
        used[metric] = kind
        known = plan.ctas if metric == _CTAS else None
        whole = widen(sample.total(kind)) if known is None else _exactly(sum(known.values()))
        every = np.ones(len(plan), bool)
        rows.append(_row(metric, None, whole, level, len(plan), sample.least(every), sample.count(every)))
        if metric in TIMES and order is not None:
            quantile = float(student.ppf(0.5 + level / 2, whole.df))
            makespans[metric] = order.makespan(sample, y, kind, whole, rows[-1], quantile)
        elif metric in TIMES and plan.streams == 1:
            makespans[metric] = Makespan(
                *(rows[-1][name] for name in ("total", "low", "high", "total", "total"))
            )
        for name in sample.names:
            inside = sample.of_name(name)
            row = _row(
                metric,
                name,
                widen(sample.total(kind, name)) if not known or name not in known else _exactly(known[name]),
                level,
                int(inside.sum()),
                sample.least(inside),
                sample.count(inside),
            )
            rows.append(row)
        notes.update(dict.fromkeys(sample.notes))
    if not makespans and not values.keys().isdisjoint(TIMES):
        notes[unknown_overlap(plan.streams)] = None
    missing = tuple(int(i) for i in plan.launches["launch"].to_numpy()[lacking])
    if missing:
        shown = ", ".join(map(str, missing[:10])) + (", …" if len(missing) > 10 else "")
        notes[
            f"{len(missing)} of {len(plan)} chosen launches are missing ({shown}): others of their stratum "
            "stand for them, or where there are none, their profiled time and the kernel's value per time"
        ] = None
    return Estimate(pl.DataFrame(rows, schema=COLUMNS), level, used, missing, tuple(notes), makespans)


@dataclass(frozen=True)
class Total:
    """A total and its variance with degrees of freedom (infinite if it is known exactly)."""

    value: float
    variance: float
    df: float

    def half_width(self, confidence: float) -> float:
        if not self.variance:
            return 0.0
        return float(student.ppf(0.5 + confidence / 2, self.df)) * math.sqrt(self.variance)


class Sample:
    """One metric of a plan's launches: estimates and variances by stratum.

    y: value of each row of `plan.launches`, NaN if missing.
    """

    def __init__(self, plan: Plan, y: Floats) -> None:
        launches, strata = plan.launches, plan.strata
        self.notes: list[str] = []
        self.measured, self._values = np.isfinite(y), y
        index = {int(s): i for i, s in enumerate(strata["stratum"])}
        at = np.array([index[int(s)] for s in launches["stratum"]], np.int64)
        self._all_names = launches["name"].to_numpy()
        self.names = sorted(set(self._all_names.tolist()))
        self._sizes = strata["launches"].to_numpy().astype(float)
        timed = plan.population_ns > 0
        x = launches["time_ns"].to_numpy().astype(float) if timed else np.ones(len(launches))
        self._times = strata["time_ns"].to_numpy().astype(float) if timed else self._sizes
        self._cov = strata["cov"].to_numpy() if timed else np.zeros(len(self._sizes))
        self._replacement, self._expected = plan.replacement, plan.expected
        h = len(self._sizes)
        # Kernel of each stratum; a stratum of several kernels counts as a kernel of its own.
        self._kernel = np.full(h, -1)
        codes = np.searchsorted(self.names, self._all_names)
        for row, stratum in enumerate(at):
            known = self._kernel[stratum]
            self._kernel[stratum] = codes[row] if known in (-1, codes[row]) else len(self.names) + stratum
        unchosen = np.flatnonzero(self._kernel < 0)
        self._kernel[unchosen] = len(self.names) + unchosen
        keep = self.measured
        if not keep.any():
            raise PlanError("none of the plan's launches was measured")
        weights = launches["weight"].to_numpy().astype(float)
        whole = np.bincount(at, weights, h)
        got = np.bincount(at[keep], weights[keep], h)
        self._at, self._y, self._x = at[keep], y[keep], x[keep]
        self._draws = launches["draws"].to_numpy().astype(float)[keep]
        # Measured launches represent the unmeasured ones of their stratum.
        self._weights = weights[keep] * (whole / np.where(got > 0, got, 1.0))[self._at]
        self._codes = codes[keep]
        self._m = np.bincount(self._at, self._draws, h)
        self._empty = np.flatnonzero(self._m == 0)
        self._spread_of_ratios()

    def of_name(self, name: str) -> npt.NDArray[np.bool_]:
        """Which of the plan's rows are this kernel's."""
        inside: npt.NDArray[np.bool_] = self._all_names == name
        return inside

    def count(self, rows: npt.NDArray[np.bool_]) -> int:
        """How many of these rows of the plan have a value."""
        return int((rows & self.measured).sum())

    def least(self, rows: npt.NDArray[np.bool_]) -> float:
        """What the total of these rows' launches and those that they stand for is at least: a count is not
        negative, and what was measured is part of it. -inf if the metric has negative values."""
        if (self._values[self.measured] < 0).any():
            return -math.inf
        return float(self._values[rows & self.measured].sum())

    def _spread_of_ratios(self) -> None:
        """Value per time of each kernel, and its relative variance from launch to launch."""
        kernel = self._kernel[self._at]
        count = len(self.names) + len(self._sizes)
        wy = np.bincount(kernel, self._weights * self._y, count)
        wx = np.bincount(kernel, self._weights * self._x, count)
        overall = float(wy.sum() / wx.sum()) if wx.sum() else 0.0
        ratio = np.divide(wy, wx, out=np.full(count, overall), where=wx > 0)
        expected = ratio[kernel] * self._x
        residual = np.divide(self._y - expected, expected, out=np.zeros_like(expected), where=expected != 0)
        # Weighted by the time that a draw represents: rare, short launches of a kernel carry little
        # information.
        per_draw = self._weights / self._draws * self._x
        weight = np.bincount(kernel, self._draws * per_draw, count)
        squares = np.bincount(kernel, self._draws * per_draw * residual**2, count)
        fourth = np.bincount(kernel, self._draws * per_draw**2, count)
        # The number of equal draws whose weighted mean has the same variance.
        effective = np.divide(weight**2, fourth, out=np.ones(count), where=fourth > 0)
        df = np.maximum(effective - 1, 0.0)
        some = df > 1e-9
        own = np.zeros(count)
        own[some] = squares[some] / weight[some] * (effective[some] / df[some])
        df = np.where(some, df, 0.0)
        # Each kernel counts the same: those with the most time and draws often vary least, and say little of
        # others.
        pooled = float(own[some].mean()) if some.any() else 0.0
        if self._expected:
            # What the plan assumed to choose its few draws: that these agree does not say that all do.
            pooled = max(pooled, ASSUMED**2)
            self.notes.append(
                "times are expected, not measured: beside a kernel's own draws, a spread of "
                f"{100 * ASSUMED:g} % of the values around them counts, as two draws"
            )
        self.ratio, self.pooled_variance = ratio, pooled
        self.ratio_variance = (own * df + _PRIOR * pooled) / (df + _PRIOR)
        # The prior is itself an estimate: a kernel's degrees of freedom are limited to all kernels' plus its
        # own.
        self.ratio_df = df + min(_PRIOR, float(df.sum()))
        known = np.flatnonzero(wx > 0)
        relative = ratio[known] / overall - 1 if overall else np.zeros(len(known))
        self._between = float(np.sum(relative**2) / (len(known) - 1)) if len(known) > 1 else pooled
        unsure = np.any((self._m == 1) & (self._sizes > 1))
        if unsure and not df.sum():
            self.notes.append(
                "no kernel was measured twice: value per time is taken to be the same in all its launches"
            )
        elif unsure:
            singles = int(np.sum((self._m == 1) & (self._sizes > 1)))
            self.notes.append(
                f"{singles} strata have one draw: they are taken to vary as the profiled times do, and as "
                "value per time does among all measured launches of the kernel"
            )

    def strata(self, kind: str, name: str | None = None) -> tuple[Floats, Floats, Floats]:
        """By stratum: estimated total, variance, and degrees of freedom (0 if it is pooled)."""
        h = len(self._sizes)
        mine = np.ones(len(self._y), bool) if name is None else self._codes == self.names.index(name)
        ratio = self.ratio[self._kernel[self._at]]
        y = np.where(mine, self._y, 0.0)
        # The varying quantity: the value, or the part of it that the profiled time does not explain.
        z = y - np.where(mine, ratio * self._x, 0.0) if kind == "ratio" else y
        per_draw = self._weights / self._draws
        total: Floats = np.bincount(self._at, self._weights * y, h).astype(float)
        m, n = self._m, self._sizes
        mean = np.divide(np.bincount(self._at, self._weights * z, h), m, out=np.zeros(h), where=m > 0)
        squares = np.bincount(self._at, self._draws * (per_draw * z - mean[self._at]) ** 2, h)
        several = m > 1
        variance = np.where(several, squares * m / np.maximum(m - 1, 1), 0.0)
        if not self._replacement:
            variance *= np.maximum(1 - m / n, 0.0)
        df = np.where(several, m - 1, 0.0)
        # The prior from the kernel and the profile; one draw has nothing else.
        owner, population = self._kernel, 0.0 if self._replacement else 1 / n
        left = np.where(m > 0, np.maximum(1 / np.maximum(m, 1) - population, 0.0), 0.0)
        if kind == "ratio":
            present = np.bincount(self._at[mine], minlength=h) > 0
            model = (self._times * self.ratio[owner]) ** 2 * self.ratio_variance[owner] * left * present
        else:
            model = total**2 * (self.ratio_variance[owner] + self._cov**2) * left
        variance = np.where(several, (variance * df + _PRIOR * model) / (df + _PRIOR), model)
        df = np.where(several, df + _PRIOR, 0.0)
        if len(self._empty):
            assumed = self._times * self.ratio[owner]
            known = np.zeros(len(self.ratio), bool)
            known[self._kernel[self._at]] = True
            unknown = np.where(known[owner], self.ratio_variance[owner], self._between) + self.pooled_variance
            for i in self._empty:
                named = owner[i] < len(self.names)
                if name is None or (named and self.names[owner[i]] == name):
                    total[i], variance[i] = assumed[i], assumed[i] ** 2 * unknown[i]
        return total, variance, df

    def each(self, kind: str, strata: npt.NDArray[np.int64], time: Floats) -> tuple[Floats, Floats, Floats]:
        """Launches' values and how they vary around their stratum's; the variance of each stratum's total.

        strata: position of each launch's stratum. time: its profiled time.
        """
        totals, variances, _ = self.strata(kind)
        x = time if self._times is not self._sizes else np.ones(len(time))
        rate = self.ratio[self._kernel]
        if kind == "expansion":
            rate = np.divide(totals, self._times, out=np.zeros_like(totals), where=self._times > 0)
        spread = self.ratio_variance[self._kernel]
        spread[self._empty] += self.pooled_variance
        values: Floats = rate[strata] * x
        return values, values**2 * spread[strata], variances

    def best(self) -> tuple[str, Total]:
        """The estimator with the smaller variance, and its total."""
        variants = {kind: self.total(kind) for kind in ("expansion", "ratio")}
        kind = min(variants, key=lambda k: variants[k].variance)
        return kind, variants[kind]

    def total(self, kind: str, name: str | None = None) -> Total:
        """Estimated total, of all launches or of one kernel's."""
        totals, variances, df = self.strata(kind, name)
        value = self._ratio_total(totals, name) if kind == "ratio" else float(totals.sum())
        variance = float(variances.sum())
        if variance <= (1e-13 * value) ** 2:  # rounding
            return Total(value, 0.0, math.inf)
        own = df > 0
        parts = float(np.sum(variances[own] ** 2 / df[own]))
        # Strata whose variance is their kernel's share one estimate of it.
        pooled = np.bincount(self._kernel[~own], variances[~own], len(self.ratio))
        shared = np.maximum(self.ratio_df, 1.0)
        parts += float(np.sum(pooled**2 / shared))
        return Total(value, variance, max(1.0, variance**2 / parts) if parts else math.inf)

    def _ratio_total(self, totals: Floats, name: str | None) -> float:
        """Profiled time * value per time of each kernel, if the time of its launches is known."""
        if name is not None and self.names.index(name) not in self._kernel:
            return float(totals.sum())  # its strata contain other kernels, too
        mine = np.ones(len(totals), bool)
        if name is not None:
            mine = self._kernel == self.names.index(name)
        return float(np.sum(self._times[mine] * self.ratio[self._kernel[mine]]))


def _exactly(value: int) -> Total:
    return Total(float(value), 0.0, math.inf)


def _row(
    metric: str,
    name: str | None,
    total: Total,
    confidence: float,
    launches: int,
    least: float,
    measured: int,
) -> dict[str, Any]:
    half = total.half_width(confidence)
    return {
        "metric": metric,
        "name": name,
        "launches": launches,
        "measured": measured,
        "total": total.value,
        "half_width": half,
        "relative": half / abs(total.value) if total.value else None,
        "low": min(total.value, max(total.value - half, least)),
        "high": total.value + half,
        "df": total.df if math.isfinite(total.df) else None,
    }


def additive(metric: str) -> bool:
    """Whether a metric's values add up over launches, judging by its name."""
    return bool(_ELAPSED.search(metric)) or not _INTENSIVE.search(metric)


def unknown_overlap(streams: int | None) -> str:
    """Says that it is not known which launches overlap. streams: of the plan."""
    found = (
        "the profile does not say in which streams launches are"
        if streams is None
        else f"launches are in {streams} streams, and the profile does not say which wait for which"
    )
    return f"{found}: times are sums, and the end-to-end time is less where launches overlap"


def _values(plan: Plan, frame: pl.DataFrame, metrics: Sequence[str] | None) -> dict[str, Floats]:
    """Metric -> values of the plan's launches in the plan's order, NaN if missing."""
    found_here = metrics is None
    if metrics is None:
        shape = PROFILE_COLUMNS.keys() - {"duration_ns"}  # a launch's grid, stream and the like
        metrics = [
            name
            for name, dtype in frame.schema.items()
            if name not in shape and (dtype.is_numeric() or dtype == pl.Null) and additive(name)
        ]
    elif isinstance(metrics, str) or not all(isinstance(metric, str) for metric in metrics):
        raise check.refuse("metrics", metrics, "names of metrics")
    if not metrics:
        raise PlanError(f"no additive metric in the results; they have {', '.join(frame.columns)}")
    for metric in metrics:
        if metric not in frame.columns:
            raise PlanError(f"no metric {metric!r} in the results; they have {', '.join(frame.columns)}")
        if not additive(metric):
            raise PlanError(f"{metric} is not a sum over launches: estimate its numerator and denominator")
    try:
        frame = frame.select("launch", *(pl.col(metric).cast(pl.Float64) for metric in metrics))
    except pl.exceptions.PolarsError as error:
        raise PlanError(f"the results are not numbers: {error}") from error
    joined = plan.launches.select("launch").join(frame, on="launch", how="left", maintain_order="left")
    values = {metric: joined[metric].fill_null(float("nan")).to_numpy() for metric in metrics}
    if found_here:  # a tool's column may be empty
        values = {metric: y for metric, y in values.items() if np.isfinite(y).any()}
        if not values:
            raise PlanError("none of the plan's launches was measured")
    return values


def measurements(results: Any, plan: Plan) -> pl.DataFrame:
    """Results of any form as a frame with a row per launch, by the plan's ids. Raises PlanError."""
    from simt.result import Result
    from simt.sampling.located import launches_of

    if isinstance(results, Result):
        rows = [
            {"launch": launch, "cycles": x.cycles, "duration_ns": x.seconds * 1e9, **x.counters}
            for launch, x in launches_of(plan, results).items()
        ]
        none = {"launch": pl.UInt64, "cycles": pl.Int64}
        frame = pl.DataFrame(rows, None if rows else none, infer_schema_length=None)
    elif isinstance(results, Profile):
        names = [name for name in ("duration_ns", *results.counters) if results.has(name)]
        frame = results.launches.select("launch", *names)
    elif isinstance(results, pl.DataFrame):
        frame = results
    elif isinstance(results, Mapping):
        try:
            frame = pl.DataFrame(
                [{"launch": launch, **values} for launch, values in results.items()], infer_schema_length=None
            )
        except (TypeError, pl.exceptions.PolarsError) as error:
            raise PlanError(f"results are not of the form launch id -> {{metric: value}}: {error}") from error
    else:
        raise PlanError(f"results are {type(results).__name__}, expected a Result, a Profile, or a table")
    if "launch" not in frame.columns:
        raise PlanError(f"results have no column `launch`, but {', '.join(frame.columns) or 'none'}")
    try:
        frame = frame.with_columns(pl.col("launch").cast(pl.UInt64))
    except pl.exceptions.PolarsError as error:
        raise PlanError(f"results: launch ids are whole numbers: {error}") from error
    twice = frame["launch"].filter(frame["launch"].is_duplicated())
    if len(twice):
        raise PlanError(f"results: launch {twice[0]} occurs twice")
    return frame
