"""Neyman: our own sampler, stratified by kernel and time with one objective for the whole program."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from simt import parameter_checks as check
from simt.profile import Profile
from simt.sampling.alike import alike
from simt.sampling.allocation import Design, Strata, Stratified, durations, quantile, stratum_name
from simt.sampling.estimate import ASSUMED
from simt.sampling.pruning import Pruning, SplitTree
from simt.sampling.root import Root
from simt.sampling.splits import TimeOrder

_LAUNCH = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "shared_bytes")
_TRANSFER = 0.03
_FINEST = 1e-3  # share of the bound: a node that adds less to the error is not split


class Neyman(Stratified):
    """Stratified sampling with Neyman's optimal allocation, on the best pruning of a tree of splits.

    A stratum of N launches with standard deviation S and mean time mu adds N S sqrt(mu) to the time of an
    optimal sample. Each kernel's launches are split by time, always where the split saves most of this sum.
    The tree is then pruned, and integer sample sizes are chosen, for the whole program at once
    (`simt.sampling.pruning`). Launches are drawn without replacement; sample sizes take this into account
    (finite population correction). Neyman, "On the two different aspects of the representative method", JRSS
    1934.

    error, confidence: bound on the relative error of the profiled total. `plan_.claimed_error` is the larger
        half width of two, from the normal distribution and from simulated draws, at that confidence; it is at
        most `error`.
    aim: `time`: the shortest simulation that keeps the bound; its error is near the bound. `error`: the
        smallest error in the time that ROOT takes at the same bound. `balanced`: between the two, at the
        geometric mean of ROOT's time and the shortest time with ROOT's variance.
    transfer: relative spread that the simulated values of a stratum are expected to have in addition to that
        of the profiled times. It distributes the draws more evenly; for the aims `balanced` and `error`. If
        times are expected instead of profiled, it decides how many launches meet `error`, whatever the aim.
        None: 0.03, or 0.05 for expected times.
    min_samples: least number of launches drawn from each stratum. 2 allow the variance of the simulated
        values to be estimated.
    pool: kernels that together take at most this share of the time become one group, so that not each of them
        needs a launch.
    group: `name`; `launch` to also distinguish kernels by grid, block and shared memory; `features` to
        distinguish them by what their launches execute: basic blocks, accesses per instruction, and the
        memory that these reach. None: `name`, or `features` for expected times.
    draw: `random`; `systematic`: evenly spaced in order of time, from a random start; `midpoint`: evenly
        spaced without randomness, for regression tests.
    """

    method = "neyman"

    def __init__(
        self,
        error: float = 0.05,
        confidence: float = 0.95,
        aim: Literal["time", "balanced", "error"] = "balanced",
        transfer: float | None = None,
        min_samples: int = 1,
        pool: float = 0.0,
        group: Literal["name", "launch", "features"] | None = None,
        draw: Literal["random", "systematic", "midpoint"] = "systematic",
        seed: int = 0,
    ) -> None:
        self.error = error
        self.confidence = confidence
        self.aim = aim
        self.transfer = transfer
        self.min_samples = min_samples
        self.pool = pool
        self.group = group
        self.draw = draw
        self.seed = seed

    def validate(self) -> None:
        super().validate()
        check.one_of("aim", self.aim, ("time", "balanced", "error"))
        if self.transfer is not None:
            check.real("transfer", self.transfer, 0)
        check.integer("min_samples", self.min_samples, 1)
        check.real("pool", self.pool, 0, 1, open_high=True)
        if self.group is not None:
            check.one_of("group", self.group, ("name", "launch", "features"))
        check.one_of("draw", self.draw, ("random", "systematic", "midpoint"))

    def stratify(self, profile: Profile) -> Design:
        z = quantile(self.confidence)
        times = durations(profile, "Neyman")
        codes, names = _groups(profile, self.group or ("features" if profile.expected else "name"))
        codes, names = _pooled(codes, names, times, self.pool)
        order = TimeOrder(codes, times)
        claimed: float | None = None
        if profile.expected:
            pruning = self._assuming(order, z)
        else:
            pruning, claimed = self.design(order, z)
        strata, m = pruning.strata, pruning.m
        group = np.searchsorted([lo for lo, _ in order.groups], [lo for lo, _ in strata.ranges], "right") - 1
        parts = np.bincount(group)
        return Design(
            order,
            strata,
            m,
            [
                stratum_name(names[g], order, part, parts[g])
                for g, part in zip(group, strata.ranges, strict=True)
            ],
            _reasons(strata, m),
            kind=self.draw,
            claimed_error=claimed,
            fitted={
                "groups": len(order.groups),
                "strata": len(m),
                "half_width": strata.half_width(m, z),
                "design_effect": _design_effect(order, strata, m),
            },
        )

    def design(self, order: TimeOrder, z: float) -> tuple[Pruning, float]:
        """Strata, launches to draw from each, and the half width to claim."""
        total = math.fsum(order.spread(lo, hi).total for lo, hi in order.groups)
        limit = (self.error * total / z) ** 2
        if self.aim != "time":
            found = self._as_root(order, z, limit)
            claimed = self._claim(order, found, z)
            if claimed <= self.error:
                return found, claimed
        tree = SplitTree(order, 0.0, self.min_samples, limit * _FINEST**2)
        while True:
            found = tree.within_variance(limit)
            claimed = self._claim(order, found, z)
            if claimed <= self.error:
                return found, claimed
            limit *= 0.98 * (self.error / claimed) ** 2  # skewed: wider than the normal distribution predicts

    def _assuming(self, order: TimeOrder, z: float) -> Pruning:
        """Strata and sizes of least time for which the bound holds if values spread as `transfer` says."""
        total = math.fsum(order.spread(lo, hi).total for lo, hi in order.groups)
        limit = (self.error * total / z) ** 2
        spread = ASSUMED if self.transfer is None else self.transfer
        return SplitTree(order, spread, self.min_samples, limit * _FINEST**2).within_variance(limit)

    def _claim(self, order: TimeOrder, found: Pruning, z: float) -> float:
        """Half width by the normal distribution or by simulated draws, whichever is wider."""
        simulated = found.strata.simulated_half_width(order, found.m, self.confidence)
        return max(simulated, found.strata.half_width(found.m, z))

    def _as_root(self, order: TimeOrder, z: float, limit: float) -> Pruning:
        """Less error than ROOT in its time (aim `error`), or less of both.

        `transfer` is halved, then dropped, where it would leave a profiled error above ROOT's.
        """
        strata, m, _ = Root(error=self.error, allocation="global").design(order, z)
        variance = strata.variance(m)
        most = _TRANSFER if self.transfer is None else self.transfer
        for transfer in (most, most / 2, 0.0):
            tree = SplitTree(order, transfer, self.min_samples, limit * _FINEST**2)
            budget = strata.cost(m)
            if self.aim == "balanced":
                same = tree.within_variance(tree.variance_of(strata, m)).cost
                budget = math.sqrt(budget * min(budget, same))
            found = tree.within_time(budget)
            if found.strata.variance(found.m) <= variance:
                break
        return found


def _groups(profile: Profile, group: str) -> tuple[npt.NDArray[Any], list[str]]:
    """Group of each launch (by name, then dimensions), and the groups' names."""
    if group == "name":
        return profile.name_codes, list(profile.names)
    if group == "features":
        return alike(profile)
    keys = [profile.name_codes.astype(np.float64)]
    keys += [profile.column(name) for name in _LAUNCH if profile.has(name)]
    table, codes = np.unique(np.stack(keys, axis=1), axis=0, return_inverse=True)
    names = [
        profile.names[int(row[0])] + " <" + ", ".join(f"{value:g}" for value in row[1:]) + ">"
        for row in table
    ]
    return codes.reshape(-1), names


