"""Tables on screen."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from simt.formatting import format_time, plural
from simt.names import printable
from simt.result import Result, sentences
from simt.result.launch_table import LEFT, launch_rows

GAP = 2  # blanks between columns
LEAST = 24  # minimum width of a column of text on a narrow terminal


def print_table(
    console: Console, header: Sequence[str], rows: Sequence[Sequence[str]], left: Collection[int]
) -> None:
    """Prints a table; the columns `left` are text.

    Lines written to a pipe are not cut. On a narrow terminal, columns of text are cut; if that is not enough,
    the columns are printed in blocks, each with the first column.
    """
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    room = console.width if console.is_terminal else sum(widths) + GAP * len(widths)
    for i in sorted(left, key=lambda i: -widths[i]):
        excess = sum(widths) + GAP * (len(widths) - 1) - room
        widths[i] -= max(0, min(excess, widths[i] - LEAST))
    screen = Console(file=console.file, width=max(room, max(widths)), force_terminal=console.is_terminal)
    for n, block in enumerate(_blocks(widths, room)):
        table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, GAP, 0, 0))
        for i in block:
            justify = "left" if i in left else "right"
            table.add_column(
                Text(header[i]),
                justify=justify,  # type: ignore[arg-type]
                width=widths[i],
                no_wrap=True,
                overflow="ellipsis",
            )
        for row in rows:
            table.add_row(*(Text(row[i]) for i in block))
        if n:
            screen.print()
        screen.print(table, highlight=False, markup=False)


def _blocks(widths: Sequence[int], room: int) -> list[list[int]]:
    """Columns that fit side by side; every block begins with column 0."""
    blocks = [[0]]
    used = widths[0]
    for i, width in enumerate(widths[1:], 1):
        if used + GAP + width > room and len(blocks[-1]) > 1:
            blocks.append([0])
            used = widths[0]
        blocks[-1].append(i)
        used += GAP + width
    return blocks


def show_result(result: Result, console: Console) -> None:
    """Prints the launches of a Result, and what is to be said of it."""
    header, rows = launch_rows(result, limit=20)
    print_table(console, header, rows, LEFT)
    if not console.is_terminal:
        console = Console(file=console.file, width=200)
    t, wall = result.totals, result.provenance.wall_seconds
    speed = f" in {wall:.1f} s" if wall else ""
    console.print(
        f"\n{plural(t.launches, 'launch')} on {result.machine.name}: {t.cycles:,} cycles "
        f"({format_time(t.seconds)}), "
        f"{t.warp_instructions:,} warp instructions, simulated{speed}",
        highlight=False,
        markup=False,
    )
    for text in (*sentences(result), *result.confidence.lines):
        console.print(printable(text), highlight=False, markup=False, soft_wrap=True)
    for text in result.warnings:
        console.print(
            f"warning: {printable(text)}", style="yellow", highlight=False, markup=False, soft_wrap=True
        )
