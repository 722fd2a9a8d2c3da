"""docs/counters.md matches the table in the code; the version is the same everywhere."""

from __future__ import annotations

from pathlib import Path

import pytest

import simt
from simt.result.counters import COUNTERS, FORMULA_NAMES
from simt.result.counters_doc import render_markdown

ROOT = Path(__file__).parents[2]


def test_document_is_up_to_date() -> None:
    text = (ROOT / "docs" / "counters.md").read_text(encoding="utf-8")
    assert text == render_markdown(), "run: python -m simt.result.counters_doc > docs/counters.md"


@pytest.mark.parametrize("counter", COUNTERS, ids=lambda c: c.name)
def test_every_name_of_a_formula_is_explained(counter: simt.result.Counter) -> None:
    header = (ROOT / "engine" / "stats" / "counters.hpp").read_text(encoding="utf-8")
    plain = {name.split("(")[0] for name in FORMULA_NAMES}
    for name in counter.code.co_names:
        assert name in plain or f"SIMT_COUNTER({name}," in header, name
