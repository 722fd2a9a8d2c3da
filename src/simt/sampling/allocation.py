"""Allocation of draws to strata, and the draws: shared by STEM, ROOT and Neyman."""

from __future__ import annotations

import heapq
import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import norm

from simt import parameter_checks as check
from simt.profile import Profile
from simt.sampling import columns
from simt.sampling.draws import starts, uniform
from simt.sampling.sampler import Choice, Sampler
from simt.sampling.splits import Range, Spread, TimeOrder

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Strata:
    """Ranges of a TimeOrder with the statistics of their launches. Arrays have one value per stratum."""

    ranges: list[Range]
    sizes: Floats
    means: Floats
    deviations: Floats  # n - 1 in the denominator

    @classmethod
    def of(cls, order: TimeOrder, ranges: list[Range]) -> Strata:
        spreads = [order.spread(lo, hi) for lo, hi in ranges]
        return cls(
            ranges,
            np.array([x.count for x in spreads], float),
            np.array([x.mean for x in spreads]),
            np.array([x.deviation for x in spreads]),
        )

    @property
    def total(self) -> float:
        return float(np.sum(self.sizes * self.means))

    def variance(self, m: npt.NDArray[Any], replacement: bool = False) -> float:
        """Variance of the estimated total, for simple random samples of m launches."""
        variance = self.sizes**2 * self.deviations**2 / m
        if not replacement:
            variance = variance * (1.0 - np.minimum(m / self.sizes, 1.0))
        return float(variance.sum())

    def half_width(self, m: npt.NDArray[Any], z: float, replacement: bool = False) -> float:
        """z * sqrt(variance) / total."""
        return z * math.sqrt(self.variance(m, replacement)) / self.total if self.total else 0.0

    def cost(self, m: npt.NDArray[Any]) -> float:
        """Expected time of the sample, ns."""
        return float(np.sum(m * self.means))

    def simulated_half_width(self, order: TimeOrder, m: Ints, confidence: float) -> float:
        """Bound on the relative error of samples of m launches at this confidence, from 1000 simulated
        samples.

        The profile contains every launch, so the error need not be assumed normal: it is far from normal for
        few launches with skewed times. Since 1000 samples are themselves a sample, the bound is the quantile
        at 1 - 0.75 (1 - confidence). Strata with more than eight draws are taken as normal, and so are those
        that together contribute a twentieth of the variance or less.
        """
        if not self.total:
            return 0.0
        random = np.random.default_rng(0)
        variances = self.sizes**2 * self.deviations**2 * (1 / m - 1 / self.sizes)
        rising = np.argsort(variances, kind="stable")
        small = np.cumsum(variances[rising]) <= 0.05 * variances.sum()
        normal = np.union1d(rising[small], np.flatnonzero(m > 8))
        errors = math.sqrt(float(variances[normal].sum())) * random.standard_normal(1000)
        for h in np.setdiff1d(rising, normal):
            size, k = self.sizes[h], int(m[h])
            lo, hi = self.ranges[h]
            narrowed = 1.0
            if k > 1 and size <= 64:
                picks = random.random((len(errors), int(size))).argpartition(k - 1, axis=1)[:, :k].T
            else:
                picks = (random.random((k, len(errors))) * size).astype(np.int64)
                # With replacement, scaled to the variance without replacement.
                narrowed = math.sqrt((1 - k / size) / (1 - 1 / size))
            entries = lo + np.searchsorted(order.first[lo + 1 : hi], order.first[lo] + picks, side="right")
            errors += narrowed * size * (order.values[entries].mean(axis=0) - self.means[h])
        outer = 1 - 0.75 * (1 - confidence)
        return float(np.quantile(np.abs(errors), outer, method="higher")) / self.total


def quantile(confidence: float) -> float:
    """z with P(|normal| < z) = confidence."""
    return float(norm.ppf(0.5 + confidence / 2))


def check_bound(error: object, confidence: object, seed: object) -> None:
    """Raises ParameterError for an invalid parameter."""
    check.real("error", error, 0, open_low=True)
    check.integer("seed", seed)
    check.real("confidence", confidence, 0, 1, open_low=True, open_high=True)


