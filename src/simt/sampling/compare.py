"""Comparison of methods: error, speedup and coverage over many seeds, also across GPUs."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from simt.errors import PlanError, ProfileError
from simt.methods import clone
from simt.profile import Profile
from simt.sampling import plan_tables
from simt.sampling.adaptive import Adaptive
from simt.sampling.align import Alignment, align
from simt.sampling.plan import Plan
from simt.sampling.sampler import Sampler

SCHEMA = "simt.comparison/1"
RUN_COLUMNS = {
    "method": pl.String,  # label of the sampler
    "seed": pl.Int64,  # null for a method without seeds
    "error": pl.Float64,  # |estimated - true| / true of the total
    "claimed_error": pl.Float64,  # null if the method claims none
    "confidence": pl.Float64,
    "speedup": pl.Float64,  # total over the time of all draws
    "distinct_speedup": pl.Float64,  # total over the time of distinct launches
    "makespan_speedup": pl.Float64,  # total over the longest chosen launch
    "launches": pl.Int64,  # number of distinct launches
    "seconds": pl.Float64,  # to make the plan; strata are reused after the first seed
}
Ids = npt.NDArray[np.uint64]
Times = npt.NDArray[np.float64]
Advance = Callable[[str, int, int], None]  # method, fits done, fits in total


@dataclass(frozen=True)
class SamplerComparison:
    """Methods on a profile over many seeds.

    runs: columns RUN_COLUMNS, a row per method and seed.
    source, truth_source: the files; times and errors are those of the second, if given.
    alignment: how the two profiles' launches were paired.
    left_out: methods that could not be used, with the reason.
    """

    runs: pl.DataFrame
    source: str
    truth_source: str | None = None
    alignment: Alignment | None = None
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def summary(self) -> pl.DataFrame:
        """A row per method, in the order in which they were given.

        speedup_hmean and speedup_gmean are harmonic and geometric means over the seeds, distinct_speedup and
        makespan_speedup are harmonic means; launches and seconds are medians. coverage is the share of seeds
        whose error is within the claimed one; coverage_se is its binomial standard error, computed from
        Laplace's estimate (k + 1) / (n + 2) instead of the share, so that it is not zero for 30 of 30.
        """

        def harmonic(column: str) -> pl.Expr:
            return 1.0 / (1.0 / pl.col(column)).mean()

        covered = (pl.col("error") <= pl.col("claimed_error")).sum()
        laplace = (covered + 1) / (pl.len() + 2)
        claims = pl.col("claimed_error").is_not_null().any()
        return self.runs.group_by("method", maintain_order=True).agg(
            pl.len().alias("seeds"),
            pl.col("error").mean().alias("mean_error"),
            pl.col("error").quantile(0.95, "linear").alias("p95_error"),
            pl.col("error").max().alias("worst_error"),
            harmonic("speedup").alias("speedup_hmean"),
            pl.col("speedup").log().mean().exp().alias("speedup_gmean"),
            harmonic("distinct_speedup").alias("distinct_speedup"),
            harmonic("makespan_speedup").alias("makespan_speedup"),
            pl.col("launches").median().alias("launches"),
            pl.col("claimed_error").mean().alias("claimed_error"),
            pl.when(claims).then(covered / pl.len()).alias("coverage"),
            pl.when(claims).then((laplace * (1 - laplace) / pl.len()).sqrt()).alias("coverage_se"),
            pl.col("seconds").median().alias("seconds"),
        )

    def to_json(self) -> str:
        """Runs and summary as JSON of schema `simt.comparison/1`."""
        a = self.alignment
        data: dict[str, Any] = {
            "schema": SCHEMA,
            "source": self.source,
            "truth_source": self.truth_source,
            "aligned": a
            and {"launches": len(a), "how": a.how, "share": a.share, "truth_share": a.truth_share},
            "left_out": dict(self.left_out),
            "summary": _finite(self.summary),
            "runs": _finite(self.runs),
        }
        return json.dumps(data, indent=1, allow_nan=False)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes `runs` as Parquet or CSV, or `to_json`, depending on the file's suffix; atomically.

        Raises PlanError for another suffix, ResultError if the file cannot be written.
        """
        from simt.files import replacing, write_text

        target = Path(path)
        if target.suffix == ".json":
            write_text(target, self.to_json() + "\n")
        elif target.suffix == ".csv":
            write_text(target, self.runs.write_csv())
        elif target.suffix == ".parquet":
            target.parent.mkdir(parents=True, exist_ok=True)
            with replacing(target) as temporary:
                self.runs.write_parquet(temporary)
        else:
            raise PlanError(f"{target}: expected a name that ends in .parquet, .csv or .json")
        return target

    def __str__(self) -> str:
        return plan_tables.comparison_text(self)

    def _repr_html_(self) -> str:
        return plan_tables.comparison_notebook(self)


