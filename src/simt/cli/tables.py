"""Tables on screen."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text


def print_table(
    console: Console, header: Sequence[str], rows: Sequence[Sequence[str]], left: Collection[int]
) -> None:
    """Prints a table; the columns `left` are text. A terminal gets what fits, a pipe whole lines."""
    if not console.is_terminal:
        widths = [max(map(len, column)) + 2 for column in zip(header, *rows, strict=True)]
        console = Console(file=console.file, width=max(80, sum(widths)))
    table = Table(box=None, pad_edge=False, header_style="bold")
    for i, name in enumerate(header):
        justify = "left" if i in left else "right"
        table.add_column(name, justify=justify, no_wrap=True, overflow="ellipsis")  # type: ignore[arg-type]
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console.print(table, highlight=False, markup=False)
