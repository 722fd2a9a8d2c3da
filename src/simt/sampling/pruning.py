"""Optimal pruning of a tree of splits: strata and sample sizes of least time at a given variance, or vice
versa.

At a given price of variance, strata are independent of each other: the cost of a stratum with m launches is m
* mu + price * N^2 S^2 (1/m - 1/N), which determines the best integer m, and a node is kept whole if that is
cheaper than its two parts together. So one pass from the leaves to the roots gives the best of all prunings
at that price (like cost-complexity pruning of decision trees: Breiman et al., "Classification and Regression
Trees", 1984, chapter 3), and bisection on the price meets a limit on variance or on time. ROOT, by contrast,
decides on each split alone, from the top, and stops at the first that does not pay by itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from simt.sampling.allocation import Floats, Ints, Strata, whole_sizes
from simt.sampling.splits import Range, TimeOrder

_HOLDS = 8  # how often the decision that exceeds a limit is fixed and the search repeated
_HIGHEST = 1e40  # price above which no integer sample size changes
_Nodes = tuple[Ints, Floats]  # nodes kept as strata, and launches to draw from each


@dataclass(frozen=True)
class Pruning:
    """Strata in the order of time within groups, and launches to draw from each.

    variance: of the estimated total, with the spread that `noise` adds.
    cost: expected time of the sample, ns.
    """

    strata: Strata
    m: Ints
    variance: float
    cost: float


class SplitTree:
    """Splits every group of `order` by time, as deep as it can matter.

    noise: relative spread added to each launch's time (in quadrature), for variation that times do not show.
    minimum: launches to draw from a stratum, or all if it has fewer.
    finest: variance of the total below which a node, with one draw from it, is not split.
    """

    def __init__(self, order: TimeOrder, noise: float, minimum: int, finest: float) -> None:
        self.order, self.noise = order, noise
        self._ranges: list[Range] = list(order.groups)
        spreads = [order.spread(lo, hi) for lo, hi in self._ranges]
        left = [-1] * len(spreads)
        levels, at = [], 0
        while at < len(left):
            inner, end = [], len(left)
            for i in range(at, end):
                n = spreads[i].count
                if n < 2 or (n * spreads[i].deviation) ** 2 <= finest:
                    continue
                lo, hi = self._ranges[i]
                cut = order.best_cut(lo, hi, "neyman", noise)
                if cut is None:
                    continue
                inner.append(i)
                left[i] = len(left)
                for part in ((lo, cut), (cut, hi)):
                    self._ranges.append(part)
                    spreads.append(order.spread(*part))
                    left.append(-1)
            levels.append(np.array(inner, np.int64))
            at = end
        self._levels = levels
        self._left: Ints = np.array(left)
        self._sizes = np.array([x.count for x in spreads], float)
        self._means = np.array([x.mean for x in spreads])
        self._deviations = np.hypot([x.deviation for x in spreads], noise * self._means)
        self._squares = (self._sizes * self._deviations) ** 2
        self._lowest = np.minimum(self._sizes, minimum)
        self._minimum = minimum
        self._roots = len(order.groups)

    def variance_of(self, strata: Strata, m: Ints) -> float:
        """Variance of the total for any strata, with the spread that `noise` adds."""
        squares = strata.sizes**2 * (strata.deviations**2 + (self.noise * strata.means) ** 2)
        return float(np.sum(squares * (1 / m - 1 / strata.sizes)))

    def within_variance(self, limit: float) -> Pruning:
        """Strata and sizes of least time whose variance is at most `limit`."""
        best: Pruning | None = None
        for over, inside in self._search(lambda nodes: self._variance(nodes) <= limit):
            for nodes, _ in (over, inside):
                sizes, means, deviations = self._sizes[nodes], self._means[nodes], self._deviations[nodes]
                m = whole_sizes(sizes, means, deviations, limit, self._minimum).astype(float)
                found = self._pruning((nodes, m))
                if best is None or found.cost < best.cost:
                    best = found
        assert best is not None
        return best

    def within_time(self, limit: float) -> Pruning:
        """Strata and sizes of least variance whose expected time is at most `limit`.

        If even one draw (or the minimum) from every group takes longer, that is returned.
        """
        best: Pruning | None = None
        for inside, _ in self._search(lambda nodes: self._cost(nodes) > limit):
            found = self._pruning(inside)
            if best is None or found.variance < best.variance:
                best = found
        assert best is not None
        return best

    def _search(self, above: Callable[[_Nodes], bool]) -> list[tuple[_Nodes, _Nodes]]:
        """Pairs of prunings at neighbouring prices on either side of a limit.

        The best prunings at all prices form a convex chain. A limit falls into a gap of the chain, which is
        wide if the decision of an expensive kernel changes there. That decision is then fixed, and the search
        is repeated with the others, up to _HOLDS times.
        """
        most, whole = self._sizes.copy(), np.zeros(len(self._sizes), bool)
        pairs: list[tuple[_Nodes, _Nodes]] = []
        for _ in range(_HOLDS):
            pair = self._bracket(above, most, whole)
            if pair is None:
                break
            pairs.append(pair)
            below, over = ({int(i): k for i, k in zip(*nodes, strict=True)} for nodes in pair)
            split = [i for i in below if i not in over]
            more = [i for i in below if i in over and over[i] > below[i]]
            if split:
                whole[max(split, key=lambda i: self._sizes[i] * self._means[i])] = True
            elif more:
                for i in more:
                    most[i] = below[i]
            else:
                break
        if not pairs:
            nodes = self._prune(_HIGHEST, most, whole)
            pairs.append((nodes, nodes))
        return pairs

    def _bracket(
        self, above: Callable[[_Nodes], bool], most: Floats, whole: npt.NDArray[np.bool_]
    ) -> tuple[_Nodes, _Nodes] | None:
        """Prunings at prices just below and above the step at which `above` turns true."""
        low = self._prune(0.0, most, whole)
        if above(low):
            return low, low
        high_price = 1e-30
        high = self._prune(high_price, most, whole)
        while not above(high):
            high_price *= 64.0
            if high_price > _HIGHEST:
                return None
            high = self._prune(high_price, most, whole)
        low_price = high_price / 64.0
        low = self._prune(low_price, most, whole)
        for _ in range(28):
            price = math.sqrt(low_price * high_price)
            nodes = self._prune(price, most, whole)
            if above(nodes):
                high_price, high = price, nodes
            else:
                low_price, low = price, nodes
        return low, high

    def _prune(self, price: float, most: Floats, whole: npt.NDArray[np.bool_]) -> _Nodes:
        """The best pruning at a price (ns per ns^2 of variance), with at most `most` draws from a node."""
        sizes, means, squares = self._sizes, self._means, self._squares
        ideal = np.sqrt(price * squares / np.maximum(means, 1e-300))
        m = np.clip(np.floor(ideal), self._lowest, sizes)
        # The best integer is the first with m (m + 1) >= ideal^2.
        m += (m * (m + 1) < ideal * ideal) & (m < sizes)
        np.minimum(m, most, out=m)
        best = m * means + price * squares * (1 / m - 1 / sizes)
        split = np.zeros(len(best), bool)
        for inner in reversed(self._levels):
            left = self._left[inner]
            parts = best[left] + best[left + 1]
            cheaper = (parts < best[inner]) & ~whole[inner]
            split[inner] = cheaper
            best[inner] = np.where(cheaper, parts, best[inner])
        alive = np.zeros(len(best), bool)
        alive[: self._roots] = True
        for inner in self._levels:
            parents = inner[alive[inner] & split[inner]]
            alive[self._left[parents]] = True
            alive[self._left[parents] + 1] = True
        nodes = np.flatnonzero(alive & ~split)
        return nodes, m[nodes]

    def _variance(self, nodes: _Nodes) -> float:
        at, m = nodes
        return float(np.sum(self._squares[at] * (1 / m - 1 / self._sizes[at])))

    def _cost(self, nodes: _Nodes) -> float:
        at, m = nodes
        return float(np.sum(m * self._means[at]))

    def _pruning(self, nodes: _Nodes) -> Pruning:
        at, m = nodes
        order = np.argsort([self._ranges[i][0] for i in at])
        strata = Strata.of(self.order, [self._ranges[i] for i in at[order]])
        return Pruning(strata, m[order].astype(np.int64), self._variance(nodes), self._cost(nodes))
