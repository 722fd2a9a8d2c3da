"""How mkdocstrings reads this project's docstrings.

They are plain Markdown, but for lines `name: what it means` (or `a, b: ...`), indented where they go on: each
becomes an item of a list.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_ENTRY = re.compile(r"^(?=[a-z_])(\w+(?:, \w+)*): (?=\S)")


def listed(text: str) -> str:
    """The docstring with its lines on parameters and fields as a Markdown list."""
    lines: list[str] = []
    inside = False
    for line in text.splitlines():
        entry = _ENTRY.match(line)
        if entry:
            if lines and lines[-1] and not inside:
                lines.append("")
            names = ", ".join(f"`{name}`" for name in entry[1].split(", "))
            line = f"- {names}: {line[entry.end() :]}"
        elif inside and line and not line.startswith(" "):
            lines.append("")
        inside = bool(entry) or (inside and line.startswith(" "))
        lines.append(line)
    return "\n".join(lines)


class Docstrings(griffe.Extension):
    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = listed(obj.docstring.value)
