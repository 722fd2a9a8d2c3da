"""The documentation has five kinds of pages, and the map on its first page is its navigation."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml", reason="PyYAML comes with MkDocs: pip install 'simt[docs]'")
ROOT = Path(__file__).parents[2]
KINDS = ["Tutorial", "How-to", "Reference", "Explanation", "Records"]


class _Loader(yaml.SafeLoader):
    """Reads mkdocs.yml, whose tags name Python's objects, which do not matter here."""


_Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda loader, suffix, node: None)


def pages(entry: Any) -> list[str]:
    if isinstance(entry, str):
        return [entry]
    return [page for part in (entry.values() if isinstance(entry, dict) else entry) for page in pages(part)]


def test_the_map_is_the_navigation() -> None:
    with (ROOT / "mkdocs.yml").open(encoding="utf-8") as file:
        home, *kinds = yaml.load(file, _Loader)["nav"]
    assert pages(home) == ["index.md"]
    navigation = {name: pages(below) for kind in kinds for name, below in kind.items()}
    assert list(navigation) == KINDS
    _, *sections = re.split(
        r"^## ", (ROOT / "docs" / "index.md").read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    shown = {
        section.split("\n", 1)[0]: [
            link.lower().removeprefix("../") if link.startswith("../") else link
            for link in re.findall(r"^- \[[^]]+\]\(([^)]+)\)", section, re.MULTILINE)
        ]
        for section in sections
    }
    assert shown == navigation


# machine-code.md has measurements of its own.
STATES_THE_PRESENT = [
    page
    for page in [
        ROOT / "README.md",
        ROOT / "ARCHITECTURE.md",
        ROOT / "CONTRIBUTING.md",
        *ROOT.glob("docs/**/*.md"),
    ]
    if page.parent.name != "records" and page.name != "machine-code.md"
]
MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
DIARY = re.compile(
    rf"\b\d{{1,2}} (?:{MONTHS}) 20\d\d\b"
    r"|\b(?:first|second|third|last) looks?\b|\bevening\b|\byesterday\b|\bwe found\b",
    re.IGNORECASE,
)


@pytest.mark.parametrize("page", STATES_THE_PRESENT, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_was_measured_on_a_day_is_in_the_records(page: Path) -> None:
    found = [
        f"{number}: {line}"
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1)
        if DIARY.search(line)
    ]
    assert not found, "move measurements with their dates to docs/records:\n" + "\n".join(found)
