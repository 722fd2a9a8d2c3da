"""Published measurements and simulations, as tables of programs.

Each CSV file in the folder `published` names its source in its first line.
"""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).with_name("published")


def published() -> dict[str, str]:
    """Name of each table, and its source."""
    return {
        path.stem: path.read_text(encoding="utf-8").split("\n")[0] for path in sorted(FOLDER.glob("*.csv"))
    }


def published_path(path: Path) -> Path:
    """The file of a published table if `path` is its name and no such file exists; otherwise `path`."""
    return FOLDER / f"{path}.csv" if str(path) in published() and not path.exists() else path
