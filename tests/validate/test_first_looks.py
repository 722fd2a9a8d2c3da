"""First looks: what README and the pages quote is what was entered."""

from __future__ import annotations

import datetime
import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location("first_looks", ROOT / "validation/first_looks.py")
assert spec is not None and spec.loader is not None
first_looks = importlib.util.module_from_spec(spec)
spec.loader.exec_module(first_looks)

KNOWN = {"name", "date", "commit", "by", "rows", "mean_error", "within_20_percent", "bias", "note"}


@pytest.mark.parametrize("each", first_looks.sets(), ids=lambda each: each["name"])
def test_an_entry_says_when_by_whom_and_how_far(each: dict[str, object]) -> None:
    assert set(each) <= KNOWN
    assert {"name", "date", "commit", "by", "rows", "mean_error"} <= set(each)
    assert isinstance(each["date"], datetime.date)
    assert re.fullmatch("[0-9a-f]{8}", str(each["commit"]))
    assert each["by"] in ("others", "ourselves")


def test_the_page_has_the_table() -> None:
    page = (ROOT / "docs/records/blind-comparisons.md").read_text()
    assert first_looks.table() in page


def test_readme_quotes_what_others_found() -> None:
    readme = (ROOT / "README.md").read_text()
    for each in first_looks.sets():
        if each["by"] == "others":
            row = next(line for line in readme.splitlines() if f"{each['mean_error']} %" in line)
            assert row.rstrip(" |").endswith(f" {each['rows']}")