def compare(
    profile: Profile,
    samplers: Mapping[str, Sampler] | Iterable[Sampler],
    seeds: int = 30,
    truth: Profile | None = None,
    *,
    first_seed: int = 0,
    threshold: float = 0.5,
    advance: Advance | None = None,
) -> SamplerComparison:
    """Fits every sampler with many seeds and compares its estimates of the total time with the truth.

    samplers: by label, or a list, labelled by method (and by the parameters that differ within a method).
    seeds: number of seeds, beginning with `first_seed`; a sampler without a `seed` parameter is fitted once.
    truth: another profile of the same program, from another GPU or run. Plans are then made from the launches
        of `profile` that both have (`align`), and judged by their times in `truth`.
    threshold: least share of both profiles' time that must align.
    advance: called to report progress.

    Raises ProfileError if the profiles do not align, PlanError if no sampler can be fitted.
    """
    if seeds < 1:
        raise PlanError(f"compare: {seeds} seeds, expected 1 or more")
    labelled = dict(samplers) if isinstance(samplers, Mapping) else _labels(samplers)
    alignment = None
    judged = profile.column("duration_ns")
    if truth is not None:
        alignment = align(profile, truth, threshold)
        profile = replace(profile, launches=profile.launches[alignment.rows])
        judged = truth.column("duration_ns")[alignment.truth_rows]
    ids = profile.launches["launch"].to_numpy()
    rows: list[dict[str, Any]] = []
    left_out: dict[str, str] = {}
    counts = {label: seeds if "seed" in s.get_params() else 1 for label, s in labelled.items()}
    done, everything = 0, sum(counts.values())
    for label, sampler in labelled.items():
        one = clone(sampler)  # shared by all seeds: results independent of the seed are reused
        for i in range(counts[label]):
            if advance:
                advance(label, done + i, everything)
            seed = first_seed + i if "seed" in one.get_params() else None
            if seed is not None:
                one.set_params(seed=seed)
            start = time.perf_counter()
            try:
                if isinstance(one, Adaptive):
                    found = _adapted(one, profile, ids, judged, truth is not None)
                else:
                    found = judge(one.fit_plan(profile), ids, judged, truth is not None)
            except (PlanError, ProfileError) as error:
                left_out[label] = str(error)
                break
            rows.append({"method": label, "seed": seed, "seconds": time.perf_counter() - start, **found})
        done += counts[label]
    if not rows:
        raise PlanError(
            "compare: no method could be used: " + "; ".join(f"{k}: {v}" for k, v in left_out.items())
        )
    return SamplerComparison(
        runs=pl.DataFrame(rows, schema_overrides=RUN_COLUMNS).select(*RUN_COLUMNS),
        source=profile.source,
        truth_source=truth.source if truth is not None else None,
        alignment=alignment,
        left_out=left_out,
    )


def judge(plan: Plan, ids: Ids, times: Times, other: bool = False) -> dict[str, Any]:
    """Estimate and cost of a Plan with times other than those it was made from.

    ids: launch ids of the population, ascending; times: of each launch, any unit. other: they are of another
        run or GPU, of which the plan claims nothing: the estimate does, by its interval.
    """
    chosen = times[np.searchsorted(ids, plan.launches["launch"].to_numpy())]
    total = float(times.sum())
    draws = plan.launches["draws"].to_numpy()
    estimate = float(plan.launches["weight"].to_numpy() @ chosen)

    claimed = plan.claimed_error
    if other and claimed is not None:
        measured = pl.DataFrame({"launch": plan.launches["launch"], "time": chosen})
        claimed = plan.estimate(measured, ["time"], estimator="expansion")["time"]["relative"]

    def speedup(cost: float) -> float:
        return total / cost if cost > 0 else float("inf")

    return {
        "error": abs(estimate - total) / total if total else 0.0,
        "claimed_error": claimed,
        "confidence": plan.confidence,
        "speedup": speedup(float(draws @ chosen)),
        "distinct_speedup": speedup(float(chosen.sum())),
        "makespan_speedup": speedup(float(chosen.max())),
        "launches": len(plan),
    }


def _adapted(sampler: Adaptive, profile: Profile, ids: Ids, times: Times, other: bool) -> dict[str, Any]:
    """Runs an adaptive sampler that takes its measurements from the truth."""
    if not other:
        raise PlanError("it measures what the plan is for: give a second profile as the truth")
    if list(sampler.metrics) != ["duration_ns"]:
        raise PlanError(f"it measures {', '.join(sampler.metrics)}, but is judged by duration_ns")

    def measure(launches: list[int]) -> pl.DataFrame:
        at = np.searchsorted(ids, launches)
        return pl.DataFrame({"launch": ids[at], "duration_ns": times[at]})

    estimate = sampler.run(profile, measure)["duration_ns"]
    total = float(times.sum())
    return {
        **judge(sampler.plan_, ids, times),
        "error": abs(estimate["total"] - total) / total if total else 0.0,
        "claimed_error": estimate["relative"],
    }


def _labels(samplers: Iterable[Sampler]) -> dict[str, Sampler]:
    labelled: dict[str, Sampler] = {}
    for sampler in samplers:
        label = sampler.label()
        if label in labelled:
            defaults = sampler.parameters()
            given = sampler.get_params(deep=False).items()
            label += "".join(f" {k}={v}" for k, v in given if v != defaults[k].default)
        if label in labelled:
            raise PlanError(f"compare: two samplers are both {label!r}; give them labels")
        labelled[label] = sampler
    return labelled


def _finite(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """Rows for JSON, which has no infinity."""
    return [
        {
            key: None if isinstance(value, float) and not math.isfinite(value) else value
            for key, value in row.items()
        }
        for row in frame.to_dicts()
    ]
