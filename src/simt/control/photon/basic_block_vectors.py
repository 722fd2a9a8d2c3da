"""The work of warps and launches as basic-block vectors (Photon, MICRO'23, section 3, observation 5)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

DIMENSIONS = 16
_SPREADS = np.zeros((560, DIMENSIONS))
"""The ways to spread a block evenly over three of the dimensions."""
for _row, _three in enumerate(combinations(range(DIMENSIONS), 3)):
    _SPREADS[_row, _three] = 1 / 3


def block_projection(keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.float64]:
    """Weights of each basic block in the fixed dimensions: (blocks, DIMENSIONS); rows sum to 1.

    keys: identify each block across kernels: a hash, which chooses three dimensions. Two blocks coincide with
        probability 1/560.
    """
    # Mix all bits of the hash (the finalizer of MurmurHash3).
    mixed = (keys ^ (keys >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    mixed = (mixed ^ (mixed >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    mixed ^= mixed >> np.uint64(33)
    projection: npt.NDArray[np.float64] = _SPREADS[mixed % np.uint64(len(_SPREADS))]
    return projection


@dataclass(frozen=True)
class WarpTypes:
    """The distinct warps of a sample: warps that execute each block equally often are of one type.

    counts: (types, blocks) executions. weights: share of the warps, descending; among equal ones the type
        with the greater counts comes first. of_warp: the type of each warp.
    """

    counts: npt.NDArray[np.uint32]
    weights: npt.NDArray[np.float64]
    of_warp: npt.NDArray[np.int64]

    @staticmethod
    def of(counts: npt.NDArray[np.uint32]) -> WarpTypes:
        """counts: (warps, blocks) executions, at least one warp."""
        types, of_warp, sizes = np.unique(counts, axis=0, return_inverse=True, return_counts=True)
        # Rows come out in ascending order.
        order = np.lexsort((-np.arange(len(types)), -sizes))
        rank = np.empty(len(types), np.int64)
        rank[order] = np.arange(len(types))
        return WarpTypes(types[order], sizes[order] / len(counts), rank[of_warp.reshape(-1)])


def gpu_vector(
    types: WarpTypes, lengths: npt.NDArray[np.uint32], projection: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """The GPU basic-block vector of a launch: for each warp type, by descending weight, its weight times its
    share of instructions in each dimension; (types, DIMENSIONS), all entries sum to 1.

    lengths: instructions of each block.
    """
    instructions = types.counts * lengths.astype(np.float64)
    totals = np.maximum(instructions.sum(axis=1, keepdims=True), 1)
    vector: npt.NDArray[np.float64] = (instructions / totals) @ projection * types.weights[:, None]
    return vector


def distance(a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]) -> float:
    """L1 distance of two GPU basic-block vectors, from 0 to 2; the shorter one is padded with zeros."""
    types = max(len(a), len(b))
    padded = [np.vstack([v, np.zeros((types - len(v), v.shape[1]))]) for v in (a, b)]
    return float(np.abs(padded[0] - padded[1]).sum())
