"""What any method must hold as far as its parameters go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from simt.errors import SimtError

from .method import Method, clone

T = TypeVar("T", bound=Method)
_SENSELESS: tuple[Any, ...] = (object(), "no such value", float("nan"), [object()])


def expect(holds: bool, what: str) -> None:
    """Raises AssertionError with `what` unless it holds."""
    if not holds:
        raise AssertionError(what)


def check_parameters(method: T, use: Callable[[T], object]) -> None:
    """Raises AssertionError unless the constructor only stores its parameters, and nonsense is refused.

    use: whatever validates the parameters; it is given clones. SimtError is expected for nonsense.
    """
    try:
        parameters = method.get_params(deep=False)
    except SimtError as error:
        raise AssertionError(str(error)) from error
    for name, value in clone(method).get_params(deep=False).items():
        expect(
            repr(value) == repr(parameters[name]), f"a clone has {name}={value!r}, not {parameters[name]!r}"
        )
    other = clone(method).set_params(**parameters)
    expect(repr(other) == repr(method), "set_params with what get_params gives changes a parameter")
    expect(
        not [name for name in vars(clone(method)) if name.endswith("_")],
        "the constructor sets what only use may learn: an attribute that ends in an underscore",
    )
    for name in parameters:
        for value in _SENSELESS:
            try:
                changed = clone(method).set_params(**{name: value})
            except Exception as error:
                raise AssertionError(f"{name}={value!r} cannot be set: {error!r}") from error
            try:
                use(changed)
            except SimtError:
                continue
            except Exception as error:
                raise AssertionError(f"{name}={value!r} raises {error!r} instead of a SimtError") from error
            raise AssertionError(f"{name}={value!r} is accepted")
