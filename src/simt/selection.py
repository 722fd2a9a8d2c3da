"""Chooses kernels of an input by id, range or name."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from simt.errors import SelectionError
from simt.names import names_of, short_name

_BRACKETS = r"\((?:[^()]|\([^()]*\))*\)|<(?:[^<>]|<[^<>]*>)*>"  # of a C++ declaration
_PART = re.compile(rf"\s*/(?:[^/\\]|\\.)*/|(?:{_BRACKETS}|[^,])+")

Selection = str | int | Iterable["str | int"] | None


class Named(Protocol):
    """Anything that a selection can be applied to."""

    @property
    def id(self) -> int: ...
    @property
    def name(self) -> str: ...


def canonical(selection: Selection) -> str | None:
    """The selection as one string, None for everything."""
    if selection is None:
        return None
    if isinstance(selection, (str, int)):
        return str(selection)
    return ",".join(str(part) for part in selection)


def select(kernels: Sequence[Named], selection: Selection, option: str = "kernels") -> list[int]:
    """Positions of the chosen kernels, in order. option: what the selection was given as, for messages.

    `selection` is None (all), or a comma-separated list (or an iterable) of

    - ids and ranges of ids, both ends included: `5`, `3-7`, `12-`, `-4`;
    - `name~gemm`: names that contain the text;
    - names: a glob (`*gemm*`; without `*`, `?` or `[`, the whole name) for any of the names of
      `simt.names.names_of`, or a regular expression searched in the name or the `short_name`, between
      slashes: `/gemm_\\d+/`. A comma inside a regular expression, or in brackets, does not separate.

    Raises SelectionError for a part that cannot be parsed or that no kernel matches.
    """
    text = canonical(selection)
    if text is None:
        return list(range(len(kernels)))
    chosen: set[int] = set()
    for part, matches in matchers(text, option).items():
        found = {i for i, kernel in enumerate(kernels) if matches(kernel)}
        if not found:
            raise SelectionError(
                f"{option}: {part!r} matches none of the {len(kernels)} kernels{_examples(kernels)}"
            )
        chosen |= found
    return sorted(chosen)


def chooser(selection: Selection) -> Callable[[Named], bool]:
    """Returns a function that says whether a kernel is chosen, for kernels that arrive one by one;
    `selection`
    as in `select`.
    """
    text = canonical(selection)
    if text is None:
        return lambda kernel: True
    parts = matchers(text).values()
    return lambda kernel: any(matches(kernel) for matches in parts)


def matchers(text: str, option: str = "kernels") -> dict[str, Callable[[Named], bool]]:
    """The parts of a selection, and what says whether a kernel matches. option: as in `select`.

    Raises SelectionError.
    """
    return {part: _matcher(part, option) for part in _split(text, option)}


def _split(text: str, option: str) -> list[str]:
    parts = [part.strip() for part in _PART.findall(text)]
    parts = [part for part in parts if part]
    if not parts:
        raise SelectionError(
            f"{option}: nothing selected by {text!r}, expected ids, ranges or names such as '3-7,*gemm*'"
        )
    return parts


def _matcher(part: str, option: str) -> Callable[[Named], bool]:
    ids = re.fullmatch(r"(\d*)(-?)(\d*)", part)
    if ids and (ids[1] or ids[3]):
        low = int(ids[1]) if ids[1] else 0
        high = int(ids[3]) if ids[3] else None if ids[2] else low
        if high is not None and high < low:
            raise SelectionError(f"{option}: range {part!r} ends before it begins")
        return lambda kernel: low <= kernel.id and (high is None or kernel.id <= high)
    matches = name_matcher(part, option)
    if part.startswith(("/", "name~")):
        return lambda kernel: matches(kernel.name) or matches(short_name(kernel.name))
    return lambda kernel: any(map(matches, names_of(kernel.name)))


def name_matcher(part: str, option: str) -> Callable[[str], bool]:
    """Says whether a name matches: a glob, `name~TEXT` or `/regular expression/`, as in `select`.

    Raises SelectionError.
    """
    if len(part) >= 2 and part.startswith("/") and part.endswith("/"):
        try:
            expression = re.compile(part[1:-1])
        except re.error as error:
            raise SelectionError(f"{option}: {part!r} is not a regular expression: {error}") from error
        return lambda name: expression.search(name) is not None
    if part.startswith("name~"):
        contained = part.removeprefix("name~")
        if not contained:
            raise SelectionError(
                f"{option}: {part!r} has no text after name~, expected one such as name~gemm"
            )
        return lambda name: contained in name
    return lambda name: name == part or fnmatch.fnmatchcase(name, part)


def _examples(kernels: Sequence[Named]) -> str:
    if not kernels:
        return ""
    ids = sorted(kernel.id for kernel in kernels)
    names = list(dict.fromkeys(short_name(kernel.name) for kernel in kernels))
    shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
    return f" (ids {ids[0]} to {ids[-1]}, names {shown})"
