"""The methods by name, and samplers made from settings given as text."""

from __future__ import annotations

import ast
import inspect
import os
import re
import sys
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError

from simt.errors import PlanError
from simt.sampling.sampler import Sampler

# Method -> class. Imported when asked for: scikit-learn's models take a second to load.
METHODS = {
    "first-n": "simt.sampling.first_n:FirstN",
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
    """The class of a method of METHODS, or of one's own given as `package.module:Class`.

    Raises PlanError where there is none.
    """
    if method in METHODS:
        return _load(METHODS[method])
    if ":" in method:
        return _load(method)
    close = get_close_matches(method, METHODS, n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    raise PlanError(
        f"no method {method!r}{hint}; there are {', '.join(METHODS)}; one's own is `package.module:Class`"
    )


def _load(place: str) -> type[Sampler]:
    module, _, name = place.partition(":")
    here = os.getcwd()
    sys.path.insert(0, here)  # a sampler in the current directory, as with `python -m`
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise PlanError(f"{place}: no such class: {error}") from error
    finally:
        sys.path.remove(here)
    if not (isinstance(found, type) and issubclass(found, Sampler)):
        raise PlanError(f"{place}: is no subclass of simt.sampling.Sampler")
    return found


def parameters(kind: type[Sampler]) -> dict[str, inspect.Parameter]:
    """Constructor parameters of a sampler, in their order."""
    signature = inspect.signature(kind.__init__).parameters
    return {name: parameter for name, parameter in signature.items() if name != "self"}


def summary(kind: type[Sampler]) -> str:
    """First paragraph of a sampler's documentation, as one line."""
    return " ".join((inspect.getdoc(kind) or "").partition("\n\n")[0].split())


def make(method: str, settings: Iterable[str] = (), **given: Any) -> Sampler:
    """A sampler from its name and constructor parameters.

    settings: texts `parameter=value`, with Python's literals (`0.02`, `none`, `["a", "b"]`) or bare words.
    given: further parameters; those that are None keep the sampler's default.

    Raises PlanError where a parameter does not exist or has another type.
    """
    kind = find(method)
    values = {key: value for key, value in given.items() if value is not None}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals:
            raise PlanError(f"{setting!r}: expected parameter=value")
        values[key.strip().replace("-", "_")] = _value(text.strip())
    known = parameters(kind)
    for key in values:
        if key not in known:
            raise PlanError(f"{method} has no parameter {key!r}, it has {', '.join(known) or 'none'}")
    return kind(**_checked(method, kind, values))


def lines(text: str) -> list[str]:
    """The parts between commas, those in brackets aside: `root, pks features=["a","b"]` are two."""
    return [part.strip() for part in re.split(r",(?![^\[(]*[\])])", text)]


def from_text(text: str, **given: Any) -> Sampler:
    """A sampler from a line such as `root allocation=leaf`.

    given: parameters for it unless the line sets them, and as far as it has them.
    """
    method, *settings = text.split()
    known = parameters(find(method))
    return make(
        method,
        settings,
        **{
            key: value
            for key, value in given.items()
            if key in known and not any(s.startswith(f"{key}=") for s in settings)
        },
    )


def _value(text: str) -> Any:
    words = {"none": None, "true": True, "false": False}
    if text.lower() in words:
        return words[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _checked(method: str, kind: type[Sampler], values: Mapping[str, Any]) -> dict[str, Any]:
    try:
        hints = get_type_hints(kind.__init__)
    except NameError:  # names known to a type checker only
        hints = {}
    checked = {}
    for key, value in values.items():
        try:
            adapter = TypeAdapter(hints.get(key, Any), config=ConfigDict(arbitrary_types_allowed=True))
            checked[key] = adapter.validate_python(value)
        except ValidationError as error:
            problem = error.errors()[0]["msg"]
            raise PlanError(f"{method}: {key} is {value!r}: {problem[0].lower()}{problem[1:]}") from None
    return checked
