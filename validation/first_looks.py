"""Prints first_looks.toml as the table of docs/records/blind-comparisons.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

try:
    import tomllib
except ImportError:  # Python 3.10
    import tomli as tomllib  # type: ignore[no-redef]

FILE = Path(__file__).parent / "first_looks.toml"
COLUMNS = ("rows", "date", "commit", "by", "number", "mean error", "within 20 %", "bias", "notes")


def sets() -> list[dict[str, Any]]:
    """The entries, the oldest first. Those of one day stay in the order of the file."""
    found: list[dict[str, Any]] = tomllib.loads(FILE.read_text())["set"]
    return sorted(found, key=lambda each: each["date"])


def table() -> str:
    """The entries as a table in Markdown."""
    lines = ["| " + " | ".join(COLUMNS) + " |", "|---" * len(COLUMNS) + "|"]
    for each in sets():
        within, bias = each.get("within_20_percent"), each.get("bias")
        cells = [
            each["name"],
            each["date"].isoformat(),
            f"`{each['commit']}`",
            each["by"],
            str(each["rows"]),
            f"{each['mean_error']} %",
            "" if within is None else f"{within} %",
            "" if bias is None else f"{bias:+} %",
            each.get("note", ""),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
