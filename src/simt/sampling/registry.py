"""Samplers by name, with settings given as text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from simt.errors import PlanError
from simt.methods.from_text import construct, find_class
from simt.sampling.sampler import Sampler

# Method -> class. Imported on demand: scikit-learn's models take a second to load.
METHODS = {
    "first-n": "simt.sampling.first_n:FirstN",
    "single-iteration": "simt.sampling.single_iteration:SingleIteration",
    "random": "simt.sampling.random_sample:Random",
    "pks": "simt.sampling.pks:PKS",
    "two-level": "simt.sampling.two_level:TwoLevel",
    "tbpoint": "simt.sampling.tbpoint:TBPoint",
    "sieve": "simt.sampling.sieve:Sieve",
    "stem": "simt.sampling.stem:Stem",
    "root": "simt.sampling.root:Root",
    "neyman": "simt.sampling.neyman:Neyman",
    "adaptive": "simt.sampling.adaptive:Adaptive",
}


def find(method: str) -> type[Sampler]:
    """The class of a method of METHODS, or of a user's own given as `package.module:Class`.

    Raises PlanError if there is none.
    """
    return find_class(method, METHODS, Sampler, PlanError)  # type: ignore[type-abstract]


def make(method: str, settings: Iterable[str] = (), **given: Any) -> Sampler:
    """A sampler from its name and constructor parameters.

    settings: texts `parameter=value`, with Python's literals (`0.02`, `none`, `["a", "b"]`) or bare words.
    given: further parameters; those that are None keep the sampler's default.

    Raises PlanError if a parameter does not exist or has the wrong type.
    """
    values = {key: value for key, value in given.items() if value is not None}
    return construct(method, find(method), settings, values, PlanError)


def lines(text: str) -> list[str]:
    """The parts between commas outside brackets: `root, pks features=["a","b"]` has two."""
    return [part.strip() for part in re.split(r",(?![^\[(]*[\])])", text)]


def from_text(text: str, **given: Any) -> Sampler:
    """A sampler from a line such as `root allocation=leaf`.

    given: parameters that apply unless the line sets them, if the sampler has them.
    """
    method, *settings = text.split()
    known = find(method).parameters()
    return make(
        method,
        settings,
        **{
            key: value
            for key, value in given.items()
            if key in known and not any(s.startswith(f"{key}=") for s in settings)
        },
    )
