"""Sampler: the one interface of all methods that choose launches from a profile."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl
from threadpoolctl import ThreadpoolController

from simt.errors import PlanError
from simt.methods import Method
from simt.profile import Profile
from simt.sampling.plan import Plan
from simt.version import __version__

_GRID = ("grid_x", "grid_y", "grid_z")

Self = TypeVar("Self", bound="Sampler")
_BLOCK = 1 << 18


@dataclass(frozen=True)
class Choice:
    """A sampler's decision, by positions in the profile (0 to N-1, launch order).

    strata: for each of the N launches its stratum, 0 to H-1; every stratum is used.
    rows: the distinct drawn launches.
    draws: how often each was drawn.
    weights: the weight of each, for all draws together.
    names, why: for each of the H strata.
    """

    strata: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    draws: npt.NDArray[np.int64]
    weights: npt.NDArray[np.float64]
    names: list[str]
    why: list[str]
    replacement: bool = False
    claimed_error: float | None = None
    fitted: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


class Sampler(Method, ABC):
    """Chooses launches from a profile, following the conventions of scikit-learn (see Method).

    `fit` validates the parameters, sets learned values with a trailing underscore and `plan_`, and returns
    the sampler. A sampler with a `seed` parameter gives the same Plan for the same seed and profile, whatever
    the order of rows and the number of threads.

    To write a sampler, subclass this, set `method` to a name, and implement `choose`, and `validate` if there
    are parameters. `check_sampler` checks what every sampler must satisfy.
    """

    plan_: Plan
    strata_: npt.NDArray[np.int64]

    @abstractmethod
    def choose(self, profile: Profile) -> Choice:
        """Decides on a profile with at least one launch; the parameters have been validated."""

    def fit(self: Self, profile: Profile) -> Self:
        """Chooses launches of `profile`; `plan_` holds the result, `strata_` each launch's stratum.

        Raises PlanError if the profile is empty or a parameter is invalid, ProfileError if it lacks a column
        that the method needs.
        """
        if not len(profile):
            raise PlanError(f"{profile.source}: no launches to choose from")
        self.validate()
        with _libraries().limit(limits=1):
            choice = self.choose(profile)
        self.plan_ = make_plan(self, profile, choice)
        self.strata_ = choice.strata
        return self

    def fit_plan(self, profile: Profile) -> Plan:
        """`fit(profile).plan_`"""
        return self.fit(profile).plan_


@cache
def _libraries() -> ThreadpoolController:
    """BLAS and OpenMP, whose sums differ in their last bits with the number of threads: a plan must not."""
    return ThreadpoolController()


def make_plan(sampler: Sampler, profile: Profile, choice: Choice) -> Plan:
    """The Plan of a choice: what it is in launch ids, and how the strata are."""
    times = profile.column("duration_ns") if profile.has("duration_ns") else np.zeros(len(profile))
    h = len(choice.names)
    sizes = np.bincount(choice.strata, minlength=h)
    totals = np.bincount(choice.strata, weights=times, minlength=h)
    means = totals / np.maximum(sizes, 1)
    # Centred before squaring: with a coefficient of variation of 1e-7 plain sums of squares lose it.
    squares = np.zeros(h)
    for i in range(0, len(times), _BLOCK):  # large temporaries cost page faults
        inside = choice.strata[i : i + _BLOCK]
        squares += np.bincount(inside, (times[i : i + _BLOCK] - means[inside]) ** 2, h)
    deviation = np.sqrt(squares / np.maximum(sizes, 1))
    drawn = np.zeros(h, np.int64)
    np.add.at(drawn, choice.strata[choice.rows], choice.draws)
    taken = profile.launches[choice.rows]
    parameters = sampler.get_params(deep=False)
    return Plan(
        method=sampler.label(),
        parameters={key: value for key, value in sorted(parameters.items()) if key != "seed"},
        seed=parameters.get("seed"),
        launches=pl.DataFrame(
            {
                "launch": taken["launch"],
                "position": taken["position" if profile.has("position") else "launch"],
                "name": taken["name"].cast(pl.String),
                "stratum": choice.strata[choice.rows],
                "draws": choice.draws,
                "weight": choice.weights,
                "time_ns": times[choice.rows],
            }
        ),
        strata=pl.DataFrame(
            {
                "stratum": np.arange(h),
                "name": choice.names,
                "launches": sizes,
                "draws": drawn,
                "time_ns": totals,
                "cov": np.divide(deviation, means, out=np.zeros(h), where=means > 0),
                "why": choice.why,
            }
        ),
        population=len(profile),
        ctas=_ctas(profile),
        streams=_streams(profile),
        order=_order(profile, choice, times),
        population_ns=float(times.sum()),
        replacement=choice.replacement,
        claimed_error=None if profile.expected else choice.claimed_error,
        confidence=float(parameters.get("confidence", 0.95)),
        gpu=profile.gpu,
        source=profile.source,
        version=__version__,
        fitted=choice.fitted,
        warnings=(*profile.warnings, *choice.warnings),
        expected=profile.expected,
    )


def _grids(profile: Profile) -> pl.Expr:
    """CTAs of each launch; null where its grid is not known."""
    if not all(profile.has(name) for name in _GRID):
        return pl.lit(None, pl.Int64)
    return pl.fold(pl.lit(1, pl.Int64), lambda a, b: a * b.cast(pl.Int64), [pl.col(name) for name in _GRID])


def _ctas(profile: Profile) -> dict[str, int] | None:
    """CTAs of all launches by kernel; None if some launch's grid is not known."""
    launches = profile.launches.select(pl.col("name").cast(pl.String), _grids(profile).alias("ctas"))
    if launches["ctas"].null_count():
        return None
    return dict(launches.group_by("name").agg(pl.col("ctas").sum()).sort("name").iter_rows())


def _streams(profile: Profile) -> int | None:
    if not profile.has("stream") or profile.launches["stream"].null_count():
        return None
    return profile.launches["stream"].n_unique()


def _order(profile: Profile, choice: Choice, times: npt.NDArray[np.float64]) -> pl.DataFrame | None:
    """What each launch waits for, if there are several streams and it is known."""
    if (_streams(profile) or 0) < 2 or not profile.has("after") or profile.launches["after"].null_count():
        return None
    launches = profile.launches["launch"]
    waits = profile.launches.select("launch", "after").explode("after")
    # A part of a profile may lack some.
    waits = (
        waits.filter(pl.col("after").is_in(launches.implode())).group_by("launch").agg(pl.col("after").sort())
    )
    frame = profile.launches.drop("after").join(waits, on="launch", how="left", maintain_order="left")
    return frame.select(
        "launch",
        pl.col("name").cast(pl.String),
        pl.Series("stratum", choice.strata),
        pl.Series("time_ns", times),
        _grids(profile).alias("ctas"),
        "stream",
        pl.col("after").fill_null([]),
    )
