"""Launches in order of time within their groups, and the exact splits of that order.

The best partition of numbers on a line into groups is contiguous, so a scan over one sorted array replaces
k-means: exact, deterministic, and O(range) per split. Launches of one group and equal time are stored once
with their count: ten million launches timed in nanoseconds become about a million entries.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Range = tuple[int, int]  # of entries, end excluded

_BLOCK = 1 << 16
_EXACT_DP = 512  # entries up to which cuts into three and more parts are exact


@dataclass(frozen=True)
class Spread:
    """Statistics of the launches in a range: count, mean, and sum of squares around the mean."""

    count: int
    mean: float
    squares: float

    @property
    def deviation(self) -> float:
        """Sample standard deviation (n - 1 in the denominator); 0 for a single launch."""
        return math.sqrt(self.squares / (self.count - 1)) if self.count > 1 else 0.0

    @property
    def total(self) -> float:
        return self.count * self.mean


class TimeOrder:
    """Launches sorted by (group, time, launch order); those of equal time share an entry.

    codes: [N] group of each launch, 0 to G-1, each used. times: [N], finite, 0 or more.
    Times are stored as fixed-point numbers: integers exactly up to 2^52, others to 2^-40 of the longest
    (fewer bits only above 4096 groups).

    order: [N] launches in that order. first: [E+1] where each entry begins in `order`. values: [E] its time.
    counts: [E] its launches. groups: the G ranges of entries.
    """

    def __init__(self, codes: npt.NDArray[Any], times: Floats) -> None:
        n, group_bits = len(codes), max(1, int(codes.max()).bit_length())
        exponent = math.frexp(float(times.max()))[1]
        whole = exponent <= 52 and all(np.array_equal(x, np.rint(x)) for x in _blocks(times))
        room = 64 - group_bits
        shift = min(0, room - exponent) if whole else min(40, room) - exponent
        bits = exponent + shift
        self.order, keys = _sorted(codes, times, shift, bits, group_bits)
        starts = np.flatnonzero(keys[1:] != keys[:-1]) + 1
        self.first: Ints = np.concatenate(([0], starts, [n]))
        self.counts: Ints = np.diff(self.first)
        distinct = keys[self.first[:-1]]
        self.values: Floats = np.ldexp((distinct & np.uint64((1 << bits) - 1)).astype(np.float64), -shift)
        groups = distinct >> np.uint64(bits)
        limits = [0, *(np.flatnonzero(groups[1:] != groups[:-1]) + 1).tolist(), len(groups)]
        self.groups: list[Range] = list(pairwise(limits))
        self._begins = limits[:-1]
        self._weights = self.counts.astype(np.float64)
        self._before = self.first.astype(np.float64)
        self._spreads: dict[Range, Spread] = {}
        self._means = [self.spread(lo, hi).mean for lo, hi in self.groups]
        self._sums, self._squares = self._prefix_sums()

    def __len__(self) -> int:
        return len(self.order)

    def _prefix_sums(self) -> tuple[Floats, Floats]:
        """Prefix sums of (time - mean of the group) and of its square, restarted in each group.

        Shifted, because plain sums of squares lose the variance if the coefficient of variation is small.
        """
        sums, squares = np.zeros(len(self.values) + 1), np.zeros(len(self.values) + 1)
        for (lo, hi), mean in zip(self.groups, self._means, strict=True):
            weighted = self.values[lo:hi] - mean
            centred = weighted.copy()
            weighted *= self._weights[lo:hi]
            # Entry i holds the sum over [group's begin, i); the group's own total is never needed.
            np.cumsum(weighted[:-1], out=sums[lo + 1 : hi])
            weighted *= centred
            np.cumsum(weighted[:-1], out=squares[lo + 1 : hi])
        return sums, squares

    def size(self, lo: int, hi: int) -> int:
        """Launches in the range."""
        return int(self.first[hi] - self.first[lo])

    def spread(self, lo: int, hi: int) -> Spread:
        """Statistics from two passes over the range: exact even if prefix sums cancel. The result is
        cached."""
        found = self._spreads.get((lo, hi))
        if found is None:
            found = self._spreads[lo, hi] = self._spread(lo, hi)
        return found

    def _spread(self, lo: int, hi: int) -> Spread:
        n, origin = self.size(lo, hi), float(self.values[lo])
        if hi - lo == 1:
            return Spread(n, origin, 0.0)
        weights = self._weights[lo:hi]
        centred = self.values[lo:hi] - origin
        # einsum, since BLAS adds up in an order that depends on the number of threads.
        offset = float(np.einsum("i,i", centred, weights)) / n
        centred -= offset
        return Spread(n, origin + offset, float(np.einsum("i,i,i", centred, centred, weights)))

    def best_cut(
        self, lo: int, hi: int, cost: Literal["squares", "neyman"] = "squares", noise: float = 0.0
    ) -> int | None:
        """Where to cut the range in two; None if all its times are equal.

        squares: least sum of squares within the parts, the optimum of 2-means.
        neyman: least sum of N * sqrt(S^2 + (noise * mean)^2) * sqrt(mean) over the parts, to whose square
            the time of an optimal sample is proportional.
        """
        if hi - lo < 2:
            return None
        whole = self.spread(lo, hi)
        n, mean = whole.count, whole.mean
        left = self._before[lo + 1 : hi] - self._before[lo]
        right = n - left
        group = bisect_right(self._begins, lo) - 1
        inside = lo > self._begins[group]  # a group's first entry has no prefix
        shift = mean - self._means[group]
        raw = self._sums[lo + 1 : hi] - (self._sums[lo] if inside else 0.0)
        sums = raw - left * shift  # of (time - mean of the range)
        if cost == "squares":
            sums *= sums
            sums /= left * right
            return lo + 1 + int(np.argmax(sums))
        squares = self._squares[lo + 1 : hi] - (self._squares[lo] if inside else 0.0)
        squares -= shift * (raw + sums)
        costs = _neyman(left, sums, squares, mean, noise)
        costs += _neyman(right, -sums, whole.squares - squares, mean, noise)
        return lo + 1 + int(np.argmin(costs))

    def best_cuts(self, lo: int, hi: int, parts: int) -> list[int] | None:
        """The cuts into `parts` ranges with the least sum of squares; None if there are fewer distinct times.

        Dynamic programming (Fisher, "On grouping for maximum homogeneity", JASA 1958), exact up to 512
        distinct times. Above, over 512 candidates; then each cut is moved to its best place between its
        neighbours until no cut moves.
        """
        if hi - lo < parts:
            return None
        if parts == 2:
            cut = self.best_cut(lo, hi)
            return None if cut is None else [cut]
        edges = _candidates(lo, hi, self.first)
        whole = self.spread(lo, hi)
        values = self.values[lo:hi] - whole.mean
        weighted = values * self._weights[lo:hi]
        count = self._before[edges] - self._before[lo]
        sums = np.concatenate(([0.0], np.cumsum(weighted)))[edges - lo]
        # between[i, j]: contribution of the range from edge i to edge j to the sum of squares between the
        # parts.
        with np.errstate(divide="ignore", invalid="ignore"):
            between = (sums[None, :] - sums[:, None]) ** 2 / (count[None, :] - count[:, None])
        between[np.tril_indices(len(edges))] = -np.inf
        best, back = between[0], []
        for _ in range(parts - 1):
            choice = best[:, None] + between
            back.append(np.argmax(choice, axis=0))
            best = np.max(choice, axis=0)
        cuts, at = [], len(edges) - 1
        for step in reversed(back):
            at = int(step[at])
            cuts.append(int(edges[at]))
        cuts.reverse()
        return cuts if len(edges) == hi - lo + 1 else self._settle(lo, hi, cuts)

    def _settle(self, lo: int, hi: int, cuts: list[int]) -> list[int]:
        """Moves each cut to its best place between its neighbours until no cut moves."""
        moved = True
        while moved:
            moved = False
            for i in range(len(cuts)):
                left = cuts[i - 1] if i else lo
                right = cuts[i + 1] if i + 1 < len(cuts) else hi
                best = self.best_cut(left, right)
                if best is not None and best != cuts[i]:
                    gain = self._within(left, cuts[i], right) - self._within(left, best, right)
                    if gain > 1e-12 * self._within(left, best, right):
                        cuts[i], moved = best, True
        return cuts

    def _within(self, lo: int, cut: int, hi: int) -> float:
        return self.spread(lo, cut).squares + self.spread(cut, hi).squares

    def strata(self, ranges: Sequence[Range]) -> Ints:
        """[N] index of each launch's range; the ranges cover all entries, in any order."""
        result = np.empty(len(self), np.int64)
        for i, (lo, hi) in enumerate(ranges):
            result[self.order[self.first[lo] : self.first[hi]]] = i
        return result


