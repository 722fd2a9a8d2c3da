"""Parts of self-contained HTML pages: sections, tiles and tables that a click on a column's head sorts."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from simt.result.display import kernel_label
from simt.result.report import STYLE, STYLE_MARK

TEMPLATE = Path(__file__).with_name("page.html")
BODY_MARK, TITLE_MARK = "<!--BODY-->", "<!--TITLE-->"

# Text, and the number by which a column is sorted (None sorts by the text).
Cell = tuple[str, "float | None"]


def page(title: str, about: str, source: str, parts: Sequence[str]) -> str:
    """The page as text.

    title, about: its heading, the second part set back. source: where its data come from.
    """
    header = (
        f"<header><h1>{text(title)} <span>{text(about)}</span></h1>"
        f'<span class="input" title="{text(source)}">{text(source)}</span>'
        f'<button id="theme">light / dark</button></header>'
    )
    template = TEMPLATE.read_text(encoding="utf-8").replace(STYLE_MARK, STYLE.read_text(encoding="utf-8"))
    template = template.replace(TITLE_MARK, text(title))
    return template.replace(BODY_MARK, "\n".join([header, *parts]))


def text(value: str) -> str:
    return html.escape(value)


def tiles(values: Sequence[tuple[str, str]]) -> str:
    """Figures and what each is."""
    listed = "".join(
        f'<div class="tile"><b>{text(value)}</b><span>{text(label)}</span></div>' for value, label in values
    )
    return f'<div class="tiles">{listed}</div>'


def say(sentences: Sequence[str]) -> str:
    return f'<section class="say">{"".join(f"<p>{text(s)}</p>" for s in sentences)}</section>'


def warnings(lines: Sequence[str]) -> str:
    listed = "".join(f"<li>{text(line)}</li>" for line in lines)
    return f'<section class="warn"><h2>Warnings</h2><ul>{listed}</ul></section>'


def facts(values: Mapping[str, str]) -> str:
    """Names and values."""
    return f"<dl>{''.join(f'<dt>{text(k)}</dt><dd>{text(v)}</dd>' for k, v in values.items())}</dl>"


def section(title: str, note: str, body: str) -> str:
    described = f'<p class="note">{text(note)}</p>' if note else ""
    return f"<section><h2>{text(title)}</h2>{described}{body}</section>"


def table(header: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    """The first column is a name; others are numbers, or text where the first row has no number."""
    is_text = [value is None for _, value in rows[0]] if rows else [False] * len(header)
    head = "".join(f"<th{' class=t' * t}>{text(name)}</th>" for name, t in zip(header, is_text, strict=True))
    body = "".join(f"<tr>{''.join(_cell(i, cell) for i, cell in enumerate(row))}</tr>" for row in rows)
    search = '<div class="search"><input type="search" placeholder="search"></div>' if len(rows) > 15 else ""
    shown = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'{search}<div class="scroll tall">{shown}</div>'


def bars(rows: Sequence[tuple[str, Sequence[tuple[str, float]], str]], most: float) -> str:
    """A bar per row, of (state of warps, value) each; `most` is the value of the full width.

    rows: name, parts, and the text behind the bar.
    """
    found = ""
    states: dict[str, None] = {}
    for name, parts, value in rows:
        inner = ""
        for state, n in parts:
            if n > 0 and most > 0:
                states[state] = None
                told = text(f"{_words(state)}: {n:,.3g}")
                width = f"width:{100 * n / most:.3f}%"
                inner += f'<i style="{width};background:{_colour(state)}" title="{told}"></i>'
        bar = f'<div class="bar">{inner}</div><span class="v">{text(value)}</span>'
        found += f'<span class="n">{text(name)}</span>{bar}'
    legend = "".join(
        f'<span><i style="background:{_colour(state)}"></i>{text(_words(state))}</span>' for state in states
    )
    return f'<div class="bars">{found}</div><div class="legend">{legend}</div>'


def _words(state: str) -> str:
    return state.replace("_", " ")


def _colour(state: str) -> str:
    """As page.css has it."""
    return f"var(--state-{re.sub('[^a-z_]', '', state)},var(--faint))"


def _cell(i: int, cell: Cell) -> str:
    shown, number = cell
    if number is not None:
        return f'<td data-v="{number:.12g}">{text(shown)}</td>'
    if i == 0:  # a kernel's name
        return f'<td class="t name" title="{text(shown)}">{text(kernel_label(shown, 64))}</td>'
    return f'<td class="t why">{text(shown)}</td>'
