"""Feature vectors of launches: choice of counters, grouping of identical vectors, standardisation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, overload

import numpy as np
import numpy.typing as npt

from simt.errors import PlanError
from simt.profile import Profile
from simt.sampling.columns import LANES, WARP_INSTRUCTIONS, Floats, available, complete, read
from simt.sampling.draws import UInts, mix

Ints = npt.NDArray[np.int64]
Scale = Literal["zscore", "log1p+zscore"]
SCALES = ("zscore", "log1p+zscore")
CHUNK = 1 << 16  # launches per block: a dozen columns of them fit in a core's cache


def _sectors(operation: str) -> tuple[str, ...]:
    return (f"l1tex__t_sectors_pipe_lsu_mem_{operation}.sum",)


def _executed(operation: str) -> tuple[str, ...]:
    space, access = operation.split("_")
    return (
        f"smsp__inst_executed_op_{operation}.sum",
        f"smsp__sass_inst_executed_op_{operation}.sum",
        f"sass__inst_executed_{space}_{'loads' if access == 'ld' else 'stores'}",  # Nsight Compute of 2018
    )


# PKA's Table 2, with the names in Nsight Compute. The "thread" loads and stores are warp instructions.
PAPER: dict[str, tuple[str, ...]] = {
    "coalesced global loads": _sectors("global_op_ld"),
    "coalesced global stores": _sectors("global_op_st"),
    "coalesced local loads": _sectors("local_op_ld"),
    "thread global loads": _executed("global_ld"),
    "thread global stores": _executed("global_st"),
    "thread local loads": _executed("local_ld"),
    "thread shared loads": _executed("shared_ld"),
    "thread shared stores": _executed("shared_st"),
    "thread global atomics": (
        "smsp__sass_inst_executed_op_global_atom.sum",
        "smsp__inst_executed_op_global_atom.sum",
        "smsp__inst_executed_global_atomics_sum",
    ),
    "instructions": WARP_INSTRUCTIONS,
    "divergence efficiency": LANES,
    "thread blocks": ("launch__grid_size",),
}
# The features of PKA's artifact: no local loads, no atomics, and two counters that are not in the paper.
ARTIFACT: dict[str, tuple[str, ...]] = {
    **{
        name: PAPER[name]
        for name in PAPER
        if name not in ("coalesced local loads", "thread local loads", "thread global atomics")
    },
    "global load instructions": ("sass__inst_executed_global_loads",),
    "global store instructions": ("sass__inst_executed_global_stores",),
}


@dataclass(frozen=True)
class Features:
    """Numeric columns by which launches are compared, none of them constant.

    names, columns: name in the profile, and value for each launch.
    dropped: requested features that are missing or constant.
    """

    names: list[str]
    columns: list[Floats]
    dropped: list[str]

    @property
    def warnings(self) -> tuple[str, ...]:
        return (f"features left out: {', '.join(self.dropped)}",) if self.dropped else ()


def check_features(features: Any, known: Sequence[str] = ("paper", "artifact")) -> None:
    """Raises PlanError unless `features` is a known word or a list of column names."""
    if isinstance(features, str):
        if features in known:
            return
    elif isinstance(features, (list, tuple)) and features and all(isinstance(f, str) for f in features):
        return
    raise PlanError(
        f"features is {features!r}, expected one of {', '.join(known)}, or a list of columns of the profile"
    )


def select(profile: Profile, wanted: dict[str, tuple[str, ...]] | Sequence[str], method: str) -> Features:
    """The features that the profile has and that vary.

    wanted: a method's own features with their names in Nsight Compute, of which missing ones are left out; or
        columns of the profile, all of which must exist.

    Raises PlanError if none of a method's own counters exists, or a launch has no value; ProfileError if a
    named column is missing.
    """
    dropped, names = [], []
    if isinstance(wanted, dict):
        for label, aliases in wanted.items():
            name = available(profile, aliases)
            if name:
                names.append(name)
            else:
                dropped.append(f"{label} ({aliases[0]}: not in the profile)")
        if not [name for name in names if not name.startswith("launch__")]:
            lacking = ", ".join(aliases[0] for aliases in wanted.values())
            raise PlanError(
                f"{profile.source}: {method} compares launches by counters of Nsight Compute, of which "
                f"the profile has none: {lacking}. Measure them with ncu --metrics, or name other columns as "
                f"features (such as launch__grid_size, launch__block_size, registers), or choose a method "
                f"based on times"
            )
    else:
        names = list(dict.fromkeys(wanted))
    kept, columns = [], []
    for name in names:
        values = complete(profile, name, read(profile, name), method)
        if values.min() == values.max():
            dropped.append(f"{name} (the same for all launches)")
        else:
            kept.append(name)
            columns.append(values)
    return Features(kept, columns, dropped)


@dataclass(frozen=True)
class Groups:
    """Launches with identical rows of numbers. Groups are in the order of their first launches.

    code: group of each launch. first: first launch of each group. size: launches in each group.
    """

    code: Ints
    first: Ints
    size: Ints

    def __len__(self) -> int:
        return len(self.first)


def hashes(columns: Sequence[npt.NDArray[Any]]) -> UInts:
    """A 64-bit hash of each row; rows of equal numbers have equal hashes."""
    result = np.zeros(len(columns[0]), np.uint64)
    for start in range(0, len(result), CHUNK):
        part = result[start : start + CHUNK]
        for column in columns:
            # Adding zero turns -0 into +0.
            bits = (column[start : start + CHUNK].astype(np.float64) + 0.0).view(np.uint64)
            part += bits + np.uint64(0x9E3779B97F4A7C15)
            part[:] = mix(part)
    return result


@overload
def identical(columns: Sequence[npt.NDArray[Any]]) -> Groups: ...


@overload
def identical(columns: Sequence[npt.NDArray[Any]], most: int) -> Groups | None: ...


def identical(columns: Sequence[npt.NDArray[Any]], most: int | None = None) -> Groups | None:
    """Groups launches whose rows of `columns` are equal; None if there are more than `most` groups.

    Rows are compared by 64-bit hashes: for 30 000 different rows, the probability of a collision is below
    10^-10.
    """
    key = hashes(columns)
    order = np.argsort(key)
    key = key[order]
    new = np.empty(len(key), bool)
    new[0] = True
    np.not_equal(key[1:], key[:-1], out=new[1:])
    starts = np.flatnonzero(new)
    if most is not None and len(starts) > most:
        return None
    first = np.minimum.reduceat(order, starts)
    chronological = np.argsort(first)
    rank = np.empty(len(starts), np.int64)
    rank[chronological] = np.arange(len(starts))
    size = np.diff(starts, append=len(key))
    code = np.empty(len(key), np.int64)
    code[order] = np.repeat(rank, size)
    return Groups(code, first[chronological], size[chronological])


@dataclass(frozen=True)
class Standard:
    """Scaling of features to mean 0 and (population) standard deviation 1 over all launches."""

    scale: Scale
    mean: Floats
    deviation: Floats

    @classmethod
    def of(cls, columns: Sequence[Floats], scale: Scale) -> Standard:
        means, deviations = [], []
        for column in columns:
            values = np.log1p(column) if scale == "log1p+zscore" else column
            means.append(values.mean())
            deviations.append(values.std())
        return cls(scale, np.array(means), np.array(deviations))

    def apply(self, columns: Sequence[Floats], rows: slice | Ints) -> Floats:
        """Standardised features of some launches, [launches, features]."""
        values = np.stack([column[rows] for column in columns], axis=1)
        if self.scale == "log1p+zscore":
            np.log1p(values, out=values)
        values -= self.mean
        values /= self.deviation
        return values


def principal_components(standard: Standard, columns: Sequence[Floats], variance: float) -> Floats:
    """The fewest principal axes that explain more than `variance` of the total variance, [features,
    components].

    From the covariance over all launches; as scikit-learn's `PCA(variance)` chooses their number.
    """
    n, d = len(columns[0]), len(columns)
    gram = np.zeros((d, d))
    for start in range(0, n, CHUNK):
        block = standard.apply(columns, slice(start, start + CHUNK))
        gram += block.T @ block
    values, vectors = np.linalg.eigh(gram / n)
    share = np.cumsum(values[::-1]) / values.sum()
    count = min(int(np.searchsorted(share, variance, side="right")) + 1, d)
    axes: Floats = vectors[:, ::-1][:, :count]
    return axes


def stratum_names(profile: Profile, strata: Ints, count: int) -> list[str]:
    """For each of `count` strata its most frequent kernel name, and the number of other names."""
    names = len(profile.names)
    pairs, size = np.unique(strata * names + profile.name_codes, return_counts=True)
    stratum = pairs // names
    order = np.lexsort((pairs, -size, stratum))
    leading = order[np.unique(stratum[order], return_index=True)[1]]
    different = np.bincount(stratum, minlength=count)
    return [
        profile.names[int(pairs[at] % names)]
        + (f" and {different[s] - 1} other names" if different[s] > 1 else "")
        for s, at in enumerate(leading)
    ]
