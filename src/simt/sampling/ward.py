"""Ward's hierarchical clustering of weighted points, up to a height.

A point of weight w represents w points at one place. Clustering all of those would first join them at height
zero, so the rest of the tree is the same.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from simt.sampling.columns import Floats
from simt.sampling.features import Ints

_MOST_PAIRS = 10_000_000  # listed pairs of nearby points; with more, all points are one neighbourhood


class Ward:
    """The merges below a height of Ward's minimum-variance tree.

    The height of a merge of clusters of weights a, b is sqrt(2 a b / (a + b)) times the distance of their
    means, as in SciPy and scikit-learn (Ward, J. Am. Stat. Assoc. 58, 1963).

    points: [points, dimensions]. weights: of each, at least 1. height: up to which merges are computed.
    """

    def __init__(self, points: Floats, weights: Floats, height: float) -> None:
        self._n = len(points)
        merges: list[tuple[int, int, float]] = []
        for members in _neighbourhoods(points, height):
            merges += _chain(points[members], weights[members], members)
        self._from = np.array([a for a, _, _ in merges], np.int64)
        self._to = np.array([b for _, b, _ in merges], np.int64)
        self._height = np.array([h for _, _, h in merges])

    def labels(self, threshold: float) -> Ints:
        """Cluster of each point after all merges below `threshold`, which is at most `height`."""
        done = self._height < threshold
        return _components(self._n, self._from[done], self._to[done])


def _components(n: int, start: Ints, end: Ints) -> Ints:
    graph = coo_array((np.ones(len(start), np.int8), (start, end)), shape=(n, n))
    labels: Ints = connected_components(graph, directed=False)[1].astype(np.int64)
    return labels


def _neighbourhoods(points: Floats, height: float) -> list[Ints]:
    """Sets of two points or more between which no merge below `height` can happen.

    The height of a merge of two points is at least their distance, as weights are at least 1. Clusters that
    are farther apart than `height` stay so after any merge below it, by the Lance-Williams formula. So only
    points linked by a chain of steps shorter than `height` can be merged.
    """
    tree = cKDTree(points)
    if tree.count_neighbors(tree, height) > 2 * _MOST_PAIRS + len(points):
        return [np.arange(len(points))]
    pairs = tree.query_pairs(height, output_type="ndarray")
    labels = _components(len(points), pairs[:, 0], pairs[:, 1])
    order = np.argsort(labels, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)
    return [part for part in parts if len(part) > 1]


def _chain(points: Floats, weights: Floats, names: Ints) -> list[tuple[int, int, float]]:
    """All merges of some points by chains of nearest neighbours (Murtagh, Comput. J. 26, 1983).

    A merge is given by the index of one point of either cluster, and its height.
    """
    means, weights, names = points.copy(), weights.copy(), names.copy()
    merges: list[tuple[int, int, float]] = []
    chain: list[int] = []
    while len(merges) < len(points) - 1:
        if len(means) > 64 and len(points) - len(merges) < len(means) / 2:
            alive = np.flatnonzero(np.isfinite(weights))
            place = np.zeros(len(means), np.int64)
            place[alive] = np.arange(len(alive))
            chain = place[chain].tolist()
            means, weights, names = means[alive], weights[alive], names[alive]
        if not chain:
            chain.append(int(np.flatnonzero(np.isfinite(weights))[0]))
        here = chain[-1]
        difference = means - means[here]
        # A cluster that was merged into another has infinite weight and mean.
        squares = np.einsum("ij,ij->i", difference, difference) * (2 / (1 / weights + 1 / weights[here]))
        squares[here] = np.inf
        nearest = int(squares.argmin())
        # In a tie the previous one in the chain, otherwise the chain would not end.
        if len(chain) > 1 and squares[chain[-2]] <= squares[nearest]:
            nearest = chain[-2]
            del chain[-2:]
            merges.append((int(names[here]), int(names[nearest]), float(np.sqrt(squares[nearest]))))
            keep, gone = min(here, nearest), max(here, nearest)
            total = weights[keep] + weights[gone]
            means[keep] = (weights[keep] * means[keep] + weights[gone] * means[gone]) / total
            weights[keep] = total
            means[gone], weights[gone] = np.inf, np.inf
        else:
            chain.append(nearest)
    return merges
