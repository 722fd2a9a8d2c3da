"""Programs of other sizes that the papers' scripts make of recipes."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from simt.validate.recipes import MeasuredTable, Recipe, RecipeInput, RecipeSource, Row

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def recipes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "papers" / "scripts"))
    found = importlib.import_module("recipes")
    monkeypatch.setattr(found, "WORK", tmp_path / "work")
    monkeypatch.setenv("SIMT_PROGRAMS", str(tmp_path / "src"))
    (tmp_path / "src" / "suite").mkdir(parents=True)
    text = "#define NI 4096\n# define NJ\t2048 // columns\n#define NIL 7\nint x = NI;\n"
    (tmp_path / "src" / "suite" / "a.cu").write_text(text)
    return found


def row(**more: Any) -> Row:
    source = RecipeSource("suite", "https://example.org/suite", "0" * 40)
    recipe = Recipe(
        "qv100", "suite", "a", "tuning", source, MeasuredTable("t", "cycles", "cycles"), ("a.cu",), {}, **more
    )
    return Row(recipe, {}, 12.0, True)


def test_macros_are_changed_in_a_copy(recipes: ModuleType, tmp_path: Path) -> None:
    small = recipes.smaller(row(launches=3), "a-64", {"NI": "64", "NJ": "32"})
    (file,) = small.recipe.files
    text = Path(file).read_text()
    assert text == "#define NI 64\n# define NJ\t32\n#define NIL 7\nint x = NI;\n"
    assert small.recipe.include == (str(tmp_path / "src" / "suite"),)  # what it includes lies there
    assert (small.recipe.program, small.recipe.launches, small.measured) == ("a-64", 0, 0.0)
    with pytest.raises(sys.modules["papers"].NotMeasured, match=r"a\.cu: does not define NK"):
        recipes.smaller(row(), "a-64", {"NK": "64"})


def test_arguments_take_the_place_of_others(recipes: ModuleType) -> None:
    source = RecipeSource("simt", "", "")
    full = row(arguments=("100", "0.5"), inputs=(RecipeInput(source, "inputs.py", ("graph", "100", "1000")),))
    small = recipes.smaller(full, "a-10", {"100": "10"}, "b.cu").recipe
    assert small.arguments == ("10", "0.5") and small.inputs[0].arguments == ("graph", "10", "1000")
    assert small.files == ("b.cu",) and small.include == ()