def durations(profile: Profile, method: str) -> Floats:
    """Time of each launch, ns. Raises ProfileError without the column, PlanError if a launch has no time."""
    times = profile.column("duration_ns")
    return times if math.isfinite(times.max()) else columns.complete(profile, "duration_ns", times, method)


def stem_size(mean: float, deviation: float, error: float, z: float) -> int:
    """ceil((z sigma / (error mu))^2), at least 1 (STEM+ROOT, eq. (3) without the 30 of the CLT)."""
    if not deviation:
        return 1
    return max(1, math.ceil((z * deviation / (error * mean)) ** 2))


def kkt_sizes(clusters: Sequence[Spread], error: float, z: float) -> list[float]:
    """Real-valued sample sizes of least time whose bound holds with equality (STEM+ROOT, Problem 1).

    m_i = (sum_j sqrt(a_j b_j)) / c * sqrt(b_i / a_i), a = mu, b = N^2 sigma^2, c = (error * total / z)^2. The
    paper prints sqrt(sum_j a_j b_j) instead, both in section IV-B and in the appendix, although the preceding
    line of the appendix is right; that is too small by up to the square root of the number of clusters.
    """
    limit = (error * sum(x.total for x in clusters) / z) ** 2
    if not limit:
        return [0.0] * len(clusters)
    roots_a = [math.sqrt(x.mean) for x in clusters]
    roots_b = [x.count * x.deviation for x in clusters]
    scale = sum(a * b for a, b in zip(roots_a, roots_b, strict=True)) / limit
    return [scale * b / a if b else 0.0 for a, b in zip(roots_a, roots_b, strict=True)]


def rounded_up(sizes: Sequence[float]) -> list[int]:
    """Integer sample sizes, at least 1."""
    return [max(1, math.ceil(m * (1 - 1e-12))) for m in sizes]


def whole_sizes(
    sizes: Floats, costs: Floats, deviations: Floats, limit: float, minimum: int | Floats
) -> Ints:
    """Integer sample sizes m of low cost whose variance without replacement is at most `limit`.

    min sum m c  subject to  sum N^2 S^2 / m - N S^2 <= limit, min(minimum, N) <= m <= N. Bisection on the
    multiplier (Neyman's allocation within the limits), rounded down; then launches are added one at a time
    where they reduce the variance most for their cost; then unnecessary ones are removed, most expensive
    first.
    """
    b = (sizes * deviations) ** 2
    lowest = np.minimum(sizes, minimum)
    ideal = np.divide(sizes * deviations, np.sqrt(costs), out=np.zeros_like(b), where=costs > 0)
    floor_variance = sizes * deviations**2

    def variance(m: Floats) -> float:
        return float(np.sum(b / m - floor_variance))

    def at(scale: float) -> Floats:
        return np.clip(scale * ideal, lowest, sizes)

    if variance(lowest) <= limit:
        return lowest.astype(np.int64)
    positive = ideal > 0
    low = 0.0
    high = float(np.max(sizes[positive] / ideal[positive]))
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if variance(at(middle)) <= limit else (middle, high)
    m = np.maximum(np.floor(at(high)), lowest)
    left = variance(m) - limit
    slack = 1e-12 * limit
    heap = [
        (-b[i] / (m[i] * (m[i] + 1)) / max(costs[i], 1e-300), int(i))
        for i in np.flatnonzero((m < sizes) & (b > 0))
    ]
    heapq.heapify(heap)
    while left > slack and heap:
        _, i = heapq.heappop(heap)
        left -= b[i] / (m[i] * (m[i] + 1))
        m[i] += 1
        if m[i] < sizes[i]:
            heapq.heappush(heap, (-b[i] / (m[i] * (m[i] + 1)) / max(costs[i], 1e-300), i))
    for i in np.argsort(-costs, kind="stable"):
        if m[i] > lowest[i] and left + b[i] / (m[i] * (m[i] - 1)) <= slack:
            left += b[i] / (m[i] * (m[i] - 1))
            m[i] -= 1
    return m.astype(np.int64)


