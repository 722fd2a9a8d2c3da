"""Samplers and controllers from their names and from settings given as text."""

from __future__ import annotations

import ast
import inspect
import os
import sys
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any, TypeVar, get_args, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError

from simt.hints import did_you_mean

from .method import Method

T = TypeVar("T", bound=Method)


def find_class(name: str, methods: Mapping[str, str], base: type[T], error: type[Exception]) -> type[T]:
    """The class of a method by its name in `methods` (whose values are `package.module:Class`), or of one's
    own given as `package.module:Class`. Raises `error` where there is none."""
    if name in methods:
        return _load(methods[name], base, error)
    if ":" in name:
        return _load(name, base, error)
    hint = did_you_mean(name, methods) or "."
    raise error(f"no method {name!r}{hint} There are {', '.join(methods)}; your own: `package.module:Class`")


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
        raise kind(f"{place}: not a subclass of {base.__module__.rpartition('.')[0]}.{base.__name__}")
    return found


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
    """A method from its constructor parameters.

    settings: texts `parameter=value`, with Python's literals (`0.02`, `none`, `["a", "b"]`) or bare words.
        `outer__inner=value` is a parameter of the method that is the parameter `outer`.
    given: further parameters. method: what messages call the class.

    Raises `error` where a parameter does not exist or has another type.
    """
    values = dict(given)
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals:
            raise error(f"{setting!r}: expected parameter=value")
        values[key.strip().replace("-", "_")] = _value(text.strip())
    return _made(method, kind, values, error)


def _made(method: str, kind: type[T], values: Mapping[str, Any], error: type[Exception]) -> T:
    hints, known = _hints(kind), kind.parameters()
    own: dict[str, Any] = {}
    nested: dict[str, dict[str, Any]] = {}
    for key, value in values.items():
        outer, _, inner = key.partition("__")
        if outer not in known or (inner and _nested_method(hints.get(outer)) is None):
            there = ", ".join(_names(kind)) or "none"
            raise error(f"{method} has no parameter {key!r}, it has {there}")
        if inner:
            nested.setdefault(outer, {})[inner] = value
        else:
            own[outer] = _checked(method, outer, hints.get(outer, Any), value, error)
    for outer, inside in nested.items():
        made = _nested_method(hints[outer])
        assert made is not None
        own[outer] = _made(f"{method} {outer}", made, inside, error)
    return kind(**own)


def _names(kind: type[Method]) -> list[str]:
    """Parameters, each followed by those of the method that it is."""
    hints = _hints(kind)
    found = []
    for name in kind.parameters():
        inner = _nested_method(hints.get(name))
        found += [name, *(f"{name}__{each}" for each in (_names(inner) if inner else ()))]
    return found


def _nested_method(hint: Any) -> type[Method] | None:
    """The class of a parameter that is a method, such as PKS of `PKS | None`; None for other parameters, and
    for those that may be any method."""
    for kind in (hint, *get_args(hint)):
        if isinstance(kind, type) and issubclass(kind, Method) and not inspect.isabstract(kind):
            return kind
    return None


def _hints(kind: type[Method]) -> dict[str, Any]:
    try:
        return get_type_hints(kind.__init__)
    except NameError:  # names known to a type checker only
        return {}


def _value(text: str) -> Any:
    words = {"none": None, "true": True, "false": False}
    if text.lower() in words:
        return words[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _checked(method: str, key: str, hint: Any, value: Any, error: type[Exception]) -> Any:
    try:
        return TypeAdapter(hint, config=ConfigDict(arbitrary_types_allowed=True)).validate_python(value)
    except ValidationError as refused:
        problem = refused.errors()[0]["msg"]
        raise error(f"{method}: {key} is {value!r}: {problem[0].lower()}{problem[1:]}") from None
