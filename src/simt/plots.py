"""Common parts of all plots: colours, files, and SVG for HTML pages."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib

from simt.errors import PlanError
from simt.files import replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Colours of the HTML pages in their light theme, by the name of the CSS variable that has each.
_PAGE = dict(
    re.findall(r"--(\w+):(#\w+)", (Path(__file__).parent / "pages" / "page.css").read_text().split("}")[0])
)
INK = {name: _PAGE[name] for name in ("ink", "soft", "faint", "line", "card")}
# In the order in which the series of a plot get them.
SERIES = {
    name: _PAGE[name]
    for name in ("blue", "orange", "aqua", "violet", "yellow", "magenta", "green", "red", "teal")
}
# The same figure is the same file: no dates, no random ids.
SAME: dict[Any, Any] = {"svg.hashsalt": "simt"}
METADATA: dict[str, dict[str, None]] = {
    ".png": {},
    ".svg": dict.fromkeys(("Date", "Creator", "Format", "Type")),
    ".pdf": {"CreationDate": None},
}


def save(figure: Figure, path: Path) -> None:
    """Writes a figure, whole or not at all. Raises PlanError if the name's ending is not a known format."""
    if path.suffix not in METADATA:
        raise PlanError(f"{path}: expected a name that ends in {', '.join(METADATA)}")
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary, matplotlib.rc_context(SAME):
        figure.savefig(temporary, format=path.suffix[1:], dpi=150, metadata=METADATA[path.suffix])


def inline_svg(figure: Figure) -> str:
    """The figure as SVG for an HTML page, in the page's colours, light and dark."""
    text = io.StringIO()
    with matplotlib.rc_context({**SAME, "svg.fonttype": "none"}):
        figure.savefig(text, format="svg", transparent=True, metadata=METADATA[".svg"])
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    for name, color in {**INK, **SERIES}.items():
        svg = svg.replace(color, f"var(--{name})")
    return svg
