"""Self-contained HTML pages, and fragments for notebooks, from the Jinja2 templates in this folder."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from simt.formatting import kernel_label

if TYPE_CHECKING:
    from jinja2 import Environment

# Text, and the number by which a column is sorted (None sorts by the text).
Cell = tuple[str, "float | None"]


@dataclass(frozen=True)
class Table:
    """A table whose columns a click on the header sorts.

    The first column is a name; the others are numbers, or text where the first row has no number.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]

    @property
    def is_text(self) -> list[bool]:
        """For each column, whether it is text."""
        return [value is None for _, value in self.rows[0]] if self.rows else [False] * len(self.header)


@dataclass(frozen=True)
class Bars:
    """Stacked bars of warp states on one scale.

    rows: for each bar its name, the value of each state, and the text behind it.
    """

    rows: Sequence[tuple[str, Sequence[tuple[str, float]], str]]

    @property
    def most(self) -> float:
        """The value of the full width."""
        return max((sum(value for _, value in parts) for _, parts, _ in self.rows), default=0.0)

    @property
    def states(self) -> list[str]:
        """The states that the legend shows, in the order of their first appearance."""
        shown = (state for _, parts, _ in self.rows for state, value in parts if value > 0)
        return list(dict.fromkeys(shown))


def render(template: str, **values: Any) -> str:
    """The template's text with these values; names that are no Unicode get question marks."""
    return _environment().get_template(template).render(values).encode("utf-8", "replace").decode()


def notebook(
    title: str,
    tables: Sequence[tuple[Sequence[str], Sequence[Sequence[str]], Sequence[int]]],
    notes: Sequence[str] = (),
    warnings: Sequence[str] = (),
) -> str:
    """A fragment for a notebook.

    tables: of each the header, the rows, and the columns that are text; the others are numbers.
    """
    return render("notebook.html", title=title, tables=tables, notes=notes, warnings=warnings)


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    found = Environment(
        loader=PackageLoader("simt.pages", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # JSON has no NaN; the order of the data is kept.
    found.policies["json.dumps_kwargs"] = {
        "allow_nan": False,
        "ensure_ascii": False,
        "separators": (",", ":"),
    }
    found.filters["kernel_label"] = kernel_label
    found.filters["state_colour"] = lambda state: f"var(--state-{re.sub('[^a-z_]', '', state)},var(--faint))"
    return found
