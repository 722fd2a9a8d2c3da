"""STEM: sample sizes that bound the error of each cluster's total."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import numpy.typing as npt

from simt import parameter_checks as check
from simt.profile import Profile
from simt.sampling.allocation import (
    Design,
    Strata,
    Stratified,
    durations,
    quantile,
    stem_size,
    stratum_name,
)
from simt.sampling.splits import Range, TimeOrder

_CLT = 30  # launches above which the paper assumes a normal mean
_SPLIT_ABOVE = 50  # launches above which a cluster is split ("STEM-only" of the paper's evaluation)


class Stem(Stratified):
    """STEM alone (STEM+ROOT paper, section IV-A): eq. (3) for every cluster.

    m = max(ceil((z sigma / (error mu))^2), 30) launches; 1 if all times are equal. The paper prints min
    instead of max, against its own text and its artifact. Clusters are kernel names; one that needs more than
    50 launches is repeatedly split in two by time (the exact optimum of 2-means).

    error, confidence: bound on the relative error of each cluster's total, and so of the sum.
    gaussian: without the 30, for times assumed to be normal (the paper's Gaussian assumption).
    fidelity: `paper` draws without replacement and corrects for it, m / (1 + m/N), and takes a cluster whole
        if it is no larger than its sample. `artifact` follows the published code: names cut at the first
        parenthesis, 1.96 for z, 30 draws with replacement even from a cluster of two.
    """

    method = "stem"

    def __init__(
        self,
        error: float = 0.05,
        confidence: float = 0.95,
        gaussian: bool = False,
        fidelity: Literal["paper", "artifact"] = "paper",
        seed: int = 0,
    ) -> None:
        self.error = error
        self.confidence = confidence
        self.gaussian = gaussian
        self.fidelity = fidelity
        self.seed = seed

    def validate(self) -> None:
        super().validate()
        check.boolean("gaussian", self.gaussian)
        check.one_of("fidelity", self.fidelity, ("paper", "artifact"))

    def stratify(self, profile: Profile) -> Design:
        artifact = self.fidelity == "artifact"
        z = 1.96 if artifact and self.confidence == 0.95 else quantile(self.confidence)
        codes, names = _cut_names(profile) if artifact else (profile.name_codes, list(profile.names))
        order = TimeOrder(codes, durations(profile, "STEM"))
        ranges: list[Range] = []
        labels: list[str] = []
        for name, (lo, hi) in zip(names, order.groups, strict=True):
            found = self._clusters(order, lo, hi, z)
            ranges += found
            labels += [stratum_name(name, order, part, len(found)) for part in found]
        strata = Strata.of(order, ranges)
        least = 1 if self.gaussian else _CLT
        m = np.array(
            [
                self._size(n, mu, s, z, least, artifact)
                for n, mu, s in zip(strata.sizes, strata.means, strata.deviations, strict=True)
            ]
        )
        return Design(
            order,
            strata,
            m,
            labels,
            [
                f"{k} of {int(n)}: time varies by {100 * s / mu if mu else 0:.3g} %"
                for k, n, mu, s in zip(m, strata.sizes, strata.means, strata.deviations, strict=True)
            ],
            replacement=artifact,
            claimed_error=self.error,
            fitted={"clusters": len(ranges), "half_width": strata.half_width(m, z, artifact)},
        )

    def _size(self, n: float, mean: float, deviation: float, z: float, least: int, artifact: bool) -> int:
        """Draws from a cluster."""
        if artifact:  # a cluster of one launch is drawn once, others at least 30 times
            return 1 if n == 1 else max(stem_size(mean, deviation, self.error, z), least)
        if not deviation:
            return 1
        m = (z * deviation / (self.error * mean)) ** 2
        return int(min(max(math.ceil(m / (1 + m / n)), least), n))

    def _clusters(self, order: TimeOrder, lo: int, hi: int, z: float) -> list[Range]:
        """Splits in two until no cluster needs more than 50 launches."""
        found, stack = [], [(lo, hi)]
        while stack:
            lo, hi = stack.pop()
            whole = order.spread(lo, hi)
            cut = None
            if stem_size(whole.mean, whole.deviation, self.error, z) > _SPLIT_ABOVE:
                cut = order.best_cut(lo, hi)
            if cut is None:
                found.append((lo, hi))
            else:
                stack += [(cut, hi), (lo, cut)]
        return found


def _cut_names(profile: Profile) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Groups of the artifact: names up to the first parenthesis."""
    cut = [name.split("(")[0] for name in profile.names]
    names, codes = np.unique(cut, return_inverse=True)
    return codes.astype(np.int64)[profile.name_codes], names.tolist()
