"""Common parts of all plots: colours, files, and SVG for HTML pages."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib

from simt.errors import PlanError
from simt.files import replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Colours of the HTML pages, by the name of the CSS variable that has each.
INK = {"ink": "#16181d", "soft": "#5b6069", "faint": "#8d929b", "line": "#e4e4df", "card": "#ffffff"}
SERIES = {
    "blue": "#2a78d6",
    "orange": "#eb6834",
    "aqua": "#1baf7a",
    "violet": "#4a3aa7",
    "yellow": "#eda100",
    "magenta": "#e87ba4",
    "green": "#008300",
    "red": "#e34948",
    "teal": "#0f8a94",
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
