"""Sieve: stratified by kernel name and instruction count (Naderan-Tahan et al., ISPASS'23)."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from simt.profile import Profile
from simt.sampling.columns import Floats, available, complete, instructions, read
from simt.sampling.features import Ints, identical
from simt.sampling.sampler import Choice, Sampler
from simt.sampling.validate import one_of, real, refuse

Kde = Literal["exact", "artifact"]
_GRID = 50  # points at which the artifact evaluates its density
_AGAIN = 0.5  # coefficient of variation above which the artifact splits a part once more


class Sieve(Sampler):
    """Strata of launches with the same name and similar instruction counts; one launch stands for each.

    Per kernel name, by the coefficient of variation (CoV) of the instruction counts: tier 1, all equal, is
    one stratum whose first launch represents it; tier 2, CoV below theta, is one stratum represented by the
    first launch with its most frequent CTA size; tier 3 is split by instruction count until the CoV of
    every part is below theta, and each part is as tier 2. A representative stands for its stratum's
    instructions: its weight is instructions of the stratum / its own, so the program's IPC is the weighted
        harmonic mean of theirs.

    theta: bound of the CoV.
    kde: how tier 3 is split. `exact`: the split in two that leaves the least squares in the logarithm of the
        count, repeated. `artifact`: as its public code, at the minima of a Gaussian kernel density of the
        different counts with a bandwidth of one instruction on 50 points, once more where the CoV is above
        0.5. None is as `fidelity` says.
    instructions: a column to use in place of warp instructions.
    fidelity: `artifact` also takes the launch's threads for the CTA size; in tier 2 the first launch with the
        most frequent count among those; in tier 3 the first with the median of the different counts.

    Learned: `labels_`, stratum of each launch; `tiers_`, tier of each stratum.
    """

    method: ClassVar[str] = "sieve"
    labels_: Ints
    tiers_: Ints

    def __init__(
        self,
        theta: float = 0.4,
        kde: Kde | None = None,
        instructions: str | None = None,
        fidelity: Literal["paper", "artifact"] = "paper",
    ) -> None:
        self.theta = theta
        self.kde = kde
        self.instructions = instructions
        self.fidelity = fidelity

    def choose(self, profile: Profile) -> Choice:
        theta = real("theta", self.theta, 0, open_low=True)
        one_of("fidelity", self.fidelity, ("paper", "artifact"))
        as_artifact = self.fidelity == "artifact"
        kde = ("artifact" if as_artifact else "exact") if self.kde is None else self.kde
        one_of("kde", kde, ("exact", "artifact"))
        source, counts = _counts(profile, self.instructions)

        strata, tiers, names, why = _stratify(profile, counts, theta, kde)
        size_column = available(profile, ["launch__thread_count" if as_artifact else "launch__block_size"])
        sizes = read(profile, size_column) if size_column else np.zeros(len(profile))
        rows = _representatives(strata, tiers, sizes, counts, as_artifact)

        h = len(names)
        totals, launches = np.bincount(strata, weights=counts, minlength=h), np.bincount(strata, minlength=h)
        own = counts[rows]
        # A representative without an instruction has no IPC: it stands for its stratum's launches.
        weights = np.divide(totals, own, out=launches.astype(np.float64), where=own > 0)
        self.labels_, self.tiers_ = strata, tiers
        order = np.argsort(rows)
        by_tier = {
            f"tier_{tier}": {
                "strata": int((tiers == tier).sum()),
                "launches": int(launches[tiers == tier].sum()),
            }
            for tier in (1, 2, 3)
        }
        return Choice(
            strata=strata,
            rows=rows[order],
            draws=np.ones(h, np.int64),
            weights=weights[order],
            names=names,
            why=why,
            fitted={"instruction_counter": source, "instructions": float(counts.sum()), **by_tier},
            warnings=() if size_column else ("no CTA sizes in the profile: taken as all alike",),
        )


def _counts(profile: Profile, column: str | None) -> tuple[str, Floats]:
    if column is None:
        return instructions(profile, "warp", "Sieve")
    if not isinstance(column, str):
        raise refuse("instructions", column, "the name of a column")
    return column, complete(profile, column, read(profile, column), "Sieve")


def _stratify(
    profile: Profile, counts: Floats, theta: float, kde: str
) -> tuple[Ints, Ints, list[str], list[str]]:
    """Stratum of each launch; tier, name and reason of each stratum, by name and count."""
    codes = profile.name_codes
    order = np.lexsort((counts, codes))
    values = counts[order]
    bounds = np.flatnonzero(np.diff(codes[order], prepend=-1, append=-1))
    ends, tiers, names, why = [], [], [], []
    for lo, hi in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        name = profile.names[codes[order[lo]]]
        part = values[lo:hi]
        cov = _cov(part)
        if part[0] == part[-1]:
            found = [(hi, 1, name, f"tier 1: all execute {part[0]:.0f} instructions")]
        elif cov < theta:
            found = [(hi, 2, name, f"tier 2: CoV of instructions {cov:.2g} is below {theta:g}")]
        else:
            found, at = [], lo
            for end in (_split_exactly if kde == "exact" else _split_as_artifact)(part, theta):
                what = f"{values[at]:.0f} to {values[lo + end - 1]:.0f} instructions"
                reason = f"tier 3: a part of CoV {_cov(values[at : lo + end]):.2g}, of {cov:.2g} for the name"
                found.append((lo + end, 3, f"{name}, {what}", reason))
                at = lo + end
        for end, tier, label, reason in found:
            ends.append(end)
            tiers.append(tier)
            names.append(label)
            why.append(reason)
    strata = np.empty(len(counts), np.int64)
    strata[order] = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
    return strata, np.array(tiers), names, why


def _cov(values: Floats) -> float:
    """Standard deviation / mean, of the population."""
    mean = values.mean()
    return float(values.std() / mean) if mean > 0 else 0.0


def _split_exactly(values: Floats, theta: float) -> list[int]:
    """Ends of the parts of sorted counts, each of a CoV below theta."""
    logs = np.log1p(values)
    ends, waiting = [], [(0, len(values))]
    while waiting:
        lo, hi = waiting.pop()
        if values[lo] == values[hi - 1] or _cov(values[lo:hi]) < theta:
            ends.append(hi)
            continue
        part = logs[lo:hi] - logs[lo:hi].mean()
        left, n = np.cumsum(part)[:-1], np.arange(1, hi - lo)
        # The sum is zero, so the right part's is -left: between-group squares are left^2 (1/n + 1/(N-n)).
        between = left**2 * (1 / n + 1 / (hi - lo - n))
        between[part[1:] == part[:-1]] = -1.0  # equal counts stay together
        cut = lo + int(between.argmax()) + 1
        waiting += [(cut, hi), (lo, cut)]
    return ends


def _split_as_artifact(values: Floats, theta: float) -> list[int]:
    """Ends of the parts of sorted counts at a density's minima, tried once more on parts of a high CoV."""
    del theta  # the artifact has its own constant
    ends = []
    lo = 0
    for hi in (*_minima(values), len(values)):
        part = values[lo:hi]
        ends += [lo + end for end in _minima(part)] if _cov(part) > _AGAIN else []
        ends.append(hi)
        lo = hi
    return ends


