"""k-means of millions of different points: through cells of near ones, and back to the points.

Points are put into cells by a tree of axis-parallel cuts, each of the cell with the largest sum of squares.
k-means of the cells' means, weighted, differs from that of the points only by the points of cells that a
border between clusters crosses. The rounds of Lloyd's algorithm that follow work on the points: a cell lies
wholly in one cluster where its mean is nearer to that centre than to any other by more than twice the cell's
radius (triangle inequality), so only the points of the other cells are compared with the centres.
"""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
import numpy.typing as npt

from simt.sampling.columns import Floats
from simt.sampling.features import CHUNK, Ints

Points = npt.NDArray[np.float32]
Labels = npt.NDArray[np.uint16]


class Cells:
    """Points in cells.

    order: for each point, in order of cells, its position in what was given. points: in order of cells.
    means [cells, dimensions], counts, radii: of each cell.
    """

    def __init__(self, points: Points, sample: Ints, most: int) -> None:
        """points: [points, dimensions]. sample: positions by which the cells are cut. most: cells."""
        cell = _Tree(points[sample], most).cells(points)
        self.order = np.argsort(cell, kind="stable")
        self.points = points[self.order]
        size = np.bincount(cell)
        self.counts = size[size > 0]
        self._starts = np.cumsum(self.counts) - self.counts
        columns = range(self.points.shape[1])
        self._sums = np.stack([np.bincount(cell, weights=points[:, c])[size > 0] for c in columns], axis=1)
        self.means: Floats = self._sums / self.counts[:, None]
        of = np.repeat(np.arange(len(self.counts)), self.counts)
        self.radii: Floats = np.sqrt(np.maximum.reduceat(self.distances(of, self.means), self._starts)) + 1e-6

    def distances(self, labels: npt.NDArray[Any], centres: Floats) -> Floats:
        """Squared distance of each point, in order of cells, to the centre that it is labelled with."""
        result = np.empty(len(self.points))
        for start in range(0, len(result), CHUNK):
            part = slice(start, start + CHUNK)
            result[part] = ((self.points[part] - centres[labels[part]]) ** 2).sum(axis=1)
        return result

    def assign(self, centres: Floats) -> tuple[Labels, Floats, Ints, int]:
        """Nearest centre of each point, in order of cells; sums and numbers of each centre's points; how many
        points had to be compared with the centres.
        """
        k = len(centres)
        distance = np.sqrt(np.maximum(_squared(centres, self.means), 0))
        cell_label = distance.argmin(axis=0).astype(np.uint16)
        nearest = np.partition(distance, 1, axis=0) if k > 1 else np.vstack([distance, distance + np.inf])
        whole = nearest[1] - nearest[0] > 2 * self.radii
        sums, counts = np.zeros((k, self.points.shape[1])), np.zeros(k, np.int64)
        np.add.at(sums, cell_label[whole], self._sums[whole])
        np.add.at(counts, cell_label[whole], self.counts[whole])
        labels = np.repeat(cell_label, self.counts)
        rows = np.flatnonzero(np.repeat(~whole, self.counts))
        narrow, numbers = centres.astype(np.float32), np.arange(k, dtype=np.uint16)[:, None]
        for start in range(0, len(rows), CHUNK):
            part = rows[start : start + CHUNK]
            some = self.points[part]
            mine = _nearest(narrow, some)
            labels[part] = mine
            sums += (mine == numbers).astype(np.float32) @ some
            counts += np.bincount(mine, minlength=k)
        return labels, sums, counts, len(rows)

    def lloyd(self, centres: Floats) -> tuple[Labels, Floats]:
        """Labels in order of cells, and centres, after rounds of Lloyd's algorithm on the points.

        They end when no coordinate of a centre moves by more than a thousandth, or half as many comparisons
        have been made as there are points: where borders cross most cells, the means of the cells had told
        already what there is to tell.
        """
        labels, sums, counts, compared = self.assign(centres)
        while compared < len(labels) / 2:
            used = counts > 0
            moved = centres.copy()
            moved[used] = sums[used] / counts[used, None]
            still = np.abs(moved - centres).max() <= 1e-3
            centres = moved
            if still:
                break
            labels, sums, counts, more = self.assign(centres)
            compared += more
        return labels, centres


def _squared(centres: Floats, points: Floats) -> Floats:
    """Squared distances, [centres, points]."""
    result: Floats = (centres**2).sum(axis=1)[:, None] - 2 * (centres @ points.T) + (points**2).sum(axis=1)
    return result


def _nearest(centres: Points, points: Points) -> Labels:
    """Nearest centre of each point; the first of several that are equally near."""
    # One row a centre: comparing long rows is many times faster than the minimum of short ones.
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
    """Axis-parallel cuts through the mean, of the cell with the largest sum of squares first."""

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
            if high.all() or not high.any():  # they differ by less than single precision tells
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
        low, high = np.array(self._low, np.int32), np.array(self._high, np.int32)
        leaf = np.cumsum(axis < 0) - 1
        result = np.empty(len(points), np.uint16)
        for start in range(0, len(points), CHUNK):
            some = points[start : start + CHUNK]
            node = np.zeros(len(some), np.int32)
            rows = np.arange(len(some))
            while len(rows):
                here = node[rows]
                cut = axis[here]
                rows = rows[cut >= 0]
                here, cut = here[cut >= 0], cut[cut >= 0]
                node[rows] = np.where(some[rows, cut] > at[here], high[here], low[here])
            result[start : start + CHUNK] = leaf[node]
        return result