def ranks(seed: int, stratum: int, size: int, m: int, kind: str) -> Ints:
    """m distinct ranks out of 0 to size-1, ascending.

    random: a simple random sample; a larger m only adds to the sample of a smaller one.
    systematic: every (size/m)-th rank from a random start; each rank is drawn with probability m/size.
    midpoint: the same from the middle of the first step; no randomness.
    """
    if m >= size:
        return np.arange(size)
    if kind != "random":
        start = 0.5 if kind == "midpoint" else uniform(seed, [0], stratum)[0]
        return ((np.arange(m) + start) * (size / m)).astype(np.int64)
    drawn = np.empty(0, np.int64)
    count = m + 4
    while True:
        sequence = (uniform(seed, np.arange(count, dtype=np.uint64), stratum) * size).astype(np.int64)
        drawn, first = np.unique(sequence, return_index=True)
        if len(drawn) >= m:
            return np.sort(sequence[np.sort(first)[:m]])
        count *= 2


def stratum_name(name: str, order: TimeOrder, part: Range, parts: int) -> str:
    """The kernel's name, with the interval of times if it has several strata."""
    if parts == 1:
        return name
    return f"{name} [{order.values[part[0]] / 1e3:.6g} to {order.values[part[1] - 1] / 1e3:.6g} us]"


@dataclass(frozen=True)
class Design:
    """Strata, and how many launches to draw from each: the part of a stratified sampler that is independent
    of the seed.

    m: [H] launches to draw; names, why: [H]; kind: as in `ranks`; the rest as in Choice.
    """

    order: TimeOrder
    strata: Strata
    m: Ints
    names: list[str]
    why: list[str]
    claimed_error: float | None
    fitted: dict[str, Any]
    kind: str = "random"
    replacement: bool = False

    def draw(self, seed: int) -> Choice:
        """Draws m launches from each stratum, `kind` as in `ranks`, or independently with replacement."""
        ranges = np.array(self.strata.ranges)
        first = self.order.first[ranges[:, 0]]
        sizes = self.order.first[ranges[:, 1]] - first
        # Most strata have one draw: these are all made at once, and equal those of `ranks`.
        single = (self.m == 1) & (not self.replacement)
        begin = np.full(len(first), 0.5) if self.kind == "midpoint" else starts(seed, len(first))
        positions = [(first + (begin * sizes).astype(np.int64))[single]]
        draws = [np.ones(len(positions[0]), np.int64)]
        weights = [sizes[single].astype(float)]
        for h in np.flatnonzero(~single):
            size, k = int(sizes[h]), int(self.m[h])
            if self.replacement:
                picks = (uniform(seed, np.arange(k, dtype=np.uint64), int(h)) * size).astype(np.int64)
                found, times = np.unique(picks, return_counts=True)
            else:
                found = ranks(seed, int(h), size, k, self.kind)
                times = np.ones(len(found), np.int64)
            positions.append(found + first[h])
            draws.append(times)
            weights.append(times * (size / k))
        return Choice(
            strata=self._codes,
            rows=self.order.order[np.concatenate(positions)].astype(np.int64),
            draws=np.concatenate(draws),
            weights=np.concatenate(weights),
            names=self.names,
            why=self.why,
            replacement=self.replacement,
            claimed_error=self.claimed_error,
            fitted=self.fitted,
        )

    @cached_property
    def _codes(self) -> Ints:
        return self.order.strata(self.strata.ranges)


class Stratified(Sampler):
    """A sampler that draws from strata, which it makes once per profile: another seed only repeats the
    draws."""

    error: float
    confidence: float
    seed: int

    def validate(self) -> None:
        check_bound(self.error, self.confidence, self.seed)

    @abstractmethod
    def stratify(self, profile: Profile) -> Design:
        """Strata and sample sizes. Raises ProfileError without times."""

    def choose(self, profile: Profile) -> Choice:
        settings = repr({k: v for k, v in self.get_params(deep=False).items() if k != "seed"})
        kept: tuple[Profile, str, Design] | None = getattr(self, "_kept", None)
        if kept is None or kept[0] is not profile or kept[1] != settings:
            kept = self._kept = (profile, settings, self.stratify(profile))
        return kept[2].draw(self.seed)
