"""The constants of systematic sampling, and the page that lists them."""

from __future__ import annotations

from dataclasses import Field, fields
from pathlib import Path

import pytest

from simt.control.systematic.constants import CONSTANTS, SystematicConstants

PAGE = Path(__file__).resolve().parents[2] / "docs" / "control" / "systematic.md"


def row(field: Field[float]) -> str:
    described = (field.metadata[name] for name in ("unit", "meaning", "source"))
    return f"| `{field.name}` | {getattr(CONSTANTS, field.name):g} | {' | '.join(described)} |"


@pytest.mark.parametrize("field", fields(SystematicConstants), ids=lambda field: field.name)
def test_each_has_a_unit_a_meaning_and_a_source(field: Field[float]) -> None:
    assert all(field.metadata[name] for name in ("unit", "meaning", "source"))


def test_the_page_has_all_of_them_in_order() -> None:
    _, _, section = PAGE.read_text().partition("\n## Constants\n")
    section, _, _ = section.partition("\n## ")
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    assert rows == [row(field) for field in fields(SystematicConstants)]
