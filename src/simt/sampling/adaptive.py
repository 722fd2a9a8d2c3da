"""Adaptive sampling: measures launches, and requests more until the observed spread meets the bound."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from scipy.stats import chi2

from simt import parameter_checks as check
from simt.errors import PlanError
from simt.methods import clone
from simt.profile import Profile
from simt.sampling.allocation import Ints, check_bound, whole_sizes
from simt.sampling.draws import choose
from simt.sampling.estimate import Estimate, Sample, Total, additive, measurements
from simt.sampling.neyman import Neyman
from simt.sampling.plan import Plan
from simt.sampling.sampler import Choice, Sampler, make_plan

Measure = Callable[[list[int]], Any]
_LARGE = 0.01  # share of the time above which a stratum gets two draws
_STEP = 0.5  # smallest ratio of an enlarged sample's target half width to the current one
_AGAIN = 0.9  # largest ratio, so that the sample grows
_SALT = 0x41444150


class Adaptive(Sampler):
    """A pilot sample, then more launches where the measured metrics vary, until every half width is met.

    A plan from a profile bounds the error of the profile's own total, which is known. The quantity of
    interest is the total of another metric, simulated or measured on another GPU, whose spread is known only
    from its own values. Therefore `fit` plans a pilot; `refine`, given values of the plan's launches, returns
    a larger Plan, or None when the half width of each metric is within `error`. `run` does both, given a
    function that measures launches.

    sampler: makes the pilot and the strata. Neyman(aim="time", draw="random") by default.
    error, confidence: requested relative half width of each metric's total.
    metrics: names of additive metrics in the results.
    min_launches: number measured before a half width is trusted, which must hold twice in a row.
    caution: probability with which a variance estimate may be too small. The half width uses the variance's
        upper confidence limit, V * df / chi2(caution, df); 0.5 is close to the estimate itself.
    limit: share of the launches at which it stops, with a warning in the Plan.

    plan_: the latest Plan.
    estimate_: the estimate from the latest results, with half widths as above, but none narrower than `error`
        unless everything in it was measured. To stop at a narrow interval selects those that are too narrow;
        what holds with `confidence` is the width that was asked for (Chow and Robbins, "On the asymptotic
        theory of fixed-width sequential confidence intervals for the mean", 1965).
    rounds_: one {launches, half widths} per call of `refine`; these are the ones that decide.
    """

    method = "adaptive"

    def __init__(
        self,
        sampler: Sampler | None = None,
        error: float = 0.05,
        confidence: float = 0.95,
        metrics: Sequence[str] = ("duration_ns",),
        min_launches: int = 30,
        caution: float = 0.05,
        limit: float = 1.0,
        seed: int = 0,
    ) -> None:
        self.sampler = sampler
        self.error = error
        self.confidence = confidence
        self.metrics = metrics
        self.min_launches = min_launches
        self.caution = caution
        self.limit = limit
        self.seed = seed

    def validate(self) -> None:
        check_bound(self.error, self.confidence, self.seed)
        check.integer("min_launches", self.min_launches, 1)
        check.real("caution", self.caution, 0, 0.5, open_low=True)
        check.real("limit", self.limit, 0, 1, open_low=True)
        _check_metrics(self.metrics)
        if self.sampler is not None:
            check.valid_method("sampler", self.sampler, Sampler)

    def choose(self, profile: Profile) -> Choice:
        """The pilot: the sampler's plan, with two draws from each large stratum and `min_launches` in
        total."""
        pilot = Neyman(aim="time", draw="random") if self.sampler is None else clone(self.sampler)
        if "seed" in pilot.parameters():
            pilot.set_params(seed=self.seed)
        choice = pilot.choose(profile)
        if choice.replacement or (choice.draws != 1).any():
            raise PlanError(f"{pilot.label()} draws with replacement: a launch cannot be added to its sample")
        sizes = np.bincount(choice.strata)
        drawn = np.bincount(choice.strata[choice.rows], minlength=len(sizes))
        times = profile.column("duration_ns") if profile.has("duration_ns") else np.ones(len(profile))
        totals = np.bincount(choice.strata, weights=times)
        wanted = drawn.copy()
        large = totals > _LARGE * max(totals.sum(), 1e-300)
        wanted[large] = np.maximum(wanted[large], np.minimum(2, sizes[large]))
        while wanted.sum() < min(self.min_launches, sizes.sum()):
            room = np.flatnonzero(wanted < sizes)
            wanted[room[np.argmax((totals / np.maximum(wanted, 0.5))[room])]] += 1
        self._choice = _enlarged(choice, profile, wanted, self.seed, {"pilot": pilot.label()})
        return self._choice

    def fit(self, profile: Profile) -> Adaptive:
        """Plans the pilot and discards earlier results."""
        super().fit(profile)
        self._profile = profile
        self._results: pl.DataFrame | None = None
        self._passes = 0
        self.rounds_: list[dict[str, Any]] = []
        return self

    def run(self, profile: Profile, measure: Measure) -> Estimate:
        """Fits, then measures and refines until the bound holds.

        measure: returns the results for given launch ids, in any form that `Plan.estimate` accepts.
        """
        self.fit(profile)
        plan: Plan | None = self.plan_
        known: set[int] = set()
        while plan is not None:
            wanted = [int(i) for i in plan.launches["launch"] if int(i) not in known]
            known.update(wanted)
            plan = self.refine(measure(wanted))
        return self.estimate_

    def refine(self, results: Any) -> Plan | None:
        """The next Plan, which contains the current one; None when the bound holds or everything is measured.

        results: of launches not given before; earlier ones may be repeated. Raises PlanError if launches of
            the current Plan have no value of a metric.
        """
        self._add(results)
        samples = self._samples()
        totals, kinds = {}, {}
        for metric, sample in samples.items():
            kinds[metric], totals[metric] = sample.best()
        widths = {metric: self._width(total) for metric, total in totals.items()}
        self.estimate_ = self.plan_.estimate(self._results, self.metrics, widen=self._stated)
        self.rounds_.append({"launches": len(self.plan_), "half_widths": widths})
        holds = all(width <= self.error for width in widths.values())
        self._passes = self._passes + 1 if holds else 0
        n = len(self._profile)
        drawn = np.bincount(self._choice.strata[self._choice.rows], minlength=len(self._choice.names))
        if self._passes >= 2 or drawn.sum() >= n:
            return None
        if drawn.sum() >= self.limit * n:
            reached = ", ".join(f"{metric} {100 * width:.2g} %" for metric, width in widths.items())
            warning = f"gave up at {drawn.sum()} of {n} launches with half widths of {reached}"
            self.plan_ = replace(self.plan_, warnings=(*self.plan_.warnings, warning))
            return None
        wanted = self._sizes(samples, kinds, widths, drawn)
        facts = {"rounds": len(self.rounds_), "half_widths": widths}
        self._choice = _enlarged(self._choice, self._profile, wanted, self.seed, facts)
        self.plan_ = make_plan(self, self._profile, self._choice)
        return self.plan_

    def resume(self, profile: Profile, results: Any) -> Plan | None:
        """Fits, and refines as far as the results of earlier sessions allow.

        results: of all launches measured so far. Returns the Plan whose launches are next (those of it that
        are missing in the results), or None when the bound holds. The same results lead to the same Plan.
        """
        plan: Plan | None = self.fit(profile).plan_
        while plan is not None:
            known = measurements(results, plan)["launch"]
            if not set(known).issuperset(plan.launches["launch"]):
                return plan
            plan = self.refine(results)
        return None

    def _add(self, results: Any) -> None:
        """Adds the results of the plan's launches. Raises PlanError if one lacks a metric."""
        metrics = _check_metrics(self.metrics)
        frame = measurements(results, self.plan_)
        lacking = [metric for metric in metrics if metric not in frame.columns]
        if lacking:
            raise PlanError(f"no metric {lacking[0]!r} in the results; they have {', '.join(frame.columns)}")
        frame = frame.select("launch", *(pl.col(metric).cast(pl.Float64) for metric in metrics))
        if self._results is not None:
            frame = pl.concat([self._results, frame.join(self._results, on="launch", how="anti")])
        frame = frame.filter(pl.all_horizontal(pl.col(metric).is_finite() for metric in metrics))
        absent = self.plan_.launches.join(frame, on="launch", how="anti")["launch"].to_list()
        if absent:
            shown = ", ".join(map(str, absent[:10])) + (", …" if len(absent) > 10 else "")
            raise PlanError(f"{len(absent)} launches of the plan were not measured: {shown}")
        self._results = frame

    def _samples(self) -> dict[str, Sample]:
        assert self._results is not None
        rows = self.plan_.launches.select("launch").join(
            self._results, on="launch", how="left", maintain_order="left"
        )
        return {metric: Sample(self.plan_, rows[metric].to_numpy()) for metric in self.metrics}

    def _width(self, total: Total) -> float:
        """Relative half width, with the upper confidence limit of the variance."""
        if not total.variance:
            return 0.0
        if not total.value:
            return math.inf
        return self._cautious(total).half_width(self.confidence) / abs(total.value)

    def _cautious(self, total: Total) -> Total:
        if not math.isfinite(total.df):
            return total
        return replace(total, variance=total.variance * total.df / float(chi2.ppf(self.caution, total.df)))

    def _stated(self, total: Total) -> Total:
        """As wide as `error` at least."""
        total = self._cautious(total)
        half = total.half_width(self.confidence)
        if not half or not total.value:
            return total
        wider = max(1.0, self.error * abs(total.value) / half)
        return replace(total, variance=total.variance * wider**2)

    def _sizes(
        self,
        samples: Mapping[str, Sample],
        kinds: Mapping[str, str],
        widths: Mapping[str, float],
        drawn: Ints,
    ) -> Ints:
        """Sample size per stratum that suffices for every metric according to the current estimates."""
        strata = self.plan_.strata
        sizes = strata["launches"].to_numpy().astype(float)
        costs = strata["time_ns"].to_numpy() / sizes
        wanted: Ints = drawn.copy()
        variances = np.zeros(len(sizes))
        for metric, sample in samples.items():
            _, variances, _ = sample.strata(kinds[metric])
            left = 1 / drawn - 1 / sizes
            squares = np.divide(variances, left, out=np.zeros(len(sizes)), where=left > 0)  # N^2 S^2
            target = max(min(self.error, _AGAIN * widths[metric]), _STEP * widths[metric])
            limit = float(variances.sum()) * (target / widths[metric]) ** 2 if widths[metric] else 0.0
            if not variances.sum():
                continue
            found = whole_sizes(sizes, costs, np.sqrt(squares) / sizes, limit, drawn.astype(float))
            wanted = np.maximum(wanted, found)
        if (wanted == drawn).all():
            room = np.flatnonzero(drawn < sizes)
            wanted[room[np.argmax(variances[room])]] += 1
        return wanted


def _check_metrics(metrics: object) -> list[str]:
    """Checks the names of additive metrics. Raises PlanError."""
    if isinstance(metrics, str) or not isinstance(metrics, Sequence) or not metrics:
        raise check.refuse("metrics", metrics, "names of metrics")
    for metric in metrics:
        if not isinstance(metric, str) or not additive(metric):
            raise check.refuse("metrics", metrics, "names of metrics that add up over launches")
    return list(metrics)


def _enlarged(choice: Choice, profile: Profile, wanted: Ints, seed: int, facts: dict[str, Any]) -> Choice:
    """The choice with more launches, drawn at random from the rest of their strata."""
    rows, drawn = [choice.rows], np.bincount(choice.strata[choice.rows], minlength=len(wanted))
    free = np.ones(len(choice.strata), bool)
    free[choice.rows] = False
    ids = profile.launches["launch"].to_numpy()
    for h in np.flatnonzero(wanted > drawn):
        rest = np.flatnonzero(free & (choice.strata == h))
        rows.append(rest[choose(seed, ids[rest], int(wanted[h] - drawn[h]), _SALT)])
    taken = np.sort(np.concatenate(rows))
    sizes = np.bincount(choice.strata, minlength=len(wanted))
    return replace(
        choice,
        rows=taken,
        draws=np.ones(len(taken), np.int64),
        weights=(sizes / wanted)[choice.strata[taken]],
        claimed_error=None,
        fitted={**choice.fitted, **facts},
    )
