"""The saved form of thousands of launches: nothing is lost, and it stays small."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from referencing import Registry, Resource

import simt
from simt._engine import COUNTERS
from simt.errors import ResultError
from simt.result import Result
from simt.result.columns import compact, expanded
from simt.schemas import files
from support.fake_gpu import installed
from support.launches import MACHINE, launch

FOLDER = Path(simt.__file__).parent / "result"

_numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
_values = st.recursive(
    st.none() | st.booleans() | _numbers | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
_rows = st.lists(
    st.dictionaries(st.sampled_from(["a", "b", "same", "pool", "fields"]), _values, max_size=4), max_size=6
)


@pytest.mark.slow
@given(_rows)
def test_columns_give_back_the_same_rows(rows: list[dict[str, Any]]) -> None:
    data = {"schema": "simt.result/1", "launches": [{**row, "index": i} for i, row in enumerate(rows)]}
    saved = json.loads(json.dumps(compact(data)))
    assert json.dumps(expanded(saved), sort_keys=True) == json.dumps(data, sort_keys=True)


def many(count: int, launch_of: Any) -> Result:
    with installed():
        base = simt.simulate("input")
    return Result(tuple(launch_of(i) for i in range(count)), MACHINE, base.provenance)


def busy_launch(i: int) -> Any:
    """No two values are equal, names are long, and every counter counts."""
    random.seed(i)
    x = launch(i, name=f"void cutlass::Kernel<cutlass::gemm::GemmUniversal<float, {i % 40}>>(Params)" * 3)
    x.engine.update({name: random.randrange(10**7) for name in COUNTERS})
    for table in (x.l1, x.l2):
        for kind in ("global_read", "global_write", "atomic"):
            table[kind].update({outcome: random.randrange(10**6) for outcome in table[kind]})
    x.warp_stalls.update({reason: random.randrange(10**8) for reason in x.warp_stalls})
    x.stalls.update({reason: [random.randrange(10**7) for _ in range(4)] for reason in x.stalls})
    return x


@pytest.mark.slow
def test_result_json_of_1500_launches_is_at_most_2_mb(tmp_path: Path) -> None:
    result = many(1500, busy_launch)
    result.save(tmp_path / "out")
    assert (tmp_path / "out" / "result.json").stat().st_size <= 2_000_000
    assert Result.load(tmp_path / "out") == result


def test_saved_file_follows_its_schema(tmp_path: Path) -> None:
    result = many(3, lambda i: launch(i, interval=500 * (i % 2)))
    result.save(tmp_path / "out.json")
    data = json.loads((tmp_path / "out.json").read_text())
    first, second = (json.loads((FOLDER / f"simt.result-{n}.schema.json").read_text()) for n in (1, 2))
    registry = Registry().with_resource("simt.result/1", Resource.from_contents(first))
    validator = jsonschema.Draft202012Validator(second, registry=registry)
    validator.validate(data)
    parts = {**first["$defs"], "LaunchResult": first["$defs"]["LaunchResult"] | {"required": ["id"]}}
    jsonschema.validate(expanded(data)["launches"][0], {"$ref": "#/$defs/LaunchResult", "$defs": parts})
    data["launches"]["cycles"] = {"pool": [1]}
    assert not validator.is_valid(data)


@pytest.mark.parametrize(
    "change",
    [
        {"cycles": {"same": 1, "pool": []}},
        {"cycles": [1]},
        {"cycles": {"pool": [1], "index": [0, 5]}},
        {"cycles": {"pool": [1], "index": [0, -2]}},
        {"engine": {"fields": {"ctas": 3}, "absent": []}},
        {"engine": {"fields": [], "absent": []}},
        {"engine": {"fields": {}, "absent": [2]}},
        {"index": {"same": 1}},
    ],
)
def test_broken_columns_are_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    many(2, launch).save(tmp_path / "out.json")
    data = json.loads((tmp_path / "out.json").read_text())
    data["launches"].update(change)
    (tmp_path / "out.json").write_text(json.dumps(data))
    with pytest.raises(ResultError, match=r"out\.json: broken Result: launches"):
        Result.load(tmp_path / "out.json")


def test_files_of_the_first_schema_are_read(tmp_path: Path) -> None:
    result = many(3, launch)
    data = result.to_json(detail=True)
    (tmp_path / "old.json").write_text(json.dumps(data))
    assert Result.load(tmp_path / "old.json") == result
    # What has been added since, or follows from the rest.
    added = {
        "machine": ["dram_banks", "dram_refresh_cycles"],
        "provenance": ["full_wall_seconds", "identity"],
    }
    for part, names in {**added, "totals": ["launch_latency", "counters"]}.items():
        for name in names:
            del data[part][name]
    for row in data["launches"]:
        for name in ("annotation", "counters", "cycles", "spread"):
            del row[name]
    (tmp_path / "old.json").write_text(json.dumps(data))
    old = Result.load(tmp_path / "old.json")
    assert [x.cycles for x in old.launches] == [x.cycles for x in result.launches]
    assert (old.machine.dram_banks, old.provenance.full_wall_seconds) == (0, None)


def test_the_schemas_are_those_of_the_classes() -> None:
    for file, text in files().items():
        assert file.read_text(encoding="utf-8") == text, f"{file}: run `make generate`"


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [
        ("machine", "sm_count", 0),
        ("machine", "sm_cuont", 1),
        ("provenance", "threads", 0),
        ("provenance", "jobs", 1),
        ("launch", "registers", -1),
        ("launch", "grid", [1, 1]),
    ],
)
def test_what_is_outside_the_range_of_a_field_is_refused(
    part: str, name: str, value: Any, tmp_path: Path
) -> None:
    data = many(1, launch).to_json(detail=True)
    (data["launches"][0] if part == "launch" else data[part])[name] = value
    (tmp_path / "out.json").write_text(json.dumps(data))
    with pytest.raises(ResultError, match=f"broken Result: .*{name}"):
        Result.load(tmp_path / "out.json")
