"""The way of a specification into the engine."""

from __future__ import annotations

import copy
from typing import Any, get_args, get_origin

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simt import _engine
from simt.errors import SpecError
from simt.spec import available, load_spec
from simt.spec.files import _fields


@pytest.mark.parametrize("name", available())
def test_shipped_gpus_arrive_unchanged(name: str) -> None:
    native = load_spec(name).native()
    assert _engine.spec_roundtrip(native) == native


def test_clocks_become_whole_kilohertz() -> None:
    assert load_spec("rtx3070").native()["clock"]["dram_khz"] == 3_500_500


def _leaf(path: str, kind: Any) -> st.SearchStrategy[Any]:
    if kind is bool:
        return st.booleans()
    if get_origin(kind) is not None and get_args(kind) and isinstance(get_args(kind)[0], str):
        return st.sampled_from(get_args(kind))
    if path == "l1.carve_out_options":
        return st.lists(st.integers(0, 2**32 - 1), max_size=12)
    if kind is str:
        return st.text(max_size=40)
    return st.integers(0, 2**32 - 1)


@st.composite
def native_values(draw: st.DrawFn) -> dict[str, Any]:
    """Any native dict of the right shape: what the engine must carry, whether it makes sense or not."""
    values = load_spec("qv100").native()
    for path, field in _fields().items():
        if path in ("description", "dram.capacity_gib") or path.startswith("clock."):
            continue
        *sections, last = path.split(".")
        table = values
        for section in sections:
            table = table[section]
        table[last] = draw(_leaf(path, field.annotation))
    values["clock"] = {key: draw(st.integers(0, 2**64 - 1)) for key in values["clock"]}
    values["policy"] = {key: draw(st.integers(0, 2**64 - 1)) for key in values["policy"]}
    return values


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(native_values())
def test_every_field_arrives_unchanged(values: dict[str, Any]) -> None:
    assert _engine.spec_roundtrip(values) == values


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        ("sm.units.fp32.latency", None, "missing"),
        ("sm.units.fp32.latency", -1, "expected an integer"),
        ("sm.units.fp32.latency", 2**32, "expected an integer"),
        ("sm.units.fp32.latency", True, "expected an integer"),
        ("sm.units.fp32.latency", 4.0, "expected an integer"),
        ("sm.units.fp32.latencies", 4, "unknown"),
        ("sm.scheduler.policy", "fastest", "expected one of lrr, gto"),
        ("sm.scheduler.policy", 1, "expected a string"),
        ("dram.simple", 1, "expected a bool"),
        ("dram", 3, "expected a dict"),
        ("l1.carve_out_options", [1, -2], "expected an integer"),
        ("l1.carve_out_options", 4, "expected a list"),
        ("more", 1, "unknown"),
    ],
)
def test_the_engine_refuses_what_it_does_not_know(path: str, value: Any, reason: str) -> None:
    values = copy.deepcopy(load_spec("qv100").native())
    *sections, last = path.split(".")
    table = values
    for section in sections:
        table = table[section]
    if value is None:
        del table[last]
    else:
        table[last] = value
    with pytest.raises(ValueError, match="specification: ") as error:
        _engine.spec_roundtrip(values)
    assert path in str(error.value)
    assert reason in str(error.value)


def test_policies_travel_as_addresses() -> None:
    spec = load_spec("qv100", ["sm.scheduler.policy=custom", "address_map.hash=custom"])
    native = spec.native({"scheduler": 4096, "slice_hash": 8192})
    assert native["policy"] == {
        "scheduler": 4096,
        "l1_replacement": 0,
        "l2_replacement": 0,
        "slice_hash": 8192,
    }
    assert _engine.spec_roundtrip(native) == native


def test_custom_policies_and_functions_belong_together() -> None:
    with pytest.raises(SpecError, match="no function was given for policy 'scheduler'"):
        load_spec("qv100", ["sm.scheduler.policy=custom"]).native()
    with pytest.raises(SpecError, match=r"set sm\.scheduler\.policy=custom"):
        load_spec("qv100").native({"scheduler": 4096})
    with pytest.raises(SpecError, match="no policy called 'dram'"):
        load_spec("qv100").native({"dram": 4096})
