"""Random sampling: equal probability for each launch."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from simt.parameter_checks import integer, one_of, real
from simt.profile import Profile
from simt.sampling.draws import choose, uniform
from simt.sampling.sampler import Choice, Sampler


class Random(Sampler):
    """Draws launches at random, all with the same probability and the same weight.

    The baseline of STEM (section VI), there with p = 0.1 %. Whether a launch is drawn depends on the seed and
    its id alone.

    p: probability of each launch, independent of the others (Bernoulli sampling).
    size: instead of p, the number of launches to draw without replacement; all if there are fewer.
    weight: `ratio` is N/m for m drawn launches; `horvitz-thompson` is 1/p, whose estimate also varies with
        the
        random m as well (for a fixed size it is N/m, too).
    seed: seed of the draws.

    An empty Bernoulli sample becomes the one launch with the smallest random number, which represents all.
    """

    method: ClassVar[str] = "random"

    def __init__(
        self,
        p: float = 0.001,
        size: int | None = None,
        weight: Literal["ratio", "horvitz-thompson"] = "ratio",
        seed: int = 0,
    ) -> None:
        self.p = p
        self.size = size
        self.weight = weight
        self.seed = seed

    def validate(self) -> None:
        real("p", self.p, 0, 1, open_low=True)
        if self.size is not None:
            integer("size", self.size, 1)
        one_of("weight", self.weight, ("ratio", "horvitz-thompson"))
        integer("seed", self.seed)

    def choose(self, profile: Profile) -> Choice:
        p, size, seed = self.p, self.size, self.seed
        n = len(profile)
        ids = profile.launches["launch"].to_numpy()
        if size is None:
            rows = np.flatnonzero(uniform(seed, ids) < p)
            weight = 1 / p if self.weight == "horvitz-thompson" and len(rows) else n / max(len(rows), 1)
            how = f"each with a chance of {p:g}"
            if not len(rows):
                rows = choose(seed, ids, 1)
                how += ", which drew none, so one stands for all"
        else:
            rows = choose(seed, ids, size)
            weight = n / len(rows)
            how = "a fixed number"
        return Choice(
            strata=np.zeros(n, np.int64),
            rows=rows,
            draws=np.ones(len(rows), np.int64),
            weights=np.full(len(rows), weight),
            names=["all launches"],
            why=[f"{len(rows)} of {n} at random: {how}"],
        )
