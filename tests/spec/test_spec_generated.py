"""Files generated from the engine's list of fields, and the policies that register themselves."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from simt import _engine
from simt.cli.gpus import app
from simt.errors import SpecError
from simt.spec import available, describe, load_spec
from simt.spec.files import choices
from simt.spec.generate import files, page

ROOT = Path(__file__).resolve().parents[2]
POLICY_FIELDS = {
    "sm.scheduler.policy": "scheduler",
    "l1.cache.replacement": "replacement",
    "l1.cache.write_policy": "write_policy",
    "l2.slice.set_index": "set_index",
    "address_map.hash": "slice_hash",
    "dram.scheduler": "dram_scheduler",
}


def test_models_types_and_reference_are_up_to_date() -> None:
    generated = files() | {ROOT / "docs" / "specification.md": page()}  # an installed package has no docs
    assert {file.name for file in generated} == {"sections.py", "native.py", "specification.md"}
    for file, text in generated.items():
        assert file.read_text(encoding="utf-8") == text, f"{file}: run `make generate`"


@pytest.mark.parametrize(("path", "kind"), POLICY_FIELDS.items())
def test_registered_policies_are_found_by_name(path: str, kind: str) -> None:
    registered = _engine.policies()[kind]
    assert choices(path) == tuple(registered) == tuple(sorted(registered))
    assert all(policy["meaning"].endswith(".") for policy in registered.values())
    reference = page()
    shown = CliRunner().invoke(app, ["fields", path]).stdout
    for name, policy in registered.items():
        assert f"| `{name}` | {policy['meaning']}" in reference
        assert policy["meaning"] in shown


@pytest.mark.parametrize("path", POLICY_FIELDS)
def test_an_unknown_policy_names_those_there_are(path: str) -> None:
    names = choices(path)
    assert names
    with pytest.raises(SpecError) as error:
        load_spec("qv100", {path: names[-1] + "x"})
    assert f"{path}: found '{names[-1]}x', expected one of {', '.join(names)}; did you mean" in str(
        error.value
    )


def test_every_kind_of_policy_of_the_engine_is_a_field() -> None:
    assert set(_engine.policies()) == set(POLICY_FIELDS.values())


def test_fields_are_listed_with_range_and_unit() -> None:
    lines = CliRunner().invoke(app, ["fields"]).stdout.splitlines()
    rows = {line.split()[0]: " ".join(line.split()) for line in lines if line}
    assert set(describe()) <= set(rows)
    assert rows["sm.max_warps"] == "sm.max_warps 1 to 64 warps Resident warps per SM."
    assert "0 to 67108864 bytes" in rows["l1.carve_out_options"]
    unknown = CliRunner().invoke(app, ["fields", "sm.maxwarps"])
    assert "did you mean sm.max_warps" in str(unknown.exception)


@pytest.mark.parametrize("name", available())
def test_shipped_gpus_leave_nothing_to_the_engine(name: str) -> None:
    """The engine's schema and the models have the same fields."""

    def paths(section: str, prefix: str) -> list[str]:
        found = []
        for field in sections[section]["fields"]:
            if field["type"] == "sections":
                for unit in load_spec(name).sm.special_units:
                    found += paths(field["of"], f"{prefix}{field['name']}.{unit}.")
                continue
            inner = field["type"] == "section"
            found += paths(field["of"], f"{prefix}{field['name']}.") if inner else [prefix + field["name"]]
        return found

    sections = {section["name"]: section for section in _engine.spec_schema()["sections"]}
    assert paths("Spec", "") == [path for path, _ in load_spec(name).leaves()]
