"""Single iteration: one iteration of the loop in which a program launches its kernels stands for all of "
"them."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from simt.errors import PlanError
from simt.parameter_checks import integer
from simt.profile import Profile
from simt.sampling.sampler import Choice, Sampler

_DIMENSIONS = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")


class SingleIteration(Sampler):
    """Simulates one iteration of the program's loop, and scales it by the number of iterations.

    What is done with training and inference without a method (Villa et al., HPCA'21); PKA (MICRO'21, section
    6)
    compares with it on ResNet. The paper takes the iteration from knowledge of the program. Here it is found
    in the
    launches: the stretch that repeats with one period and holds most of them; of several, that with the
    shortest
    period, which begins first. Launches are alike if their kernel, grid and block are. Each launch of the
    iteration
    stands for those at its place in all iterations; launches before and after the loop are simulated.

    iteration: which one, from 0.
    longest: launches in an iteration, at most. The search takes (launches x this) steps.

    Learned: `period_`, launches in an iteration; `begin_`, `end_`, the loop's first launch and the one after
    its
    last; 0 of each for a program that repeats nothing, all launches of which are simulated.
    """

    method: ClassVar[str] = "single-iteration"
    period_: int
    begin_: int
    end_: int

    def __init__(self, iteration: int = 0, longest: int = 20_000) -> None:
        self.iteration = iteration
        self.longest = longest

    def validate(self) -> None:
        integer("iteration", self.iteration, 0)
        integer("longest", self.longest, 1)

    def choose(self, profile: Profile) -> Choice:
        n = len(profile)
        self.period_, self.begin_, self.end_ = _loop(_kinds(profile), self.longest)
        strata, weights = np.arange(n), np.ones(n)
        rows = np.arange(n)
        why = ["outside the loop"] * n
        if self.period_:
            count = (self.end_ - self.begin_) // self.period_
            if self.iteration >= count:
                raise PlanError(
                    f"iteration is {self.iteration}, expected one of 0 to {count - 1}: {profile.source} "
                    f"has {count} "
                    f"of {self.period_} launches"
                )
            place = np.arange(self.begin_, self.end_) - self.begin_
            first = self.begin_ + self.iteration * self.period_
            rows = np.concatenate(
                [np.arange(self.begin_), np.arange(first, first + self.period_), np.arange(self.end_, n)]
            )
            # Strata in launch order: those before the loop, its places, those after.
            strata[self.begin_ : self.end_] = self.begin_ + place % self.period_
            strata[self.end_ :] = self.begin_ + self.period_ + np.arange(n - self.end_)
            weights = np.bincount(strata).astype(float)
            why = ["outside the loop"] * len(rows)
            for i in range(self.begin_, self.begin_ + self.period_):
                why[i] = f"iteration {self.iteration} of {count}"
        codes = profile.name_codes[rows]
        return Choice(
            strata=strata,
            rows=rows,
            draws=np.ones(len(rows), np.int64),
            weights=weights,
            names=[profile.names[code] for code in codes],
            why=why,
            fitted={"period": self.period_, "begin": self.begin_, "end": self.end_},
        )


def _kinds(profile: Profile) -> npt.NDArray[np.int64]:
    """A number for each launch, the same for those alike."""
    columns = [np.asarray(profile.name_codes, np.int64)]
    columns += [profile.column(name).astype(np.int64) for name in _DIMENSIONS if profile.has(name)]
    return np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _loop(kinds: npt.NDArray[np.int64], longest: int) -> tuple[int, int, int]:
    """Period, begin and end of the stretch that repeats and is longest; zeros if nothing repeats."""
    best, n = (0, 0, 0), len(kinds)
    for period in range(1, min(longest, n // 2) + 1):
        if n <= best[2] - best[1]:
            break
        same = np.concatenate([[False], kinds[period:] == kinds[:-period], [False]])
        edges = np.flatnonzero(same[1:] != same[:-1])
        begins, lengths = edges[::2], edges[1::2] - edges[::2]
        if not len(lengths) or lengths.max() < period:
            continue
        at = int(lengths.argmax())
        if lengths[at] + period > best[2] - best[1]:
            best = (period, int(begins[at]), int(begins[at] + lengths[at] + period))
    return best
