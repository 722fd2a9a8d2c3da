"""Pairs the launches of two profiles of the same program."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from simt.errors import ProfileError
from simt.profile import Profile

Rows = npt.NDArray[np.int64]
MAX_EDITS = 3000  # differences between two sequences: time and memory grow with its square
CHUNK = 64  # elements compared at a time


@dataclass(frozen=True)
class Alignment:
    """Launches that two profiles share.

    rows, truth_rows: positions in the two profiles, pair by pair, both ascending.
    how: the method of pairing, as text.
    share, truth_share: each profile's share of time in the paired launches, 0 to 1.
    """

    rows: Rows
    truth_rows: Rows
    how: str
    share: float
    truth_share: float

    def __len__(self) -> int:
        return len(self.rows)


def align(profile: Profile, truth: Profile, threshold: float = 0.5) -> Alignment:
    """Pairs the launches of two profiles of the same program.

    One by one if both have the same names in the same order. Otherwise, if most names occur in both (one kind
    of GPU, two runs), by the longest common subsequence of names. Otherwise (two kinds of GPU, whose
    libraries use different kernels) by framework operator: consecutive launches under one operator are a run;
    runs are paired by the longest common subsequence of operators, and the launches of two runs are paired if
    their numbers are equal.

    Raises ProfileError if less than `threshold` of either profile's time is paired.
    """
    x, y = profile.column("duration_ns"), truth.column("duration_ns")
    ours, theirs = _texts(profile, "name"), _texts(truth, "name")
    if ours.equals(theirs):
        everything = np.arange(len(profile))
        return Alignment(everything, everything, "launch by launch", 1.0, 1.0)
    known = set(profile.names) & set(truth.names)
    common = min(_share(x, ours.is_in(known).to_numpy()), _share(y, theirs.is_in(known).to_numpy()))
    operators = [_texts(p, "annotation") if p.has("annotation") else None for p in (profile, truth)]
    a, b = operators
    if common < 0.9 and a is not None and b is not None and a.n_unique() > 1 and b.n_unique() > 1:
        how, (rows, truth_rows) = "by the sequence of framework operators", _by_runs(a, b, profile, truth)
    else:
        how, (rows, truth_rows) = (
            "by the sequence of kernel names",
            _common(*_codes(ours, theirs), profile, truth),
        )
    shares = (_share(x, rows), _share(y, truth_rows))
    if min(shares) < threshold:
        raise ProfileError(
            f"{truth.source}: only {len(rows):,} launches pair with those of {profile.source} ({how}), "
            f"{shares[0]:.0%} and {shares[1]:.0%} of the time; expected two profiles of the same program"
        )
    return Alignment(rows, truth_rows, how, *shares)


def _texts(profile: Profile, column: str) -> pl.Series:
    texts: pl.Series = profile.launches[column].cast(pl.String).fill_null("")
    return texts


def _share(values: npt.NDArray[np.float64], rows: npt.NDArray[np.generic]) -> float:
    total = float(values.sum())
    return float(values[rows].sum()) / total if total else 1.0


def _codes(a: pl.Series, b: pl.Series) -> tuple[Rows, Rows]:
    """The two columns as integers that are equal if and only if the texts are."""
    both = pl.concat([a.alias("x"), b.alias("x")]).rank("dense").cast(pl.Int64).to_numpy()
    return both[: len(a)], both[len(a) :]


def _by_runs(a: pl.Series, b: pl.Series, profile: Profile, truth: Profile) -> tuple[Rows, Rows]:
    codes = _codes(a, b)
    starts = [np.flatnonzero(np.diff(c, prepend=c[0] - 1)) for c in codes]
    sizes = [np.diff(s, append=len(c)) for s, c in zip(starts, codes, strict=True)]
    i, j = _common(codes[0][starts[0]], codes[1][starts[1]], profile, truth)
    same = sizes[0][i] == sizes[1][j]
    i, j = i[same], j[same]
    inside = np.arange(sizes[0][i].sum()) - np.repeat(np.cumsum(sizes[0][i]) - sizes[0][i], sizes[0][i])
    return np.repeat(starts[0][i], sizes[0][i]) + inside, np.repeat(starts[1][j], sizes[0][i]) + inside


def _common(a: Rows, b: Rows, profile: Profile, truth: Profile) -> tuple[Rows, Rows]:
    """Positions of a longest common subsequence of two sequences of integers of 0 or more.

    Myers, "An O(ND) difference algorithm and its variations" (Algorithmica 1, 1986), section 3: `furthest` is
    how far into `a` a path with d edits reaches on each diagonal k = i - j. All diagonals advance together.
    """
    n, m = len(a), len(b)
    a, b = np.append(a, np.full(CHUNK, -1)), np.append(b, np.full(CHUNK, -2))  # sentinels that match nothing
    centre = MAX_EDITS + 1
    furthest = np.full(2 * centre + 1, -1, np.int32)
    furthest[centre + 1] = 0  # the first step goes down from here, to (0, 0)
    before: list[npt.NDArray[np.int32]] = []  # `furthest` before each step, diagonals -d-1 to d+1
    for d in range(min(n + m, MAX_EDITS) + 1):
        k = np.arange(-d, d + 1, 2)
        before.append(furthest[centre - d - 1 : centre + d + 2].copy())
        i = _start(before[-1], k, d).astype(np.int64)
        i[(i > n) | (i - k > m)] = -1
        inside = np.flatnonzero(i >= 0)
        i[inside] = _slide(a, b, i[inside], k[inside])
        furthest[centre + k] = i
        if ((i == n) & (k == n - m)).any():
            return _path(n, n - m, before)
    raise ProfileError(
        f"{truth.source}: differs from {profile.source} in more than {MAX_EDITS:,} launches; expected two "
        f"profiles of the same program"
    )


def _start(furthest: npt.NDArray[np.int32], k: Rows, d: int) -> npt.NDArray[np.int32]:
    """Where step d begins on diagonals k: below diagonal k + 1, or right of k - 1; -1 if neither exists."""
    down, right = furthest[k + d + 2], furthest[k + d]
    return np.maximum(down, np.where(right < 0, -1, right + 1))


def _slide(a: Rows, b: Rows, i: Rows, k: Rows) -> Rows:
    """How far each path continues along equal elements."""
    i = i.copy()
    moving = np.arange(len(i))
    ahead = np.arange(CHUNK)
    while len(moving):
        here = i[moving, None] + ahead
        equal = a[here] == b[here - k[moving, None]]
        run = np.where(equal.all(axis=1), CHUNK, equal.argmin(axis=1))
        i[moving] += run
        moving = moving[run == CHUNK]
    return i


def _path(i: int, k: int, before: list[npt.NDArray[np.int32]]) -> tuple[Rows, Rows]:
    pairs: list[tuple[Rows, Rows]] = []
    for d in range(len(before) - 1, -1, -1):
        start = int(_start(before[d], np.array([k]), d)[0])
        run = np.arange(start, i)
        pairs.append((run, run - k))
        i = int(before[d][k + d + 2])  # the element below came from diagonal k + 1 ...
        if i == start:
            k += 1
        else:  # ... or from k - 1
            i, k = start - 1, k - 1
    pairs.reverse()
    return np.concatenate([p[0] for p in pairs]), np.concatenate([p[1] for p in pairs])
