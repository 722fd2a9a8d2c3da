"""`simt gpus`."""

import json
from pathlib import Path

import pytest
from accelsim_configurations import CONFIGURATIONS, TRACES, write
from typer.testing import CliRunner

from simt.cli.gpus import app
from simt.errors import SpecError
from simt.gpu import GPU
from simt.spec import available, load_spec, to_toml


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments))
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_list_names_every_gpu() -> None:
    lines = run().splitlines()
    assert [line.split()[0] for line in lines] == ["name", *available()]
    assert lines[1 + available().index("qv100")].split()[1:8] == ["7.0", "80", "1380", "6", "32", "898", "32"]


def test_show_gives_every_value_once() -> None:
    lines = run("show", "qv100").splitlines()
    shown = [line.split()[0] for line in lines[1:-1]]
    assert shown == [path for path, _ in load_spec("qv100").leaves()]
    assert any(line.split()[:2] == ["sm.units.fp32.latency", "4"] for line in lines)
    assert any(line.split()[:2] == ["sm.special_units.constants.count", "4"] for line in lines)
    assert all(len(line.split()) > 2 for line in lines[1:-1])
    assert lines[-1] == f"hash {load_spec('qv100').hash}"


def test_show_with_overrides_and_sources() -> None:
    text = run("show", "qv100", "--set", "sm.count=40", "--set", "dram.simple=true", "--sources")
    rows = {line.split()[0]: line for line in text.splitlines()}
    assert rows["sm.count"].split(maxsplit=2)[1:] == ["40", "override given by the user"]
    assert rows["dram.simple"].split()[1] == "true"
    assert "[R] pointer chase 28 cycles" in rows["l1.latency"]


def test_show_as_json() -> None:
    whole = json.loads(run("show", "qv100", "--json", "-", "--set", "sm.count=40"))
    spec = load_spec("qv100", ["sm.count=40"])
    assert whole == {"hash": spec.hash, "values": spec.values(), "sources": dict(spec.sources)}


def test_compare_shows_only_what_differs() -> None:
    lines = run("compare", "h100", "h200").splitlines()
    paths = [line.split()[0] for line in lines[1:]]
    assert paths == [path for path, _, _ in load_spec("h100").differences(load_spec("h200"))]
    assert "address_map.channels" in paths
    assert "sm.count" not in paths
    assert "same machine" in run("compare", "h100", "h100")


def test_import_writes_a_file_that_loads(tmp_path: Path) -> None:
    config, trace = write(tmp_path, {**CONFIGURATIONS["qv100"], "gpgpu_lrc_enabled": "1"}, TRACES["qv100"])
    output = tmp_path / "my.toml"
    result = CliRunner().invoke(app, ["import", str(config), str(trace), "-o", str(output)])
    assert result.exit_code == 0, result.output
    assert "warning" in result.stderr
    assert "-gpgpu_lrc_enabled" in result.stderr
    assert load_spec(output).hash == load_spec("qv100-accelsim").hash
    assert load_spec(output).name == "my"


def test_errors_reach_the_command_line() -> None:
    with pytest.raises(SpecError, match="did you mean qv100"):
        run("show", "qv10")


def test_a_file_can_be_shown(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(to_toml(load_spec("a100")), encoding="utf-8")
    assert run("show", str(path)).splitlines()[1].split()[:2] == ["name", "mine"]


@pytest.mark.parametrize(("name", "gib"), [("h100", 80), ("h200", 141), ("a100", 80), ("rtx3070", 8)])
def test_device_memory_is_the_data_sheet_s(name: str, gib: int) -> None:
    assert GPU(name, functional=True).memory.capacity == gib << 30
    spec = load_spec(name)
    assert spec.sources["dram.capacity_gib"].startswith("[K] data sheet")
    assert load_spec(name, {"dram.capacity_gib": 1}).hash == spec.hash  # no effect on timing
