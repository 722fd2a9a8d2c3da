"""Reading energies: bad files are refused with file, place and reason, and nothing else happens."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import simt.spec
from simt.errors import PowerError
from simt.power import Energies, available, load_energies
from simt.power.energies import parse
from simt.power.fit import to_toml

TEXT = (Path(simt.spec.__file__).parent / "gpus" / "power" / "qv100.toml").read_text()


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("[tensor]", "[tensors]", "f: unknown section 'tensors'"),
        ("int_add = {", "int_ad = {", "f: instructions.int_ad: unknown value; did you mean"),
        ("\nbarrier = {", "\n#", "f: instructions.barrier is missing: barriers and fences"),
        (
            "reads = 2, writes = 1",
            "reads = 64, writes = 64",
            "more than its total",
        ),
        ("reads = 2", "reads = 65", "reads and writes must be 0 to 64"),
        ("value = 98", "value = -1", "f: front_end.issue: found -1, expected a number of at least 0"),
        ("value = 98", "value = nan", "front_end.issue: found nan"),
        ("value = 98", 'value = "98"', "front_end.issue: found '98'"),
        ("value = 98", "valeu = 98", "front_end.issue: unknown field 'valeu'"),
        ("value = 98,", "", "front_end.issue: value is missing"),
        ("[135, 0.712]", "[135, 0.9]", "points must ascend in MHz and not fall in V"),
        ("[135, 0.712]", "[135]", "expected a value with"),
        (
            'origin = "published"',
            'origin = "guessed"',
            "origin is 'guessed', expected one of published, scaled",
        ),
        ("[front_end]", "[front_end", "f: not valid TOML"),
        (
            "[front_end]",
            '[opcodes]\nRTCORE = "texture"\n[front_end]',
            r"f: opcodes.RTCORE: found 'texture', expected a value of instructions or tensor, such as",
        ),
        (
            "[front_end]",
            '[opcodes]\nRTCORE = "memory.shared_pass"\n[front_end]',
            "f: opcodes.RTCORE: found 'memory.shared_pass'",
        ),
        ("[front_end]", "[opcodes]\nRTCORE = 3\n[front_end]", "f: opcodes.RTCORE: found 3"),
        (
            "[front_end]",
            '[opcodes]\n"RTCORE.X" = "instructions.texture"\n[front_end]',
            r"f: opcodes.RTCORE.X: found 'RTCORE.X', expected an opcode such as LDG",
        ),
    ],
)
def test_a_bad_file_is_refused(old: str, new: str, message: str) -> None:
    assert old in TEXT
    with pytest.raises(PowerError, match=message):
        parse(TEXT.replace(old, new, 1), "qv100", "f")


@settings(max_examples=60, deadline=None)
@given(st.integers(0, len(TEXT) - 1), st.integers(0, 40), st.text(max_size=12))
def test_damage_is_refused_or_harmless(at: int, length: int, other: str) -> None:
    try:
        found = parse(TEXT[:at] + other + TEXT[at + length :], "qv100", "f")
    except PowerError as error:
        assert "f: " in str(error)
    else:
        assert all(each.value >= 0 for each in found.values.values())


@pytest.mark.parametrize("name", available())
def test_json_keeps_everything(name: str) -> None:
    energies = load_energies(name)
    assert Energies.from_json(json.loads(json.dumps(energies.to_json()))) == energies


OPCODES = '[opcodes]\nRTCORE = "instructions.texture"\nXMMA = "tensor.fp8"\nFADD = "instructions.fp32_mul"\n'


def test_opcodes_have_the_energies_that_the_file_gives_them() -> None:
    found = parse(f"{TEXT}\n{OPCODES}", "qv100", "f")
    assert found.of_opcode("RTCORE.RAY") == ("instructions.texture", 0)
    assert found.of_opcode("XMMA.16816.F32") == ("tensor.fp8", 16 * 8 * 16)
    assert found.of_opcode("FADD.FTZ") == ("instructions.fp32_mul", 0)
    assert found.of_opcode("FMUL") == ("instructions.fp32_mul", 0)  # simt's own
    plain = load_energies("qv100")
    assert plain.of_opcode("RTCORE") == ("instructions.int_add", 0) and not plain.has_opcode("RTCORE")
    assert found.has_opcode("RTCORE") and found.has_opcode("XMMA.16816") and not found.has_opcode("XMMA")
    assert Energies.from_json(json.loads(json.dumps(found.to_json()))) == found
    assert parse(to_toml(found), "qv100", "f").opcodes == found.opcodes
    assert "opcodes" not in plain.to_json()


def test_broken_json_is_refused() -> None:
    data = load_energies("qv100").to_json()
    for key in data.keys() - {"name"}:
        with pytest.raises(PowerError):
            Energies.from_json({**data, key: [7]})
    del data["values"]["power.board"]
    with pytest.raises(PowerError, match=r"power\.board"):
        Energies.from_json(data)
