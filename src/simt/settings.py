"""Samplers and controllers from their names and from settings given as text."""

from __future__ import annotations

import ast
import inspect
import os
import sys
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any, TypeVar, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError

from simt.hints import did_you_mean

T = TypeVar("T")


def find_class(name: str, methods: Mapping[str, str], base: type[T], error: type[Exception]) -> type[T]:
    """The class of a method by its name in `methods` (whose values are `package.module:Class`), or of one's
    own given as `package.module:Class`. Raises `error` where there is none."""
    if name in methods:
        return _load(methods[name], base, error)
    if ":" in name:
        return _load(name, base, error)
    hint = did_you_mean(name, methods) or "."
    raise error(
        f"no method {name!r}{hint} There are {', '.join(methods)}; one's own is `package.module:Class`"
    )


def _load(place: str, base: type[T], kind: type[Exception]) -> type[T]:
    module, _, name = place.partition(":")
    here = os.getcwd()
    sys.path.insert(0, here)  # a class in the current directory, as with `python -m`
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise kind(f"{place}: no such class: {error}") from error
    finally:
        sys.path.remove(here)
    if not (isinstance(found, type) and issubclass(found, base)):
        raise kind(f"{place}: is no subclass of {base.__module__.rpartition('.')[0]}.{base.__name__}")
    return found


def parameters(kind: type) -> dict[str, inspect.Parameter]:
    """Constructor parameters of a class, in their order."""
    signature = inspect.signature(kind.__init__).parameters  # type: ignore[misc]
    return {name: parameter for name, parameter in signature.items() if name != "self"}


def summary(kind: type) -> str:
    """First paragraph of a class's documentation, as one line."""
    return " ".join((inspect.getdoc(kind) or "").partition("\n\n")[0].split())


def construct(
    method: str,
    kind: type[T],
    settings: Iterable[str],
    given: Mapping[str, Any],
    error: type[Exception],
) -> T:
    """An object of a class from its constructor parameters.

    settings: texts `parameter=value`, with Python's literals (`0.02`, `none`, `["a", "b"]`) or bare words.
    given: further parameters. method: what messages call the class.

    Raises `error` where a parameter does not exist or has another type.
    """
    values = dict(given)
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals:
            raise error(f"{setting!r}: expected parameter=value")
        values[key.strip().replace("-", "_")] = _value(text.strip())
    known = parameters(kind)
    for key in values:
        if key not in known:
            raise error(f"{method} has no parameter {key!r}, it has {', '.join(known) or 'none'}")
    return kind(**_checked(method, kind, values, error))


def _value(text: str) -> Any:
    words = {"none": None, "true": True, "false": False}
    if text.lower() in words:
        return words[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _checked(method: str, kind: type, values: Mapping[str, Any], error: type[Exception]) -> dict[str, Any]:
    try:
        hints = get_type_hints(kind.__init__)  # type: ignore[misc]
    except NameError:  # names known to a type checker only
        hints = {}
    checked = {}
    for key, value in values.items():
        try:
            adapter = TypeAdapter(hints.get(key, Any), config=ConfigDict(arbitrary_types_allowed=True))
            checked[key] = adapter.validate_python(value)
        except ValidationError as refused:
            problem = refused.errors()[0]["msg"]
            raise error(f"{method}: {key} is {value!r}: {problem[0].lower()}{problem[1:]}") from None
    return checked
