"""`simt tune`."""

import json
from pathlib import Path
from typing import Any

import pytest
from test_tuner import SMALL, measure
from typer.testing import CliRunner

from simt.cli.tune import app
from simt.errors import SpecError, TuneError
from simt.spec import load_spec, write_toml


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(a) for a in arguments])


@pytest.fixture
def records(tmp_path: Path) -> Path:
    write_toml(load_spec("qv100", SMALL), tmp_path / "small.toml")
    spec = load_spec(tmp_path / "small.toml", {"l1.latency": 40, "sm.units.fp32.latency": 5})
    return measure(spec, ["l1_latency", "fma_latency"], tmp_path / "records.json")


@pytest.mark.slow
def test_files_and_tables(tmp_path: Path, records: Path) -> None:
    out, page, text = tmp_path / "new.toml", tmp_path / "report.html", tmp_path / "report.md"
    sheet = tmp_path / "sheet.toml"
    sheet.write_text('description = "<mine>"\nctas_per_sm = 16\n')
    options = ["--no-search", "--base", tmp_path / "small.toml", "--report", page, "--report", text]
    done = run(sheet, records, "-o", out, *options)
    assert done.exit_code == 0, done.output
    assert " 4 are described, 2 measured, 0 searched and " in done.output
    spec = load_spec(out)
    assert (spec.l1.latency, spec.sm.units.fp32.latency, spec.sm.max_ctas) == (40, 5, 16)
    assert spec.description == "<mine>"
    rows = [line for line in text.read_text().splitlines() if line.startswith("| l1.latency |")]
    assert rows[0] == "| l1.latency | 40 | 28 | measured | l1_latency | to the step |"
    assert rows[1] == "| l1.latency | 40 | measured: l1_latency on small, records.json |"
    html = page.read_text()
    assert "measured: l1_latency on small" in html and "<mine>" not in html
    known_and_inherited = text.read_text().partition("## Sources")[2].count("\n| ")
    assert html.count("<tr>") > known_and_inherited > 100


@pytest.mark.slow
def test_json_on_stdout(tmp_path: Path, records: Path) -> None:
    options = ["--no-search", "--base", tmp_path / "small.toml", "--without", "core", "--quiet"]
    done = run(records, "-o", tmp_path / "new.toml", "--json", "-", *options)
    data = json.loads(done.stdout)
    assert data["schema"] == "simt.tuning/1"
    assert [b["name"] for b in data["benchmarks"]] == ["l1_latency"]
    assert data["error_after"] == 0 and data["error_before"] > 0.2
    found = {p["path"]: p for p in data["parameters"]}
    assert (found["l1.latency"]["value"], found["l1.latency"]["base"]) == (40, 28)
    assert found["sm.units.fp32.latency"]["how"] == "inherited"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            ["records.json", "-o", "new.json"],
            TuneError,
            r"new.json: found the ending '.json', expected .toml",
        ),
        (["a.toml", "b.toml", "-o", "new.toml"], TuneError, "b.toml: a second description"),
        (["a.toml", "-o", "new.toml"], TuneError, "no records"),
        (["none.json", "-o", "new.toml"], TuneError, "none.json: cannot be read"),
        (["records.json", "-o", "new.toml", "--report", "x.pdf"], TuneError, "'.pdf', expected .html or .md"),
        (["records.json", "-o", "new.toml", "--base", "x100"], SpecError, "there is no GPU called 'x100'"),
        (["records.json", "-o", "new.toml", "--without", "x"], TuneError, "no microbenchmark or group 'x'"),
        (["records.json", "-o", "new.toml", "--search", "l1"], SpecError, "l1: unknown field"),
        (["records.json", "-o", "new.toml", "--no-search", "--search", "l1"], TuneError, "contradict"),
    ],
)
def test_bad_input(
    tmp_path: Path,
    records: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    error: type[Exception],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run(*arguments)
    assert isinstance(done.exception, error)
    assert message.replace("\\", "") in str(done.exception)
    assert not (tmp_path / "new.toml").exists()
