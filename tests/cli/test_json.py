"""`--json`: every command that prints a table has it, and standard output then holds nothing but JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from simt.cli import COMMANDS, app

# What these print is no table.
WITHOUT = {
    "cache clear": "a line",
    "debug record": "a line",
    "gpus import": "a line",
    "policy build": "a line for each policy",
    "policy remove": "a line for each policy",
    "sass show": "a listing",
    "trace convert": "a line",
    "trace generate": "a line",
}
RUN = [
    "bench list",
    "cache info",
    "gpus",
    "gpus compare a100 h100",
    "gpus fields sm.scheduler",
    "gpus show a100",
    "policy list",
    "power gpus",
    "power gpus a100",
    "sample methods",
]


def leaves(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """The commands that do something, with the words that call them."""
    inner = getattr(command, "commands", {})
    if not inner or command.invoke_without_command:
        yield name, command
    for each, one in inner.items():
        yield from leaves(one, f"{name} {each}")


def every_command() -> dict[str, Any]:
    found = {}
    for name in COMMANDS:
        found |= dict(leaves(typer.main.get_command(import_module(f"simt.cli.{name}").app), name))
    return found


def test_every_command_with_a_table_has_json() -> None:
    commands = every_command()
    options = {name: {o for p in x.params for o in p.opts} for name, x in commands.items()}
    assert len(commands) > 30 and set(WITHOUT) <= set(commands)
    assert {name for name, given in options.items() if "--json" not in given} == set(WITHOUT)


@pytest.mark.parametrize("command", RUN)
def test_standard_output_is_json(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMT_CACHE", str(tmp_path / "cache"))  # that of other tests grows meanwhile
    told = CliRunner().invoke(app, [*command.split(), "--json", "-"])
    assert told.exit_code == 0, told.output
    found = json.loads(told.stdout)
    file = tmp_path / "out.json"
    assert CliRunner().invoke(app, [*command.split(), "--json", str(file)]).exit_code == 0
    assert json.loads(file.read_text()) == found


def test_numbers_are_numbers() -> None:
    rows = json.loads(CliRunner().invoke(app, ["gpus", "--json", "-"]).stdout)
    a100 = next(row for row in rows if row["name"] == "a100")
    assert (a100["SMs"], a100["cc"]) == (108, 8.0) and 1500 < a100["GB/s"] < 2100
