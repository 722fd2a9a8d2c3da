"""The pages of the five papers are what their scripts make of the Parquet beside them."""

from __future__ import annotations

import importlib
import re
import struct
import sys
from pathlib import Path
from types import ModuleType

import polars as pl
import pytest

ROOT = Path(__file__).resolve().parents[2]
PAPERS = ROOT / "docs" / "papers"
NAMES = re.findall(r"\(([\w-]+)\.md\)", (PAPERS / "README.md").read_text())[:5]


@pytest.fixture(scope="module")
def frame() -> ModuleType:
    sys.path.insert(0, str(PAPERS / "scripts"))
    return importlib.import_module("papers")


def paper(frame: ModuleType, name: str) -> object:
    found = vars(importlib.import_module(name.replace("-", "_")))
    return next(value for value in found.values() if isinstance(value, frame.Paper) and value.name == name)


def source_of(png: Path) -> str:
    """What a plot's metadata says it was drawn from."""
    data, at = png.read_bytes(), 8
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        if data[at + 4 : at + 8] == b"tEXt":
            key, _, value = data[at + 8 : at + 8 + length].partition(b"\0")
            if key == b"Source":
                return value.decode()
        at += length + 12
    return ""


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_made_of_its_parquet(frame: ModuleType, name: str) -> None:
    text = (PAPERS / f"{name}.md").read_text()
    assert text == frame.page(paper(frame, name), draw=False), (
        f"docs/papers/scripts/{name}.py --page writes it"
    )


@pytest.mark.parametrize("name", NAMES)
def test_plots_are_drawn_from_the_parquet_that_is_there(frame: ModuleType, name: str) -> None:
    marks = {frame.digest(file) for file in (PAPERS / "data" / name).glob("*.parquet")}
    text = (PAPERS / f"{name}.md").read_text()
    shown = {PAPERS / link for link in re.findall(r"\]\((images/[^)]+)\)", text)}
    assert {plot for plot in shown if source_of(plot) not in marks} == set()
    assert set((PAPERS / "images").glob(f"{name}-*.png")) == shown


@pytest.mark.parametrize("name", NAMES)
def test_rows_say_when_and_where_they_were_measured(frame: ModuleType, name: str) -> None:
    files = sorted((PAPERS / "data" / name).glob("*.parquet"))
    assert {file.stem for file in files} <= {part.name for part in paper(frame, name).parts}  # type: ignore[attr-defined]
    for file in files:
        about = pl.read_parquet_metadata(file)
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", about["date"]) and re.match(r"[0-9a-f]{8}", about["commit"])
        assert "cores" in about["machine"]


def test_a_part_goes_on_where_it_was_stopped(
    frame: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frame, "WORK", tmp_path / "work")
    monkeypatch.setattr(frame, "PAPERS", tmp_path / "papers")
    monkeypatch.setattr(frame, "engine_hash", lambda: "engine")
    made: list[str] = []

    def rows(key: str) -> list[dict[str, object]]:
        made.append(key)
        return [{"key": key, "plot": 1.5}]

    def measure(steps: object) -> pl.DataFrame:
        return pl.DataFrame([row for key in "ab" for row in steps.rows(key, lambda key=key: rows(key))])  # type: ignore[attr-defined]

    part = frame.Part("one", "One", measure, lambda section, found: f"{len(found)} rows of {section.part}")
    own = frame.Paper("own", "Own", "About.", [frame.Item("Table 1", "there", "here", "one")], [part])
    assert "Not measured" in frame.page(own)

    real, clock = frame.time.monotonic, iter([0.0, 0.0, 0.0, 0.0, 90.0])
    monkeypatch.setattr(frame.time, "monotonic", lambda: next(clock, 90.0))
    frame.measure(own, part, 1.0)  # after `a`, the minute is over
    monkeypatch.setattr(frame.time, "monotonic", real)
    assert made == ["a"] and "Not measured within the time for this part: b." in frame.page(own)
    frame.measure(own, part, 1.0)
    assert made == ["a", "b"] and own.frame("one")["key"].to_list() == ["a", "b"]
    text = frame.page(own)
    assert "2 rows of one" in text and "Not measured within" not in text
    assert (
        frame.digest(own.data("one")) in text
        and "| Table 1 | there | here | [One](#one); `own.py one` |" in text
    )