def _minima(values: Floats) -> list[int]:
    """Positions in sorted values at which the density of the different ones has its local minima."""
    different = np.unique(values)
    grid = np.linspace(different[0], different[-1], _GRID)
    squares = -((grid[:, None] - different) ** 2) / 2
    top = squares.max(axis=1, keepdims=True)
    density = top[:, 0] + np.log(np.exp(squares - top).sum(axis=1))
    inner = np.flatnonzero((density[1:-1] < density[:-2]) & (density[1:-1] < density[2:])) + 1
    cuts = np.unique(np.searchsorted(values, grid[inner]))
    return [int(cut) for cut in cuts if 0 < cut < len(values)]


def _representatives(strata: Ints, tiers: Ints, sizes: Floats, counts: Floats, as_artifact: bool) -> Ints:
    """One launch of each stratum."""
    rows = _most_frequent(strata, sizes, np.arange(len(strata)))
    if as_artifact:
        dominant = np.flatnonzero(sizes == sizes[rows][strata])
        rows = _most_frequent(strata, counts, dominant)
        for stratum in np.flatnonzero(tiers == 3).tolist():
            members = np.flatnonzero(strata == stratum)
            different = np.unique(counts[members])
            rows[stratum] = members[np.argmax(counts[members] == different[len(different) // 2])]
    first = np.full(len(tiers), len(strata))
    np.minimum.at(first, strata, np.arange(len(strata)))
    rows[tiers == 1] = first[tiers == 1]
    return rows


def _most_frequent(strata: Ints, values: Floats, among: Ints) -> Ints:
    """For each stratum the first launch with the most frequent value; of two as frequent the earlier."""
    groups = identical([strata[among], values[among]])
    first = among[groups.first]
    order = np.lexsort((first, -groups.size, strata[first]))
    leading = np.unique(strata[first[order]], return_index=True)[1]
    return first[order[leading]]
