"""Checks of the parameters of samplers and controllers.

A ParameterError names the parameter, what was found and what was expected.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

from simt.errors import ParameterError
from simt.methods import Method


def refuse(name: str, value: Any, expected: str) -> ParameterError:
    """The error to raise."""
    return ParameterError(f"{name} is {value!r}, expected {expected}")


def one_of(name: str, value: Any, choices: Sequence[str]) -> str:
    """One of some words."""
    if isinstance(value, str) and value in choices:
        return value
    raise refuse(name, value, "one of " + ", ".join(choices))


def real(
    name: str,
    value: Any,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    open_low: bool = False,
    open_high: bool = False,
) -> float:
    """A finite number from low to high, without the bounds that are open."""
    if isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value):
        number = float(value)
        above = number > low or (number == low and not open_low)
        if above and (number < high or (number == high and not open_high)):
            return number
    bounds = []
    if low > -math.inf:
        bounds.append(f"{'above' if open_low else 'from'} {low:g}")
    if high < math.inf:
        bounds.append(f"{'below' if open_high else 'up to'} {high:g}")
    raise refuse(name, value, " ".join(["a number", *bounds]))


def integer(name: str, value: Any, low: int | None = None) -> int:
    """A whole number, of at least `low`."""
    if isinstance(value, Integral) and not isinstance(value, bool) and (low is None or int(value) >= low):
        return int(value)
    raise refuse(name, value, "a whole number" + (f" of {low} or more" if low is not None else ""))


def valid_method(name: str, value: Any, kind: type[Method]) -> None:
    """A method whose own parameters make sense; `kind` says which."""
    if not isinstance(value, kind):
        raise refuse(name, value, f"a {kind.__name__}")
    value.validate()


def boolean(name: str, value: Any) -> bool:
    """True or False."""
    if isinstance(value, bool):
        return value
    raise refuse(name, value, "True or False")