def _blocks(*arrays: npt.NDArray[Any]) -> Any:
    """Views that fit in the cache: temporaries of that size are reused, those of 80 MB cost page faults."""
    for i in range(0, len(arrays[0]), _BLOCK):
        views = tuple(array[i : i + _BLOCK] for array in arrays)
        yield views if len(views) > 1 else views[0]


def _sorted(
    codes: npt.NDArray[Any], times: Floats, shift: int, bits: int, group_bits: int
) -> tuple[npt.NDArray[Any], npt.NDArray[np.uint64]]:
    """Stable order of the keys (code, time * 2^shift in `bits` bits), and the sorted keys.

    If key and position fit in 64 bits together, they are sorted as one number, ten million in 0.2 s: polars
    takes that on every processor; numpy 0.1 to 0.6 s, as its vector instructions are slow on some, and a
    stable argsort more.
    """
    n = len(codes)
    keys = np.empty(n, np.uint64)
    for key, code, time in _blocks(keys, codes, times):
        # Rounding can add one bit to the longest.
        key[:] = np.minimum(np.rint(np.ldexp(time, shift)), 2.0**bits - 1) if shift else time
        key |= code.astype(np.uint64) << np.uint64(bits)
    position_bits = max(1, (n - 1).bit_length())
    if group_bits + bits + position_bits > 64:
        order: npt.NDArray[Any] = np.argsort(keys, kind="stable")
        return order, keys[order]
    keys <<= np.uint64(position_bits)
    for i, key in enumerate(_blocks(keys)):
        key |= np.arange(i * _BLOCK, i * _BLOCK + len(key), dtype=np.uint64)
    both_keys = pl.Series(keys)
    del keys, key  # or there would be three arrays of them during the sort; `key` is a view
    rising = both_keys.sort(multithreaded=False).to_numpy()
    del both_keys
    keys = np.empty(n, np.uint64)
    order = np.empty(n, np.uint32 if position_bits <= 32 else np.int64)
    for position, key, both in _blocks(order, keys, rising):
        position[:] = both & np.uint64((1 << position_bits) - 1)
        np.right_shift(both, np.uint64(position_bits), out=key)
    return order, keys


def _neyman(count: Floats, sums: Floats, squares: Floats, mean: float, noise: float) -> Floats:
    """N * sqrt((S^2 + (noise * mu)^2) * mu) of parts, from sums of (time - mean) and of its square."""
    offset = sums / count
    within = squares - sums * offset
    np.maximum(within, 0.0, out=within)  # rounding of the prefix sums
    within /= np.maximum(count - 1.0, 1.0)
    offset += mean
    np.maximum(offset, 0.0, out=offset)
    if noise:
        within += (noise * offset) ** 2
    within *= offset
    np.sqrt(within, out=within)
    within *= count
    return within


def _candidates(lo: int, hi: int, first: Ints) -> Ints:
    """Edges between entries: all, or 512 of them spread evenly over both times and launches."""
    if hi - lo <= _EXACT_DP:
        return np.arange(lo, hi + 1)
    even = np.linspace(lo, hi, _EXACT_DP // 2, dtype=np.int64)
    launches = np.linspace(first[lo], first[hi], _EXACT_DP // 2)
    quantiles = np.clip(np.searchsorted(first, launches), lo, hi)
    return np.unique(np.concatenate((even, quantiles, [lo, hi])))
