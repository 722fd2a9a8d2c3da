"""`simt trace` from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from slow_reader import cta, header
from typer.testing import CliRunner

from simt.cli.trace import app
from simt.trace import open_trace

runner = CliRunner()
LINES = ["0000 ffffffff 1 R1 MOV 0 0 0", "0010 ffffffff 0 EXIT 0 0 0"]


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    (tmp_path / "kernel-1.traceg").write_text(header(kernel_name="first[bold]") + cta("0,0,0", LINES))
    (tmp_path / "kernelslist.g").write_text("MemcpyHtoD,0x10,64\nkernel-1.traceg\n")
    return tmp_path


def test_info(trace: Path) -> None:
    result = runner.invoke(app, ["info", str(trace)])
    assert result.exit_code == 0
    assert "first[bold]" in result.stdout.replace("\n", "")
    assert "1 launches, 1 copies" in result.stdout
    shown = json.loads(runner.invoke(app, ["info", str(trace), "--counts", "--json", "-"]).stdout)
    assert shown["commands"][0] == {"copy": {"address": 16, "bytes": 64}}
    assert shown["commands"][1]["kernel"]["counts"]["instructions"] == 2
    assert shown["commands"][1]["kernel"]["grid"] == [4, 1, 1]


def test_check(trace: Path) -> None:
    good = runner.invoke(app, ["check", str(trace)])
    assert (good.exit_code, "good" in good.stdout) == (0, True)
    (trace / "kernel-1.traceg").write_text("junk\n")
    bad = runner.invoke(app, ["check", str(trace), "--json", "-"])
    assert bad.exit_code == 1
    assert "line 1" in json.loads(bad.stdout)["kernels"][0]["problem"]
    assert runner.invoke(app, ["check", str(trace)]).exit_code == 1


def test_convert_and_back(trace: Path, tmp_path: Path) -> None:
    store, text = tmp_path / "a.simt", tmp_path / "text"
    assert runner.invoke(app, ["convert", str(trace), str(store)]).exit_code == 0
    assert runner.invoke(app, ["convert", str(store), str(text), "--text", "--quiet"]).exit_code == 0
    assert open_trace(text).kernels[0].counts["instructions"] == 2


def test_generate(tmp_path: Path) -> None:
    result = runner.invoke(
        app, ["generate", str(tmp_path / "g"), "streaming", "--size", "2000", "--sm", "70"]
    )
    assert result.exit_code == 0
    assert open_trace(tmp_path / "g").kernels[0].sm_version == 70


@pytest.mark.parametrize("command", [["info"], ["check"], ["convert"], ["generate"]])
def test_errors_are_one_line_and_status_2(command: list[str], tmp_path: Path) -> None:
    more = {"convert": [str(tmp_path / "x.simt")], "generate": ["nonsense"]}.get(command[0], [])
    result = runner.invoke(app, [*command, str(tmp_path / "missing"), *more])
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["info", "check", "convert", "generate"])
def test_help_has_examples(command: str) -> None:
    result = runner.invoke(app, [command, "--help"])
    assert f"simt trace {command}" in result.stdout
