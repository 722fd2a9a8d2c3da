"""STEM+ROOT: splits kernels by time as long as that makes the sample cheaper."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np

from simt import parameter_checks as check
from simt.profile import Profile
from simt.sampling.allocation import (
    Design,
    Ints,
    Strata,
    Stratified,
    durations,
    kkt_sizes,
    quantile,
    rounded_up,
    stem_size,
    stratum_name,
)
from simt.sampling.splits import Range, TimeOrder


class Root(Stratified):
    """STEM+ROOT (paper section IV): splits each kernel's launches by time, and draws from the leaves.

    A cluster is split into k parts if the sample of the parts, sized by the KKT conditions for the bound on
    the cluster's own total, takes less time than that of the whole (tau_old > tau_new). Splits are exact
    instead of by k-means, so the same profile always gives the same tree.

    error, confidence: bound on the relative error of the total.
    allocation: launches per leaf. `leaf`: eq. (3) for each leaf on its own; `name`: KKT over the leaves of
        each kernel name, as the paper describes; `global`: KKT over all leaves at once, which uses the slack
        that Theorem 1 leaves.
    children: values of k that are tried.
    replacement: whether launches are drawn with replacement, as in the paper. Otherwise a leaf whose sample
        would be as large as the leaf is taken whole.
    """

    method = "root"

    def __init__(
        self,
        error: float = 0.05,
        confidence: float = 0.95,
        allocation: Literal["leaf", "name", "global"] = "name",
        children: Sequence[int] = (2,),
        replacement: bool = False,
        seed: int = 0,
    ) -> None:
        self.error = error
        self.confidence = confidence
        self.allocation = allocation
        self.children = children
        self.replacement = replacement
        self.seed = seed

    def validate(self) -> None:
        super().validate()
        check.one_of("allocation", self.allocation, ("leaf", "name", "global"))
        check.boolean("replacement", self.replacement)
        _children(self.children)

    def stratify(self, profile: Profile) -> Design:
        z = quantile(self.confidence)
        order = TimeOrder(profile.name_codes, durations(profile, "ROOT"))
        strata, m, leaves = self.design(order, z)
        names = [
            stratum_name(name, order, strata.ranges[i], len(found))
            for name, found in zip(profile.names, leaves, strict=True)
            for i in found
        ]
        why = [
            f"{k} of {int(n)}: time varies by {100 * s / mu if mu else 0:.3g} %"
            for k, n, mu, s in zip(m, strata.sizes, strata.means, strata.deviations, strict=True)
        ]
        return Design(
            order,
            strata,
            m,
            names,
            why,
            replacement=self.replacement,
            claimed_error=self.error,
            fitted={"leaves": len(names), "half_width": strata.half_width(m, z, self.replacement)},
        )

    def design(self, order: TimeOrder, z: float) -> tuple[Strata, Ints, list[range]]:
        """The leaves, the launches to draw from each, and which leaves belong to each group of `order`."""
        children = _children(self.children)
        ranges: list[Range] = []
        sizes: list[int] = []
        of_group: list[range] = []
        for lo, hi in order.groups:
            found = self._leaves(order, lo, hi, z, children)
            of_group.append(range(len(ranges), len(ranges) + len(found)))
            ranges += found
            sizes += self._sizes(order, found, z)
        strata = Strata.of(order, ranges)
        if self.allocation == "global":
            sizes = rounded_up(kkt_sizes([order.spread(*leaf) for leaf in ranges], self.error, z))
        m = np.array(sizes)
        if not self.replacement:
            m = np.minimum(m, strata.sizes.astype(np.int64))
        return strata, m, of_group

    def _leaves(self, order: TimeOrder, lo: int, hi: int, z: float, children: list[int]) -> list[Range]:
        """Ranges of the leaves of one kernel's tree, in order of time."""
        leaves, stack = [], [(lo, hi)]
        while stack:
            lo, hi = stack.pop()
            parts = self._split(order, lo, hi, z, children)
            if parts:
                stack += reversed(parts)
            else:
                leaves.append((lo, hi))
        return leaves

    def _split(self, order: TimeOrder, lo: int, hi: int, z: float, children: list[int]) -> list[Range] | None:
        """The split with the smallest tau_new, if that is below tau_old."""
        whole = order.spread(lo, hi)
        best, parts = stem_size(whole.mean, whole.deviation, self.error, z) * whole.mean, None
        for k in children:
            cuts = order.best_cuts(lo, hi, k)
            if cuts is None:
                continue
            ranges = list(zip((lo, *cuts), (*cuts, hi), strict=True))
            spreads = [order.spread(*part) for part in ranges]
            m = rounded_up(kkt_sizes(spreads, self.error, z))
            tau = sum(size * x.mean for size, x in zip(m, spreads, strict=True))
            if tau < best:
                best, parts = tau, ranges
        return parts

    def _sizes(self, order: TimeOrder, leaves: list[Range], z: float) -> list[int]:
        """Launches per leaf of one kernel."""
        spreads = [order.spread(*leaf) for leaf in leaves]
        if self.allocation == "leaf":
            return [stem_size(x.mean, x.deviation, self.error, z) for x in spreads]
        return rounded_up(kkt_sizes(spreads, self.error, z))


def _children(values: object) -> list[int]:
    """Numbers of parts to try, from 2 to 4. Raises PlanError for other values."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise check.refuse("children", values, "some of 2, 3, 4")
    found = list(values)
    if not found or any(k not in (2, 3, 4) for k in found):
        raise check.refuse("children", values, "some of 2, 3, 4")
    return found
