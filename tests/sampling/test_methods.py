"""Properties of every method in the registry."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

import simt.sampling
from simt.profile import read_profile
from simt.sampling import registry
from simt.sampling.checks import example_profile
from simt.sampling.plan import schema

FILE = Path(simt.sampling.__file__).parent / "simt.plan-1.schema.json"
SCHEMA = json.loads(FILE.read_text(encoding="utf-8"))


@pytest.mark.slow
@pytest.mark.parametrize("name", registry.METHODS)
def test_plans_follow_the_schema(name: str) -> None:
    plan = registry.find(name)().fit_plan(example_profile())
    text = plan.to_json()
    jsonschema.validate(json.loads(text), SCHEMA)
    assert "NaN" not in text and "Infinity" not in text


def test_the_schema_is_that_of_the_class() -> None:
    assert FILE.read_text(encoding="utf-8") == schema(), f"{FILE}: run `make generate`"
    for part in (SCHEMA, *SCHEMA["$defs"].values()):
        assert set(part["required"]) == set(part["properties"])


def test_an_nsight_file_of_2018_serves_methods_that_need_counters(shared_data: Path) -> None:
    profile = read_profile(shared_data / "profiles" / "vectoradd_100.ncu.csv")
    for method in ("first-n", "pks", "tbpoint", "sieve"):
        assert registry.make(method).fit_plan(profile).population == 3
