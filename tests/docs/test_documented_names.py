"""Names of the package that README and docs mention exist."""

from __future__ import annotations

import pkgutil
import re
from pathlib import Path

import pytest

import simt
from simt.errors import SimtError

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")]
)
_NAME = re.compile(r"(?<![\w.\"/-])simt(?:\.[A-Za-z_]\w*)+(?![\w/-])")
"""Neither a file nor a schema, such as simt.plan-1."""
_NOT_NAMES = re.compile(r"^::: .*$|\]\([^)]*\)", re.MULTILINE)
"""Where mkdocstrings finds a source, and links."""


def names(page: Path) -> set[str]:
    return set(_NAME.findall(_NOT_NAMES.sub("", page.read_text(encoding="utf-8"))))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_names_exist(page: Path) -> None:
    missing = []
    for name in sorted(names(page)):
        try:
            pkgutil.resolve_name(name)
        except (AttributeError, ImportError):
            missing.append(name)
        except SimtError as error:  # needs an extra, and says which
            assert "pip install" in str(error)
    assert missing == []


def test_import_of_the_package_gives_every_name_of_the_interface() -> None:
    listed = set(re.findall(r"`simt\.(\w+)`", (ROOT / "docs/api/README.md").read_text(encoding="utf-8")))
    assert {"GPU", "exec", "power", "sass", "simulate"} <= listed
    assert listed == (set(simt.__all__) | {"exec", "torch"}) - {"__version__", "ProgramFault", "SimtError"}
    for name in listed - {"torch"}:
        getattr(simt, name)


def test_a_name_that_does_not_exist_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "`simt.GPU`, [file](simt.toml), `simt.plan-1`, `simt.tuning/1` and `simt.nothing.here`.\n"
    )
    assert names(page) == {"simt.GPU", "simt.nothing.here"}
