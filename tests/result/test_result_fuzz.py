"""Saved Results that nobody has saved so: a SimtError, or a Result with which everything works.

SIMT_FUZZ_SECONDS=1200 for as long as that, of each.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

import simt
from simt.errors import SimtError
from simt.result import Result, difference, perfetto, report, sentences
from simt.result.tables import TABLES
from support.fake_gpu import installed
from support.hostile import attempts, damaged, mutant


@pytest.fixture(scope="module")
def whole() -> Result:
    with installed():
        return simt.simulate("input", timeline=500, kernels="1-2")


def use(result: Result, other: Result) -> None:
    """All that can be done with a Result."""
    repr(result)
    result._repr_html_()
    sentences(result)
    report.page(result)
    json.dumps(perfetto.events(result), allow_nan=False)
    json.dumps(result.to_json(detail=True), allow_nan=False).encode()
    for table in TABLES:
        result.to_polars(table)
    for first, second in zip(result.launches, other.launches, strict=False):
        str(difference(first, second))


@pytest.mark.slow
@pytest.mark.parametrize("form", ["rows", "columns", "bytes"])
def test_hostile_results(whole: Result, tmp_path: Path, form: str) -> None:
    saved = json.loads(whole.save(tmp_path / "whole.json").read_text())
    data = whole.to_json(detail=True) if form == "rows" else saved
    text = json.dumps(data).encode()
    chance, file = random.Random(form), tmp_path / "hostile.json"
    seen, good = 0, 0
    for seen in attempts(500):
        made = damaged(text, chance) if form == "bytes" else json.dumps(mutant(data, chance)).encode()
        file.write_bytes(made)
        try:
            result = Result.load(file)
        except SimtError as error:
            assert str(error).startswith(str(file))
            continue
        good += 1
        try:
            use(result, whole)
        except SimtError:
            continue
        except Exception as error:
            kept = tmp_path / "hostile.json"
            kept.write_bytes(made)
            raise AssertionError(f"mutant {seen}, kept in {kept}: {error!r}") from error
    print(f"{form}: {seen} mutants, {good} loaded")
    assert seen > good
