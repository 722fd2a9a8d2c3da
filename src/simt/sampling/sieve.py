"""Sieve: stratified by kernel name and instruction count (Naderan-Tahan et al., ISPASS'23)."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from simt.parameter_checks import one_of, real, refuse
from simt.profile import Profile
from simt.sampling.columns import Floats, available, complete, instructions, read
from simt.sampling.features import Ints, identical
from simt.sampling.sampler import Choice, Sampler
from simt.sampling.splits import TimeOrder

Kde = Literal["exact", "artifact"]
_GRID = 50  # points at which the artifact evaluates its density
_AGAIN = 0.5  # coefficient of variation above which the artifact splits a part once more


class Sieve(Sampler):
    """Strata of launches with the same name and similar instruction counts, each represented by one launch.

    A kernel name belongs to one of three tiers, by the coefficient of variation (CoV) of its instruction
    counts. Tier 1: all are equal; one stratum, represented by its first launch. Tier 2: the CoV is below
    theta; one stratum, represented by the first launch with the most frequent CTA size. Tier 3: split by
    instruction count until the CoV of every part is below theta; each part is then treated as tier 2. The
    weight of a representative is its stratum's instructions / its own, so the program's IPC is the weighted
        harmonic mean of theirs.

    theta: bound of the CoV.
    kde: how tier 3 is split. `exact`: repeatedly in two, where the sum of squares of the logarithm of the
        count becomes least. `artifact`: as in the published code, at the minima of a Gaussian kernel density
        of the distinct counts, evaluated at 50 points with a bandwidth of one instruction; parts with a CoV
        above 0.5 are split once more. None: decided by `fidelity`.
    instructions: the column to use instead of warp instructions.
    fidelity: `artifact` also uses the launch's threads as CTA size; in tier 2, it takes the first of those
        launches that has their most frequent count, in tier 3 the first with the median of the distinct
        counts.

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

    def validate(self) -> None:
        real("theta", self.theta, 0, open_low=True)
        one_of("fidelity", self.fidelity, ("paper", "artifact"))
        if self.kde is not None:
            one_of("kde", self.kde, ("exact", "artifact"))

    def choose(self, profile: Profile) -> Choice:
        theta = float(self.theta)
        as_artifact = self.fidelity == "artifact"
        kde = self.kde or ("artifact" if as_artifact else "exact")
        source, counts = _counts(profile, self.instructions)

        strata, tiers, names, why = _stratify(profile, counts, theta, kde)
        size_column = available(profile, ["launch__thread_count" if as_artifact else "launch__block_size"])
        sizes = read(profile, size_column) if size_column else np.zeros(len(profile))
        rows = _representatives(strata, tiers, sizes, counts, as_artifact)

        h = len(names)
        totals, launches = np.bincount(strata, weights=counts, minlength=h), np.bincount(strata, minlength=h)
        own = counts[rows]
        # A representative without instructions has no IPC, so its weight is the number of launches.
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
            warnings=() if size_column else ("no CTA sizes in the profile: assumed to be equal",),
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
    order = TimeOrder(profile.name_codes, np.log1p(counts))
    values = counts[order.order[order.first[:-1]]]  # the distinct counts of each name, ascending
    ranges, tiers, names, why = [], [], [], []
    for code, (lo, hi) in enumerate(order.groups):
        name = profile.names[code]
        cov = _cov(values[lo:hi], order.counts[lo:hi])
        if hi - lo == 1:
            parts, tier, reason = [hi], 1, f"tier 1: all execute {values[lo]:.0f} instructions"
        elif cov < theta:
            parts, tier, reason = [hi], 2, f"tier 2: CoV of instructions {cov:.2g} is below {theta:g}"
        else:
            split = _split_exactly if kde == "exact" else _split_as_artifact
            parts, tier, reason = split(order, values, lo, hi, theta), 3, f"tier 3: a part of CoV {cov:.2g}"
        for end in parts:
            several = f", {values[lo]:.0f} to {values[end - 1]:.0f} instructions" if tier == 3 else ""
            ranges.append((lo, end))
            tiers.append(tier)
            names.append(name + several)
            why.append(reason)
            lo = end
    return order.strata(ranges), np.array(tiers), names, why


def _cov(values: Floats, sizes: Ints) -> float:
    """Population standard deviation / mean."""
    mean = float(np.average(values, weights=sizes))
    return float(np.sqrt(np.average((values - mean) ** 2, weights=sizes))) / mean if mean > 0 else 0.0


def _split_exactly(order: TimeOrder, values: Floats, lo: int, hi: int, theta: float) -> list[int]:
    """Ends of the parts of a range of counts, each with a CoV below theta."""
    ends, waiting = [], [(lo, hi)]
    while waiting:
        lo, hi = waiting.pop()
        cut = None
        if _cov(values[lo:hi], order.counts[lo:hi]) >= theta:
            cut = order.best_cut(lo, hi)
        if cut is None:
            ends.append(hi)
        else:
            waiting += [(cut, hi), (lo, cut)]
    return ends


def _split_as_artifact(order: TimeOrder, values: Floats, lo: int, hi: int, theta: float) -> list[int]:
    """Ends of the parts, at minima of a density. Parts with a high CoV are split once more."""
    del theta
    ends = []
    for end in (*(lo + cut for cut in _minima(values[lo:hi])), hi):
        if _cov(values[lo:end], order.counts[lo:end]) > _AGAIN:
            ends += [lo + cut for cut in _minima(values[lo:end])]
        ends.append(end)
        lo = end
    return ends


def _minima(values: Floats) -> list[int]:
    """Positions, in distinct ascending values, of the local minima of their density."""
    grid = np.linspace(values[0], values[-1], _GRID)
    squares = -((grid[:, None] - values) ** 2) / 2
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
    """For each stratum, the first launch with the most frequent value; the earlier value in a tie."""
    groups = identical([strata[among], values[among]])
    first = among[groups.first]
    order = np.lexsort((first, -groups.size, strata[first]))
    leading = np.unique(strata[first[order]], return_index=True)[1]
    return first[order[leading]]