def _pooled(
    codes: npt.NDArray[Any], names: list[str], times: npt.NDArray[np.float64], share: float
) -> tuple[npt.NDArray[Any], list[str]]:
    """Merges the groups of least time, which together take at most `share` of it, into one, the last."""
    if share == 0:
        return codes, names
    totals = np.bincount(codes, weights=times, minlength=len(names))
    rising = np.argsort(totals, kind="stable")
    pooled = rising[np.cumsum(totals[rising]) <= share * totals.sum()]
    if len(pooled) < 2:
        return codes, names
    kept = np.setdiff1d(np.arange(len(names)), pooled)
    to = np.full(len(names), len(kept), np.int64)
    to[kept] = np.arange(len(kept))
    return to[codes], [*(names[i] for i in kept), f"{len(pooled)} rare kernels"]


def _reasons(strata: Strata, m: npt.NDArray[np.int64]) -> list[str]:
    """Why each stratum has so many draws."""
    total = strata.total or 1.0
    reasons = []
    for n, k, mu, s in zip(strata.sizes, m, strata.means, strata.deviations, strict=True):
        share = f"{100 * n * mu / total:.3g} % of the time"
        if k == n:
            reasons.append(f"all: {share}")
        else:
            reasons.append(f"{share}, which varies by {100 * s / mu if mu else 0:.3g} %")
    return reasons


def _design_effect(order: TimeOrder, strata: Strata, m: npt.NDArray[np.int64]) -> float:
    """Variance over that of as many launches drawn at random from all (Kish, "Survey Sampling", 1965)."""
    mean = strata.total / len(order)
    squares = float(
        np.sum((strata.sizes - 1) * strata.deviations**2 + strata.sizes * (strata.means - mean) ** 2)
    )
    n, k = len(order), int(m.sum())
    if not squares or k >= n:
        return 0.0
    return strata.variance(m) / (n * n * squares / (n - 1) / k * (1 - k / n))
