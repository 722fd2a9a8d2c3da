"""Tables wider than the terminal."""

from __future__ import annotations

import io
import re

from rich.console import Console

from simt.cli.tables import print_table

HEADER = ["name", "first", "second", "why"]
ROWS = [["n" * 30, "12,345,678", "9.9 ms", "because " * 6], ["m", "1", "2 s", ""]]


def printed(width: int | None) -> list[str]:
    file = io.StringIO()
    console = Console(file=file, width=width, force_terminal=width is not None, color_system=None)
    print_table(console, HEADER, ROWS, (0, 3))
    plain = re.sub("\x1b\\[[0-9;]*m", "", file.getvalue())
    return [line.rstrip() for line in plain.splitlines()]


def test_a_pipe_gets_whole_lines() -> None:
    lines = printed(None)
    assert len(lines) == 3
    assert lines[1].split() == ["n" * 30, "12,345,678", "9.9", "ms", *["because"] * 6]


def test_text_gives_way_first() -> None:
    lines = printed(80)
    assert len(lines) == 3 and max(map(len, lines)) <= 80
    assert "12,345,678" in lines[1] and "9.9 ms" in lines[1] and lines[1].endswith("…")


def test_columns_follow_in_blocks_with_the_first_one() -> None:
    lines = printed(52)
    assert max(map(len, lines)) <= 52
    assert [line.split()[0] for line in lines if line] == ["name", "n" * 23 + "…", "m"] * (len(lines) // 3)
    text = "\n".join(lines)
    assert "12,345,678" in text and "9.9 ms" in text
