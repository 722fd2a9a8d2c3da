"""Chooses kernels of an input by id, range or name."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from simt.errors import SelectionError
from simt.names import short_name

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


def select(kernels: Sequence[Named], selection: Selection) -> list[int]:
    """Positions of the chosen kernels, in order.

    `selection` is None (all), or a comma-separated list (or an iterable) of

    - ids and ranges of ids, both ends included: `5`, `3-7`, `12-`, `-4`;
    - `name~gemm`: names that contain the text;
    - names: a glob (`*gemm*`; without `*`, `?` or `[`, the whole name, mangled or as returned by
      `short_name`), or a regular expression searched in the name, between slashes: `/gemm_\\d+/`. A comma
      inside a regular expression does not separate.

    Raises SelectionError for a part that cannot be parsed or that no kernel matches.
    """
    text = canonical(selection)
    if text is None:
        return list(range(len(kernels)))
    chosen: set[int] = set()
    for part, matches in matchers(text).items():
        found = {i for i, kernel in enumerate(kernels) if matches(kernel)}
        if not found:
            raise SelectionError(
                f"kernels: {part!r} matches none of the {len(kernels)} kernels{_examples(kernels)}"
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


def matchers(text: str) -> dict[str, Callable[[Named], bool]]:
    """The parts of a selection, and what says whether a kernel matches. Raises SelectionError."""
    return {part: _matcher(part) for part in _split(text)}


def _split(text: str) -> list[str]:
    parts = [part.strip() for part in re.findall(r"\s*/(?:[^/\\]|\\.)*/|[^,]+", text)]
    parts = [part for part in parts if part]
    if not parts:
        raise SelectionError(
            f"kernels: nothing selected by {text!r}, expected ids, ranges or names such as '3-7,*gemm*'"
        )
    return parts


def _matcher(part: str) -> Callable[[Named], bool]:
    ids = re.fullmatch(r"(\d*)(-?)(\d*)", part)
    if ids and (ids[1] or ids[3]):
        low = int(ids[1]) if ids[1] else 0
        high = int(ids[3]) if ids[3] else None if ids[2] else low
        if high is not None and high < low:
            raise SelectionError(f"kernels: range {part!r} ends before it begins")
        return lambda kernel: low <= kernel.id and (high is None or kernel.id <= high)
    if len(part) >= 2 and part.startswith("/") and part.endswith("/"):
        try:
            expression = re.compile(part[1:-1])
        except re.error as error:
            raise SelectionError(f"kernels: {part!r} is not a regular expression: {error}") from error
        return lambda kernel: expression.search(kernel.name) is not None
    if part.startswith("name~"):
        contained = part.removeprefix("name~")
        if not contained:
            raise SelectionError(f"kernels: {part!r} has no text after name~, expected one such as name~gemm")
        return lambda kernel: contained in kernel.name or contained in short_name(kernel.name)
    return lambda kernel: any(
        fnmatch.fnmatchcase(name, part) for name in (kernel.name, short_name(kernel.name))
    )


def _examples(kernels: Sequence[Named]) -> str:
    if not kernels:
        return ""
    ids = sorted(kernel.id for kernel in kernels)
    names = list(dict.fromkeys(short_name(kernel.name) for kernel in kernels))
    shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
    return f" (ids {ids[0]} to {ids[-1]}, names {shown})"
