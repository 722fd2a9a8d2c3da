"""The pages of the five papers are what their scripts make of the Parquet beside them."""

from __future__ import annotations

import gzip
import importlib
import re
import struct
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import polars as pl
import pytest

ROOT = Path(__file__).resolve().parents[2]
PAPERS = ROOT / "docs" / "papers"
NAMES = re.findall(r"\(([\w-]+)\.md\)", (PAPERS / "README.md").read_text())[:5]
HAVE = {"pka": (10, 4), "stem": (10, 2), "photon": (17, 2), "accel-sim": (9, 8), "lew": (10, 0)}
"""How many figures and tables each paper has; of Lew et al., those in the text at hand."""


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
def test_every_table_and_figure_has_its_line(frame: ModuleType, name: str) -> None:
    found: dict[str, list[str]] = {"Figure": [], "Table": []}
    for item in paper(frame, name).items:  # type: ignore[attr-defined]
        for kind, numbers in re.findall(r"(Figure|Table)s? ([^;]*)", item.name):
            found[kind] += numbers_of(numbers)
    figures, tables = HAVE[name]
    roman = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII"]
    wanted = roman[:tables] if "I" in found["Table"] else [str(i + 1) for i in range(tables)]
    assert (set(found["Figure"]), set(found["Table"])) == ({str(i + 1) for i in range(figures)}, set(wanted))


def numbers_of(text: str) -> list[str]:
    """Of "2, 4b to 4i, 13 and 14": 2, 4, 13, 14."""
    return re.findall(r"\b(\d+|[IVX]+)[a-z]?\b", text)


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

    clock = iter([0.0, 0.0, 0.0, 3.0])
    with monkeypatch.context() as patched:
        patched.setattr(frame, "spent", lambda: next(clock, 90.0))
        frame.measure(own, part, 1.0)  # after `a`, the minute is over
    assert made == ["a"] and "Not measured within the time for this part: b." in frame.page(own)
    frame.measure(own, part, 1.0)
    minutes = float(pl.read_parquet_metadata(own.data("one"))["minutes"])
    assert minutes == pytest.approx(3 / 60, abs=0.05)  # with the piece of before
    assert made == ["a", "b"] and own.frame("one")["key"].to_list() == ["a", "b"]
    text = frame.page(own)
    assert "2 rows of one" in text and "Not measured within" not in text
    assert (
        frame.digest(own.data("one")) in text
        and "| Table 1 | there | here | [One](#one); `own.py one` |" in text
    )


@pytest.mark.parametrize("packed", [False, True])
def test_images_in_mnists_format_are_read(
    frame: ModuleType, packed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lew = importlib.import_module("lew")
    pixels = np.random.default_rng(0).integers(0, 256, (5, 28, 28), np.uint8)
    images = bytes.fromhex("00000803 00000005 0000001c 0000001c") + pixels.tobytes()
    labels = bytes.fromhex("00000801 00000005 0701020904")

    def write(images: bytes, labels: bytes) -> None:
        for name, data in (("t10k-images-idx3-ubyte", images), ("t10k-labels-idx1-ubyte", labels)):
            (tmp_path / (f"{name}.gz" if packed else name)).write_bytes(
                gzip.compress(data) if packed else data
            )

    monkeypatch.setenv("SIMT_MNIST", str(tmp_path))
    with pytest.raises(frame.NotMeasured, match="t10k-images-idx3-ubyte"):
        lew.images()
    write(images, labels)
    found, numbers, source = lew.images()
    assert (
        found.shape == (5, 1, 28, 28)
        and (found[3, 0] * 255).round().astype(int).tolist() == pixels[3].tolist()
    )
    assert numbers.tolist() == [7, 1, 2, 9, 4] and source == "MNIST"
    write(images[:-1], labels)
    with pytest.raises(frame.NotMeasured, match="3,919 bytes of values, expected 3,920"):
        lew.images()
    write(b"\x1f\x8b" + images, labels)
    with pytest.raises(frame.NotMeasured, match="begins with 1f8b0000"):
        lew.images()
    write(images, labels[:4] + bytes.fromhex("00000004 07010209"))
    with pytest.raises(frame.NotMeasured, match="labels"):
        lew.images()
