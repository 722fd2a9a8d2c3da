"""k-means of millions of distinct points: first of cells of nearby points, then of the points.

Points are put into cells by a tree of axis-parallel cuts; the next cell to be cut is the one with the largest
sum of squares. Weighted k-means of the cells' means differs from that of the points only by the points of
cells that a border between clusters crosses. The following rounds of Lloyd's algorithm work on the points: a
cell lies wholly in one cluster if its mean is nearer to that centre than to any other by more than twice the
cell's radius (triangle inequality), so only the points of the other cells are compared with the centres.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from simt.sampling.columns import Floats
from simt.sampling.features import CHUNK, Ints

Points = npt.NDArray[np.float32]
Labels = npt.NDArray[np.uint16]


class Cells:
    """Points grouped by cell.

    order: the position of each point in the input. points: [points, dimensions].
    means [cells, dimensions], counts, radii: of each cell.
    """

    def __init__(self, points: Points, sample: Ints, most: int) -> None:
        """points: [points, dimensions]. sample: positions of the points that determine the cuts. most:
        cells."""
        cell = _Tree(points[sample], most).cells(points)
        self.counts: Ints = np.bincount(cell)  # none is 0, since each cell contains points of the sample
        self._starts = np.cumsum(self.counts) - self.counts
        sums = [np.bincount(cell, weights=points[:, c]) for c in range(points.shape[1])]
        self._sums = np.stack(sums, axis=1)
        self.means: Floats = self._sums / self.counts[:, None]
        self.order = np.argsort(cell, kind="stable")
        self.points = points[self.order]
        squares = self.distances(np.repeat(np.arange(len(self.counts)), self.counts), self.means)
        # A margin of 1e-6 for single precision, so that no point is farther from the mean than the radius.
        self.radii: Floats = np.sqrt(np.maximum.reduceat(squares, self._starts)) + 1e-6

    def distances(self, labels: npt.NDArray[Any], centres: Floats) -> Floats:
        """Squared distance of each point to the centre of its cluster."""
        result = np.empty(len(self.points))
        for start in range(0, len(result), CHUNK):
            part = slice(start, start + CHUNK)
            result[part] = ((self.points[part] - centres[labels[part]]) ** 2).sum(axis=1)
        return result

    def lloyd(self, centres: Floats) -> tuple[Labels, Ints, Floats]:
        """Label of each point, points of each label, and centres, after rounds of Lloyd's algorithm.

        They end when no coordinate of a centre moves by more than a thousandth, or when half as many
        comparisons have been made as there are points: if borders cross most cells, the points add little to
        the result of the cells' means.
        """
        found = self._assign(centres)
        compared = len(found.rows)
        while compared < len(self.points) / 2:
            moved = centres.copy()
            used = found.counts > 0
            moved[used] = found.sums[used] / found.counts[used, None]
            if np.abs(moved - centres).max() <= 1e-3:
                break
            centres = moved
            found = self._assign(centres)
            compared += len(found.rows)
        labels = np.repeat(found.of_cells, self.counts)
        labels[found.rows] = found.of_rows
        return labels, found.counts, centres

    def _assign(self, centres: Floats) -> _Assignment:
        """Assigns each point to its nearest centre."""
        k = len(centres)
        distance = np.sqrt(np.maximum(_squared(centres, self.means), 0))
        of_cells = distance.argmin(axis=0).astype(np.uint16)
        nearest = np.partition(distance, 1, axis=0) if k > 1 else np.vstack([distance, distance + np.inf])
        whole = nearest[1] - nearest[0] > 2 * self.radii
        sums, counts = np.zeros((k, self.points.shape[1])), np.zeros(k, np.int64)
        np.add.at(sums, of_cells[whole], self._sums[whole])
        np.add.at(counts, of_cells[whole], self.counts[whole])
        rows = self._members(np.flatnonzero(~whole))
        of_rows = np.empty(len(rows), np.uint16)
        narrow, numbers = centres.astype(np.float32), np.arange(k, dtype=np.uint16)[:, None]
        for start in range(0, len(rows), CHUNK):
            part = slice(start, start + CHUNK)
            some = self.points[rows[part]]
            mine = of_rows[part] = _nearest(narrow, some)
            sums += (mine == numbers).astype(np.float32) @ some
            counts += np.bincount(mine, minlength=k)
        return _Assignment(of_cells, rows, of_rows, sums, counts)

    def _members(self, cells: Ints) -> Ints:
        """The points of some cells."""
        counts = self.counts[cells]
        before = np.cumsum(counts) - counts
        rows: Ints = np.repeat(self._starts[cells] - before, counts) + np.arange(counts.sum())
        return rows


@dataclass(frozen=True)
class _Assignment:
    """Labels of cells, and of the points in cells that a border crosses; sums and numbers of points."""

    of_cells: Labels
    rows: Ints
    of_rows: Labels
    sums: Floats
    counts: Ints


def _squared(centres: Floats, points: Floats) -> Floats:
    """Squared distances, [centres, points]."""
    result: Floats = (centres**2).sum(axis=1)[:, None] - 2 * (centres @ points.T) + (points**2).sum(axis=1)
    return result


def _nearest(centres: Points, points: Points) -> Labels:
    """Nearest centre of each point; the first one in a tie."""
    # One row per centre: comparing long rows is many times faster than the minimum of short ones.
    score = centres @ points.T
    score *= -2
    score += (centres**2).sum(axis=1)[:, None]
    best, labels = score[0], np.zeros(len(points), np.uint16)
    for c in range(1, len(centres)):
        nearer = score[c] < best
        labels[nearer] = c
        np.minimum(best, score[c], out=best)
    return labels


class _Tree:
    """Axis-parallel cuts through the mean; the cell with the largest sum of squares is cut first."""

    def __init__(self, sample: Points, most: int) -> None:
        self._axis, self._at = [-1], [0.0]
        self._low, self._high = [0], [0]
        queue: list[tuple[float, int, Ints, int, float]] = []

        def offer(node: int, rows: Ints) -> None:
            some = sample[rows].astype(np.float64)
            mean = some.mean(axis=0)
            squares = ((some - mean) ** 2).sum(axis=0)
            axis = int(squares.argmax())
            if squares[axis] > 0:
                heapq.heappush(queue, (-float(squares.sum()), node, rows, axis, float(mean[axis])))

        offer(0, np.arange(len(sample)))
        leaves = 1
        while queue and leaves < most:
            _, node, rows, axis, at = heapq.heappop(queue)
            high = sample[rows, axis] > np.float32(at)
            if high.all() or not high.any():  # they are equal in single precision
                continue
            self._axis[node], self._at[node] = axis, at
            for side, part in ((self._low, rows[~high]), (self._high, rows[high])):
                side[node] = len(self._axis)
                self._axis.append(-1)
                self._at.append(0.0)
                self._low.append(0)
                self._high.append(0)
                offer(side[node], part)
            leaves += 1

    def cells(self, points: Points) -> npt.NDArray[np.uint16]:
        """The cell of each point."""
        axis, at = np.array(self._axis), np.array(self._at, np.float32)
        child = np.stack([self._low, self._high], axis=1).ravel()
        leaf = np.cumsum(axis < 0) - 1
        d = points.shape[1]
        result = np.zeros(len(points), np.uint16)
        for start in range(0, len(points), CHUNK):
            values = points[start : start + CHUNK].ravel()
            part = result[start : start + CHUNK]
            rows = np.arange(len(part))
            node = np.zeros(len(part), np.int64)
            while len(rows):
                inner = axis.take(node) >= 0
                if not inner.all():
                    part[rows[~inner]] = leaf.take(node[~inner])
                    rows, node = rows[inner], node[inner]
                high = values.take(rows * d + axis.take(node)) > at.take(node)
                node = child.take(2 * node + high)
        return result
