"""The common check detects faulty samplers."""

from __future__ import annotations

import numpy as np
import pytest

from simt.errors import PlanError
from simt.parameter_checks import integer
from simt.profile import Profile
from simt.sampling import Choice, Sampler, check_sampler


class Every(Sampler):
    """Every n-th launch, from the first. A typical user-written sampler; the subclasses below break it."""

    method = "every"

    def __init__(self, n: int = 4) -> None:
        self.n = n

    def choose(self, profile: Profile) -> Choice:
        return self.made(profile, np.arange(0, len(profile), integer("n", self.n, 1)))

    def made(self, profile: Profile, rows: np.ndarray) -> Choice:
        return Choice(
            strata=np.zeros(len(profile), np.int64),
            rows=rows,
            draws=np.ones(len(rows), np.int64),
            weights=np.full(len(rows), len(profile) / len(rows)),
            names=["all"],
            why=["every n-th"],
        )


class Accepts(Every):
    """Ignores its parameter."""

    def choose(self, profile: Profile) -> Choice:
        return self.made(profile, np.arange(0, len(profile), 4))


class Crashes(Every):
    """Raises another exception than ours for an invalid parameter."""

    def choose(self, profile: Profile) -> Choice:
        return self.made(profile, np.arange(0, len(profile), int(self.n)))


class Counts(Every):
    """Chooses differently each time."""

    calls = 0

    def choose(self, profile: Profile) -> Choice:
        Counts.calls += 1
        return self.made(profile, np.arange(Counts.calls % 2, len(profile), integer("n", self.n, 1)))


class Changes(Every):
    def choose(self, profile: Profile) -> Choice:
        n = integer("n", self.n, 1)
        self.n = n + 1
        return self.made(profile, np.arange(0, len(profile), n))


class NeedsMany(Every):
    def choose(self, profile: Profile) -> Choice:
        if len(profile) < 3:
            raise PlanError("too few")
        return super().choose(profile)


class EmptyStratum(Every):
    def choose(self, profile: Profile) -> Choice:
        choice = super().choose(profile)
        choice.names.append("nothing")
        choice.why.append("no reason")
        return choice


class Overweight(Every):
    def made(self, profile: Profile, rows: np.ndarray) -> Choice:
        choice = super().made(profile, rows)
        choice.weights[0] += 1
        return choice


def test_a_users_sampler_passes() -> None:
    check_sampler(Every())
    check_sampler(Every(1))


@pytest.mark.parametrize(
    ("sampler", "words"),
    [
        (Accepts(), "n=.* is accepted"),
        (Crashes(), "n=.* raises"),
        (Counts(), "returns a different plan"),
        (Changes(), "fit changes the parameters"),
        (NeedsMany(), "one launch: PlanError"),
        (EmptyStratum(), "strata are"),
        (Overweight(), "add up to 21"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_broken_sampler_is_found_out(sampler: Sampler, words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        check_sampler(sampler)
