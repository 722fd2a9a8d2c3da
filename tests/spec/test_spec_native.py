"""How a specification reaches the engine."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic.fields import FieldInfo

from simt import _engine
from simt.spec import available, load_spec
from simt.spec.files import ANY_NAME, _fields, choices, range_of
from simt.spec.section import Megahertz, Quantity


@pytest.mark.parametrize("name", available())
def test_shipped_gpus_arrive_unchanged(name: str) -> None:
    native = load_spec(name).native()
    assert _engine.spec_roundtrip(native) == native


def _leaf(path: str, field: FieldInfo) -> st.SearchStrategy[Any]:
    if options := choices(path):
        return st.sampled_from(options)
    rule = range_of(field)
    if isinstance(rule, Megahertz):
        return st.integers(1000 * rule.least, 1000 * rule.most).map(lambda khz: khz / 1000)
    if path.endswith(".opcodes"):
        return st.lists(st.text(max_size=12), max_size=4)
    if path == "l1.carve_out_options":
        return st.lists(st.integers(0, 2**26), max_size=12)
    if not isinstance(rule, Quantity):
        return st.text(max_size=40)
    if not rule.power_of_two:
        return st.integers(rule.least, rule.most)
    powers = [1 << bit for bit in range(rule.most.bit_length()) if 1 << bit >= rule.least]
    return st.sampled_from([0, *powers] if rule.least == 0 else powers)


_NAME = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)


@st.composite
def native_values(draw: st.DrawFn) -> dict[str, Any]:
    """Any native dict of the right shape: the engine must carry it, whether it makes sense or not."""
    values = load_spec("qv100").native()
    units = values["sm"]["special_units"]
    units.update({name: {} for name in draw(st.lists(_NAME, max_size=3, unique=True))})
    for path, field in _fields().items():
        *sections, last = path.split(".")
        tables = [values]
        for section in sections:
            tables = [
                t for table in tables for t in (table.values() if section == ANY_NAME else [table[section]])
            ]
        for table in tables:
            table[last] = draw(_leaf(path, field))
    return values


@pytest.mark.slow
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
        ("sm.scheduler.policy", "fastest", "expected one of cggty, gto, lrr"),
        ("sm.scheduler.policy", 1, "expected a string"),
        ("sm.max_warps", 65, "1 to 64"),
        ("dram.banks", 48, "a power of two, 1 to 64"),
        ("clock.core_mhz", 0, "1 to 100000"),
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
