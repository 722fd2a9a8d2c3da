"""Counter-based random draws: each launch's number depends on the seed and its id alone.

So a draw is independent of the order of rows and the number of threads, and the same for launches that two
profiles share. The mixing function is SplitMix64's finaliser (Steele, Lea and Flood, "Fast splittable
pseudorandom number generators", OOPSLA 2014), applied twice with the seed and the salt in between.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

UInts = npt.NDArray[np.uint64]
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MASK = (1 << 64) - 1
_CHUNK = 1 << 16  # numbers that fit in a core's cache


def mix(values: UInts) -> UInts:
    """SplitMix64's finaliser: a bijection of 64-bit integers. Works in place."""
    values ^= values >> np.uint64(30)
    values *= np.uint64(0xBF58476D1CE4E5B9)
    values ^= values >> np.uint64(27)
    values *= np.uint64(0x94D049BB133111EB)
    values ^= values >> np.uint64(31)
    return values


def keys(seed: int, ids: npt.ArrayLike, salt: int = 0) -> UInts:
    """A uniform 64-bit key for each id; different ids have different keys.

    seed and salt are any integers, taken modulo 2^64. `salt` separates draws with the same seed that must not
    be correlated (one per stratum, repetition or purpose).
    """
    stream = mix(np.array([(seed * 0x9E3779B97F4A7C15 + 0x632BE59BD9B4E019) & _MASK], np.uint64))
    stream = mix(stream + np.array([(salt * 0xD1342543DE82EF95 + 1) & _MASK], np.uint64))
    result = np.array(ids, np.uint64)  # a copy, since mix works in place
    for start in range(0, len(result), _CHUNK):
        part = result[start : start + _CHUNK]
        part *= _GOLDEN
        part += stream
        mix(part)
        part += stream
        mix(part)
    return result


def uniform(seed: int, ids: npt.ArrayLike, salt: int = 0) -> npt.NDArray[np.float64]:
    """A number in [0, 1) for each id, a multiple of 2^-53."""
    numbers: npt.NDArray[np.float64] = (keys(seed, ids, salt) >> np.uint64(11)) * 2.0**-53
    return numbers


def starts(seed: int, count: int) -> npt.NDArray[np.float64]:
    """`uniform(seed, [0], salt)` for each salt of 0 to count-1: the first number of `count` streams."""
    stream = mix(np.array([(seed * 0x9E3779B97F4A7C15 + 0x632BE59BD9B4E019) & _MASK], np.uint64))
    stream = mix(stream + np.arange(count, dtype=np.uint64) * np.uint64(0xD1342543DE82EF95) + np.uint64(1))
    numbers = mix(mix(stream.copy()) + stream)
    result: npt.NDArray[np.float64] = (numbers >> np.uint64(11)) * 2.0**-53
    return result


def choose(seed: int, ids: npt.NDArray[Any], m: int, salt: int = 0) -> npt.NDArray[np.int64]:
    """Simple random sample without replacement: the positions, ascending, of the m ids with the smallest
    keys.

    m is at most len(ids). A larger m only adds to the sample of a smaller one.
    """
    order = keys(seed, ids, salt)
    if m >= len(order):
        return np.arange(len(order))
    return np.sort(np.argpartition(order, m)[:m]) if m > 0 else np.empty(0, np.int64)


def choose_with_replacement(
    seed: int, ids: npt.NDArray[Any], m: int, salt: int = 0
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """m independent draws of ids: the positions drawn, ascending, and how often each was drawn.

    Positions are ranked by key, so the draws depend on the set of ids and not on their order.
    """
    order = np.argsort(keys(seed, ids, salt))
    picks = (uniform(seed, np.arange(m, dtype=np.uint64), salt ^ 0x5DEECE66D) * len(order)).astype(np.int64)
    rows, draws = np.unique(order[picks], return_counts=True)
    return rows, draws
